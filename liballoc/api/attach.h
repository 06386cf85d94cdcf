// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_API_ATTACH_H
#define HCAMEM_API_ATTACH_H

#include <memory>

#include <hcamem.h>

#include "verbs/registrar.h"

namespace hcamem::core {

/// hcamem_attach() with any registrar: also one that has no HCA. The pool is alive and
/// this process's.
int attach_with(hcamem_pool* handle, std::unique_ptr<registrar> with,
                hcamem_binding** made) noexcept;

} // namespace hcamem::core

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_API_ATTACH_SHARED_H
#define HCAMEM_API_ATTACH_SHARED_H

#include <memory>

#include <hcamem/shared.h>

#include "verbs/registrar.h"

namespace hcamem::core {

/// hcamem_shared_attach() with any registrar: also one that has no HCA. The heap is open.
int attach_shared_with(hcamem_shared* handle, std::unique_ptr<registrar> with,
                       hcamem_binding** made) noexcept;

} // namespace hcamem::core

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_OPTIONS_HPP
#define HCAMEM_OPTIONS_HPP

#include <hcamem.h>

namespace hcamem {

/// hcamem_options that start as the defaults with the environment's changes;
/// hcamem.h documents the fields and the variables.
struct options : hcamem_options {
    options() noexcept : hcamem_options{} { hcamem_options_init(this, sizeof(hcamem_options)); }
};

} // namespace hcamem

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_ERROR_STRERROR_H
#define HCAMEM_ERROR_STRERROR_H

namespace hcamem::core {

/// What an errno (or its negative) means when this library returns it. Static text.
const char* explain(int error) noexcept;

} // namespace hcamem::core

#endif

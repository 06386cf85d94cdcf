// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A protection domain without an HCA. The program's own definitions of libibverbs'
// registration calls stand before libibverbs', so the library is measured as it is installed;
// the fake of the unit tests reaches into the library instead.
#ifndef BENCH_SUPPORT_FAKE_VERBS_HPP
#define BENCH_SUPPORT_FAKE_VERBS_HPP

#include <infiniband/verbs.h>

namespace bench {

/// Valid until the process ends. Registrations with it succeed and have keys of their own.
ibv_pd* fake_domain();

} // namespace bench

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef BENCH_SUPPORT_ROOM_FOR_TLS_HPP
#define BENCH_SUPPORT_ROOM_FOR_TLS_HPP

namespace bench {

/// Starts this program anew with more room for the thread-local data of libraries that are
/// loaded later: an allocator's is of the fast kind, which must fit in there. Returns in the
/// program that has the room.
void ensure_room_for_tls(char** arguments);

} // namespace bench

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "pressure/pressure_watch.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <rdma/hcamem.h>
#include <sys/epoll.h>

#include "error/message.h"

namespace hcamem::core {

static_assert(static_cast<int>(HCAMEM_PRESSURE_LOW) == HCAMEM_EVENT_LOW &&
              static_cast<int>(HCAMEM_PRESSURE_CRITICAL) == HCAMEM_EVENT_CRITICAL &&
              static_cast<int>(HCAMEM_PRESSURE_HCA_GONE) == HCAMEM_EVENT_GONE);

int pressure_watch::add(int descriptor, std::uint32_t events) const noexcept {
    epoll_event wanted{};
    wanted.events = events;
    if (epoll_ctl(poll_.descriptor(), EPOLL_CTL_ADD, descriptor, &wanted) == 0) {
        return 0;
    }
    const int error = errno;
    return fail(error, "cannot watch for memory pressure: %s", strerrordesc_np(error));
}

int pressure_watch::open(file node) {
    node_ = std::move(node);
    cgroups_ = memory_cgroup::of_this_process();
    if (!node_ && cgroups_.empty()) {
        return fail(EOPNOTSUPP, "nothing tells of memory pressure: the pool has ordinary memory, "
                                "and the process is in no memory cgroup (version 2)");
    }
    poll_ = file(epoll_create1(EPOLL_CLOEXEC));
    if (!poll_) {
        const int error = errno;
        return fail(error, "cannot watch for memory pressure: %s", strerrordesc_np(error));
    }
    int result = node_ ? add(node_.descriptor(), EPOLLIN) : 0;
    for (const memory_cgroup& each : cgroups_) {
        result = result == 0 ? add(each.descriptor(), EPOLLPRI) : result;
    }
    return result;
}

bool pressure_watch::next_of_node(hcamem_pressure& taken) noexcept {
    hcamem_event event{};
    if (!node_ ||
        read(node_.descriptor(), &event, sizeof event) != static_cast<ssize_t>(sizeof event)) {
        return false;
    }
    taken.level = event.type;
    taken.wanted = event.wanted;
    if (event.type == HCAMEM_EVENT_GONE) {
        // There is nothing more to come, and poll() would say so for ever.
        node_ = file();
    }
    return true;
}

bool pressure_watch::next(hcamem_pressure& taken) noexcept {
    if (next_of_node(taken)) {
        return true;
    }
    for (memory_cgroup& each : cgroups_) {
        const hcamem_pressure found = each.look();
        if (found.level != HCAMEM_PRESSURE_NONE) {
            taken.level = found.level;
            taken.wanted = found.wanted;
            return true;
        }
    }
    return false;
}

} // namespace hcamem::core

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// Giving idle slabs back when somebody wants memory: asked by the caller's event loop, or
// by a thread of the pool's own.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>

#include "error/message.h"
#include "pool/pool.h"

namespace hcamem::core {
namespace {

// Reclaim meets a cgroup's limit thousands of times a second; looking is not free.
constexpr int milliseconds_between_looks = 100;

} // namespace

/// Opens the watch if it is not open yet. pressure_ is held.
int pool::open_watch() {
    if (watch_) {
        return 0;
    }
    const std::lock_guard guard(growth_); // source_
    if (!is_open()) {
        return closed_error();
    }
    file node;
    int result = source_->open_events(node);
    if (result != 0) {
        return result;
    }
    auto opened = std::make_unique<pressure_watch>();
    result = opened->open(std::move(node));
    if (result == 0) {
        watch_ = std::move(opened);
    }
    return result;
}

int pool::event_fd() {
    const std::lock_guard guard(pressure_);
    if (reliever_.joinable()) {
        return fail(EBUSY, "the pool's own thread takes the events: HCAMEM_OPT_RELIEVE");
    }
    const int result = open_watch();
    return result != 0 ? result : watch_->descriptor();
}

int pool::next_pressure(hcamem_pressure& taken) noexcept {
    const std::lock_guard guard(pressure_);
    return watch_ && watch_->next(taken) ? 0 : -EAGAIN;
}

std::uint64_t pool::relieve() noexcept {
    std::uint64_t given_back = 0;
    hcamem_pressure each{};
    while (next_pressure(each) == 0) {
        switch (each.level) {
        case HCAMEM_PRESSURE_LOW:
            given_back += give_back_idle(each.wanted, 0);
            break;
        case HCAMEM_PRESSURE_CRITICAL:
            given_back += trim(0);
            break;
        default:
            break;
        }
    }
    return given_back;
}

/// The thread of HCAMEM_OPT_RELIEVE. Without anything that tells of pressure there is none.
int pool::start_reliever() noexcept {
    const std::lock_guard guard(pressure_);
    int result = 0;
    try {
        result = open_watch();
    } catch (const std::bad_alloc&) {
        result = fail(ENOMEM, "no memory to watch for memory pressure");
    }
    if (result != 0) {
        return result == -EOPNOTSUPP ? 0 : result;
    }
    stop_relieving_ = file(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop_relieving_) {
        const int error = errno;
        return fail(error, "no descriptor for the thread that gives memory back: %s",
                    strerrordesc_np(error));
    }
    // Signals are for the program's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        const int events = watch_->descriptor();
        const int stop = stop_relieving_.descriptor();
        reliever_ = std::thread([this, events, stop] { relieve_until(events, stop); });
    } catch (const std::system_error& refused) {
        result = fail(refused.code().value(), "no thread to give memory back: %s",
                      strerrordesc_np(refused.code().value()));
    } catch (const std::bad_alloc&) {
        result = fail(ENOMEM, "no memory for the thread that gives memory back");
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return result;
}

void pool::relieve_until(int events, int stop) noexcept {
    pollfd waited[] = {{stop, POLLIN, 0}, {events, POLLIN, 0}};
    for (;;) {
        if (poll(waited, 2, -1) < 0) {
            continue; // EINTR by a debugger
        }
        if (waited[0].revents != 0) {
            return;
        }
        relieve();
        if (poll(waited, 1, milliseconds_between_looks) > 0) {
            return;
        }
    }
}

void pool::end_pressure() noexcept {
    std::thread ended;
    {
        const std::lock_guard guard(pressure_);
        if (reliever_.joinable()) {
            ended = std::move(reliever_);
            eventfd_write(stop_relieving_.descriptor(), 1);
        }
    }
    // Not under the lock, which the thread takes.
    if (ended.joinable()) {
        ended.join();
    }
    const std::lock_guard guard(pressure_);
    watch_.reset();
    stop_relieving_ = file();
}

} // namespace hcamem::core

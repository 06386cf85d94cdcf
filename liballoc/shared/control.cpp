// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "shared/control.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>

#include <fcntl.h>
#include <unistd.h>

#include "error/message.h"
#include "os/fork_hook.h"
#include "os/sealed_memory.h"

namespace hcamem::core {
namespace {

constexpr std::size_t segment_bytes = 4096;
constexpr std::array<char, 8> segment_magic{'h', 'c', 'a', 'm', 's', 'h', 'r', 'd'};
constexpr std::uint32_t segment_version = 1;

// A waiting thread looks again so often, whatever becomes of its being woken.
constexpr std::int64_t slice_ns = 200'000'000;

constexpr std::int64_t ns_per_second = 1'000'000'000;

/// The mutex holds its owner's thread ID, which means something in one PID namespace only.
std::uint64_t pid_namespace() noexcept {
    struct stat found {};
    return stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0; // 0: not to be known
}

std::int64_t monotonic_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * ns_per_second + now.tv_nsec;
}

/// For at most so long.
int lock_within(pthread_mutex_t& mutex, std::int64_t ns) noexcept {
    const std::int64_t deadline = monotonic_ns() + ns;
#if defined(__SANITIZE_THREAD__) // which knows of no death of an owner where locking has a limit
    int error = EBUSY;
    while (error == EBUSY && monotonic_ns() < deadline) {
        usleep(100);
        error = pthread_mutex_trylock(&mutex);
    }
    return error;
#else
    const timespec until{static_cast<std::time_t>(deadline / ns_per_second),
                         static_cast<long>(deadline % ns_per_second)};
    return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until);
#endif
}

int init_mutex(pthread_mutex_t& mutex) noexcept {
    pthread_mutexattr_t attributes;
    int error = pthread_mutexattr_init(&attributes);
    if (error == 0) {
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        error = pthread_mutex_init(&mutex, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
    return error == 0 ? 0 : fail(error, "no lock that processes share: %s", strerrordesc_np(error));
}

} // namespace

// The first three stay where they are in every version.
struct control_segment::block {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t mutex_bytes; // 32-bit programs have another
    heap_traits traits;
    std::uint64_t pid_namespace;

    alignas(64) pthread_mutex_t mutex;
    std::atomic<std::int32_t> holder;  // process that has the lock, 0: none
    std::atomic<std::uint32_t> broken; // 1: a process died with the lock
    std::atomic<std::int32_t> breaker; // that process, 0: not known
};

bool identify(int descriptor, file_identity& found) noexcept {
    struct stat status {};
    if (fstat(descriptor, &status) != 0) {
        return false;
    }
    found = {status.st_dev, status.st_ino};
    return true;
}

int control_segment::map(file segment) noexcept {
    static_assert(sizeof(block) <= segment_bytes);
    mapping range;
    const int result = range.map_shared(segment.descriptor(), segment_bytes);
    if (result != 0) {
        return result;
    }
    if (!identify(segment.descriptor(), identity_)) {
        return fail(errno, "the control segment cannot be told apart: %s", strerrordesc_np(errno));
    }
    file_ = std::move(segment);
    range_ = std::move(range);
    return 0;
}

int control_segment::create(const heap_traits& traits) noexcept {
    file segment;
    int result = make_sealed_memory("hcamem_control", segment_bytes, segment);
    if (result == 0) {
        result = map(std::move(segment));
    }
    if (result == 0) {
        auto* const made = new (range_.data()) block{};
        made->magic = segment_magic;
        made->version = segment_version;
        made->mutex_bytes = sizeof(pthread_mutex_t);
        made->traits = traits;
        made->pid_namespace = pid_namespace();
        result = init_mutex(made->mutex);
    }
    traits_ = traits;
    if (result != 0) {
        close();
    }
    return result;
}

int control_segment::join(int descriptor) noexcept {
    if (!is_sealed_memory(descriptor, segment_bytes)) {
        return fail(EBADMSG,
                    "descriptor %d is not the control segment of a shared heap: not a memfd of %zu "
                    "bytes with its size sealed",
                    descriptor, segment_bytes);
    }
    file segment(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!segment) {
        return fail(errno, "no descriptor for a shared heap: %s", strerrordesc_np(errno));
    }
    int result = map(std::move(segment));
    if (result != 0) {
        return result;
    }
    const block& found = shared();
    traits_ = found.traits;
    const std::uint64_t here = pid_namespace();
    if (found.magic != segment_magic) {
        result = fail(EBADMSG,
                      "descriptor %d is not the control segment of a shared heap: it does not "
                      "begin with its mark",
                      descriptor);
    } else if (found.version != segment_version || found.mutex_bytes != sizeof(pthread_mutex_t) ||
               (traits_.flags & ~heap_traits::known_flags) != 0) {
        result = fail(EPROTO,
                      "the shared heap has control version %" PRIu32 " with locks of %" PRIu32
                      " bytes, this program %" PRIu32 " with %zu: its programs need the same "
                      "version of libhcamem, all 32-bit or all 64-bit",
                      found.version, found.mutex_bytes, segment_version, sizeof(pthread_mutex_t));
    } else if (here != 0 && found.pid_namespace != 0 && here != found.pid_namespace) {
        result = fail(EXDEV, "the shared heap belongs to another PID namespace: its lock knows "
                             "threads by their numbers there; run its processes in one");
    }
    if (result != 0) {
        close();
    }
    return result;
}

void control_segment::close() noexcept {
    range_.reset();
    file_ = file();
}

int control_segment::wait(int timeout_ms) noexcept {
    block& here = shared();
    const std::int64_t deadline = monotonic_ns() + std::int64_t{timeout_ms} * 1'000'000;
    int error = EBUSY;
    while (error == EBUSY || error == ETIMEDOUT) {
        if (here.broken.load(std::memory_order_acquire) != 0) {
            return ENOTRECOVERABLE;
        }
        std::int64_t slice = slice_ns;
        if (timeout_ms >= 0) {
            slice = std::min(slice, deadline - monotonic_ns());
            if (slice <= 0) {
                return ETIMEDOUT;
            }
        }
        error = lock_within(here.mutex, slice);
    }
    return error;
}

int control_segment::lock(int timeout_ms) noexcept {
    block& here = shared();
    int error = pthread_mutex_trylock(&here.mutex);
    if (error == EBUSY) {
        error = wait(timeout_ms);
    }
    switch (error) {
    case 0:
        here.holder.store(libc_pid(), std::memory_order_relaxed);
        return 0;
    case EOWNERDEAD:
        here.breaker.store(here.holder.load(std::memory_order_relaxed), std::memory_order_relaxed);
        here.broken.store(1, std::memory_order_release);
        // Without pthread_mutex_consistent() this makes it unusable and wakes all who wait.
        pthread_mutex_unlock(&here.mutex);
        return poisoned();
    case ENOTRECOVERABLE:
        return poisoned();
    case ETIMEDOUT:
        return fail(ETIMEDOUT,
                    "the shared heap's lock was not to be had in %d ms: process %" PRId32 " has it",
                    timeout_ms, here.holder.load(std::memory_order_relaxed));
    default:
        return fail(error, "the shared heap's lock: %s", strerrordesc_np(error));
    }
}

void control_segment::unlock() noexcept {
    block& here = shared();
    here.holder.store(0, std::memory_order_relaxed);
    pthread_mutex_unlock(&here.mutex);
}

int control_segment::poisoned() const noexcept {
    const std::int32_t breaker = shared().breaker.load(std::memory_order_relaxed);
    char who[32] = "a process";
    if (breaker != 0) {
        std::snprintf(who, sizeof who, "process %" PRId32, breaker);
    }
    return fail(ENOTRECOVERABLE,
                "the shared heap is poisoned: %s died while it held the lock, so what is in it may "
                "be half changed; close it in all processes and make a new one",
                who);
}

} // namespace hcamem::core

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "shared/registry.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>

#include <pthread.h>

#include "error/message.h"
#include "os/process.h"
#include "shared/shared_heap.h"

namespace hcamem::core {
namespace {

constexpr std::size_t most_heaps = 256;

struct slot {
    std::atomic<std::uintptr_t> begin{0}; // 0: unused
    std::atomic<std::size_t> bytes{0};
    std::atomic<shared_heap*> heap{nullptr};
};

std::array<slot, most_heaps> slots;
std::atomic<std::size_t> used{0}; // slots from here on were never used
std::mutex registry;

// Runs before any other code in a child of fork(), so no lock is needed.
void after_fork() noexcept {
    new (&registry) std::mutex;
    const std::size_t end = used.load(std::memory_order_relaxed);
    const process_page* const process = end != 0 ? enter_process() : nullptr;
    for (std::size_t index = 0; process != nullptr && index < end; ++index) {
        if (slots[index].begin.load(std::memory_order_relaxed) != 0) {
            slots[index].heap.load(std::memory_order_relaxed)->after_fork(process->generation);
        }
    }
}

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, after_fork);

} // namespace

std::unique_lock<std::mutex> lock_registry() {
    return std::unique_lock(registry);
}

int register_heap(shared_heap& made) noexcept {
    for (slot& each : slots) {
        if (each.begin.load(std::memory_order_relaxed) != 0) {
            continue;
        }
        const auto index = static_cast<std::size_t>(&each - slots.data());
        each.heap.store(&made, std::memory_order_release);
        each.bytes.store(made.traits().bytes, std::memory_order_release);
        used.store(std::max(used.load(std::memory_order_relaxed), index + 1),
                   std::memory_order_release);
        each.begin.store(reinterpret_cast<std::uintptr_t>(made.data()), std::memory_order_release);
        return 0;
    }
    return fail(EMFILE, "a process has at most %zu shared heaps: close one", most_heaps);
}

void unregister_heap(const shared_heap& ended) noexcept {
    for (slot& each : slots) {
        if (each.heap.load(std::memory_order_relaxed) == &ended) {
            each.begin.store(0, std::memory_order_release); // first, for those who look meanwhile
            each.heap.store(nullptr, std::memory_order_release);
        }
    }
}

bool is_registered(const file_identity& control) noexcept {
    return std::any_of(slots.begin(), slots.end(), [&](const slot& each) {
        return each.begin.load(std::memory_order_relaxed) != 0 &&
               each.heap.load(std::memory_order_relaxed)->control().identity() == control;
    });
}

shared_heap* find_heap(const void* address) noexcept {
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    const std::size_t end = used.load(std::memory_order_acquire);
    for (std::size_t index = 0; index < end; ++index) {
        slot& each = slots[index];
        const std::uintptr_t begin = each.begin.load(std::memory_order_acquire);
        if (begin == 0 || wanted - begin >= each.bytes.load(std::memory_order_acquire)) {
            continue;
        }
        shared_heap* const heap = each.heap.load(std::memory_order_acquire);
        // Else the slot was given to another heap meanwhile, and its parts do not go together.
        if (each.begin.load(std::memory_order_relaxed) == begin) {
            return heap;
        }
    }
    return nullptr;
}

} // namespace hcamem::core

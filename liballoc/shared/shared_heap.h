// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// A heap that several processes share, as one process has it: its memory, the control
// segment with the lock, and this process's registrations. What lies in the memory is
// the program's matter.
//
// Life:  dead -> open -> closed -> dead
// A closed heap is only there for bindings that are still to be detached.
#ifndef HCAMEM_SHARED_SHARED_HEAP_H
#define HCAMEM_SHARED_SHARED_HEAP_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include <hcamem/shared.h>

#include "pool/binding.h"
#include "pool/handles.h"
#include "pool/slab_table.h"
#include "shared/control.h"
#include "shared/shared_memory.h"
#include "verbs/registrar.h"

namespace hcamem::core {

class shared_heap : public handle<shared_heap>, public binding_owner {
  public:
    // -- life; under the lock of the process's heaps, see registry.h --
    /// 0, or -errno with a message and the heap dead.
    int create(const hcamem_options& options, std::uint64_t bytes, std::uint32_t flags,
               std::uint64_t layout);
    int join(int control, int memory, std::uint64_t layout, bool misuse_is_error) noexcept;
    /// 0: its memory is unmapped; -EBUSY and others with a message: nothing was closed.
    int close() noexcept;
    /// In a child of fork(): the heap goes on, but the parent's bindings and locks are not its.
    void after_fork(std::uint64_t generation) noexcept;

    [[nodiscard]] bool inherited() const noexcept {
        return generation_.load(std::memory_order_relaxed) != process_generation();
    }
    [[nodiscard]] bool is_open() const noexcept {
        return state_.load(std::memory_order_relaxed) == state::open;
    }
    [[nodiscard]] bool misuse_is_error() const noexcept { return misuse_is_error_; }

    // -- the lock; a thread may take it again while it has it --
    int lock(int timeout_ms) noexcept;
    int unlock() noexcept;

    // -- registration --
    int attach(std::unique_ptr<registrar> with, binding*& made);
    int detach(binding& ended) noexcept override;

    // -- an open heap's --
    [[nodiscard]] std::byte* data() const noexcept { return memory_.data(); }
    [[nodiscard]] const heap_traits& traits() const noexcept { return control_.traits(); }
    [[nodiscard]] const control_segment& control() const noexcept { return control_; }
    [[nodiscard]] const shared_memory& memory() const noexcept { return memory_; }

  private:
    enum class state : std::uint8_t { dead, open, closed };

    int start(bool misuse_is_error) noexcept;
    void close_files() noexcept;
    void retire_handle() noexcept;
    [[nodiscard]] slab whole() const noexcept;

    std::atomic<std::uint64_t> generation_{0};
    std::atomic<state> state_{state::dead};
    bool misuse_is_error_ = false;

    control_segment control_;
    shared_memory memory_;

    // Of this process's threads, the one that has the lock (0: none), and how often. Only that
    // thread changes the depth.
    std::atomic<std::uint64_t> holder_{0};
    unsigned depth_ = 0;
    // In a child: what the thread that forked held. Its copy here unlocks so often, in vain.
    std::uint64_t copied_holder_ = 0;
    unsigned copied_depth_ = 0;

    std::mutex registration_; // guards the list; held over verbs
    binding* bindings_ = nullptr;
};

} // namespace hcamem::core

#endif

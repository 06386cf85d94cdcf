// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "shared/shared_heap.h"

#include <cerrno>
#include <cinttypes>
#include <new>
#include <utility>

#include "error/message.h"
#include "shared/registry.h"
#include "shared/thread_number.h"

namespace hcamem::core {
namespace {

constexpr std::uint64_t largest_bytes = std::uint64_t{32} << 40;

int check_arguments(std::uint64_t bytes, std::uint32_t flags) noexcept {
    if (bytes == 0 || bytes > largest_bytes) {
        return fail(EINVAL, "a shared heap of %" PRIu64 " bytes: must be between 1 and %s", bytes,
                    size_text(largest_bytes).c_str());
    }
    if ((flags & ~std::uint32_t{HCAMEM_SHARED_REMOTE}) != 0) {
        return fail(EINVAL, "flags of a shared heap: 0x%" PRIx32 " is unknown", flags);
    }
    return 0;
}

} // namespace

slab shared_heap::whole() const noexcept {
    return {0, static_cast<std::uint32_t>(traits().bytes / slab_unit), slab_state::active};
}

int shared_heap::create(const hcamem_options& options, std::uint64_t bytes, std::uint32_t flags,
                        std::uint64_t layout) {
    int result = check_arguments(bytes, flags);
    if (result != 0) {
        return result;
    }
    heap_traits traits;
    traits.layout = layout;
    traits.flags = ((flags & HCAMEM_SHARED_REMOTE) != 0 ? heap_traits::remote_allowed : 0U) |
                   ((options.flags & HCAMEM_OPT_DMABUF_ONLY) != 0 ? heap_traits::dmabuf_only : 0U);
    const std::uint64_t rounded = (bytes + slab_unit - 1) / slab_unit * slab_unit;
    result = memory_.create(options, rounded, traits);
    if (result == 0) {
        result = control_.create(traits);
    }
    if (result == 0) {
        result = start((options.flags & HCAMEM_OPT_MISUSE_ERROR) != 0);
    }
    if (result != 0) {
        close_files();
    }
    return result;
}

int shared_heap::join(int control, int memory, std::uint64_t layout,
                      bool misuse_is_error) noexcept {
    int result = control_.join(control);
    if (result == 0 && is_registered(control_.identity())) {
        result = fail(EEXIST, "this process has joined this shared heap before, or inherited it: "
                              "use that handle");
    }
    if (result == 0 && traits().layout != layout) {
        result = fail(EPROTO,
                      "the shared heap's memory was laid out by another kind of program: 0x%" PRIx64
                      ", this one lays it out as 0x%" PRIx64
                      "; build all its programs with the same Boost and hcamem headers",
                      traits().layout, layout);
    }
    if (result == 0) {
        result = memory_.join(memory, traits());
    }
    if (result == 0) {
        result = start(misuse_is_error);
    }
    if (result != 0) {
        close_files();
    }
    return result;
}

int shared_heap::start(bool misuse_is_error) noexcept {
    misuse_is_error_ = misuse_is_error;
    holder_.store(0, std::memory_order_relaxed);
    depth_ = 0;
    copied_holder_ = 0;
    copied_depth_ = 0;
    bindings_ = nullptr;
    generation_.store(process_generation(), std::memory_order_relaxed);
    const int result = register_heap(*this);
    if (result == 0) {
        state_.store(state::open, std::memory_order_relaxed);
    }
    return result;
}

int shared_heap::close() noexcept {
    if (holder_.load(std::memory_order_relaxed) != 0) {
        return fail(EBUSY, "a thread of this process has the shared heap's lock: unlock it first");
    }
    {
        const std::lock_guard guard(registration_);
        for (binding* each = bindings_; is_open() && each != nullptr; each = each->next) {
            const int result = each->remove(whole());
            if (result != 0) {
                return result;
            }
        }
        if (is_open()) {
            unregister_heap(*this);
        }
        close_files();
        state_.store(state::closed, std::memory_order_relaxed);
    }
    retire_handle();
    return 0;
}

void shared_heap::close_files() noexcept {
    memory_.close();
    control_.close();
}

void shared_heap::retire_handle() noexcept {
    {
        const std::lock_guard guard(registration_);
        if (state_.load(std::memory_order_relaxed) != state::closed || bindings_ != nullptr) {
            return;
        }
        state_.store(state::dead, std::memory_order_relaxed);
    }
    retire(enter_process()->shared_heaps, this);
}

void shared_heap::after_fork(std::uint64_t generation) noexcept {
    generation_.store(generation, std::memory_order_relaxed);
    copied_holder_ = holder_.load(std::memory_order_relaxed);
    copied_depth_ = depth_;
    holder_.store(0, std::memory_order_relaxed);
    depth_ = 0;
    bindings_ = nullptr; // the parent's, dead here; its uverbs must not be touched
    // A thread that this process does not have may hold it.
    new (&registration_) std::mutex;
}

int shared_heap::lock(int timeout_ms) noexcept {
    const std::uint64_t self = thread_number();
    if (holder_.load(std::memory_order_relaxed) == self) {
        ++depth_;
        return 0;
    }
    const int result = control_.lock(timeout_ms);
    if (result == 0) {
        holder_.store(self, std::memory_order_relaxed);
        depth_ = 1;
    }
    return result;
}

int shared_heap::unlock() noexcept {
    const std::uint64_t self = thread_number();
    if (holder_.load(std::memory_order_relaxed) == self) {
        if (--depth_ == 0) {
            holder_.store(0, std::memory_order_relaxed);
            control_.unlock();
        }
        return 0;
    }
    if (copied_holder_ == self && copied_depth_ != 0) {
        --copied_depth_;
        return 0;
    }
    return misuse(misuse_is_error_, "the calling thread does not have the shared heap's lock");
}

int shared_heap::attach(std::unique_ptr<registrar> with, binding*& made) {
    process_page* const process = enter_process();
    const std::lock_guard guard(registration_);
    binding* const fresh = binding::take(process->bindings);
    const binding::place where{.owner = this,
                               .base = data(),
                               .bytes = traits().bytes,
                               .generation = generation_.load(std::memory_order_relaxed),
                               .misuse_is_error = misuse_is_error_};
    int result = fresh->open(where, std::move(with));
    if (result == 0) {
        result = fresh->add(whole(), memory_);
        if (result != 0) {
            fresh->close();
        }
    }
    if (result != 0) {
        binding::retire(process->bindings, fresh);
        return result;
    }
    fresh->next = bindings_;
    bindings_ = fresh;
    made = fresh;
    return 0;
}

int shared_heap::detach(binding& ended) noexcept {
    {
        const std::lock_guard guard(registration_);
        if (ended.owner() != this) {
            return misuse(misuse_is_error_, "the binding was detached before");
        }
        const int result = is_open() ? ended.remove(whole()) : 0;
        if (result != 0) {
            return result;
        }
        binding** link = &bindings_;
        while (*link != &ended) {
            link = &(*link)->next;
        }
        *link = ended.next;
        ended.close();
        binding::retire(enter_process()->bindings, &ended);
    }
    retire_handle();
    return 0;
}

} // namespace hcamem::core

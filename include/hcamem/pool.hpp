// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_POOL_HPP
#define HCAMEM_POOL_HPP

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <infiniband/verbs.h>

#include <hcamem.h>
#include <hcamem/error.hpp>
#include <hcamem/exhausted.hpp>
#include <hcamem/options.hpp>

namespace hcamem {

class binding;
class buffer;

/// A shared handle of a pool: copies are the same pool. The pool is closed when
/// its last handle goes; blocks that are live then stay usable, and their memory
/// goes back when the last of them is freed (see hcamem_pool_close()). Buffers,
/// allocators and memory resources hold a handle of their own.
///
/// All members may be called from any thread. Fork, misuse and errors: hcamem.h.
class pool {
  public:
    /// Makes a pool. Throws error; exhausted if the initial memory is refused.
    explicit pool(const options& how = {}) {
        hcamem_pool* made = nullptr;
        const int result = hcamem_pool_create(&how, &made);
        if (result != 0) {
            fail(-result);
        }
        core_ = adopt_handle(made);
    }

    /// Takes over a pool made by hcamem_pool_create(); it is closed with the last handle.
    [[nodiscard]] static pool adopt(hcamem_pool* made) { return pool(adopt_handle(made)); }

    /// A block of at least `bytes` bytes. `align`: a power of two up to 2 MiB, 0 means 64.
    /// Throws exhausted; error for anything else.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align = 0) {
        return checked(hcamem_alloc(c_handle(), bytes, align, 0));
    }

    /// The same, nullptr instead of an exception; errno says why.
    [[nodiscard]] void* try_allocate(std::size_t bytes, std::size_t align = 0) noexcept {
        return hcamem_alloc(c_handle(), bytes, align, 0);
    }

    /// The same, waiting up to `timeout` for a block to be freed; a negative timeout waits
    /// without limit. Throws exhausted (ETIMEDOUT) when the time is over.
    template <class Rep, class Period>
    [[nodiscard]] void* allocate_for(std::size_t bytes, std::chrono::duration<Rep, Period> timeout,
                                     std::size_t align = 0) {
        int milliseconds = -1;
        if (timeout >= timeout.zero()) {
            using fine = std::chrono::duration<double, std::milli>;
            const double wanted = std::chrono::duration_cast<fine>(timeout).count();
            milliseconds = wanted >= INT_MAX ? INT_MAX : static_cast<int>(wanted);
            milliseconds += milliseconds < wanted && milliseconds < INT_MAX ? 1 : 0;
        }
        return checked(hcamem_alloc(c_handle(), bytes, align, milliseconds));
    }

    /// Fills `blocks` with blocks of `bytes` bytes aligned to 64: all, or none and throws.
    void allocate_n(std::size_t bytes, std::span<void*> blocks) {
        const int result = hcamem_alloc_n(c_handle(), bytes, blocks.data(), blocks.size());
        if (result != 0) {
            fail(-result);
        }
    }

    /// Gives a block back; nullptr is fine. Harmless in a fork child.
    void deallocate(void* block) noexcept { hcamem_free(c_handle(), block); }

    /// The same, checking `bytes` and `align` against what the block was allocated with.
    void deallocate(void* block, std::size_t bytes, std::size_t align = 0) noexcept {
        hcamem_free_sized(c_handle(), block, bytes, align);
    }

    void deallocate_n(std::span<void* const> blocks) noexcept {
        hcamem_free_n(c_handle(), blocks.data(), blocks.size());
    }

    /// Registers every slab, those to come too, with `pd`; see hcamem_attach().
    /// <hcamem/binding.hpp> defines it.
    [[nodiscard]] binding attach(ibv_pd* pd, int access = IBV_ACCESS_LOCAL_WRITE);

    /// A block that gives itself back. <hcamem/buffer.hpp> defines it.
    [[nodiscard]] buffer make_buffer(std::size_t bytes, std::size_t align = 0);

    /// Whether the address lies in a slab of this pool.
    [[nodiscard]] bool owns(const void* address) const noexcept {
        return hcamem_owns(c_handle(), address) != 0;
    }

    /// Bytes that may be used of a live block; 0: the address is not a live block.
    [[nodiscard]] std::size_t usable(const void* block) const noexcept {
        return hcamem_usable(c_handle(), block);
    }

    /// Gives back idle slabs until at most `keep` bytes of them are left; returns the bytes.
    std::uint64_t trim(std::uint64_t keep = 0) noexcept { return hcamem_trim(c_handle(), keep); }

    /// A descriptor to poll, owned by the pool, for memory pressure; see hcamem_event_fd().
    /// Throws error.
    [[nodiscard]] int event_fd() {
        const int descriptor = hcamem_event_fd(c_handle());
        if (descriptor < 0) {
            fail(-descriptor);
        }
        return descriptor;
    }

    /// Gives back as much idle memory as event_fd() says is wanted; returns the bytes.
    std::uint64_t relieve() noexcept { return hcamem_relieve(c_handle()); }

    /// HCAMEM_DEVICE or HCAMEM_MEMORY.
    [[nodiscard]] int source() const noexcept { return hcamem_source(c_handle()); }

    /// True in a child of the process that made the pool.
    [[nodiscard]] bool closed() const noexcept { return hcamem_closed(c_handle()) != 0; }

    [[nodiscard]] hcamem_stats stats() const noexcept {
        hcamem_stats now{};
        now.size = sizeof now;
        hcamem_get_stats(c_handle(), &now);
        return now;
    }

    /// For the C interface; valid while a handle exists. Not to be closed.
    [[nodiscard]] hcamem_pool* c_handle() const noexcept { return core_.get(); }

    /// Whether two handles are of the same pool.
    friend bool operator==(const pool& a, const pool& b) noexcept { return a.core_ == b.core_; }

  private:
    explicit pool(std::shared_ptr<hcamem_pool> core) noexcept : core_(std::move(core)) {}

    static std::shared_ptr<hcamem_pool> adopt_handle(hcamem_pool* made) {
        return {made, [](hcamem_pool* core) { hcamem_pool_close(core); }};
    }

    [[noreturn]] static void fail(int error_number) {
        if (exhausted::is(error_number)) {
            throw exhausted(error_number);
        }
        throw error(error_number);
    }

    static void* checked(void* block) {
        if (block == nullptr) {
            fail(errno);
        }
        return block;
    }

    std::shared_ptr<hcamem_pool> core_;
};

} // namespace hcamem

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#ifndef HCAMEM_SHARED_HEAP_HPP
#define HCAMEM_SHARED_HEAP_HPP

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <typeinfo>
#include <utility>

#include <boost/interprocess/offset_ptr.hpp>
#include <infiniband/verbs.h>

#include <hcamem/binding.hpp>
#include <hcamem/detail/shared_segment.hpp>
#include <hcamem/error.hpp>
#include <hcamem/exhausted.hpp>
#include <hcamem/options.hpp>
#include <hcamem/shared.h>
#include <hcamem/shared_allocator.hpp>

namespace hcamem {

/// What shared_heap::attach() may be asked for, by any of the heap's processes.
enum class shared_access : std::uint32_t {
    local = 0,
    /// A peer with an rkey can write everything in the heap, what keeps it in order included.
    remote = HCAMEM_SHARED_REMOTE,
};

/// A heap in DMA memory that several processes share: named objects, containers and plain
/// blocks, at another address in each process. It is Boost.Interprocess's heap under a lock
/// of ours, which a dying process cannot leave locked. Unlike a pool's, its bookkeeping
/// lies in the memory itself.
///
/// A handle; copies are the same heap, which is closed in this process when the last one
/// goes. Members may be called from any thread and process; each takes the lock. Who may
/// join, death of a process, fork and lifetime: <hcamem/shared.h>.
///
/// Every member that locks throws error: ENOTRECOVERABLE once a process died with the lock
/// (then close the heap everywhere and make a new one), ESTALE in a child of a raw clone().
class shared_heap {
  public:
    template <class T>
    using allocator = shared_allocator<T>;

    /// Makes a heap of so many bytes, rounded up to 2 MiB, of which its bookkeeping
    /// takes some. Options as for hcamem_shared_create(). Throws error; exhausted if the
    /// memory is refused.
    explicit shared_heap(std::size_t bytes, const options& how = {},
                         shared_access access = shared_access::local) {
        hcamem_shared* made = nullptr;
        const int result = hcamem_shared_create(&how, bytes, static_cast<std::uint32_t>(access),
                                                detail::shared_layout, &made);
        if (result != 0) {
            fail(result);
        }
        take(made);
        static_cast<void>(detail::shared_buffer(boost::interprocess::create_only,
                                                hcamem_shared_address(made),
                                                hcamem_shared_size(made)));
    }

    /// Waits for another process's heap to arrive on a UNIX socket and joins it.
    /// Throws error, see hcamem_shared_receive().
    [[nodiscard]] static shared_heap receive(int socket) {
        hcamem_shared* made = nullptr;
        check(hcamem_shared_receive(socket, detail::shared_layout, &made));
        return shared_heap(made);
    }

    /// Joins by another process's descriptors(), which stay the caller's. Throws error, see
    /// hcamem_shared_join().
    [[nodiscard]] static shared_heap join(int control, int memory) {
        hcamem_shared* made = nullptr;
        check(hcamem_shared_join(control, memory, detail::shared_layout, &made));
        return shared_heap(made);
    }

    /// Sends the heap over a UNIX socket to a process that calls receive(). Throws error.
    void send(int socket) const { check(hcamem_shared_send(c_handle(), socket)); }

    struct descriptor_pair {
        int control;
        int memory;
    };
    /// The heap's own, for another way to pass them. Not to be closed. Throws error.
    [[nodiscard]] descriptor_pair descriptors() const {
        descriptor_pair found{};
        check(hcamem_shared_descriptors(c_handle(), &found.control, &found.memory));
        return found;
    }

    /// The lock, held while this lives: for operations of several steps that other threads
    /// and processes must see as one. The heap's own members may be called meanwhile, and
    /// lock() again. A process that dies with it poisons the heap.
    class [[nodiscard]] guard {
      public:
        guard(guard&& other) noexcept : core_(std::move(other.core_)) {}
        guard& operator=(guard&& other) noexcept {
            guard(std::move(other)).core_.swap(core_);
            return *this;
        }
        guard(const guard&) = delete;
        guard& operator=(const guard&) = delete;
        ~guard() { unlock(); }

        /// Does nothing if it was unlocked before. By the thread that locked.
        void unlock() noexcept {
            if (core_ != nullptr) {
                hcamem_shared_unlock(core_.get());
                core_.reset();
            }
        }

      private:
        friend class shared_heap;
        guard(std::shared_ptr<hcamem_shared> core, int timeout_ms) : core_(std::move(core)) {
            check(hcamem_shared_lock(core_.get(), timeout_ms));
        }

        std::shared_ptr<hcamem_shared> core_;
    };

    [[nodiscard]] guard lock() const { return {core_, -1}; }

    /// The same, waiting so long at most; throws error ETIMEDOUT.
    template <class Rep, class Period>
    [[nodiscard]] guard lock_for(std::chrono::duration<Rep, Period> timeout) const {
        const auto wanted = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
        return {core_, static_cast<int>(wanted < 0 ? 0 : wanted > INT_MAX ? INT_MAX : wanted)};
    }

    /// Whether a process died with the lock. Never throws for that.
    [[nodiscard]] bool poisoned() const {
        const int result = hcamem_shared_lock(c_handle(), 0);
        if (result == 0) {
            hcamem_shared_unlock(c_handle());
        }
        return result == -ENOTRECOVERABLE;
    }

    /// A block, aligned to `align`: a power of two up to 2 MiB, 0 means 64. Throws exhausted,
    /// error.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t align = 0) {
        const detail::shared_lock held(c_handle());
        return detail::allocate(*segment_, bytes, align == 0 ? 64 : align);
    }

    /// Gives a block back, also another process's; nullptr is fine. Throws error: EINVAL it is
    /// not in the heap.
    void deallocate(void* block) {
        if (block == nullptr) {
            return;
        }
        const detail::shared_lock held(c_handle());
        if (!owns(block)) {
            throw error(EINVAL, "a block that is not in the shared heap cannot be given back");
        }
        segment_->deallocate(block);
    }

    /// Makes an object that all processes find by its name. T must be fit to lie at another
    /// address in each process: no pointers, references or virtual functions, but offset_ptr
    /// and the heap's allocator. Throws error: EEXIST the name is taken, EINVAL it is empty;
    /// exhausted; what T's constructor throws, and then nothing was made.
    template <class T, class... Args>
    T* construct(const char* name, Args&&... args) {
        const detail::shared_lock held(c_handle());
        if (find_entry(name) != nullptr) {
            throw error(EEXIST,
                        "the shared heap has an object \"" + std::string(name) + "\" already");
        }
        return make<T>(name, std::forward<Args>(args)...);
    }

    /// The object of that name; nullptr: there is none. Throws error: EINVAL it is of another
    /// type, as far as this can be seen.
    template <class T>
    [[nodiscard]] T* find(const char* name) const {
        const detail::shared_lock held(c_handle());
        const entry* const found = find_entry(name);
        return found != nullptr ? object_of<T>(*found, name) : nullptr;
    }

    /// find(), or else construct().
    template <class T, class... Args>
    T* find_or_construct(const char* name, Args&&... args) {
        const detail::shared_lock held(c_handle());
        T* const found = find<T>(name);
        return found != nullptr ? found : make<T>(name, std::forward<Args>(args)...);
    }

    /// Destroys the object of that name. False: there is none. Throws as find().
    template <class T>
    bool destroy(const char* name) {
        const detail::shared_lock held(c_handle());
        T* const object = find<T>(name);
        if (object == nullptr) {
            return false;
        }
        object->~T();
        segment_->deallocate(object);
        segment_->template destroy<entry>(name);
        return true;
    }

    /// For containers in the heap.
    template <class T>
    [[nodiscard]] allocator<T> get_allocator() const noexcept {
        return allocator<T>(segment_);
    }

    /// Registers the whole heap with `pd` in this process; see hcamem_shared_attach(). Throws
    /// error: EPERM remote access that was not allowed when the heap was made.
    [[nodiscard]] binding attach(ibv_pd* pd, int access = IBV_ACCESS_LOCAL_WRITE) const {
        hcamem_binding* made = nullptr;
        check(hcamem_shared_attach(c_handle(), pd, access, &made));
        return binding(made);
    }

    /// Bytes of the whole heap, and of those that can still be had, though not in one piece.
    [[nodiscard]] std::size_t size() const noexcept { return hcamem_shared_size(c_handle()); }
    [[nodiscard]] std::size_t free_memory() const {
        const detail::shared_lock held(c_handle());
        return segment_->get_free_memory();
    }

    /// Whether the address lies in this heap, in this process.
    [[nodiscard]] bool owns(const void* address) const noexcept {
        return hcamem_shared_find(address) == c_handle();
    }

    /// HCAMEM_DEVICE or HCAMEM_MEMORY.
    [[nodiscard]] int source() const noexcept { return hcamem_shared_source(c_handle()); }

    /// Boost's heap, for what it can do beyond this. Only under lock().
    [[nodiscard]] detail::shared_segment* segment() const noexcept { return segment_; }

    /// For the C interface; valid while a handle exists. Not to be closed.
    [[nodiscard]] hcamem_shared* c_handle() const noexcept { return core_.get(); }

    friend bool operator==(const shared_heap& a, const shared_heap& b) noexcept {
        return a.core_ == b.core_;
    }

  private:
    /// What a name stands for. The object has a block of its own, so that its type can be
    /// checked, and may be aligned as it likes.
    struct entry {
        std::uint64_t type;
        boost::interprocess::offset_ptr<void> object; // null while it is being made
    };

    explicit shared_heap(hcamem_shared* made) { take(made); }

    static void check(int result) {
        if (result != 0) {
            throw error(result);
        }
    }

    [[noreturn]] static void fail(int result) {
        if (exhausted::is(-result)) {
            throw exhausted(result);
        }
        throw error(result);
    }

    void take(hcamem_shared* made) {
        core_ = std::shared_ptr<hcamem_shared>(
            made, [](hcamem_shared* core) { hcamem_shared_close(core); });
        segment_ = static_cast<detail::shared_segment*>(hcamem_shared_address(made));
    }

    [[nodiscard]] entry* find_entry(const char* name) const {
        if (name == nullptr || *name == '\0') {
            throw error(EINVAL, "an object in a shared heap needs a name");
        }
        return segment_->template find<entry>(name).first;
    }

    template <class T>
    static T* object_of(const entry& found, const char* name) {
        if (found.type != typeid(T).hash_code()) {
            throw error(EINVAL, "\"" + std::string(name) +
                                    "\" in the shared heap is of another type than " +
                                    typeid(T).name());
        }
        return static_cast<T*>(found.object.get());
    }

    template <class T, class... Args>
    T* make(const char* name, Args&&... args) {
        void* const block = detail::allocate(*segment_, sizeof(T), alignof(T));
        try {
            entry* const made = segment_->template construct<entry>(name, std::nothrow)();
            if (made == nullptr) {
                throw exhausted(ENOMEM, "the shared heap has no room for a name: make it larger");
            }
            try {
                made->type = typeid(T).hash_code();
                made->object = ::new (block) T(std::forward<Args>(args)...);
            } catch (...) {
                segment_->template destroy<entry>(name);
                throw;
            }
        } catch (...) {
            segment_->deallocate(block);
            throw;
        }
        return static_cast<T*>(block);
    }

    std::shared_ptr<hcamem_shared> core_;
    detail::shared_segment* segment_ = nullptr;
};

} // namespace hcamem

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//
// The control segment of a shared heap: one page of ordinary memory, shared by its
// processes, with the heap's description and its lock. Not in the heap's own memory,
// since a futex there would sleep in a device mapping, which the kernel refuses (EFAULT).
//
// The lock is robust: whoever gets it after a process died with it, learns so. What that
// process was changing may be half changed, and nobody can tell, so the lock then
// becomes unusable for good, in every process.
#ifndef HCAMEM_SHARED_CONTROL_H
#define HCAMEM_SHARED_CONTROL_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "os/file.h"
#include "os/mapping.h"

namespace hcamem::core {

/// A file apart from its descriptors: they differ from process to process.
struct file_identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;

    friend bool operator==(const file_identity&, const file_identity&) = default;
};

/// False: the descriptor is not open.
bool identify(int descriptor, file_identity& found) noexcept;

/// What all processes have to know of a heap; constant once it is made.
struct heap_traits {
    std::uint64_t bytes = 0;
    std::uint64_t layout = 0; // the program's number for what lies in the memory
    std::uint32_t source = 0; // HCAMEM_DEVICE, HCAMEM_MEMORY
    std::uint32_t flags = 0;
    file_identity memory; // the dma-buf or memfd that belongs to this control segment

    enum : std::uint32_t {
        remote_allowed = 1U << 0, // HCAMEM_SHARED_REMOTE
        dmabuf_only = 1U << 1,    // HCAMEM_OPT_DMABUF_ONLY
        pinnable = 1U << 2,       // exporter::pinnable()
        known_flags = remote_allowed | dmabuf_only | pinnable,
    };
    [[nodiscard]] bool has(std::uint32_t flag) const noexcept { return (flags & flag) != 0; }
};

class control_segment {
  public:
    /// 0, or -errno with a message.
    int create(const heap_traits& traits) noexcept;

    /// Another process's, by its descriptor, which stays the caller's. Errors, with a message:
    /// -EBADMSG it is none, -EPROTO it is another version's, -EXDEV of another PID namespace.
    int join(int descriptor) noexcept;

    void close() noexcept;

    [[nodiscard]] const heap_traits& traits() const noexcept { return traits_; }
    [[nodiscard]] int descriptor() const noexcept { return file_.descriptor(); }
    [[nodiscard]] const file_identity& identity() const noexcept { return identity_; }

    /// timeout_ms as for hcamem_alloc(). 0, or with a message -ENOTRECOVERABLE a process died with
    /// the lock, -ETIMEDOUT. The calling thread does not hold it yet.
    int lock(int timeout_ms) noexcept;
    /// The calling thread holds it.
    void unlock() noexcept;

  private:
    struct block;

    int map(file segment) noexcept;
    int wait(int timeout_ms) noexcept;
    [[nodiscard]] int poisoned() const noexcept;
    [[nodiscard]] block& shared() const noexcept { return *range_.as<block>(); }

    file file_;
    mapping range_;
    heap_traits traits_; // a copy, which other processes cannot change
    file_identity identity_;
};

} // namespace hcamem::core

#endif

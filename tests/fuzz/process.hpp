// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// One fuzzing process: what it holds, and what it knows about that.
#ifndef TESTS_FUZZ_PROCESS_HPP
#define TESTS_FUZZ_PROCESS_HPP

#include <rdma/hcamem.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "address_space.hpp"
#include "memory.hpp"
#include "random.hpp"
#include "report.hpp"
#include "support/unique_fd.hpp"

namespace fuzz {

/// A region that was created and not yet mapped.
struct Created {
    std::uint64_t offset;
    std::size_t pages;
    hcamem_fork fork;
};

/// What descriptors that dup() made have in common.
struct OpenFile {
    bool readable = true, writable = true, nonblocking = false;
    std::vector<Created> created; ///< by this process: nobody else knows the offsets
};

struct Descriptor {
    support::UniqueFd fd;
    std::shared_ptr<OpenFile> file;
};

/// A dma-buf.
struct Export {
    support::UniqueFd fd;
    std::shared_ptr<Memory> memory;
    std::size_t first; ///< of the memory
    std::size_t pages;
};

/// Pages that a pipe holds references on.
struct Pipe {
    support::UniqueFd read_end, write_end;
    std::shared_ptr<Memory> memory;
    std::size_t first, pages;
};

/// What a process is told at its start.
struct Setting {
    std::vector<std::string> nodes; ///< paths of the nodes
    std::size_t number = 0;         ///< of the process, and of its slot in the report
    std::uint64_t generation = 0;   ///< how many were in its place before
    std::uint64_t stream = 0;       ///< all its random numbers come from this
    std::uint64_t memlock = 0;      ///< RLIMIT_MEMLOCK of the user, bytes
    std::uint64_t steps = 0;        ///< at most
    int mailbox = -1;               ///< where others send descriptors to
    std::vector<int> mailboxes;     ///< of everybody
    bool spoil = false;             ///< change a byte behind the model's back
};

/// Exit status of a process that the kernel had no memory or descriptors for.
constexpr int exit_exhausted = 4;

/// How a child comes into being.
enum class Birth {
    fork,
    raw_clone,    ///< by the system call alone
    shared_files, ///< with one table of descriptors for both
};

class Process {
  public:
    explicit Process(Setting setting);

    /// Operations until the report says stop or the steps are done; then _exit().
    [[noreturn]] void run() { live(setting_.steps); }

    // For the operations.

    Report& report() { return report_; }
    [[nodiscard]] const Setting& setting() const { return setting_; }
    /// Keeps the call in the history; to be told before it is made.
    void note(std::string_view name, std::initializer_list<std::uint64_t> arguments);
    /// Reports what is wrong and ends the process.
    [[noreturn]] void wrong(const std::string& what);
    /// The errno of a call that may only fail in these ways. `error` 0 is always right.
    void allow(std::string_view call, int error, std::initializer_list<int> errors);

    /// A number that nobody else uses.
    std::uint64_t fresh_key() { return mix(setting_.stream, (step_ << 8) + keys_++); }
    Version fresh_version();

    /// Checks that an area's pages, some if there are many, hold what they must.
    void verify(const Area& area, Random& random);
    void verify_all(Random& random);
    /// Checks what INFO says against what this process holds.
    void verify_usage();

    /// munmap() of part of the address space. False if the kernel had no memory for it.
    bool unmap(Range range);
    /// As unmap(), for ranges whose state is no longer known: it has to work.
    void drop(Range range);

    /// A node open for reading and writing, or null. The pointer lives until a descriptor goes.
    Descriptor* writable_node(Random& random);

    /// A child. Returns 0 in the child, which knows what it inherited and has verified it; -1 if
    /// the kernel has no room for one. concurrent: the parent will not wait for it.
    pid_t spawn(Birth birth, bool concurrent, Random& random);
    /// Waits for a child. Ends this process too if the child found something wrong.
    void reap(pid_t child);
    /// That many operations, then _exit().
    [[noreturn]] void live(std::uint64_t steps);

    std::vector<Descriptor> nodes;
    std::vector<Export> exports;
    std::vector<Pipe> pipes;
    std::vector<support::UniqueFd> rings; ///< io_uring, with pages registered
    std::vector<pid_t> children;          ///< running beside this process
    AddressSpace areas;
    Arena arena;
    std::uint64_t limit;     ///< RLIMIT_MEMLOCK now
    std::uint32_t depth = 0; ///< 0 started by the supervisor, 1 its child, ...

  private:
    void step();
    void freeze_what_is_shared();
    void inherit(Birth birth, bool concurrent, Random& random);
    [[nodiscard]] Area inherited(const Area& area);
    [[nodiscard]] std::uint64_t held_bytes() const;
    void spoil(Random& random);
    [[noreturn]] void end(int status);

    Report& report_;
    Setting setting_;
    std::uint64_t step_ = 0;
    std::uint64_t keys_ = 0;
};

/// Whether the kernel has a mapping at the address.
bool mapped(std::uintptr_t address);

inline void* pointer(std::uintptr_t address) {
    return reinterpret_cast<void*>(address);
}

} // namespace fuzz

#endif

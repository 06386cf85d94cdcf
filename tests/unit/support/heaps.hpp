// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Shared heaps for the tests, and processes that use them.
#ifndef TESTS_UNIT_SUPPORT_HEAPS_HPP
#define TESTS_UNIT_SUPPORT_HEAPS_HPP

#include <cstdint>
#include <functional>
#include <utility>

#include <boost/container/map.hpp>
#include <boost/container/string.hpp>
#include <boost/container/vector.hpp>
#include <sys/types.h>

#include <hcamem/shared_heap.hpp>

#include "support/fake_registrar.hpp"
#include "support/pools.hpp"

namespace unit {

using shared_vector = boost::container::vector<int, hcamem::shared_allocator<int>>;
using shared_string =
    boost::container::basic_string<char, std::char_traits<char>, hcamem::shared_allocator<char>>;
using shared_map =
    boost::container::map<int, shared_string, std::less<int>,
                          hcamem::shared_allocator<std::pair<const int, shared_string>>>;

/// From the source that the tests run on; misuse is an error.
hcamem::options heap_options();
hcamem::shared_heap make_heap(std::size_t bytes = 4 * MiB,
                              hcamem::shared_access access = hcamem::shared_access::local);

/// The errno of the hcamem::error that it throws; 0: it throws none.
int error_of(const std::function<void()>& action);

/// A process that runs beside the test. Its body's result is its exit status. Killed at the end.
class beside {
  public:
    explicit beside(const std::function<int()>& body);
    beside(beside&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
    beside& operator=(beside&&) = delete;
    beside(const beside&) = delete;
    beside& operator=(const beside&) = delete;
    ~beside();

    [[nodiscard]] pid_t pid() const { return pid_; }
    void kill() const;
    /// Exit status, 128 + signal if it was killed.
    int wait();

  private:
    pid_t pid_ = -1;
};

/// This program once more, after exec: it works with the heap that it is sent, see be_helper().
class helper {
  public:
    helper();
    helper(const helper&) = delete;
    helper& operator=(const helper&) = delete;
    ~helper();

    [[nodiscard]] int socket() const { return socket_; }
    /// Exit status: 0 if it found what it expected.
    int wait() { return process_.wait(); }

  private:
    int ends_[2] = {-1, -1};
    int socket_;
    beside process_;
};

/// What main() does in a helper. 0, or the number of what it did not find as expected.
int be_helper(int socket);
inline constexpr const char* helper_option = "--helper";

/// One number over a socket.
void tell(int socket, std::uint64_t value);
std::uint64_t hear(int socket);

/// hcamem_shared_attach() to the fake domain, which must outlive the binding.
int attach(const hcamem::shared_heap& heap, fake_domain& domain, hcamem_binding** binding);

} // namespace unit

#endif

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The page-pin probes themselves: a zero from them means something only if they see pins, tell
// addresses apart, and never lose a call silently.
#include "support/page_pins.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/failure.hpp"
#include "support/guest.hpp"

namespace {

using support::AddressRange;
using support::page_size;
using support::PagePins;

/// Pages of this process that are present.
class Pages {
  public:
    explicit Pages(std::size_t count)
        : size_(count * page_size),
          data_(static_cast<char*>(
              mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        if (data_ == MAP_FAILED) {
            support::fail("mmap");
        }
        std::memset(data_, 1, size_);
    }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;
    ~Pages() { munmap(data_, size_); }

    [[nodiscard]] char* data() const { return data_; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] AddressRange range() const {
        const auto begin = reinterpret_cast<std::uint64_t>(data_);
        return {begin, begin + size_};
    }

  private:
    std::size_t size_;
    char* data_;
};

/// The kernel pins the source pages by pin_user_pages_remote().
void pin_remotely(const Pages& pages, std::size_t offset = 0) {
    char byte = 0;
    const iovec to{&byte, 1};
    const iovec from{pages.data() + offset, 1};
    support::must(process_vm_readv(getpid(), &to, 1, &from, 1, 0), "process_vm_readv");
}

/// The kernel takes references by the lockless way in.
void pin_fast(const Pages& pages) {
    int ends[2];
    support::must(pipe(ends), "pipe");
    const iovec from{pages.data(), page_size};
    support::must(vmsplice(ends[1], &from, 1, 0), "vmsplice");
    close(ends[0]);
    close(ends[1]);
}

std::vector<support::PinCall> calls_on(const PagePins& probes, const AddressRange& range) {
    return support::touching(probes.calls(), std::array{range});
}

bool saw(const std::vector<support::PinCall>& calls, const std::string& function) {
    return support::by_function(calls).contains(function);
}

TEST(PagePins, see_a_pin_through_each_way_in) {
    const PagePins probes;
    const Pages pages(4);
    pin_remotely(pages);
    auto calls = calls_on(probes, pages.range());
    EXPECT_TRUE(saw(calls, "pin_user_pages_remote"));
    EXPECT_TRUE(saw(calls, "__get_user_pages"));

    const Pages others(4);
    pin_fast(others);
    calls = calls_on(probes, others.range());
    EXPECT_TRUE(saw(calls, "gup_fast_fallback") || saw(calls, "internal_get_user_pages_fast"));
    EXPECT_EQ(calls.front().thread, gettid());
}

TEST(PagePins, tell_addresses_apart_to_the_page) {
    const PagePins probes;
    const Pages pages(3);
    pin_remotely(pages, page_size);
    const auto begin = pages.range().begin;
    EXPECT_TRUE(calls_on(probes, {begin, begin + page_size}).empty());
    EXPECT_FALSE(calls_on(probes, {begin + page_size + 100, begin + page_size + 101}).empty());
    EXPECT_TRUE(calls_on(probes, {begin + 2 * page_size, begin + 3 * page_size}).empty());
}

TEST(PagePins, forget_when_told_to) {
    PagePins probes;
    const Pages pages(1);
    pin_remotely(pages);
    probes.clear();
    EXPECT_TRUE(calls_on(probes, pages.range()).empty());
    pin_remotely(pages);
    EXPECT_FALSE(calls_on(probes, pages.range()).empty());
}

TEST(PagePins, fail_when_a_call_was_lost) {
    PagePins probes(4);
    const Pages pages(1);
    for (int i = 0; i < 2000; ++i) {
        pin_remotely(pages);
    }
    EXPECT_THROW(static_cast<void>(probes.calls()), std::runtime_error);
    probes.clear();
    EXPECT_NO_THROW(static_cast<void>(probes.calls())) << "clear() starts anew";
}

TEST(PagePins, leave_nothing_in_the_kernel) {
    { const PagePins probes; }
    EXPECT_EQ(support::read_text("/sys/kernel/tracing/kprobe_events").find("page_pins"),
              std::string::npos);
    EXPECT_NE(
        access(("/sys/kernel/tracing/instances/page_pins_" + std::to_string(getpid())).c_str(),
               F_OK),
        0);
}

} // namespace

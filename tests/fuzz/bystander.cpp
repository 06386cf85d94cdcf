// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "bystander.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>

#include "memory.hpp"
#include "report.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/node.hpp"

namespace fuzz {

namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t region_bytes = 3 * MiB; // two of them fit
constexpr std::size_t heap_bytes = 4 * MiB;

/// The pages of a dma-buf, for as long as the object lives.
class Window {
  public:
    Window(const support::UniqueFd& dma_buf, std::size_t bytes)
        : start_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, dma_buf.get(), 0)),
          bytes_(bytes) {
        if (start_ == MAP_FAILED) {
            support::fail("mmap of a dma-buf");
        }
    }
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;
    ~Window() { munmap(start_, bytes_); }
    [[nodiscard]] std::uintptr_t start() const { return reinterpret_cast<std::uintptr_t>(start_); }

  private:
    void* start_;
    std::size_t bytes_;
};

std::uintptr_t start_of(const support::Region& region) {
    return reinterpret_cast<std::uintptr_t>(region.data());
}

void expect_nothing(const std::optional<std::string>& wrong) {
    if (wrong) {
        throw std::runtime_error(*wrong);
    }
}

void round(unsigned number) {
    const hcamem_mapping mapping = number % 2 == 0 ? HCAMEM_MAPPING_HUGE : HCAMEM_MAPPING_PAGES;
    const support::Node node(number % 3 == 0 ? "rxe1" : "rxe0");
    const auto memory = [&](unsigned which) {
        return Memory(mix(number, which), region_bytes / page_bytes, Memory::Kind::device,
                      HCAMEM_FORK_POLICY_ZERO);
    };
    Memory kept_memory = memory(1);
    const support::Region kept(node, region_bytes, {mapping, HCAMEM_FORK_POLICY_ZERO});
    expect_nothing(fill_new(start_of(kept), kept_memory));
    {
        const std::string heap(heap_bytes, static_cast<char>(number));
        Memory other_memory = memory(2);
        const support::Region other(node, region_bytes, {mapping, HCAMEM_FORK_POLICY_SHARE});
        expect_nothing(fill_new(start_of(other), other_memory));
        const support::UniqueFd dma_buf = node.export_range(other.data(), other.size());
        const Window window(dma_buf, other.size());
        usleep(1000);
        expect_nothing(check_all(window.start(), other_memory));
        support::require(heap.find_first_not_of(static_cast<char>(number)) == std::string::npos,
                         "ordinary memory has changed");
    }
    expect_nothing(check_all(start_of(kept), kept_memory));
}

} // namespace

void run_bystander() {
    Report& report = Report::get();
    try {
        for (unsigned number = 0; !report.stopping(); ++number) {
            round(number);
            ++report.bystander_rounds();
        }
    } catch (const std::exception& error) {
        report.fail(text("the bystander, within its limits: ", error.what()));
        _exit(exit_wrong);
    }
    _exit(0);
}

} // namespace fuzz

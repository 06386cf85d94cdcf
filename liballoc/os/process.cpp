// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "os/process.h"

#include <sys/mman.h>

#include "os/mapping.h"

namespace hcamem::core {

std::atomic<process_page*> the_process_page{nullptr};

namespace {

// In ordinary memory: a child goes on counting where its parent stopped.
std::atomic<std::uint64_t> last_generation{0};

static_assert(sizeof(process_page) <= 4096);

} // namespace

process_page* enter_process() noexcept {
    process_page* page = the_process_page.load(std::memory_order_acquire);
    if (page == nullptr) {
        auto* const fresh = static_cast<process_page*>(map_wiped(sizeof(process_page)));
        if (fresh == nullptr) {
            return nullptr;
        }
        if (the_process_page.compare_exchange_strong(page, fresh, std::memory_order_acq_rel)) {
            page = fresh;
        } else {
            munmap(fresh, sizeof(process_page));
        }
    }
    if (page->generation.load(std::memory_order_relaxed) == 0) {
        const std::uint64_t mine = last_generation.fetch_add(1, std::memory_order_relaxed) + 1;
        std::uint64_t none = 0;
        page->generation.compare_exchange_strong(none, mine, std::memory_order_relaxed);
    }
    return page;
}

} // namespace hcamem::core

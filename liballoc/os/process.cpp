// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "os/process.h"

#include <sys/mman.h>
#include <unistd.h>

namespace hcamem::core {

std::atomic<process_page*> the_process_page{nullptr};

namespace {

// In ordinary memory: a child goes on counting where its parent stopped.
std::atomic<std::uint64_t> last_generation{0};

static_assert(sizeof(process_page) <= 4096);

process_page* map_page() noexcept {
    void* memory = mmap(nullptr, sizeof(process_page), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    // Where the kernel has no MADV_WIPEONFORK (before 4.14) nothing here can be safe.
    if (madvise(memory, sizeof(process_page), MADV_WIPEONFORK) != 0) {
        munmap(memory, sizeof(process_page));
        return nullptr;
    }
    return static_cast<process_page*>(memory);
}

} // namespace

process_page* enter_process() noexcept {
    process_page* page = the_process_page.load(std::memory_order_acquire);
    if (page == nullptr) {
        process_page* fresh = map_page();
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

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "support/operations.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include <hcamem.h>

namespace unit {
namespace {

#define PROMISE(condition) ((condition) ? static_cast<void>(0) : broken(#condition, __LINE__))

[[noreturn]] void broken(const char* promise, int line) {
    std::fprintf(stderr, "operations.cpp:%d: broken: %s (last message: %s)\n", line, promise,
                 hcamem_last_message());
    std::abort();
}

class reader {
  public:
    explicit reader(std::span<const std::uint8_t> bytes) : left_(bytes) {}
    [[nodiscard]] bool done() const { return left_.empty(); }
    std::uint32_t byte() {
        if (left_.empty()) {
            return 0;
        }
        const std::uint8_t first = left_.front();
        left_ = left_.subspan(1);
        return first;
    }
    /// Small ones often, up to 4 MiB.
    std::size_t size() {
        const std::uint32_t bits = byte() % 23;
        return (std::size_t{1} << bits) - 1 + (byte() << bits >> 8);
    }
    std::size_t alignment() {
        const std::uint32_t bits = byte();
        return bits % 4 != 0 ? 0 : std::size_t{1} << (bits / 4 % 22);
    }

  private:
    std::span<const std::uint8_t> left_;
};

class machine {
  public:
    machine() {
        hcamem_options options{};
        hcamem_options_init(&options, sizeof options);
        options.source = HCAMEM_MEMORY;
        options.mapping = HCAMEM_MAP_PAGES;
        options.flags = HCAMEM_OPT_MISUSE_ERROR;
        options.initial = 0;
        options.maximum = std::size_t{16} << 20;
        PROMISE(hcamem_pool_create(&options, &pool_) == 0);
    }
    machine(const machine&) = delete;
    machine& operator=(const machine&) = delete;

    ~machine() {
        for (const auto& [address, block] : live_) {
            check_contents(address, block);
            PROMISE(hcamem_free(pool_, reinterpret_cast<void*>(address)) == 0);
        }
        end_buffers();
        PROMISE(hcamem_pool_close(pool_) == 0);
    }

    void step(reader& from) {
        switch (from.byte() % 12) {
        case 0:
        case 1:
        case 2:
            allocate(from.size(), from.alignment());
            break;
        case 3:
        case 4:
            release(from.byte(), false);
            break;
        case 5:
            release(from.byte(), true);
            break;
        case 6:
            allocate_many(from.size() % 70'000, from.byte() % 40);
            break;
        case 7:
            misuse(from.byte(), from.size());
            break;
        case 8:
            hcamem_trim(pool_, from.size());
            break;
        case 9:
            make_buffers(from.size() % 70'000, from.byte() + 1, from.byte());
            break;
        case 10:
            use_buffers(from.byte());
            break;
        default:
            check_statistics();
            break;
        }
    }

  private:
    struct block {
        std::size_t asked;
        std::size_t align;
        std::size_t usable;
        std::uint8_t mark;
    };

    void admit(void* pointer, std::size_t asked, std::size_t align) {
        const auto address = reinterpret_cast<std::uintptr_t>(pointer);
        PROMISE(pointer != nullptr && address % std::max<std::size_t>(align, 64) == 0);
        const std::size_t usable = hcamem_usable(pool_, pointer);
        PROMISE(usable >= asked && hcamem_owns(pool_, pointer) == 1);
        PROMISE(hcamem_owns(pool_, static_cast<char*>(pointer) + usable - 1) == 1);
        const auto next = live_.lower_bound(address);
        PROMISE(next == live_.end() || address + usable <= next->first);
        PROMISE(next == live_.begin() ||
                std::prev(next)->first + std::prev(next)->second.usable <= address);
        const auto mark = static_cast<std::uint8_t>(++marks_);
        std::memset(pointer, mark, std::min<std::size_t>(usable, 128));
        std::memset(static_cast<char*>(pointer) + usable - 1, mark, 1);
        live_.emplace(address, block{asked, align, usable, mark});
    }

    static void check_contents(std::uintptr_t address, const block& what) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(address);
        PROMISE(std::all_of(bytes, bytes + std::min<std::size_t>(what.usable, 128),
                            [&](std::uint8_t byte) { return byte == what.mark; }));
        PROMISE(bytes[what.usable - 1] == what.mark);
    }

    void allocate(std::size_t bytes, std::size_t align) {
        void* const pointer = hcamem_alloc(pool_, bytes, align, 0);
        if (pointer == nullptr) {
            PROMISE(errno == ENOMEM);
            return;
        }
        admit(pointer, bytes, align);
    }

    void allocate_many(std::size_t bytes, std::size_t n) {
        std::array<void*, 40> blocks{};
        const int result = hcamem_alloc_n(pool_, bytes, blocks.data(), n);
        PROMISE(result == 0 || result == -ENOMEM);
        for (std::size_t index = 0; result == 0 && index < n; ++index) {
            admit(blocks[index], bytes, 0);
        }
    }

    void release(std::uint32_t which, bool sized) {
        if (live_.empty()) {
            return;
        }
        const auto at = std::next(live_.begin(), static_cast<long>(which % live_.size()));
        const auto [address, what] = *at;
        void* const pointer = reinterpret_cast<void*>(address);
        check_contents(address, what);
        live_.erase(at);
        PROMISE((sized ? hcamem_free_sized(pool_, pointer, what.asked, what.align)
                       : hcamem_free(pool_, pointer)) == 0);
        PROMISE(hcamem_free(pool_, pointer) == -EINVAL && hcamem_usable(pool_, pointer) == 0);
    }

    /// An address in a block but not its start; or a wrong size.
    void misuse(std::uint32_t which, std::size_t offset) {
        if (live_.empty()) {
            return;
        }
        const auto& [address, what] =
            *std::next(live_.begin(), static_cast<long>(which % live_.size()));
        auto* const pointer = reinterpret_cast<char*>(address);
        const std::size_t inside = 1 + offset % (what.usable - 1);
        PROMISE(hcamem_free(pool_, pointer + inside) == -EINVAL);
        PROMISE(hcamem_usable(pool_, pointer + inside) == 0);
        PROMISE(hcamem_free_sized(pool_, pointer, what.usable * 2 + 64, 0) == -EINVAL);
        PROMISE(hcamem_usable(pool_, pointer) == what.usable);
    }

    void make_buffers(std::size_t bytes, std::uint32_t max, std::uint32_t reserved) {
        end_buffers();
        const std::uint32_t reserve = std::min(reserved / 4, max);
        buffers_ = hcamem_fixed_create(pool_, bytes, 0, max, reserve);
        if (buffers_ == nullptr) {
            PROMISE(errno == ENOMEM);
            return;
        }
        max_ = max;
        common_ = max - reserve;
    }

    void end_buffers() {
        if (buffers_ == nullptr) {
            return;
        }
        PROMISE(hcamem_fixed_put_n(buffers_, out_.data(), out_.size()) == 0);
        out_.clear();
        PROMISE(hcamem_fixed_destroy(buffers_) == 0);
        buffers_ = nullptr;
    }

    void use_buffers(std::uint32_t how) {
        if (buffers_ == nullptr) {
            return;
        }
        if (how % 2 == 0) {
            const bool from_reserve = how % 4 == 0;
            std::vector<void*> more(how % 64 + 1);
            const int result =
                hcamem_fixed_get_n(buffers_, more.data(), more.size(), from_reserve ? 1 : 0);
            const std::size_t limit = from_reserve ? max_ : common_;
            // Those of the reserve that are out leave more of the others.
            PROMISE(result == 0 || (result == -ENOBUFS && out_.size() + more.size() > limit));
            for (std::size_t index = 0; result == 0 && index < more.size(); ++index) {
                PROMISE(std::find(out_.begin(), out_.end(), more[index]) == out_.end());
                PROMISE(hcamem_fixed_index(buffers_, more[index]) < max_);
                out_.push_back(more[index]);
            }
        } else if (!out_.empty()) {
            const std::size_t n = how / 2 % out_.size() + 1;
            void* const* const last = out_.data() + (out_.size() - n);
            PROMISE(hcamem_fixed_put_n(buffers_, last, n) == 0);
            PROMISE(hcamem_fixed_put_n(buffers_, last, n) == -EINVAL);
            out_.resize(out_.size() - n);
        }
    }

    void check_statistics() {
        hcamem_stats now{};
        now.size = sizeof now;
        PROMISE(hcamem_get_stats(pool_, &now) == 0);
        std::size_t bytes = 0;
        for (const auto& [address, what] : live_) {
            bytes += what.usable;
        }
        const std::size_t others = buffers_ != nullptr ? 1 : 0;
        PROMISE(now.live_blocks == live_.size() + others && now.live_bytes >= bytes);
        PROMISE(now.slab_bytes >= now.live_bytes && now.slab_bytes <= now.maximum);
    }

    hcamem_pool* pool_ = nullptr;
    std::map<std::uintptr_t, block> live_;
    unsigned marks_ = 0;

    hcamem_fixed* buffers_ = nullptr;
    std::uint32_t max_ = 0;
    std::uint32_t common_ = 0;
    std::vector<void*> out_;
};

} // namespace

void run_operations(std::span<const std::uint8_t> bytes) {
    machine runs;
    reader from(bytes);
    while (!from.done()) {
        runs.step(from);
    }
}

} // namespace unit

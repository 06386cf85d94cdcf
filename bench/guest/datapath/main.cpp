// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The part of `make bench-datapath` that runs in the guest; see docs/performance.md. Writes a line
// of JSON per measurement, of which bench/guest/report makes tables and pictures.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <sched.h>

#include "candidates/candidate.hpp"
#include "datapath/link.hpp"
#include "datapath/way.hpp"
#include "probes/clock.hpp"
#include "record.hpp"
#include "support/guest.hpp"
#include "support/rdma.hpp"
#include "touch.hpp"

namespace {

using namespace bench;
using support::KiB;

struct plan {
    std::vector<std::size_t> buffer_sizes;
    std::vector<std::size_t> message_sizes;
    int buffer_repetitions;
    int message_repetitions;
};

plan make_plan(bool quick) {
    if (quick) {
        return {{4 * KiB, 64 * KiB}, {64, 4 * KiB}, 3, 3};
    }
    return {{4 * KiB, 16 * KiB, 64 * KiB, 256 * KiB, 1024 * KiB},
            {64, KiB, 4 * KiB, 16 * KiB, 64 * KiB, 256 * KiB, 1024 * KiB},
            9,
            5};
}

/// Soft-RoCE's workers are the HCA: they must not wait for their turn behind who polls for what
/// they do.
class standing_back {
  public:
    standing_back() { set(SCHED_IDLE); }
    standing_back(const standing_back&) = delete;
    standing_back& operator=(const standing_back&) = delete;
    standing_back(standing_back&&) = delete;
    standing_back& operator=(standing_back&&) = delete;
    ~standing_back() { set(SCHED_OTHER); }

  private:
    static void set(int policy) {
        const sched_param none{};
        sched_setscheduler(0, policy, &none);
    }
};

/// Per message: the buffer got, written to and put back, less the writing.
std::vector<std::int64_t> buffer_cost(way& by, std::size_t bytes, const ticker& clock,
                                      int repetitions) {
    std::vector<std::int64_t> samples;
    for (int times = -1; times < repetitions; ++times) {
        const std::int64_t whole = clock.around([&] {
            for (int message = 0; message < by.batch(); ++message) {
                touch(by.get(bytes).data, bytes);
                by.put();
            }
        });
        std::byte* const data = by.get(bytes).data;
        touch(data, bytes);
        const std::int64_t writing = clock.around([&] {
            for (int message = 0; message < by.batch(); ++message) {
                touch(data, bytes);
            }
        });
        by.put();
        if (times >= 0) {
            samples.push_back((whole - writing) / by.batch());
        }
    }
    return samples;
}

/// The same and the message sent, until the receiver has it.
std::vector<std::int64_t> message_cost(way& by, std::size_t bytes, const ticker& clock,
                                       int repetitions, const message_link& over,
                                       const support::Place& into) {
    const standing_back behind;
    std::vector<std::int64_t> samples;
    for (int times = -1; times < repetitions; ++times) {
        const std::int64_t taken = clock.around([&] {
            const message_buffer buffer = by.get(bytes);
            touch(buffer.data, bytes);
            over.send({buffer.data, bytes, buffer.lkey, 0}, into);
            by.put();
        });
        if (times >= 0) {
            samples.push_back(taken);
        }
    }
    return samples;
}

/// A buffer of a candidate that stays registered.
class kept {
  public:
    kept(candidate& from, std::size_t bytes)
        : from_(from), bytes_(bytes), data_(present(from, bytes)), keys_(from.enroll()) {}
    kept(const kept&) = delete;
    kept& operator=(const kept&) = delete;
    kept(kept&&) = delete;
    kept& operator=(kept&&) = delete;
    ~kept() {
        from_.withdraw();
        from_.release();
        from_.finish();
    }
    /// The first half sends, the second receives.
    [[nodiscard]] support::Place half(int which, std::size_t bytes) const {
        return {data_ + bytes_ / 2 * static_cast<std::size_t>(which), bytes, keys_.lkey,
                keys_.rkey};
    }

  private:
    static std::byte* present(candidate& from, std::size_t bytes) {
        from.prepare(bytes);
        std::byte* const data = from.obtain(bytes);
        touch(data, bytes);
        return data;
    }

    candidate& from_;
    std::size_t bytes_;
    std::byte* data_;
    keys keys_;
};

void measure_messages(recorder& out, candidate& who, const plan& chosen, const ticker& clock,
                      const message_link& over) {
    const standing_back behind;
    constexpr int window = 8;
    const kept memory(who, 2 * chosen.message_sizes.back());
    for (const std::size_t bytes : chosen.message_sizes) {
        std::vector<std::int64_t> halves;
        std::vector<std::int64_t> each;
        for (int times = -1; times < chosen.message_repetitions; ++times) {
            const std::int64_t trip =
                clock.around([&] { over.ping_pong(memory.half(0, bytes), memory.half(1, bytes)); });
            const std::int64_t streamed = clock.around(
                [&] { over.stream(memory.half(0, bytes), memory.half(1, bytes), window); });
            if (times >= 0) {
                halves.push_back(trip / 2);
                each.push_back(streamed / window);
            }
        }
        out.add({{"candidate", who.name()}, {"what", "half a round trip"}}, bytes, halves);
        out.add({{"candidate", who.name()}, {"what", "message of a stream"}}, bytes, each);
    }
}

/// Soft-RoCE copies messages page by page whatever they lie in: one of each kind will do.
bool is_alike(const std::string& name) {
    return name.find("transparent") != std::string::npos || name.starts_with("memfd") ||
           name.starts_with("/dev/") || name == "hcamem, pages + ibv_reg_mr";
}

int run(recorder& out, bool quick) {
    const std::string hca = "rxe0";
    const support::Context context(hca);
    const support::Pd pd(context);
    const ticker clock;
    const plan chosen = make_plan(quick);
    const message_link over(context, pd);
    const candidates all = make_candidates(pd, hca);
    out.begin("datapath", quick);

    for (const auto& who : all) {
        const std::size_t bytes = 2 * chosen.message_sizes.back();
        if (quick ? who == all.back() : who->unfit(bytes).empty() && !is_alike(who->name())) {
            measure_messages(out, *who, chosen, clock, over);
        }
    }
    ways every;
    for (const auto& who : all) {
        // The pool has a way of its own.
        if (who != all.back() && who->unfit(chosen.buffer_sizes.front()).empty()) {
            every.push_back(make_fresh_way(*who));
        }
    }
    add_pool_ways(every, pd, hca);
    const auto measure = [&](way& by, const support::Place& whole) {
        for (const std::size_t bytes : chosen.buffer_sizes) {
            by.begin(bytes);
            out.add({{"way", by.name()}, {"what", "buffer"}}, bytes,
                    buffer_cost(by, bytes, clock, chosen.buffer_repetitions));
            support::Place into = whole;
            into.length = static_cast<std::uint32_t>(bytes);
            out.add({{"way", by.name()}, {"what", "message"}}, bytes,
                    message_cost(by, bytes, clock, chosen.buffer_repetitions, over, into));
            by.end();
        }
    };
    candidate& receiver = *all.back();
    const kept target(receiver, 2 * chosen.buffer_sizes.back());
    const support::Place into = target.half(1, chosen.buffer_sizes.back());
    for (const auto& by : every) {
        measure(*by, into);
    }
    ways cached;
    add_rcache_ways(cached, pd);
    for (const auto& by : cached) {
        measure(*by, into);
    }
    return EXIT_SUCCESS;
}

} // namespace

int main(int count, char** arguments) {
    const bool quick = count > 2 && std::string(arguments[2]) == "--quick";
    if (count < 2 || count > 3 || (count == 3 && !quick)) {
        std::fputs("usage: bench_datapath OUTPUT.jsonl [--quick]\n", stderr);
        return 2;
    }
    if (std::getenv("HCAMEM_GUEST") == nullptr) {
        std::fputs("bench_datapath runs only in the guest: make bench-datapath\n", stderr);
        return 2;
    }
    try {
        recorder out(arguments[1]);
        return run(out, quick);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_datapath: %s\n", error.what());
        return EXIT_FAILURE;
    }
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "hog.hpp"

#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>
#include <stdexcept>
#include <vector>

#include "support/failure.hpp"
#include "support/guest.hpp"

using namespace support;

namespace {

constexpr std::size_t step = 16 * MiB;
constexpr std::size_t churned_steps = 8;

class Pieces {
  public:
    void take_until(std::uint64_t leave) {
        while (meminfo("MemAvailable") + meminfo("SwapFree") > leave + step) {
            void* piece =
                mmap(nullptr, step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            require(piece != MAP_FAILED, "mmap of ordinary memory");
            pieces_.push_back(static_cast<unsigned char*>(piece));
            for (std::size_t at = 0; at < step; at += page_size) {
                // No two pages alike, and none that is zero.
                *reinterpret_cast<std::size_t*>(pieces_.back() + at) = pieces_.size() * step + at;
            }
        }
    }

    /// What was taken first is in swap by now.
    void give_back() {
        for (std::size_t count = 0; count < churned_steps && !pieces_.empty(); ++count) {
            munmap(pieces_.back(), step);
            pieces_.pop_back();
        }
    }

  private:
    std::vector<unsigned char*> pieces_;
};

[[noreturn]] void take_memory(Channel& channel, std::uint64_t leave) {
    write_text("/proc/self/oom_score_adj", "1000");
    Pieces pieces;
    for (;;) {
        pieces.take_until(leave);
        channel.send(0);
        (void)channel.receive();
        pieces.give_back();
    }
}

} // namespace

Hog::Hog(std::uint64_t leave)
    : child_([leave](Channel& channel) { take_memory(channel, leave); }) {}

bool Hog::done() {
    try {
        (void)child_.channel().receive();
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

bool Hog::is_full() {
    return done();
}

bool Hog::churn() {
    try {
        child_.channel().send(0);
    } catch (const std::exception&) {
        return false;
    }
    return done();
}

bool Hog::end() {
    siginfo_t end{};
    must(waitid(P_PID, static_cast<id_t>(child_.pid()), &end, WEXITED | WNOHANG | WNOWAIT),
         "waitid");
    const bool alive = end.si_pid == 0;
    child_.kill_now();
    (void)child_.wait();
    return alive;
}

std::unique_ptr<Hog> full_hog(std::uint64_t leave) {
    for (int tries = 0; tries < 10; ++tries) {
        auto hog = std::make_unique<Hog>(leave);
        if (hog->is_full()) {
            return hog;
        }
    }
    throw std::runtime_error("the OOM killer leaves no process that fills memory");
}

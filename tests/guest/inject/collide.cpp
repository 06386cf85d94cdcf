// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "inject_module.hpp"
#include "support/child.hpp"
#include "support/failure.hpp"

using namespace support;
using namespace std::chrono_literals;

namespace {

/// What the test and the keeper of the edge share.
struct Board {
    enum State { idle, watch, held, missed, released };
    std::atomic<State> state;
    std::atomic<bool> second_waits; ///< it is running, and needs no more memory for that
    std::atomic<bool> second_done;
    std::atomic<bool> second_passed; ///< it was done before the first was let go
    std::atomic<int> patience_ms;    ///< how long the second may take
};

Board* board = nullptr;
std::optional<Child> keeper;

void nap() {
    std::this_thread::sleep_for(500us);
}

void name_edge(const std::string& place) {
    write_text(std::string(inject_parameters) + "edge", place + "\n");
}

[[noreturn]] void keep_edges() {
    for (;;) {
        while (board->state != Board::watch) {
            nap();
        }
        if (!eventually(
                [] { return read_number(std::string(inject_parameters) + "edge_hits") > 0; })) {
            name_edge("");
            board->state = Board::missed;
            continue;
        }
        board->state = Board::held;
        const auto end =
            std::chrono::steady_clock::now() + std::chrono::milliseconds(board->patience_ms);
        while (!board->second_done && std::chrono::steady_clock::now() < end) {
            nap();
        }
        board->second_passed = board->second_done.load();
        name_edge("");
        board->state = Board::released;
    }
}

/// The second of a collision: waits for its turn, and says when it is done.
void take_turn(const std::function<void()>& second) {
    struct Done {
        ~Done() { board->second_done = true; }
    } const done;
    while (board->state == Board::watch) {
        nap();
        board->second_waits = true;
    }
    if (board->state != Board::missed) {
        second();
    }
}

} // namespace

void start_edge_keeper() {
    void* shared =
        mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        fail("mmap");
    }
    board = new (shared) Board{};
    keeper.emplace([](Channel&) { keep_edges(); });
}

void stop_edge_keeper() {
    keeper.reset();
    munmap(board, sizeof *board);
    board = nullptr;
}

void collide(const std::string& edge, const std::function<void()>& first, Second how,
             const std::function<void()>& second) {
    board->second_waits = false;
    board->second_done = false;
    // Where the second may have to wait, this is time enough to come there; if it is not,
    // the two just do not meet.
    board->patience_ms = how == Second::passes ? 60'000 : 100;
    name_edge(edge);
    board->state = Board::watch;
    auto two = std::async(std::launch::async, take_turn, second);
    while (!board->second_waits) {
        nap();
    }
    auto one = std::async(std::launch::async, first);
    one.wait();
    two.wait();
    while (board->state == Board::watch || board->state == Board::held) {
        nap();
    }
    EXPECT_EQ(board->state, Board::released) << "nobody came to " << edge;
    EXPECT_TRUE(how == Second::may_wait || board->second_passed)
        << "waited for who was held at " << edge;
    board->state = Board::idle;
    one.get();
    two.get();
}

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "sides.hpp"

#include "../common/pattern.hpp"

#include <cstring>

namespace samples {
namespace {

class client {
  public:
    client(endpoint& side, const remote_memory& remote, const message_buffer& local,
           const message_buffer& result)
        : side_(side),
          remote_(remote),
          local_(local),
          result_(result),
          model_(remote.bytes - data_offset) {}

    void do_round(std::uint64_t round) {
        const round_plan plan = plan_of(round, remote_.bytes - data_offset);
        write(round, plan.client_write);
        totals_[op_write].wrong += ask_server(round);
        model_.apply_client_write(round);
        model_.apply_server_write(round);
        read(plan.read);
        fetch_and_add(plan.add);
        // Swaps, since the word is as expected; then must not swap, since it no longer is.
        compare_and_swap(model_.word(), plan.swap, model_.word());
        compare_and_swap(model_.word(), ~plan.swap, plan.swap);
        model_.apply_atomics(round);
        totals_[op_compare_swap].wrong += ask_server(round);
    }

    [[nodiscard]] const client_totals& totals() const { return totals_; }

  private:
    // The local bytes lie at another odd offset than the remote ones.
    static constexpr std::size_t local_shift = 2;
    static_assert(local_shift <= data_offset, "the local buffer is as large as the remote memory");

    // Has the server verify its memory; returns what it found wrong.
    std::uint64_t ask_server(std::uint64_t round) {
        side_.send_note({round, 0});
        return side_.receive_note().wrong;
    }

    void perform(operation which, ibv_send_wr& request, ibv_sge buffer) {
        request.sg_list = &buffer;
        request.num_sge = 1;
        const auto start = std::chrono::steady_clock::now();
        side_.perform(request);
        totals_[which].time += std::chrono::steady_clock::now() - start;
        ++totals_[which].count;
        totals_[which].bytes += buffer.length;
    }

    void write(std::uint64_t round, const extent& where) {
        const std::size_t from = where.offset + local_shift;
        fill_pattern(local_.bytes.subspan(from, where.length), {round, client_sender});
        ibv_send_wr request{};
        request.opcode = IBV_WR_RDMA_WRITE;
        request.wr.rdma.remote_addr = remote_.address + data_offset + where.offset;
        request.wr.rdma.rkey = remote_.key;
        perform(op_write, request, local_.sge(from, where.length));
    }

    void read(const extent& where) {
        const std::size_t to = where.offset + local_shift;
        const auto bytes = local_.bytes.subspan(to, where.length);
        // Nothing that lies there already may pass for what is read.
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            bytes[i] = ~model_.data()[where.offset + i];
        }
        ibv_send_wr request{};
        request.opcode = IBV_WR_RDMA_READ;
        request.wr.rdma.remote_addr = remote_.address + data_offset + where.offset;
        request.wr.rdma.rkey = remote_.key;
        perform(op_read, request, local_.sge(to, where.length));
        totals_[op_read].wrong += model_.wrong_bytes(bytes, where.offset);
    }

    void fetch_and_add(std::uint64_t value) {
        ibv_send_wr request{};
        request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        request.wr.atomic.remote_addr = remote_.address + counter_offset;
        request.wr.atomic.rkey = remote_.key;
        request.wr.atomic.compare_add = value;
        perform_atomic(op_fetch_add, request, model_.counter());
    }

    void compare_and_swap(std::uint64_t compare, std::uint64_t swap, std::uint64_t expected_old) {
        ibv_send_wr request{};
        request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        request.wr.atomic.remote_addr = remote_.address + word_offset;
        request.wr.atomic.rkey = remote_.key;
        request.wr.atomic.compare_add = compare;
        request.wr.atomic.swap = swap;
        perform_atomic(op_compare_swap, request, expected_old);
    }

    void perform_atomic(operation which, ibv_send_wr& request, std::uint64_t expected_old) {
        std::uint64_t old = ~expected_old;
        std::memcpy(result_.bytes.data(), &old, sizeof(old));
        perform(which, request, result_.sge());
        std::memcpy(&old, result_.bytes.data(), sizeof(old));
        totals_[which].wrong += old != expected_old ? 1 : 0;
    }

    endpoint& side_;
    const remote_memory& remote_;
    const message_buffer& local_;
    const message_buffer& result_;
    memory_model model_;
    client_totals totals_{};
};

} // namespace

client_totals run_client(endpoint& side, std::uint64_t rounds, const remote_memory& remote,
                         const message_buffer& local, const message_buffer& result) {
    client all(side, remote, local, result);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        all.do_round(round);
    }
    return all.totals();
}

} // namespace samples

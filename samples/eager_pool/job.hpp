// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The processes of a run, as the launcher of an MPI job sees them: who is which rank, how their
// queue pairs are reached, and that all of them live. Rank 0 has a TCP connection to each of the
// others, and passes on what they have to know of each other.
#ifndef SAMPLES_EAGER_POOL_JOB_HPP
#define SAMPLES_EAGER_POOL_JOB_HPP

#include "../common/handshake.hpp"
#include "../common/peer_link.hpp"

#include <chrono>
#include <functional>
#include <vector>

namespace samples {

class job {
  public:
    /// `links`: of rank 0 to all others in the order of their ranks, of another one to rank 0.
    /// Agrees on the options. Throws failure(mismatch).
    job(speaker self, std::vector<peer_link> links, const std::vector<agreed_option>& options);

    [[nodiscard]] unsigned rank() const { return rank_; }
    [[nodiscard]] unsigned size() const { return size_; }

    /// `mine[r]`: the queue pair for rank r. Returns by rank where theirs for this one are.
    [[nodiscard]] std::vector<qp_address> exchange(const std::vector<qp_address>& mine);

    /// Waits until all have got here.
    void meet();
    /// The sum of what each rank says; all get it.
    [[nodiscard]] std::uint64_t sum(std::uint64_t mine);

    /// As of peer_link, for all connections.
    void check();
    void check_for(std::chrono::milliseconds grace);
    void give_up(std::string_view reason) const noexcept;
    [[nodiscard]] std::chrono::milliseconds timeout() const { return links_.front().timeout(); }

  private:
    void introduce(speaker self, const std::vector<agreed_option>& options);
    /// do_it(link) for each, with the rank at the other end named in what it throws.
    void for_each_link(const std::function<void(peer_link&, unsigned rank)>& do_it);

    std::vector<peer_link> links_;
    unsigned rank_ = 0;
    unsigned size_ = 0;
};

} // namespace samples

#endif

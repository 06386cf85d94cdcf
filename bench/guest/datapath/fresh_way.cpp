// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "datapath/way.hpp"

namespace bench {
namespace {

class fresh_way final : public way {
  public:
    explicit fresh_way(candidate& from) : way("fresh: " + from.name(), 1), from_(from) {}

    void begin(std::size_t bytes) override { from_.prepare(bytes); }
    message_buffer get(std::size_t bytes) override {
        std::byte* const data = from_.obtain(bytes);
        return {data, from_.enroll().lkey};
    }
    void put() override {
        from_.withdraw();
        from_.release();
    }
    void end() override { from_.finish(); }

  private:
    candidate& from_;
};

} // namespace

std::unique_ptr<way> make_fresh_way(candidate& from) {
    return std::make_unique<fresh_way>(from);
}

} // namespace bench

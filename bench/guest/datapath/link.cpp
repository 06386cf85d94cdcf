// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "datapath/link.hpp"

#include <stdexcept>
#include <string>

namespace bench {
namespace {

void check(ibv_wc_status status) {
    if (status != IBV_WC_SUCCESS) {
        throw std::runtime_error(std::string("a message failed: ") + ibv_wc_status_str(status));
    }
}

} // namespace

void message_link::send(const support::Loopback& way, const support::Place& from,
                        const support::Place& into) {
    way.post_receive(into);
    check(way.send(from));
}

void message_link::stream(const support::Place& from, const support::Place& into, int count) const {
    for (int index = 0; index < count; ++index) {
        there_.post_receive(into);
    }
    for (int index = 0; index < count; ++index) {
        there_.post_send(from);
    }
    for (int index = 0; index < count; ++index) {
        check(there_.left_completion().status);
        check(there_.right_completion().status);
    }
}

} // namespace bench

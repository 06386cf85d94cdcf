// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Whatever of the readable events a process waits for, an event of the node wakes it.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>

#include <string>

#include "support/child.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

TEST(Waiting, R16_a_poll_for_either_kind_of_readable_is_woken) {
    for (const short events : {short{POLLIN}, short{POLLRDNORM}}) {
        // Until it sleeps there is no shortage; then everything counts as one.
        Child waiting([events](Channel& channel) {
            const Node node;
            channel.send(0);
            pollfd watch{node.fd(), events, 0};
            require(poll(&watch, 1, -1) == 1, "poll()");
            require(watch.revents == events, "poll() says what was asked for");
        });
        (void)waiting.channel().receive();
        ASSERT_TRUE(eventually([&] {
            return read_text("/proc/" + std::to_string(waiting.pid()) + "/stat").find(") S ") !=
                   std::string::npos;
        }));
        const ModuleParameter low("low_bytes", std::uint64_t{1} << 50);
        // Any look for memory makes the driver look too, if not too soon after the last.
        ASSERT_TRUE(eventually([&] {
            write_text("/proc/sys/vm/drop_caches", "2");
            return read_text("/proc/" + std::to_string(waiting.pid()) + "/stat").find(") Z ") !=
                   std::string::npos;
        }));
        const int status = waiting.wait();
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "for " << events;
    }
}

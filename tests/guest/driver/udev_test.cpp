// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The udev rule that is installed with the module, applied by udev itself.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "support/child.hpp"
#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"

using namespace support;

namespace {

/// udev with rules of our own before those of this machine, on nodes that are there already.
class Udev {
  public:
    Udev() {
        must_shell("mkdir -p " + rules_);
        must_shell("/lib/systemd/systemd-udevd --daemon");
    }
    Udev(const Udev&) = delete;
    Udev& operator=(const Udev&) = delete;
    ~Udev() { shell("udevadm control --exit; rm -rf " + rules_ + "; chmod 666 " + node_); }

    void apply_to_the_node() const {
        must_shell("udevadm control --reload");
        must_shell("udevadm trigger --action=add /sys/class/hcamem/" + *Node::name_of("rxe0"));
        must_shell("udevadm settle --timeout=120");
    }
    [[nodiscard]] const std::string& rules() const { return rules_; }
    [[nodiscard]] unsigned mode() const {
        struct stat status {};
        must(stat(node_.c_str(), &status), node_.c_str());
        return status.st_mode & 07777U;
    }

  private:
    std::string rules_ = "/run/udev/rules.d";
    std::string node_ = Node::path_of("rxe0");
};

} // namespace

// A distribution may deny device nodes to ordinary users until a rule allows them.
TEST(UdevRule, R03_lets_users_open_the_node_and_they_are_accounted) {
    const Udev udev;
    must_shell("echo 'SUBSYSTEM==\"hcamem\", MODE=\"0600\"' > " + udev.rules() + "/10-deny.rules");
    udev.apply_to_the_node();
    ASSERT_EQ(udev.mode(), 0600U) << "so that the rule has something to change";
    const Identity user{fresh_user(), rlim_t{16 * MiB}, {}};
    EXPECT_FALSE(succeeds_in_child(user, [](Channel&) { const Node node; }));

    must_shell("cp kdriver/60-hcamem.rules " + udev.rules());
    udev.apply_to_the_node();
    EXPECT_EQ(udev.mode(), 0666U);
    EXPECT_TRUE(succeeds_in_child(user, [](Channel&) {
        const Node node;
        const Region region(node, 16 * MiB);
        require(node.info().user_bytes == 16 * MiB, "accounted");
        require(Region::attempt(node, page_size) == EAGAIN, "and limited");
    }));
}

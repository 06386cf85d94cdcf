// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Arguments, the module's absence, and outputs that fail.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/failure.hpp"
#include "support/guest.hpp"
#include "support/node.hpp"
#include "tool.hpp"

using namespace support;

namespace {

/// Takes the module out, and brings it back at the end.
class NoModule {
  public:
    NoModule() { unload_module(); }
    NoModule(const NoModule&) = delete;
    NoModule& operator=(const NoModule&) = delete;
    ~NoModule() { EXPECT_EQ(shell("insmod " + environment("HCAMEM_MODULE")), 0); }
};

} // namespace

TEST(CtlUsage, help_and_version) {
    for (const auto& arguments : {std::vector<std::string>{"--help"}, {"-h"}, {"show", "--help"}}) {
        const Outcome outcome = hcamemctl(arguments);
        EXPECT_EQ(outcome.status, 0);
        EXPECT_EQ(outcome.err, "");
        for (const char* word : {"list", "show", "watch", "--json", "Exit status"}) {
            EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
        }
    }
    EXPECT_EQ(hcamemctl({"--version"}).out.find("hcamemctl "), 0U);
}

TEST(CtlUsage, wrong_arguments_are_named) {
    for (const auto& arguments : {std::vector<std::string>{},
                                  {"lost"},
                                  {"list", "--lost"},
                                  {"list", "lost"},
                                  {"list", "--pid", "1"},
                                  {"show", "--pid"},
                                  {"show", "--pid", "lost"},
                                  {"show", "--pid", "0"},
                                  {"show", "--pid=-7"},
                                  {"show", "--json=lost"},
                                  {"show", "lost"},
                                  {"watch", "--node", "hcamem0"}}) {
        const Outcome outcome = hcamemctl(arguments);
        EXPECT_EQ(outcome.status, 2) << outcome.err;
        EXPECT_EQ(outcome.out, "");
        EXPECT_NE(outcome.err.find("see 'hcamemctl --help'"), std::string::npos) << outcome.err;
    }
}

TEST(CtlUsage, without_the_module_every_command_says_how_to_load_it) {
    const NoModule no_module;
    for (const auto& arguments :
         {std::vector<std::string>{"list"}, {"list", "--json"}, {"show"}, {"watch"}}) {
        const Outcome outcome = hcamemctl(arguments);
        EXPECT_EQ(outcome.status, 3);
        EXPECT_EQ(outcome.out, "");
        EXPECT_NE(outcome.err.find("not loaded"), std::string::npos) << outcome.err;
        EXPECT_NE(outcome.err.find("modprobe hcamem"), std::string::npos) << outcome.err;
    }
    EXPECT_EQ(hcamemctl({"--help"}).status, 0);
}

TEST(CtlUsage, an_output_that_takes_nothing_is_a_failure) {
    const Outcome outcome = run({"sh", "-c", tool_path() + " list >/dev/full"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("cannot write: No space left on device"), std::string::npos)
        << outcome.err;
}

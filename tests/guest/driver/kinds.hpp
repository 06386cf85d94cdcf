// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Parameters shared by the test suites.
#ifndef TESTS_GUEST_DRIVER_KINDS_HPP
#define TESTS_GUEST_DRIVER_KINDS_HPP

#include <gtest/gtest.h>

#include <string>

#include "support/node.hpp"

inline const char* to_string(hcamem_mapping mapping) {
    return mapping == HCAMEM_MAPPING_HUGE ? "huge" : "pages";
}

inline const char* to_string(hcamem_fork fork) {
    switch (fork) {
    case HCAMEM_FORK_POLICY_ZERO:
        return "zero";
    case HCAMEM_FORK_POLICY_DONTCOPY:
        return "dontcopy";
    default:
        return "share";
    }
}

/// A suite that runs in both mapping modes.
class MappingModes : public testing::TestWithParam<hcamem_mapping> {
  protected:
    static support::RegionKind kind(hcamem_fork fork = HCAMEM_FORK_POLICY_ZERO) {
        return {GetParam(), fork};
    }
};

inline std::string mapping_name(const testing::TestParamInfo<hcamem_mapping>& info) {
    return to_string(info.param);
}

inline const auto both_mappings = testing::Values(HCAMEM_MAPPING_HUGE, HCAMEM_MAPPING_PAGES);

#endif

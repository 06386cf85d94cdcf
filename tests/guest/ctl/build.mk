# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The tests of what hcamemctl, tracepoints, fdinfo and debugfs tell.

CTL_TEST_OBJECTS := $(call guest_objects,$(wildcard tests/guest/ctl/*.cpp) \
	tests/guest/importer/importer.cpp \
	$(addprefix tests/support/,guest_main.cpp guest.cpp node.cpp child.cpp hca.cpp))

guest-tests: $(BUILD)/tests/ctl_tests

$(BUILD)/tests/ctl_tests: $(CTL_TEST_OBJECTS) | $(HCAMEMCTL)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -pthread -o $@

-include $(CTL_TEST_OBJECTS:.o=.d)

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The tests of what hcamemctl, tracepoints, fdinfo and debugfs tell.

CTL_TEST_OWN_OBJECTS := $(call guest_objects,$(wildcard tests/guest/ctl/*.cpp))
CTL_TEST_OBJECTS := $(CTL_TEST_OWN_OBJECTS) $(call guest_objects,tests/guest/importer/importer.cpp \
	$(addprefix tests/support/,guest_main.cpp guest.cpp node.cpp child.cpp hca.cpp))

GUEST_PROGRAMS += $(BUILD)/tests/ctl_tests
guest-tests: $(BUILD)/tests/ctl_tests $(HCAMEMCTL)

# Some of them test parts of the tool by themselves.
$(CTL_TEST_OWN_OBJECTS): GUEST_CPPFLAGS += -Itools

$(BUILD)/tests/ctl_tests: $(CTL_TEST_OBJECTS) $(filter-out %/main.o,$(CTL_OBJECTS)) | $(HCAMEMCTL)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -pthread -o $@

-include $(CTL_TEST_OWN_OBJECTS:.o=.d)

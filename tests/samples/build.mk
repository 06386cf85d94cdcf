# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Tests of the samples' command lines. On the host those that need no HCA, in a guest all.

HOST_TEST_OBJECTS := $(BUILD)/obj/samples
# $(call host_test_objects,SOURCES): their objects
host_test_objects = $(patsubst tests/%.cpp,$(HOST_TEST_OBJECTS)/%.o,$(1))

SAMPLE_TEST_OBJECTS := $(call host_test_objects,$(wildcard tests/samples/*.cpp) \
	$(patsubst %,tests/support/%.cpp,guest json page_pins process))

.PHONY: sample-tests
sample-tests: $(BUILD)/tests/sample_tests samples

$(HOST_TEST_OBJECTS)/%.o: tests/%.cpp
	@mkdir -p $(@D)
	@echo "CXX $<"
	@$(CXX) $(CPPFLAGS) -Itests $(TEST_CXXFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/tests/sample_tests: $(SAMPLE_TEST_OBJECTS) $(BUILD)/samples/common/pattern.o
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -pthread -o $@

-include $(SAMPLE_TEST_OBJECTS:.o=.d)

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The fuzzer of the kernel interface, and the tests that run it in a guest.

FUZZ_OBJECTS := $(call guest_objects,$(filter-out %_test.cpp,$(wildcard tests/fuzz/*.cpp)) \
	$(patsubst %,tests/support/%.cpp,guest node child cgroup))
FUZZ_TEST_OBJECTS := $(call guest_objects,$(wildcard tests/fuzz/*_test.cpp) \
	$(patsubst %,tests/support/%.cpp,guest_main guest json process))
FUZZ_PROGRAMS := $(addprefix $(BUILD)/tests/,hcamem_fuzz fuzz_tests)

# For how long each of the two ways, without and with a memory cgroup, is fuzzed.
FUZZ_SECONDS ?= 150

.PHONY: fuzz fuzz-short
fuzz: $(FUZZ_PROGRAMS) module ## five minutes of hostile calls on each kernel (FUZZ_SECONDS, HCAMEM_FUZZ_SEED)
	@BUILD=$(BUILD) HCAMEM_FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run $(KERNELS)

fuzz-short: $(FUZZ_PROGRAMS) module
	@BUILD=$(BUILD) HCAMEM_FUZZ_SECONDS=10 tests/fuzz/run $(KERNELS)

$(BUILD)/tests/hcamem_fuzz: $(FUZZ_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -pthread -o $@

$(BUILD)/tests/fuzz_tests: $(FUZZ_TEST_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -pthread -o $@

-include $(FUZZ_OBJECTS:.o=.d) $(FUZZ_TEST_OBJECTS:.o=.d)

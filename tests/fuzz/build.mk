# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The fuzzer of the kernel interface, and the tests that run it in a guest.

FUZZ_OBJECTS := $(call guest_objects,$(filter-out %_test.cpp,$(wildcard tests/fuzz/*.cpp)) \
	$(patsubst %,tests/support/%.cpp,guest node child cgroup))
FUZZ_TEST_OBJECTS := $(call guest_objects,$(wildcard tests/fuzz/*_test.cpp) \
	$(patsubst %,tests/support/%.cpp,guest_main guest process))
FUZZ_PROGRAMS := $(addprefix $(BUILD)/tests/,hcamem_fuzz fuzz_tests)

# For how long each of the two ways, without and with a memory cgroup, is fuzzed.
FUZZ_SECONDS ?= 150
FUZZ_RESULTS := $(BUILD)/results-fuzz

# $(call fuzz_step,SERIES). The guest has an environment of its own.
fuzz_step = '$(1)-stock=BUILD=$(BUILD) tests/runner/guest --kernel $(1) --rxe stock \
	--timeout 3600 --results $(FUZZ_RESULTS)/$(1)-stock -- env BUILD=$(BUILD) \
	HCAMEM_FUZZ_SECONDS=$(FUZZ_SECONDS) $(if $(FUZZ_SEED),HCAMEM_FUZZ_SEED=$(FUZZ_SEED)) \
	tests/guest/run fuzz_tests'

.PHONY: fuzz
fuzz: setup ## five minutes of hostile calls on each kernel (FUZZ_SECONDS, FUZZ_SEED)
	@$(MAKE) -j$(JOBS) --no-print-directory $(FUZZ_PROGRAMS) module kernels
	@tests/run $(FUZZ_RESULTS) $(foreach k,$(KERNELS),$(call fuzz_step,$(k)))
	@grep ' operations done' $(FUZZ_RESULTS)/*.log
	@tests/summary $(FUZZ_RESULTS) docs/requirements.md $(BUILD)/requirements-fuzz.txt $(KERNELS) \
		>$(FUZZ_RESULTS)/summary || status=$$?; tail -n 1 $(FUZZ_RESULTS)/summary; exit $$status

$(BUILD)/tests/hcamem_fuzz: $(FUZZ_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -pthread -o $@

$(BUILD)/tests/fuzz_tests: $(FUZZ_TEST_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -pthread -o $@

-include $(FUZZ_OBJECTS:.o=.d) $(FUZZ_TEST_OBJECTS:.o=.d)

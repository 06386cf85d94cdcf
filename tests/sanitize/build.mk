# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# `make test-sanitize`: the guest tests, the fuzzer, and each allocation made to
# fail, on a kernel with KASAN, lockdep, kmemleak and fault injection.

FAIL_NTH_OBJECTS := $(call guest_objects,$(wildcard tests/sanitize/*.cpp) \
	tests/guest/importer/importer.cpp $(GUEST_SUPPORT:%=tests/support/%.cpp))
SANITIZE_RESULTS := $(BUILD)/results-sanitize
# For how long each of the two ways, without and with a memory cgroup, is fuzzed.
SANITIZE_SECONDS ?= 60
SANITIZE_PROGRAMS ?= driver_tests driver_tests32 life_tests inject_tests ctl_tests \
	registration_tests fuzz_tests fail_nth_tests

# $(call sanitize_step,NAME,OPTIONS,COMMAND). Instrumented, everything takes many times as long and
# an eighth more memory.
sanitize_step = 'sanitize-$(1)=BUILD=$(BUILD) tests/runner/guest --kernel sanitize --rxe dmabuf \
	--memory 2560 --timeout 7200 --results $(SANITIZE_RESULTS)/sanitize-$(1) $(2) -- $(3)'

# The DMA checker switches itself off when one of its own allocations is made to fail.
SANITIZE_STEPS = \
	'sanitize-detectors=BUILD=$(BUILD) tests/sanitize/detectors $(FAULTS_MODULE) \
		$(SANITIZE_RESULTS)/sanitize-detectors' \
	$(if $(filter-out fail_nth_tests,$(SANITIZE_PROGRAMS)),$(call sanitize_step,dmabuf,,\
		env BUILD=$(BUILD) HCAMEM_FUZZ_SECONDS=$(SANITIZE_SECONDS) \
		tests/guest/run $(filter-out fail_nth_tests,$(SANITIZE_PROGRAMS)))) \
	$(if $(filter fail_nth_tests,$(SANITIZE_PROGRAMS)),$(call sanitize_step,fail_nth,--append dma_debug=off,\
		env BUILD=$(BUILD) HCAMEM_STEP=sanitize-fail_nth tests/guest/run fail_nth_tests))

FAULTS_MODULE := $(BUILD)/tests/faults/hcamem_faults.ko
SANITIZE_MODULES := $(FAULTS_MODULE) $(BUILD)/kernel/sanitize/hcamem.ko $(BUILD)/kernel/sanitize/inject/hcamem.ko \
	$(BUILD)/tests/importer/sanitize/hcamem_importer.ko

.PHONY: sanitize-kernel sanitize-programs test-sanitize
sanitize-kernel:
	@tests/sanitize/kernel --image >/dev/null

# What was built for another sanitizing kernel is built again.
$(BUILD)/kernel/sanitize/release: sanitize-kernel
	@mkdir -p $(@D)
	@tests/sanitize/kernel --release >$@.new
	@cmp -s $@.new $@ || cp $@.new $@

$(SANITIZE_MODULES): $(BUILD)/kernel/sanitize/release

sanitize-programs: guest-tests $(FUZZ_PROGRAMS) $(BUILD)/tests/fail_nth_tests $(SANITIZE_MODULES)
	@tests/rxe/build sanitize >/dev/null

test-sanitize: setup ## the guest tests and the fuzzer on a kernel that checks itself (builds it once)
	@$(MAKE) --no-print-directory sanitize-kernel
	@$(MAKE) -j$(JOBS) --no-print-directory sanitize-programs
	@tests/run $(SANITIZE_RESULTS) $(SANITIZE_STEPS)
	@tests/summary $(SANITIZE_RESULTS) docs/requirements.md $(BUILD)/requirements-sanitize.txt sanitize

$(BUILD)/tests/fail_nth_tests: $(FAIL_NTH_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -libverbs -pthread -o $@

$(FAULTS_MODULE): $(wildcard tests/sanitize/faults/*)
	@mkdir -p $(@D)/src
	@cp -pu $(wildcard tests/sanitize/faults/*) $(@D)/src
	@echo "faults for the detectors: $@"
	@$(MAKE) --no-print-directory -C "$$(tests/sanitize/kernel --headers)" M=$(abspath $(@D))/src modules
	@cp $(@D)/src/hcamem_faults.ko $@

-include $(FAIL_NTH_OBJECTS:.o=.d)

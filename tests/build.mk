# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The guest runner, soft-RoCE with dma-buf import, and all tests.

# Compiling the tests takes longer than running them: in half the time like this.
TEST_OPT ?= -O1 -g1
TEST_CXXFLAGS = $(filter-out $(OPT),$(CXXFLAGS)) $(TEST_OPT)

include tests/unit/build.mk tests/guest/build.mk tests/demo/build.mk
include tests/fuzz/build.mk
include tests/mpi/build.mk tests/preload/build.mk
include tests/cluster/build.mk
include tests/test.mk
include tests/sanitize/build.mk

# The kernel series of guest-shell.
KERNEL ?= 6.12

# The series that soft-RoCE with dma-buf import exists for.
RXE_KERNELS := $(filter $(KERNELS),$(patsubst tests/rxe/%/hooks.patch,%,$(wildcard tests/rxe/*/hooks.patch)))
RXE_TEST_OBJECTS := $(call guest_objects,$(wildcard tests/rxe/*.cpp) \
	$(GUEST_SUPPORT:%=tests/support/%.cpp))

.PHONY: kernels rxe rxe-tests guest-shell test-runner test-rxe

kernels: ## fetch the guests' kernels into the cache
	@tests/runner/kernels $(KERNELS)

rxe: ## build soft-RoCE with dma-buf import into the cache
	@for series in $(RXE_KERNELS); do tests/rxe/build $$series || exit 1; done

guest-shell: module ## a shell in a guest (KERNEL=6.1 for the other one)
	@BUILD=$(BUILD) tests/runner/guest --kernel $(KERNEL) --interactive

test-runner: module ## test the guest runner itself
	@BUILD=$(BUILD) tests/runner/selftest/run $(KERNELS)

rxe-tests: $(BUILD)/tests/rxe_tests

test-rxe: module rxe-tests ## test soft-RoCE with dma-buf import
	@for series in $(RXE_KERNELS); do \
		BUILD=$(BUILD) tests/runner/guest --kernel $$series --rxe dmabuf -- \
			tests/rxe/run $(BUILD)/tests/rxe_tests --gtest_brief=1 || exit 1; \
	done

$(BUILD)/tests/rxe_tests: $(RXE_TEST_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -libverbs -pthread -o $@

-include $(RXE_TEST_OBJECTS:.o=.d)

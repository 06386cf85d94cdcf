# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# `make test`: builds everything with all processors, runs the steps two at a
# time, and sums up. A step is NAME=COMMAND, see tests/run; the name begins with
# what it ran on, since the table of requirements is by kernel.

JOBS ?= $(shell nproc)
RESULTS := $(BUILD)/results

TEST_PROGRAMS := unit-tests unit-tests-sanitized sample-tests guest-tests rxe rxe-tests kernels \
	$(FUZZ_PROGRAMS) bench-selfcheck preload-tests mpi-tests bench-costs-tests

# $(call processors,SERIES): one, where what two do at the same time is not tested; they would
# mostly wait for each other, since two steps share what this machine has. But soft-RoCE of 6.1
# works in software interrupts, which leave the programs of a single processor nothing.
processors = $(if $(filter 6.1,$(1)),2,1)

# $(call guest_step,SERIES,NAME,RXE,PROCESSORS,PROGRAMS). The library's own tests run there on the
# device.
guest_step = '$(1)-$(2)=BUILD=$(BUILD) tests/runner/guest --kernel $(1) --rxe $(3) \
	--processors $(4) --timeout 1800 --results $(RESULTS)/$(1)-$(2) -- \
	env BUILD=$(BUILD) HCAMEM_STEP=$(1)-$(2) HCAMEM_TEST_SOURCE=device tests/guest/run $(5)'

# A guest of its own, with the memory that regions of more than 4 GiB take.
large_step = '$(1)-large=BUILD=$(BUILD) tests/runner/guest --kernel $(1) --memory 5120 \
	--processors 1 --results $(RESULTS)/$(1)-large -- $(BUILD)/tests/large_tests --gtest_brief=1 \
	--gtest_output=json:/run/hcamem/results/$(1)-large.json'

# Soft-RoCE with dma-buf import is ours too: tested apart, since hcamem relies on it.
rxe_step = '$(1)-rxe=BUILD=$(BUILD) tests/runner/guest --kernel $(1) --rxe dmabuf \
	--results $(RESULTS)/$(1)-rxe -- tests/rxe/run $(BUILD)/tests/rxe_tests --gtest_brief=1 \
	--gtest_output=json:/run/hcamem/results/$(1)-rxe.json'

# The two MPI libraries; all of it is `make test-mpi`.
mpi_step = '$(1)-mpi=BUILD=$(BUILD) tests/runner/guest --kernel $(1) --rxe dmabuf \
	--processors $(call processors,$(1)) --results $(RESULTS)/$(1)-mpi -- $(BUILD)/tests/mpi_tests --gtest_brief=1 --gtest_filter=*R20* \
	--gtest_output=json:/run/hcamem/results/$(1)-mpi.json'

# Swap, little memory, NUMA nodes: boots of their own.
stability_step = '$(1)-$(2)=BUILD=$(BUILD) tests/guest/stability/run $(1) $(2) $(RESULTS)/$(1)-$(2)'

# What memory costs the kernel, in a guest whose memory is still in one piece. 6.1 cannot be asked
# all of it: its probes know no types. On one processor, since breakpoints have the kernel change
# its own code, which QEMU's threads do not always notice in time.
costs_step = '$(1)-costs=BUILD=$(BUILD) tests/runner/guest --kernel $(1) --rxe dmabuf --icount \
	--results $(RESULTS)/$(1)-costs -- $(COSTS_TESTS) --gtest_brief=1 \
	--gtest_output=json:/run/hcamem/results/$(1)-costs.json'

# Two guests with a network between them; all of it is `make test-cluster`.
cluster_step = '$(1)-cluster=$(call run_cluster,$(1),$(RESULTS)/$(1)-cluster) pingpong eager_pool'

# With dma-bufs everything; without them what is different then.
DRIVER_PROGRAMS := driver_tests driver_tests32 inject_tests fuzz_tests life_tests
USER_PROGRAMS := ctl_tests registration_tests sample_tests unit_tests
STOCK_PROGRAMS := registration_tests \
	"sample_tests=Kinds/*:*PingpongOptions*:Pingpong.*:Rdma.*:Containers.*:Samples.*:MemoryLimits.*:StockTools.*:EagerPool.R0*"

TEST_STEPS = \
	'host-headers=tests/unit/check-headers "$(CC)" "$(CXX)" $(HCAMEM_HEADERS) && tests/unit/check-abi $(HCAMEM_LIB) $(filter %.h,$(HCAMEM_HEADERS))' \
	'host-unit=$(UNIT_TESTS) --gtest_brief=1 --gtest_output=json:$(RESULTS)/host-unit.json' \
	'host-unit-asan=UBSAN_OPTIONS=print_stacktrace=1 $(UNIT_TESTS)_asan --gtest_brief=1 \
		--gtest_output=json:$(RESULTS)/host-unit-asan.json' \
	'host-unit-tsan=TSAN_OPTIONS=halt_on_error=1 setarch -R $(UNIT_TESTS)_tsan --gtest_brief=1 \
		--gtest_output=json:$(RESULTS)/host-unit-tsan.json' \
	'host-valgrind=tests/unit/check-valgrind $(VALGRIND_PROBE)' \
	'host-samples=$(BUILD)/tests/sample_tests --gtest_brief=1 \
		--gtest_output=json:$(RESULTS)/host-samples.json' \
	'host-preload=$(BUILD)/tests/preload_tests --gtest_brief=1 \
		--gtest_output=json:$(RESULTS)/host-preload.json' \
	'host-bench=$(BUILD)/tests/bench_report_tests --gtest_brief=1 \
		--gtest_output=json:$(RESULTS)/host-bench.json' \
	'host-bench-guest=bench/guest/report/selfcheck' \
	'host-install=tests/install-check $(BUILD) $(lastword $(KERNELS))' \
	'host-runner=TESTS="test_(guest|kernel|cache|cluster_(is|refuses))" tests/runner/selftest/run $(KERNELS)' \
	$(foreach k,$(KERNELS),'$(k)-R22-falsified-version=tests/header-check $(BUILD) $(k)') \
	$(foreach k,$(KERNELS),'$(k)-R23-interface=tests/interface-check $(BUILD) $(k)') \
	$(foreach k,$(KERNELS),\
		$(call guest_step,$(k),driver,dmabuf,2,$(DRIVER_PROGRAMS)) \
		$(call guest_step,$(k),users,dmabuf,$(call processors,$(k)),$(USER_PROGRAMS)) \
		$(call guest_step,$(k),stock,stock,$(call processors,$(k)),$(STOCK_PROGRAMS)) \
		$(call stability_step,$(k),swap)) \
	$(foreach k,$(KERNELS),$(call rxe_step,$(k))) \
	$(foreach k,$(KERNELS),$(call large_step,$(k))) \
	$(foreach k,$(KERNELS),$(call mpi_step,$(k))) \
	$(foreach k,$(filter-out 6.1,$(KERNELS)),$(call costs_step,$(k))) \
	$(call cluster_step,$(lastword $(KERNELS))) \
	$(foreach k,$(KERNELS),$(call stability_step,$(k),numa))

.PHONY: run-test
run-test:
	@echo "building with $(JOBS) jobs"
	@$(MAKE) -j$(JOBS) --no-print-directory $(TEST_PROGRAMS)
	@tests/run $(RESULTS) $(TEST_STEPS)
	@tests/summary $(RESULTS) docs/requirements.md $(BUILD)/requirements.txt $(KERNELS)

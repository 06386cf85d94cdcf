# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# `make bench-pool`: our allocators and others, in one process. docs/performance.md

BENCH := $(BUILD)/bench/bench_pool
BENCH_ARGS ?=

# Peers that are linked, if their headers are there: file, header, package. Those that are
# loaded when the program runs, it reports itself.
BENCH_PEERS := dpdk:/usr/include/dpdk/rte_mempool.h:libdpdk-dev \
	ucx:/usr/include/ucs/datastruct/mpool.h:libucx-dev \
	boost_interprocess:/usr/include/boost/interprocess/managed_external_buffer.hpp:libboost-dev
bench_peer_file = bench/peers/$(word 1,$(subst :, ,$(1))).cpp
bench_peer_is_there = $(wildcard $(word 2,$(subst :, ,$(1))))
BENCH_ABSENT := $(foreach peer,$(BENCH_PEERS),$(if $(call bench_peer_is_there,$(peer)),,$(peer)))

BENCH_SRC := $(filter-out $(foreach peer,$(BENCH_ABSENT),$(call bench_peer_file,$(peer))) \
	bench/selfcheck/% bench/guest/%,$(sort $(wildcard bench/*.cpp bench/*/*.cpp)))
BENCH_OBJ := $(BENCH_SRC:%.cpp=$(BUILD)/%.o)

# What needs no peer is tested: how results become ratios, files and tables.
BENCH_SELFCHECK := $(BUILD)/tests/bench_report_tests
BENCH_SELFCHECK_OBJ := $(filter $(BUILD)/bench/report/%,$(BENCH_OBJ)) \
	$(patsubst %.cpp,$(BUILD)/%.o,$(wildcard bench/selfcheck/*.cpp))

# DPDK's headers are not written for our warnings, and want instructions that all of its own
# programs are compiled with.
$(BUILD)/bench/peers/dpdk.o: BENCH_CXXFLAGS = \
	$(patsubst -I%,-isystem %,$(shell pkg-config --cflags libdpdk))
# The ring, which is where its pool keeps buffers, makes itself known when it is loaded.
BENCH_DPDK_LIBS := -lrte_eal -lrte_mempool -Wl,--push-state,--no-as-needed -lrte_mempool_ring \
	-Wl,--pop-state
BENCH_LIBS := $(if $(filter %/dpdk.o,$(BENCH_OBJ)),$(BENCH_DPDK_LIBS)) \
	$(if $(filter %/ucx.o,$(BENCH_OBJ)),-lucs)

.PHONY: bench-pool run-bench-pool bench-selfcheck

# A make of its own, so that nothing is looked for before it is installed.
bench-pool: ## measure our allocators beside others (BENCH_ARGS=--help)
	@tests/setup bench || echo "bench-pool: goes on with what is there"
	@$(MAKE) --no-print-directory run-bench-pool

run-bench-pool: $(BENCH)
	@$(foreach peer,$(BENCH_ABSENT),echo "bench-pool: $(call bench_peer_file,$(peer)) is left \
		out: apt-get install $(word 3,$(subst :, ,$(peer)))";)
	@$(BENCH) --directory $(BUILD)/bench $(BENCH_ARGS)
	@bench/plot $(BUILD)/bench/pool.json $(BUILD)/bench/pool.svg

bench-selfcheck: $(BENCH_SELFCHECK)

$(BENCH_OBJ) $(filter %_test.o,$(BENCH_SELFCHECK_OBJ)): $(BUILD)/%.o: %.cpp
	@mkdir -p $(@D)
	@echo "CXX $<"
	@$(CXX) $(CPPFLAGS) -Ibench $(CXXFLAGS) $(BENCH_CXXFLAGS) -MMD -MP -c $< -o $@

# The shared library, as programs have it.
$(BENCH): $(BENCH_OBJ) $(HCAMEM_LIB)
	@echo "LD  $@"
	@$(CXX) $(LDFLAGS) $(BENCH_OBJ) -L$(dir $(HCAMEM_LIB)) -lhcamem -Wl,-rpath,'$$ORIGIN/../lib' \
		-lbenchmark $(BENCH_LIBS) -libverbs -pthread -ldl -o $@

$(BENCH_SELFCHECK): $(BENCH_SELFCHECK_OBJ)
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -lgtest_main -pthread -o $@

-include $(BENCH_OBJ:.o=.d) $(BENCH_SELFCHECK_OBJ:.o=.d)

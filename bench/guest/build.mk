# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# `make bench-registration`, `make bench-datapath`: our memory beside what users could take
# instead, in a guest. docs/performance.md

GUEST_BENCH_OBJECTS := $(BUILD)/obj/bench-guest
# UCX's registration cache is a peer of the data path, if its headers are there.
GUEST_BENCH_UCX := $(wildcard /usr/include/ucs/memory/rcache.h)
GUEST_BENCH_CPPFLAGS := -Ibench/guest -Itests -Iliballoc -Iinclude/uapi -D_FILE_OFFSET_BITS=64 \
	$(if $(GUEST_BENCH_UCX),-DBENCH_HAVE_UCX)
guest_bench_objects = $(patsubst %.cpp,$(GUEST_BENCH_OBJECTS)/%.o,$(1))

GUEST_BENCH_SHARED := $(wildcard bench/guest/*.cpp bench/guest/candidates/*.cpp) \
	$(patsubst %,tests/support/%.cpp,$(filter-out guest_main,$(GUEST_SUPPORT))) \
	liballoc/verbs/uverbs_mr.cpp
REGISTRATION_BENCH := $(BUILD)/bench/bench_registration
REGISTRATION_BENCH_OBJECTS := $(call guest_bench_objects,$(GUEST_BENCH_SHARED) \
	$(wildcard bench/guest/probes/*.cpp bench/guest/registration/*.cpp))
DATAPATH_BENCH := $(BUILD)/bench/bench_datapath
DATAPATH_BENCH_OBJECTS := $(call guest_bench_objects,$(GUEST_BENCH_SHARED) \
	$(wildcard bench/guest/datapath/*.cpp))

$(GUEST_BENCH_OBJECTS)/%.o: %.cpp
	@mkdir -p $(@D)
	@echo "CXX $<"
	@$(CXX) $(CPPFLAGS) $(GUEST_BENCH_CPPFLAGS) $(CXXFLAGS) -MMD -MP -c $< -o $@

# The shared library, as programs have it.
guest_bench_link = $(CXX) $(LDFLAGS) $(1) -L$(dir $(HCAMEM_LIB)) -lhcamem \
	-Wl,-rpath,'$$ORIGIN/../lib' $(2) -libverbs -pthread -o $@

$(REGISTRATION_BENCH): $(REGISTRATION_BENCH_OBJECTS) $(HCAMEM_LIB)
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(call guest_bench_link,$(REGISTRATION_BENCH_OBJECTS))

$(DATAPATH_BENCH): $(DATAPATH_BENCH_OBJECTS) $(HCAMEM_LIB)
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(call guest_bench_link,$(DATAPATH_BENCH_OBJECTS),$(if $(GUEST_BENCH_UCX),-lucs))

-include $(REGISTRATION_BENCH_OBJECTS:.o=.d) $(DATAPATH_BENCH_OBJECTS:.o=.d)

# What it counts is tested, in a guest of its own; how it reports, on the host.
COSTS_TESTS := $(BUILD)/tests/costs_tests
COSTS_TESTS_OBJECTS := $(filter-out %/bench/guest/registration/main.o,$(REGISTRATION_BENCH_OBJECTS)) \
	$(call guest_bench_objects,$(wildcard tests/guest/costs/*.cpp) tests/support/guest_main.cpp)

.PHONY: bench-costs-tests
bench-costs-tests: $(COSTS_TESTS)

$(COSTS_TESTS): $(COSTS_TESTS_OBJECTS) $(HCAMEM_LIB)
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(call guest_bench_link,$(COSTS_TESTS_OBJECTS),-lgtest)

-include $(COSTS_TESTS_OBJECTS:.o=.d)

.PHONY: bench-registration bench-datapath run-bench-registration run-bench-datapath bench-docs

# A make of its own, so that nothing is looked for before it is installed.
bench-registration: setup ## what memory costs beside other ways to get it, in a guest
	@tests/setup bench || echo "bench-registration: goes on with what is there"
	@$(MAKE) --no-print-directory run-bench-registration

bench-datapath: setup ## what buffers for messages cost, in a guest
	@tests/setup bench || echo "bench-datapath: goes on with what is there"
	@$(MAKE) --no-print-directory run-bench-datapath

run-bench-registration: $(REGISTRATION_BENCH) module
	@BUILD=$(BUILD) bench/guest/run registration $(BUILD)/bench $(BENCH_ARGS)

run-bench-datapath: $(DATAPATH_BENCH) module
	@BUILD=$(BUILD) bench/guest/run datapath $(BUILD)/bench $(BENCH_ARGS)

# One after the other, also under -j: they would disturb each other.
bench-docs: ## both, and their tables and pictures into docs/performance.md
	@$(MAKE) --no-print-directory bench-registration
	@$(MAKE) --no-print-directory bench-datapath
	@bench/guest/report/report insert $(BUILD)/bench docs/performance.md

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Tests of the library on the host: plain, with ASan+UBSan, with TSan. The plain program
# runs unchanged in the guest, on the device: HCAMEM_TEST_SOURCE=device.

UNIT_SRC := $(sort $(wildcard tests/unit/*.cpp tests/unit/support/*.cpp))
UNIT_TESTS := $(BUILD)/tests/unit_tests
UNIT_CXXFLAGS := -Itests/unit $(LIBALLOC_INCLUDES) -fno-omit-frame-pointer
# The library is compiled once per variant, since a sanitizer must see all of it.
UNIT_FLAGS_plain :=
UNIT_FLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
UNIT_FLAGS_tsan := -fsanitize=thread
UNIT_OPT_plain := $(OPT)
UNIT_OPT_asan := $(TEST_OPT)
UNIT_OPT_tsan := $(TEST_OPT)

# $(call unit_objects,VARIANT)
unit_objects = $(patsubst %.cpp,$(BUILD)/obj/unit-$(1)/%.o,$(UNIT_SRC) $(LIBALLOC_SRC))

# $(call unit_variant,VARIANT,PROGRAM)
define unit_variant
$$(BUILD)/obj/unit-$(1)/%.o: %.cpp
	@mkdir -p $$(@D)
	@echo "CXX $(1) $$<"
	@$$(CXX) $$(CPPFLAGS) $$(UNIT_CXXFLAGS) $$(filter-out $$(OPT),$$(CXXFLAGS)) $$(UNIT_OPT_$(1)) \
		$$(UNIT_FLAGS_$(1)) -MMD -MP -c $$< -o $$@

$(2): $$(call unit_objects,$(1))
	@mkdir -p $$(@D)
	@echo "LD  $$@"
	@$$(CXX) $$(LDFLAGS) $$(UNIT_FLAGS_$(1)) $$^ -lgtest -libverbs -pthread -o $$@

-include $$(patsubst %.o,%.d,$$(call unit_objects,$(1)))
endef

$(eval $(call unit_variant,plain,$(UNIT_TESTS)))
$(eval $(call unit_variant,asan,$(UNIT_TESTS)_asan))
$(eval $(call unit_variant,tsan,$(UNIT_TESTS)_tsan))

# The operations of tests/unit/support/operations.cpp, in an order that a fuzzer chooses by
# what each order reaches. The inputs that reached something are kept and taken up again.
POOL_FUZZER := $(BUILD)/tests/pool_fuzzer
POOL_FUZZER_SRC := tests/unit/fuzz/pool_fuzzer.cpp tests/unit/support/operations.cpp $(LIBALLOC_SRC)
POOL_FUZZER_OBJ := $(POOL_FUZZER_SRC:%.cpp=$(BUILD)/obj/fuzz/%.o)
POOL_FUZZER_FLAGS := -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
POOL_FUZZ_SECONDS ?= 300

$(POOL_FUZZER_OBJ): $(BUILD)/obj/fuzz/%.o: %.cpp
	@mkdir -p $(@D)
	@echo "CXX fuzz $<"
	@clang++ $(CPPFLAGS) $(UNIT_CXXFLAGS) $(filter-out $(OPT),$(CXXFLAGS)) $(TEST_OPT) \
		-D__SANITIZE_ADDRESS__ $(POOL_FUZZER_FLAGS) -MMD -MP -c $< -o $@

$(POOL_FUZZER): $(POOL_FUZZER_OBJ)
	@echo "LD  $@"
	@clang++ $(LDFLAGS) $(POOL_FUZZER_FLAGS) $^ -libverbs -pthread -o $@

.PHONY: pool-fuzzer fuzz-pool
pool-fuzzer: $(POOL_FUZZER)

# A new seed each time, which a failure names; the input that failed is in build/fuzz-pool.
fuzz-pool: ## five minutes of fuzzed operations on a pool (POOL_FUZZ_SECONDS)
	@tests/setup fuzz
	@$(MAKE) -j$(JOBS) --no-print-directory pool-fuzzer
	@mkdir -p $(BUILD)/fuzz-pool/corpus
	$(POOL_FUZZER) -max_total_time=$(POOL_FUZZ_SECONDS) -max_len=4096 -print_final_stats=1 \
		-verbosity=0 -artifact_prefix=$(BUILD)/fuzz-pool/ $(BUILD)/fuzz-pool/corpus

# What valgrind finds in a program that uses the library.
VALGRIND_PROBE := $(BUILD)/tests/valgrind_probe
$(VALGRIND_PROBE): tests/unit/valgrind/probe.c $(HCAMEM_LIB)
	@mkdir -p $(@D)
	@echo "CC  $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) $< -L$(dir $(HCAMEM_LIB)) -lhcamem \
		-Wl,-rpath,'$$ORIGIN/../lib' -o $@

.PHONY: unit-tests unit-tests-sanitized test-unit check-headers check-abi

unit-tests: $(UNIT_TESTS) $(VALGRIND_PROBE)
unit-tests-sanitized: $(UNIT_TESTS)_asan $(UNIT_TESTS)_tsan

check-headers: ## each public header compiles alone, as C11 where it is C and as C++20
	@tests/unit/check-headers "$(CC)" "$(CXX)" $(HCAMEM_HEADERS)

check-abi: library ## the library exports what hcamem.h declares, under a version node
	@tests/unit/check-abi $(HCAMEM_LIB) $(filter %.h,$(HCAMEM_HEADERS))

# setarch -R: ThreadSanitizer of GCC 12 does not run with much address randomisation.
test-unit: unit-tests unit-tests-sanitized check-headers check-abi ## test the library on the host
	@mkdir -p $(BUILD)/results
	$(UNIT_TESTS) --gtest_brief=1 --gtest_output=json:$(BUILD)/results/host-unit.json
	UBSAN_OPTIONS=print_stacktrace=1 $(UNIT_TESTS)_asan --gtest_brief=1 \
		--gtest_output=json:$(BUILD)/results/host-unit-asan.json
	TSAN_OPTIONS=halt_on_error=1 setarch -R $(UNIT_TESTS)_tsan --gtest_brief=1 \
		--gtest_output=json:$(BUILD)/results/host-unit-tsan.json

-include $(POOL_FUZZER_OBJ:.o=.d)

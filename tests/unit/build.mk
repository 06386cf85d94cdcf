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

.PHONY: unit-tests unit-tests-sanitized test-unit check-headers check-abi

unit-tests: $(UNIT_TESTS)
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

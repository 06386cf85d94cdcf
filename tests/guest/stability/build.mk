#SPDX - License - Identifier : GPL - 2.0 OR BSD - 2 - Clause
#What needs a boot with swap, little memory, or two NUMA nodes.

STABILITY_TEST_OBJECTS := $(call guest_objects,$(wildcard tests/guest/stability/*.cpp) \
	$(GUEST_SUPPORT:%=tests/support/%.cpp))

GUEST_PROGRAMS += $(BUILD)/tests/stability_tests

$(BUILD)/tests/stability_tests: $(STABILITY_TEST_OBJECTS) $(HCAMEM_LIB)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $(STABILITY_TEST_OBJECTS) -L$(dir $(HCAMEM_LIB)) -lhcamem \
		-Wl,-rpath,'$$ORIGIN/../lib' -lgtest -libverbs -pthread -o $@

-include $(STABILITY_TEST_OBJECTS:.o=.d)

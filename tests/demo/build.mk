# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# `make demo`: the ping-pong over kernel-owned memory in a guest, under page-pin probes.

include tests/samples/build.mk

DEMO_OBJECTS := $(call host_test_objects,$(wildcard tests/demo/*.cpp) \
	$(patsubst %,tests/support/%.cpp,guest json page_pins process))

.PHONY: run-demo
run-demo: $(BUILD)/kernel/6.12/hcamem.ko $(BUILD)/tests/hcamem_demo samples
	@echo "demo: soft-RoCE that imports dma-bufs"
	@tests/rxe/build 6.12 >/dev/null
	@echo "demo: booting the guest"
	@rm -f $(BUILD)/demo.json
	@BUILD=$(BUILD) tests/runner/guest --kernel 6.12 --rxe dmabuf --timeout 300 \
		--results $(BUILD)/results/demo -- $(BUILD)/tests/hcamem_demo $(BUILD)/bin
	@cp $(BUILD)/results/demo/demo.json $(BUILD)/demo.json
	@echo "demo: passed; $(BUILD)/demo.json"

$(BUILD)/tests/hcamem_demo: $(DEMO_OBJECTS)
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CXX) $(LDFLAGS) $^ -o $@

-include $(DEMO_OBJECTS:.o=.d)

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The kernel module, built for each series in $(KERNELS) in a directory of its
# own, from copies of the sources, so that two kernels never share an object.

KDRIVER_SOURCES := Kbuild $(wildcard kdriver/Kbuild kdriver/*.[ch] kdriver/*.sh kdriver/probes/*.c) \
	include/uapi/rdma/hcamem.h
MODULES := $(foreach k,$(KERNELS),$(BUILD)/kernel/$(k)/hcamem.ko)

INJECT_SOURCES := $(wildcard tests/guest/inject/*.[ch])
INJECT_MODULES := $(foreach k,$(KERNELS),$(BUILD)/kernel/$(k)/inject/hcamem.ko)

.PHONY: module module-inject
module: $(MODULES) ## the kernel module for each of KERNELS
module-inject: $(INJECT_MODULES)

# W=1 and C=1 and the like reach kbuild from the command line.
$(BUILD)/kernel/%/hcamem.ko: $(KDRIVER_SOURCES)
	@mkdir -p $(@D)/src
	@cp --parents -pu $(KDRIVER_SOURCES) $(@D)/src
	@echo "module for $*: $@"
	@$(MAKE) --no-print-directory -C "$$(tests/runner/kernels --headers $*)" M=$(abspath $(@D))/src modules
	@cp $(@D)/src/kdriver/hcamem.ko $@

# The same driver with chosen calls made to fail or to wait, for the tests only.
$(BUILD)/kernel/%/inject/hcamem.ko: $(KDRIVER_SOURCES) $(INJECT_SOURCES)
	@mkdir -p $(@D)/src
	@cp --parents -pu $(KDRIVER_SOURCES) $(@D)/src
	@cp -pu $(INJECT_SOURCES) $(@D)/src/kdriver
	@echo "module with fault injection for $*: $@"
	@$(MAKE) --no-print-directory -C "$$(tests/runner/kernels --headers $*)" M=$(abspath $(@D))/src HCAMEM_INJECT=1 modules
	@cp $(@D)/src/kdriver/hcamem.ko $@

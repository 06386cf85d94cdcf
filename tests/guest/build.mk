# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The programs that run in the guest. tests/guest/run starts those that fit a boot.

GUEST_CPPFLAGS := -Iinclude/uapi -Itests -D_FILE_OFFSET_BITS=64
GUEST_OBJECTS := $(BUILD)/obj/guest
GUEST_SUPPORT := guest_main guest node child cgroup hca rdma page_pins

# $(call guest_objects,SOURCES): their objects
guest_objects = $(patsubst tests/%.cpp,$(GUEST_OBJECTS)/%.o,$(1))

DRIVER_TEST_SOURCES := $(wildcard tests/guest/driver/*.cpp)
DRIVER_TEST_OBJECTS := $(call guest_objects,$(DRIVER_TEST_SOURCES) \
	$(GUEST_SUPPORT:%=tests/support/%.cpp) tests/guest/importer/importer.cpp)

# Linked with the library, as an application is, and found beside the program.
REGISTRATION_TEST_OBJECTS := $(call guest_objects,$(wildcard tests/guest/registration/*.cpp) \
	$(GUEST_SUPPORT:%=tests/support/%.cpp))

# HCAs and the module come and go, and processes with them.
LIFE_TEST_OBJECTS := $(call guest_objects,$(wildcard tests/guest/life/*.cpp) \
	tests/guest/importer/importer.cpp $(GUEST_SUPPORT:%=tests/support/%.cpp))

# Needs a guest with more memory.
LARGE_TEST_OBJECTS := $(call guest_objects,$(wildcard tests/guest/large/*.cpp) \
	$(addprefix tests/support/,guest_main.cpp guest.cpp node.cpp))

# Needs the driver built with fault injection (module-inject).
INJECT_TEST_OBJECTS := $(call guest_objects,$(wildcard tests/guest/inject/*.cpp) \
	tests/guest/importer/importer.cpp $(GUEST_SUPPORT:%=tests/support/%.cpp))

# The part that shows the interface to 32-bit programs on a 64-bit kernel, with
# GoogleTest compiled from Debian's source package, since there is no 32-bit one.
DRIVER_TEST32_SOURCES := $(addprefix tests/guest/driver/,bad_input_test.cpp create_test.cpp \
	dma_buf_test.cpp) $(addprefix tests/support/,guest_main.cpp guest.cpp node.cpp child.cpp)
DRIVER_TEST32_OBJECTS := $(patsubst tests/%.cpp,$(BUILD)/obj/guest32/%.o,$(DRIVER_TEST32_SOURCES))
GTEST_SOURCE ?= /usr/src/googletest/googletest

GUEST_PROGRAMS := $(addprefix $(BUILD)/tests/,driver_tests driver_tests32 registration_tests life_tests \
	large_tests inject_tests)
# The driver's way to find out what a kernel offers serves the importer too.
IMPORTER_SOURCES := $(wildcard tests/guest/importer/*.[ch]) tests/guest/importer/Kbuild kdriver/probe.sh
IMPORTER_PROBES := $(wildcard tests/guest/importer/probes/*.c) \
	kdriver/probes/control.c kdriver/probes/import_ns_token.c
IMPORTERS := $(foreach k,$(KERNELS),$(BUILD)/tests/importer/$(k)/hcamem_importer.ko)

include tests/guest/stability/build.mk

.PHONY: guest-tests
guest-tests: $(GUEST_PROGRAMS) $(IMPORTERS) module module-inject

$(GUEST_OBJECTS)/%.o: tests/%.cpp
	@mkdir -p $(@D)
	@echo "compile $@"
	@$(CXX) $(CPPFLAGS) $(GUEST_CPPFLAGS) $(CXXFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/obj/guest32/%.o: tests/%.cpp
	@mkdir -p $(@D)
	@echo "compile $@"
	@$(CXX) -m32 $(CPPFLAGS) $(GUEST_CPPFLAGS) $(CXXFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/obj/guest32/gtest-all.o: $(GTEST_SOURCE)/src/gtest-all.cc
	@mkdir -p $(@D)
	@echo "compile $@"
	@$(CXX) -m32 -O1 -std=c++20 -I$(GTEST_SOURCE) -c $< -o $@

$(BUILD)/tests/driver_tests: $(DRIVER_TEST_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -libverbs -pthread -o $@

$(BUILD)/tests/registration_tests: $(REGISTRATION_TEST_OBJECTS) $(HCAMEM_LIB)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $(REGISTRATION_TEST_OBJECTS) -L$(dir $(HCAMEM_LIB)) -lhcamem \
		-Wl,-rpath,'$$ORIGIN/../lib' -lgtest -libverbs -pthread -o $@

$(BUILD)/tests/life_tests: $(LIFE_TEST_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -libverbs -pthread -o $@

$(BUILD)/tests/large_tests: $(LARGE_TEST_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -pthread -o $@

$(BUILD)/tests/inject_tests: $(INJECT_TEST_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -libverbs -pthread -o $@

$(BUILD)/tests/driver_tests32: $(DRIVER_TEST32_OBJECTS) $(BUILD)/obj/guest32/gtest-all.o
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) -m32 $(LDFLAGS) $^ -pthread -o $@

# The importer, like the driver, from copies of its sources per kernel.
$(BUILD)/tests/importer/%/hcamem_importer.ko: $(IMPORTER_SOURCES) $(IMPORTER_PROBES)
	@mkdir -p $(@D)/src/probes
	@cp -pu $(IMPORTER_SOURCES) $(@D)/src
	@cp -pu $(IMPORTER_PROBES) $(@D)/src/probes
	@echo "test importer for $*: $@"
	@$(MAKE) --no-print-directory -C "$$(tests/runner/kernels --headers $*)" M=$(abspath $(@D))/src modules
	@cp $(@D)/src/hcamem_importer.ko $@

include tests/guest/ctl/build.mk

-include $(REGISTRATION_TEST_OBJECTS:.o=.d) $(INJECT_TEST_OBJECTS:.o=.d) $(LIFE_TEST_OBJECTS:.o=.d) \
	$(LARGE_TEST_OBJECTS:.o=.d)
-include $(DRIVER_TEST_OBJECTS:.o=.d) $(DRIVER_TEST32_OBJECTS:.o=.d)

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Tests of the preload library on the host, with fakes of the libraries that it stands in front of.

PRELOAD_TEST_FOLDER := $(BUILD)/tests/preload
PRELOAD_FAKES := $(addprefix $(PRELOAD_TEST_FOLDER)/fakes/,libibverbs.so.1 libuct.so.0 libfabric.so.1) \
	$(addprefix $(PRELOAD_TEST_FOLDER)/symbolic/,libuct.so.0 libfabric.so.1)
PRELOAD_TEST_OBJECTS := $(call host_test_objects,$(filter-out %/malloc_family.cpp,$(wildcard tests/preload/*.cpp)) \
	$(patsubst %,tests/support/%.cpp,guest json process))
FAKE_CFLAGS := $(CFLAGS) -fPIC -shared

.PHONY: preload-tests
preload-tests: $(BUILD)/tests/preload_tests $(PRELOAD_TEST_FOLDER)/probe \
	$(PRELOAD_TEST_FOLDER)/malloc_loop $(PRELOAD_TEST_FOLDER)/malloc_loop_linked \
	$(PRELOAD_TEST_FOLDER)/malloc_family $(PRELOAD_TEST_FOLDER)/valgrind.supp \
	$(addprefix $(PRELOAD_TEST_FOLDER)/lib,$(addsuffix .so,late refuse_mprotect waiting_plugin)) \
	$(PRELOAD_FAKES) preload library

$(PRELOAD_TEST_FOLDER)/fakes/libibverbs.so.1: tests/preload/fakes/fake_verbs.c \
		tests/preload/fakes/fake_verbs.map tests/preload/fakes/fakes.h
	@mkdir -p $(@D)
	@echo "CC  $@"
	@$(CC) $(FAKE_CFLAGS) $< -Wl,-soname,$(@F) -Wl,--version-script=tests/preload/fakes/fake_verbs.map -o $@

$(PRELOAD_TEST_FOLDER)/fakes/libuct.so.0: tests/preload/fakes/fake_uct.c \
		$(PRELOAD_TEST_FOLDER)/fakes/libibverbs.so.1
	@echo "CC  $@"
	@$(CC) $(FAKE_CFLAGS) $^ -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -o $@

# Its calls bound within it, as some distributions build libraries.
$(PRELOAD_TEST_FOLDER)/symbolic/libuct.so.0: tests/preload/fakes/fake_uct.c \
		$(PRELOAD_TEST_FOLDER)/fakes/libibverbs.so.1
	@mkdir -p $(@D)
	@echo "CC  $@"
	@$(CC) $(FAKE_CFLAGS) $^ -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN/../fakes' -Wl,-Bsymbolic-functions -o $@

$(PRELOAD_TEST_FOLDER)/symbolic/libfabric.so.1: $(PRELOAD_TEST_FOLDER)/fakes/libfabric.so.1
	@mkdir -p $(@D)
	@ln -sf ../fakes/$(@F) $@

# Bound when loaded and then read-only, as distributions build it.
$(PRELOAD_TEST_FOLDER)/fakes/libfabric.so.1: tests/preload/fakes/fake_libfabric.c \
		$(PRELOAD_TEST_FOLDER)/fakes/libibverbs.so.1
	@echo "CC  $@"
	@$(CC) $(FAKE_CFLAGS) $^ -Wl,-soname,$(@F) -Wl,-rpath,'$$ORIGIN' -Wl,-z,relro -Wl,-z,now -o $@

$(PRELOAD_TEST_FOLDER)/probe: tests/preload/probe.c tests/preload/fakes/fakes.h
	@mkdir -p $(@D)
	@echo "CC  $@"
	@$(CC) $(CFLAGS) $< -pthread -o $@

$(PRELOAD_TEST_FOLDER)/lib%.so: tests/preload/%.c
	@mkdir -p $(@D)
	@echo "CC  $@"
	@$(CC) $(FAKE_CFLAGS) $< -o $@

$(PRELOAD_TEST_FOLDER)/malloc_loop: tests/preload/malloc_loop.c
	@mkdir -p $(@D)
	@echo "CC  $@"
	@$(CC) $(CFLAGS) $< -o $@

$(PRELOAD_TEST_FOLDER)/malloc_loop_linked: tests/preload/malloc_loop.c $(MALLOC_LIB)
	@mkdir -p $(@D)
	@echo "CC  $@"
	@$(CC) $(CFLAGS) $< -Wl,--no-as-needed $(MALLOC_LIB) -Wl,-rpath,'$$ORIGIN/../../lib' -o $@

$(PRELOAD_TEST_FOLDER)/valgrind.supp: tests/preload/valgrind.supp
	@mkdir -p $(@D)
	@cp $< $@

$(PRELOAD_TEST_FOLDER)/malloc_family: tests/preload/malloc_family.cpp
	@mkdir -p $(@D)
	@echo "CXX $@"
	@$(CXX) $(TEST_CXXFLAGS) -fno-builtin $< -pthread -o $@

$(BUILD)/tests/preload_tests: $(PRELOAD_TEST_OBJECTS)
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -lgtest_main -pthread -o $@

-include $(PRELOAD_TEST_OBJECTS:.o=.d)

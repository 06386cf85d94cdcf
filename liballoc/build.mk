# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The library: shared with a soname and symbol versions, static, hcamem.pc.

LIBHCAMEM_VERSION := $(VERSION)
LIBHCAMEM_SONAME := libhcamem.so.0
HCAMEM_LIB := $(BUILD)/lib/libhcamem.so
HCAMEM_STATIC := $(BUILD)/lib/libhcamem.a
HCAMEM_PC := $(BUILD)/lib/hcamem.pc
HCAMEM_HEADERS := include/hcamem.h \
	$(sort $(wildcard $(addprefix include/hcamem/,*.h *.hpp detail/*.hpp)))

LIBALLOC_SRC := $(sort $(wildcard liballoc/*/*.cpp))
LIBALLOC_OBJ := $(LIBALLOC_SRC:%.cpp=$(BUILD)/%.o)
LIBALLOC_INCLUDES := -Iliballoc -Iinclude/uapi
LIBALLOC_CXXFLAGS := -fPIC -fvisibility=hidden -fno-semantic-interposition

.PHONY: library tidy

library: $(HCAMEM_LIB) $(HCAMEM_STATIC) $(HCAMEM_PC) ## build libhcamem (shared, static, pkg-config file)

$(LIBALLOC_OBJ): $(BUILD)/%.o: %.cpp
	@mkdir -p $(@D)
	@echo "CXX $<"
	@$(CXX) $(CPPFLAGS) $(LIBALLOC_INCLUDES) $(CXXFLAGS) $(LIBALLOC_CXXFLAGS) -MMD -MP -c $< -o $@

# Its loops are there to be vectorised.
$(BUILD)/liballoc/fixed/fixed_bulk.o: CXXFLAGS += -O3

# What is called for each message begins with a cache line: a tenth faster as a pair.
$(BUILD)/liballoc/api/c_pool.o $(BUILD)/liballoc/api/c_fixed.o: CXXFLAGS += -falign-functions=64

# nodelete: thread-exit and fork-time state must outlive a dlclose().
$(BUILD)/lib/libhcamem.so.$(LIBHCAMEM_VERSION): $(LIBALLOC_OBJ) liballoc/libhcamem.map
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CXX) $(LDFLAGS) -shared -Wl,-soname,$(LIBHCAMEM_SONAME) -Wl,--version-script=liballoc/libhcamem.map \
		-Wl,-z,nodelete -Wl,-z,defs -Wl,-z,relro -Wl,-z,now $(LIBALLOC_OBJ) -libverbs -pthread -o $@

$(BUILD)/lib/$(LIBHCAMEM_SONAME): $(BUILD)/lib/libhcamem.so.$(LIBHCAMEM_VERSION)
	@ln -sf $(<F) $@

$(HCAMEM_LIB): $(BUILD)/lib/$(LIBHCAMEM_SONAME)
	@ln -sf $(<F) $@

$(HCAMEM_STATIC): $(LIBALLOC_OBJ)
	@mkdir -p $(@D)
	@echo "AR  $@"
	@rm -f $@
	@$(AR) rcs $@ $^

$(HCAMEM_PC): liballoc/hcamem.pc.in liballoc/build.mk
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|;s|@LIBDIR@|$(LIBDIR)|;s|@VERSION@|$(LIBHCAMEM_VERSION)|' $< > $@

tidy: ## clang-tidy over the library and its headers
	@printf '%s\n' $(LIBALLOC_SRC) | xargs -P 2 -I{} \
		clang-tidy --quiet {} -- $(CPPFLAGS) $(LIBALLOC_INCLUDES) -std=c++20
	@printf '%s\n' $(HCAMEM_HEADERS) | xargs -P 2 -I{} \
		clang-tidy --quiet {} -- -x c++ $(CPPFLAGS) -std=c++20

-include $(LIBALLOC_OBJ:.o=.d)

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# hcamemctl, for administrators.

CTL_SOURCES := $(wildcard tools/hcamemctl/*.cpp)
CTL_OBJECTS := $(CTL_SOURCES:%.cpp=$(BUILD)/obj/%.o)
CTL_CPPFLAGS := -Iinclude/uapi -DHCAMEM_VERSION='"$(VERSION)"'
HCAMEMCTL := $(BUILD)/bin/hcamemctl

.PHONY: tools
tools: $(HCAMEMCTL) ## hcamemctl: who holds how much

$(BUILD)/obj/tools/%.o: tools/%.cpp
	@mkdir -p $(@D)
	@echo "compile $@"
	@$(CXX) $(CPPFLAGS) $(CTL_CPPFLAGS) $(CXXFLAGS) -MMD -MP -c $< -o $@

$(HCAMEMCTL): $(CTL_OBJECTS)
	@mkdir -p $(@D)
	@echo "link $@"
	@$(CXX) $(LDFLAGS) $^ -o $@

# Joins the library's.
.PHONY: tidy-tools
tidy: tidy-tools
tidy-tools:
	@printf '%s\n' $(CTL_SOURCES) | xargs -P 2 -I{} \
		clang-tidy --quiet {} -- $(CPPFLAGS) $(CTL_CPPFLAGS) -std=c++20

-include $(CTL_OBJECTS:.o=.d)

# Starts a program with the library of liballoc/preload.
$(BUILD)/bin/hcamem-run: tools/hcamem-run/main.c
	@mkdir -p $(@D)
	@echo "CC  $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -DHCAMEM_LIBDIR='"$(LIBDIR)"' $(LDFLAGS) $< -o $@

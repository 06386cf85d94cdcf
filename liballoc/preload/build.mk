# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# libhcamem-preload.so and libhcamem-malloc.so, for unmodified programs.

PRELOAD_SRC := $(sort $(wildcard liballoc/preload/*.c))
PRELOAD_OBJ := $(PRELOAD_SRC:%.c=$(BUILD)/%.o)
PRELOAD_LIB := $(BUILD)/lib/libhcamem-preload.so
# The same with the malloc family in front of it.
MALLOC_SRC := $(sort $(wildcard liballoc/malloc/*.c))
MALLOC_OBJ := $(MALLOC_SRC:%.c=$(BUILD)/%.o)
MALLOC_LIB := $(BUILD)/lib/libhcamem-malloc.so
HCAMEM_RUN := $(BUILD)/bin/hcamem-run

.PHONY: preload
preload: $(PRELOAD_LIB) $(MALLOC_LIB) $(HCAMEM_RUN) ## hcamem-run and its libraries, for unmodified programs

$(PRELOAD_OBJ): $(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "CC  $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@

# Linked with nothing but libc: what it stands in front of may not be there.
$(PRELOAD_LIB): $(PRELOAD_OBJ) liballoc/preload/preload.map
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=liballoc/preload/preload.map \
		-Wl,-z,nodelete -Wl,-z,defs -Wl,-z,relro -Wl,-z,now $(PRELOAD_OBJ) -o $@

$(MALLOC_OBJ): $(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "CC  $<"
	@$(CC) $(CPPFLAGS) -Iliballoc $(CFLAGS) -fno-builtin -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@

$(MALLOC_LIB): $(MALLOC_OBJ) $(PRELOAD_OBJ) liballoc/preload/preload.map
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=liballoc/preload/preload.map \
		-Wl,-z,nodelete -Wl,-z,defs -Wl,-z,relro -Wl,-z,now $(MALLOC_OBJ) $(PRELOAD_OBJ) -o $@

-include $(MALLOC_OBJ:.o=.d)
-include $(PRELOAD_OBJ:.o=.d)

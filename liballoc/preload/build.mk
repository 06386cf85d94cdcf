# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# libhcamem-preload.so and its launcher, for unmodified programs.

PRELOAD_SRC := $(sort $(wildcard liballoc/preload/*.c))
PRELOAD_OBJ := $(PRELOAD_SRC:%.c=$(BUILD)/%.o)
PRELOAD_LIB := $(BUILD)/lib/libhcamem-preload.so
HCAMEM_RUN := $(BUILD)/bin/hcamem-run

.PHONY: preload
preload: $(PRELOAD_LIB) $(HCAMEM_RUN) ## libhcamem-preload.so and hcamem-run, for unmodified programs

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

-include $(PRELOAD_OBJ:.o=.d)

# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The component for Open MPI 4.1, with the headers of libopenmpi-dev.

OMPI_COMPONENT := $(BUILD)/lib/openmpi/mca_mpool_hcamem.so
OMPI_INCLUDES = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I ompi-c))

.PHONY: openmpi
openmpi: $(OMPI_COMPONENT) ## the component for Open MPI 4.1

# What it calls of Open MPI is in the process that loads it.
$(OMPI_COMPONENT): liballoc/openmpi/mpool_hcamem.c liballoc/preload/component.h
	@mkdir -p $(@D)
	@echo "CC  $<"
	@$(CC) $(CPPFLAGS) -Iliballoc $(OMPI_INCLUDES) -DHCAMEM_LIBDIR='"$(LIBDIR)"' \
		$(filter-out -std=c11,$(CFLAGS)) -std=gnu11 -fPIC -fvisibility=hidden $(LDFLAGS) -shared \
		-Wl,-z,relro -Wl,-z,now $< -o $@

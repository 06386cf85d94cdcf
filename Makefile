# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The one entry point: `make help` lists what it can do.

VERSION := 0.1.0
BUILD ?= build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
SBINDIR ?= $(PREFIX)/sbin
MANDIR ?= $(PREFIX)/share/man
# Rules of a distribution's package belong in /usr/lib/udev/rules.d.
UDEVRULESDIR ?= /etc/udev/rules.d
# The kernel series that are built for and tested on.
KERNELS ?= 6.1 6.12

CC = gcc
CXX = g++
OPT ?= -O2 -g
WARN := -Wall -Wextra -Wpedantic -Werror
CPPFLAGS += -Iinclude
CFLAGS += $(OPT) -std=c11 $(WARN)
CXXFLAGS += $(OPT) -std=c++20 $(WARN)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

include kdriver/build.mk
include liballoc/build.mk
include liballoc/preload/build.mk
include liballoc/openmpi/build.mk
include samples/build.mk
include tools/build.mk
include tests/build.mk
include bench/build.mk bench/guest/build.mk

.PHONY: all help setup demo test lint install modules_install dkms-install uninstall clean

all: module library preload openmpi samples tools ## build the module, the libraries, the samples and the tools

help: ## this list
	@awk -F ':.*## ' '/^[a-z_-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install the Debian packages that building and testing need
	@tests/setup

# A make of its own, so that nothing is built before its tools are there.
demo: setup ## RDMA messages through memory from mmap() of the node, in a guest
	@$(MAKE) --no-print-directory run-demo

test: setup ## everything that is tested, on both kernels; ends with the totals
	@$(MAKE) --no-print-directory run-test

lint: ## the static checks
	tests/lint kernel $(BUILD) $(KERNELS)
	tests/lint checkpatch $(BUILD)
	tests/lint format $(BUILD)
	tests/lint shell $(BUILD)

install: library preload openmpi samples tools ## the libraries, the headers, the samples and the tools, to DESTDIR PREFIX
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/bin \
		$(DESTDIR)$(PREFIX)/include/hcamem/detail $(DESTDIR)$(PREFIX)/include/rdma \
		$(DESTDIR)$(SBINDIR) $(DESTDIR)$(MANDIR)/man1 $(DESTDIR)$(MANDIR)/man8 $(DESTDIR)$(UDEVRULESDIR)
	install -m 755 $(BUILD)/lib/libhcamem.so.$(LIBHCAMEM_VERSION) $(DESTDIR)$(LIBDIR)
	ln -sf libhcamem.so.$(LIBHCAMEM_VERSION) $(DESTDIR)$(LIBDIR)/$(LIBHCAMEM_SONAME)
	ln -sf $(LIBHCAMEM_SONAME) $(DESTDIR)$(LIBDIR)/libhcamem.so
	install -m 644 $(BUILD)/lib/libhcamem.a $(DESTDIR)$(LIBDIR)
	install -m 755 $(PRELOAD_LIB) $(MALLOC_LIB) $(DESTDIR)$(LIBDIR)
	install -D -m 755 -t $(DESTDIR)$(LIBDIR)/openmpi $(OMPI_COMPONENT)
	sed -e 's|@PREFIX@|$(PREFIX)|;s|@LIBDIR@|$(LIBDIR)|;s|@VERSION@|$(VERSION)|' \
		liballoc/hcamem.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/hcamem.pc
	install -m 644 include/hcamem.h $(DESTDIR)$(PREFIX)/include
	install -m 644 include/hcamem/*.h include/hcamem/*.hpp $(DESTDIR)$(PREFIX)/include/hcamem
	install -m 644 include/hcamem/detail/*.hpp $(DESTDIR)$(PREFIX)/include/hcamem/detail
	install -m 644 include/uapi/rdma/hcamem.h $(DESTDIR)$(PREFIX)/include/rdma
	install -m 755 $(SAMPLES) $(HCAMEM_RUN) $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(HCAMEMCTL) $(DESTDIR)$(SBINDIR)
	install -m 644 docs/hcamem-run.1 $(DESTDIR)$(MANDIR)/man1
	install -m 644 docs/hcamemctl.8 $(DESTDIR)$(MANDIR)/man8
	install -m 644 kdriver/60-hcamem.rules $(DESTDIR)$(UDEVRULESDIR)
	@test -n "$(DESTDIR)" || ldconfig

uninstall: ## remove what install put there
	rm -f $(DESTDIR)$(LIBDIR)/libhcamem.* $(DESTDIR)$(LIBDIR)/pkgconfig/hcamem.pc \
		$(addprefix $(DESTDIR)$(LIBDIR)/,$(notdir $(PRELOAD_LIB) $(MALLOC_LIB))) \
		$(DESTDIR)$(LIBDIR)/openmpi/$(notdir $(OMPI_COMPONENT)) $(DESTDIR)$(PREFIX)/bin/hcamem-run \
		$(DESTDIR)$(PREFIX)/include/hcamem.h $(DESTDIR)$(PREFIX)/include/rdma/hcamem.h \
		$(addprefix $(DESTDIR)$(PREFIX)/bin/,$(notdir $(SAMPLES))) \
		$(DESTDIR)$(SBINDIR)/hcamemctl $(DESTDIR)$(MANDIR)/man1/hcamem-run.1 \
		$(DESTDIR)$(MANDIR)/man8/hcamemctl.8 \
		$(DESTDIR)$(UDEVRULESDIR)/60-hcamem.rules
	rm -rf $(DESTDIR)$(PREFIX)/include/hcamem

modules_install: ## the module for the running kernel (or KERNELRELEASE=...)
	@KERNELRELEASE=$(KERNELRELEASE) kdriver/install "$(DESTDIR)"

dkms-install: ## the module's sources, to be built by dkms for each kernel
	install -d $(DESTDIR)/usr/src/hcamem-$(VERSION)
	cp --parents -p dkms.conf $(KDRIVER_SOURCES) $(DESTDIR)/usr/src/hcamem-$(VERSION)
	@test -n "$(DESTDIR)" || dkms install hcamem/$(VERSION)

clean: ## remove everything that was built
	rm -rf $(BUILD)

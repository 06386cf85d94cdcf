# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The one entry point: `make help` lists what it can do.

BUILD ?= build
PREFIX ?= /usr/local
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
-include liballoc/build.mk
-include samples/build.mk
-include tests/build.mk

.PHONY: all help clean
all: module library samples ## build the module, the library and the samples

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

clean: ## remove everything that was built
	rm -rf $(BUILD)

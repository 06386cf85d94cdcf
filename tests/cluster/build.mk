# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Two guests with a network between them: the samples, and MPI programs of both libraries.

MPI_LIBRARIES := openmpi mpich
CLUSTER_PROGRAMS := $(MPI_LIBRARIES:%=$(BUILD)/tests/mpi_check.%)

$(BUILD)/tests/mpi_check.%: tests/cluster/mpi_check.c
	@mkdir -p $(@D)
	@echo "mpicc.$* $<"
	@mpicc.$* $(CFLAGS) $< -o $@

# The fall-back, where soft-RoCE takes no dma-bufs, on the older kernel.
cluster_rxe = $(if $(filter 6.1,$(1)),stock,dmabuf)
# $(call run_cluster,SERIES,RESULTS): what comes behind are the parts of tests/cluster/run
run_cluster = BUILD=$(BUILD) tests/runner/cluster --kernel $(1) --rxe $(call cluster_rxe,$(1)) \
	--processors $(call processors,$(1)) --timeout 1800 --results $(2) -- \
	env BUILD=$(BUILD) tests/cluster/run

.PHONY: test-cluster
test-cluster: module samples preload $(CLUSTER_PROGRAMS) ## two guests: samples and MPI across, killed ranks
	@$(foreach k,$(KERNELS),$(call run_cluster,$(k),$(BUILD)/results/$(k)-cluster) &&) true
	@BUILD=$(BUILD) TESTS=cluster tests/runner/selftest/run $(KERNELS)

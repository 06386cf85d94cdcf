# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Unmodified MPI programs and RDMA tools under the preload library, in guests.

MPI_PROGRAMS := $(addprefix $(BUILD)/tests/mpi/,pingpong-openmpi pingpong-mpich alloc_mem-openmpi \
	linked-openmpi libother_version.so)
MPI_TEST_OBJECTS := $(call host_test_objects,$(wildcard tests/mpi/*.cpp) \
	$(patsubst %,tests/support/%.cpp,guest json page_pins process))

.PHONY: mpi-tests
mpi-tests: $(BUILD)/tests/mpi_tests $(MPI_PROGRAMS) preload openmpi library module

# With each MPI library's own compiler wrapper, as users build theirs.
define mpi_program
$$(BUILD)/tests/mpi/$(1)-%: tests/mpi/programs/mpi_$(1).c
	@mkdir -p $$(@D)
	@echo "CC  $$@"
	@mpicc.$$* -std=c11 -O2 -Wall -Wextra $$< -o $$@
endef
$(foreach p,pingpong alloc_mem,$(eval $(call mpi_program,$(p))))

$(BUILD)/tests/mpi/linked-openmpi: tests/mpi/programs/mpi_pingpong.c $(PRELOAD_LIB)
	@mkdir -p $(@D)
	@echo "CC  $@"
	@mpicc.openmpi -std=c11 -O2 -Wall -Wextra $< -Wl,--no-as-needed $(PRELOAD_LIB) \
		-Wl,-rpath,'$$ORIGIN/../../lib' -o $@

$(BUILD)/tests/mpi/libother_version.so: tests/mpi/programs/other_version.c
	@mkdir -p $(@D)
	@echo "CC  $@"
	@$(CC) $(CFLAGS) -fPIC -shared $< -o $@

$(BUILD)/tests/mpi_tests: $(MPI_TEST_OBJECTS)
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CXX) $(LDFLAGS) $^ -lgtest -pthread -o $@

# KERNEL-SOFT_ROCE: with dma-buf import, and without it.
MPI_BOOTS := $(KERNELS:%=%-dmabuf) 6.1-stock

.PHONY: test-mpi run-test-mpi
test-mpi: setup ## MPI libraries, perftest and UCX under the preload library; build/mpi.json
	@$(MAKE) --no-print-directory run-test-mpi

run-test-mpi: mpi-tests
	@for boot in $(MPI_BOOTS); do \
		BUILD=$(BUILD) tests/runner/guest --kernel "$${boot%-*}" --rxe "$${boot#*-}" \
			--memory 3072 --timeout 2400 --results $(BUILD)/results/mpi-$$boot -- $(BUILD)/tests/mpi_tests \
			--gtest_brief=1 || exit 1; \
	done
	@tests/mpi/collect $(BUILD)/mpi.json $(MPI_BOOTS:%=$(BUILD)/results/mpi-%/mpi.jsonl)

-include $(MPI_TEST_OBJECTS:.o=.d)

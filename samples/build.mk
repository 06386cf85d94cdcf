# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The sample programs: one folder each, over the shared part in samples/common.

SAMPLE_NAMES := hcamem_rc_pingpong hcamem_rdma hcamem_eager_pool stl_containers
SAMPLES := $(addprefix $(BUILD)/bin/,$(SAMPLE_NAMES))

samples_objects = $(patsubst samples/%,$(BUILD)/samples/%.o,$(basename $(wildcard samples/$(1)/*.cpp samples/$(1)/*.c)))

.PHONY: samples
samples: $(SAMPLES) ## the sample programs

$(BUILD)/samples/%.o: samples/%.cpp
	@mkdir -p $(@D)
	@echo "CXX $<"
	@$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/samples/%.o: samples/%.c
	@mkdir -p $(@D)
	@echo "CC  $<"
	@$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/bin/hcamem_rc_pingpong: $(call samples_objects,rc_pingpong)
$(BUILD)/bin/hcamem_rdma: $(call samples_objects,rdma)
$(BUILD)/bin/hcamem_eager_pool: $(call samples_objects,eager_pool)
$(BUILD)/bin/stl_containers: $(call samples_objects,stl_containers)

# Found beside bin/ both in the build tree and where it is installed.
$(SAMPLES): $(call samples_objects,common) $(HCAMEM_LIB)
	@mkdir -p $(@D)
	@echo "LD  $@"
	@$(CXX) $(LDFLAGS) -o $@ $(filter %.o,$^) -L$(dir $(HCAMEM_LIB)) -lhcamem -libverbs \
		-Wl,-rpath,'$$ORIGIN/../lib'

# Joins the library's.
.PHONY: tidy-samples
tidy: tidy-samples
tidy-samples:
	@for file in $(wildcard samples/*/*.cpp); do echo "tidy $$file"; \
		clang-tidy --quiet $$file -- $(CPPFLAGS) -std=c++20 || exit 1; done

-include $(wildcard $(BUILD)/samples/*/*.d)

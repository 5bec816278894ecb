# The engine's kernels: fat binaries inside libweir-cuda.so, and the same sources compiled for the host as
# twins that the software device runs (libweir-twins.so beside it; no part of the product).

KERNELS      := map reduce gemm others
KERNELS_OBJ  := $(OBJ)/cuda/kernels
KERNELS_HDRS := $(wildcard cuda/kernels/*.h) core/device/compute.h core/device/half.h core/device/philox.h

# Code for these where nvcc knows them, each of which serves the newer ones of its generation; PTX for all
# others, which the driver translates at the first use and keeps. KERNELS_ARCH="75 80 90 100 120" translates
# all here, at twice the time and size. A sanitizer build runs on the software device only: PTX will do.
KERNELS_ARCH ?= 80 90
KERNELS_CODE  = $(if $(SAN),,$(foreach a,$(filter $(KERNELS_ARCH:%=sm_%),$(shell $(NVCC) --list-gpu-code)),\
                  -gencode arch=$(a:sm_%=compute_%),code=$(a)))
KERNELS_NVCC  = $(NVCC) -std=c++17 -O3 -I. $(if $(shell $(NVCC) --help | grep -e --compress-mode),--compress-mode=size,-Xfatbin -compress-all) \
                 -gencode arch=compute_75,code=compute_75

$(KERNELS_OBJ)/%.fatbin: cuda/kernels/%.cu $(KERNELS_HDRS) | examples-nvcc
	@mkdir -p $(@D)
	$(say) NVCC $<
	$(Q)$(KERNELS_NVCC) $(KERNELS_CODE) -fatbin $< -o $@

$(KERNELS_OBJ)/%.o: $(KERNELS_OBJ)/%.fatbin cuda/kernels/image.S
	$(say) AS $@
	$(Q)$(CC) -c -fPIC -DWEIR_IMAGE=weir_image_$* -DWEIR_IMAGE_FILE='"$<"' cuda/kernels/image.S -o $@

KERNELS_OBJS := $(KERNELS:%=$(KERNELS_OBJ)/%.o)

.SECONDARY: $(KERNELS:%=$(KERNELS_OBJ)/%.fatbin)

# Twins. The host rounds as the devices do: a product is not fused with a sum unless both say so.
TWINS_CXX = $(CXX) -x c++ -std=c++17 -O2 -g -Wall -Wextra -Werror -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti \
            -ffp-contract=off $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) -I. -include cuda/sim/weir_kernel.h

$(KERNELS_OBJ)/%.twin.o: cuda/kernels/%.cu $(KERNELS_HDRS) cuda/sim/weir_kernel.h cuda/sim/twin.h
	@mkdir -p $(@D)
	$(say) CXX $<
	$(Q)$(TWINS_CXX) -c $< -o $@

$(SIM)/libweir-twins.so: $(KERNELS:%=$(KERNELS_OBJ)/%.twin.o)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(LDSAN) $(LDFLAGS) -Wl,-soname,libweir-twins.so -Wl,-z,nodelete -o $@ $^ -lm

sim: $(SIM)/libweir-twins.so

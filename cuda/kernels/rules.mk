# The engine's kernels: fat binaries inside libweir-cuda.so, and the same sources compiled for the host as
# twins that the software device runs (libweir-twins.so beside it; no part of the product).

KERNELS      := map functions reduce softmax norm update gemm thin scan order index others window
KERNELS_OBJ  := $(OBJ)/cuda/kernels
KERNELS_HDRS := $(wildcard cuda/kernels/*.h) core/backend/compute.h core/backend/half.h core/backend/philox.h core/backend/sort_key.h core/backend/special.h core/backend/update.h core/backend/window.h

# Code for these where nvcc knows them, each of which serves the newer ones of its generation; PTX for all
# others, which the driver translates at the first use and keeps. A bundle is for machines that nobody here
# knows, so all are translated for it, at twice the time and size; KERNELS_ARCH="75 80 90" says otherwise. A
# sanitizer build runs on the software device only: PTX will do.
KERNELS_ARCH ?= $(if $(filter bundle,$(MAKECMDGOALS)),75 80 90 100 120,80 90)
KERNELS_CODE  = $(if $(SAN),,$(foreach a,$(filter $(KERNELS_ARCH:%=sm_%),$(shell $(NVCC) --list-gpu-code)),\
                  -gencode arch=$(a:sm_%=compute_%),code=$(a)))
KERNELS_NVCC  = $(NVCC) -std=c++17 -O3 -I. $(if $(shell $(NVCC) --help | grep -e --compress-mode),--compress-mode=size,-Xfatbin -compress-all) \
                 -gencode arch=compute_75,code=compute_75

# Each list has a folder of its own, for compiling takes minutes; linking again does when the list is another.
kernels_none :=
KERNELS_BIN  := $(KERNELS_OBJ)$(patsubst %,/%,$(filter-out 80-90,$(subst $(kernels_none) $(kernels_none),-,$(strip $(KERNELS_ARCH)))))

$(KERNELS_OBJ)/arch: kernels-arch
	@mkdir -p $(@D) && { echo "$(KERNELS_ARCH)" | cmp -s - $@ || echo "$(KERNELS_ARCH)" >$@; }
.PHONY: kernels-arch

$(KERNELS_BIN)/%.fatbin: cuda/kernels/%.cu $(KERNELS_HDRS) | examples-nvcc
	@mkdir -p $(@D)
	$(say) NVCC $<
	$(Q)$(KERNELS_NVCC) $(KERNELS_CODE) -fatbin $< -o $@

$(KERNELS_BIN)/%.o: $(KERNELS_BIN)/%.fatbin cuda/kernels/image.S
	@mkdir -p $(@D)
	$(say) AS $@
	$(Q)$(CC) -c -fPIC -DWEIR_IMAGE=weir_image_$* -DWEIR_IMAGE_FILE='"$<"' cuda/kernels/image.S -o $@

KERNELS_OBJS := $(KERNELS:%=$(KERNELS_BIN)/%.o)

.SECONDARY: $(KERNELS:%=$(KERNELS_BIN)/%.fatbin)

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

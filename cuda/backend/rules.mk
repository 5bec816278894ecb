# libweir-cuda.so: the CUDA backend; libweir.so opens it. Needs libc only: the driver is opened at run
# time.

CUDA_SRCS := $(wildcard cuda/backend/*.c)
CUDA_OBJS := $(call objs,$(CUDA_SRCS)) $(KERNELS_OBJS)
$(foreach c,$(CUDA_SRCS),$(eval EXTRA_$(c) = $$(CUDAINC)))

$(LIB)/libweir-cuda.so: $(CUDA_OBJS) cuda/backend/libweir-cuda.map $(KERNELS_OBJ)/arch
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(LDSAN) $(LDFLAGS) -Wl,-soname,libweir-cuda.so -Wl,--version-script,cuda/backend/libweir-cuda.map \
	  -Wl,-z,now -Wl,-z,nodelete $(if $(SAN),,-Wl,-z,defs) -o $@ $(CUDA_OBJS) -ldl

cuda-backend: $(LIB)/libweir-cuda.so
all: cuda-backend
.PHONY: cuda-backend

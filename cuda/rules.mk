include cuda/kernels/rules.mk cuda/backend/rules.mk

# The software device: $(SIM)/libcuda.so.1, its entry points made from NVIDIA's headers at build time.

SIMGEN     := $(OBJ)/cuda/sim/gen
SIMDRV_C   := $(sort $(wildcard $(addprefix cuda/sim/,$(addsuffix /*.c,device stream memory module graph driver))))
SIMDRV_O   := $(call objs,$(SIMDRV_C)) $(SIMGEN)/entry.gen.o
SIMINC      = $(CUDAINC) -I$(SIMGEN)

$(foreach c,$(SIMDRV_C),$(eval EXTRA_$(c) = $$(SIMINC)))

# cuda.h with every old ABI and stream variant declared; its names become the exports.
$(SIMGEN)/cuda.i: cuda/sim/driver/headers.h $(wildcard $(CUDA_HOME)/include/cuda.h) | check-tools
	@mkdir -p $(@D)
	$(Q)$(CC) -E -P -D__CUDA_API_VERSION_INTERNAL $(CUDAINC) -x c $< -o $@

# The stamp is newer than the sources; the generated files only change when their content does.
$(SIMGEN)/stamp: $(SIMGEN)/cuda.i cuda/sim/driver/gen.py $(SIMDRV_C)
	$(say) GEN $(SIMGEN)
	$(Q)python3 cuda/sim/driver/gen.py $(SIMGEN)/cuda.i $(SIMGEN) $(SIMDRV_C)
	@touch $@

$(SIMGEN)/api.gen.h $(SIMGEN)/entry.gen.c $(SIMGEN)/unsupported.txt: $(SIMGEN)/stamp ;

$(SIMDRV_O): | $(SIMGEN)/stamp

$(SIMGEN)/entry.gen.o: $(SIMGEN)/entry.gen.c
	$(say) CC $<
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) $(SIMINC) -c $< -o $@

$(SIM)/libcuda.so.1: $(SIMDRV_O) cuda/sim/driver/libcuda.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(LDSAN) -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,-z,nodelete $(if $(SAN),,-Wl,-z,defs) \
	  -Wl,--version-script,cuda/sim/driver/libcuda.map $(SIMDRV_O) $(LDFLAGS) -o $@ -lpthread -ldl
	$(Q)ln -sf libcuda.so.1 $(SIM)/libcuda.so

-include cuda/sim/runtime/rules.mk cuda/sim/cupti/rules.mk

# What answers "not supported", driver first, then the runtime's own list (SIMRT_UNSUPPORTED).
$(SIM)/unsupported.txt: $(SIMGEN)/unsupported.txt $(SIMRT_UNSUPPORTED)
	@mkdir -p $(@D)
	$(Q)cat $^ > $@

sim-driver: $(SIM)/libcuda.so.1 $(SIM)/unsupported.txt

sim: sim-driver

all: sim

.PHONY: sim sim-driver

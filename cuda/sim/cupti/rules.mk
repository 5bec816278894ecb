# libcupti.so.13 of the software device. Where the Toolkit has no CUPTI headers it knows its version alone.
# It comes by dlopen, and what it keeps of a thread is a few bytes, for which each thread has room already:
# of the other model, a thread for which there is no memory would end the program.

SIMCUPTI_INC     := $(dir $(firstword $(wildcard $(CUDA_HOME)/include/cupti.h $(CUDA_HOME)/extras/CUPTI/include/cupti.h)))
SIMCUPTI_C := cuda/sim/cupti/rest.c \
                 $(if $(SIMCUPTI_INC),$(addprefix cuda/sim/cupti/,seam.c fault.c buffer.c record.c activity.c callback.c several.c own.c))
SIMCUPTI_O := $(call objs,$(SIMCUPTI_C))
SIMCUPTI_GEN     := $(OBJ)/cuda/sim/gen/cupti

$(foreach s,$(SIMCUPTI_C),$(eval EXTRA_$(s) := $$(CUDAINC) $$(if $(SIMCUPTI_INC),-isystem $(SIMCUPTI_INC)) -I$(SIMCUPTI_GEN) -ftls-model=initial-exec))

$(SIMCUPTI_GEN)/stamp: cuda/sim/cupti/gen.py $(SIMCUPTI_C) $(wildcard $(SIMCUPTI_INC)cupti_version.h) | check-tools
	$(say) GEN $(SIMCUPTI_GEN)
	$(Q)python3 $< $(SIMCUPTI_GEN) $(SIMCUPTI_INC) -- $(SIMCUPTI_C)
	@touch $@

$(SIMCUPTI_O): $(SIMCUPTI_GEN)/stamp

$(SIM)/libcupti.so.13: $(SIMCUPTI_O) cuda/sim/cupti/libcupti.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(LDSAN) -Wl,-soname,libcupti.so.13 -Wl,-Bsymbolic -Wl,-z,nodelete -Wl,-rpath,'$$ORIGIN' \
	  -Wl,--version-script,cuda/sim/cupti/libcupti.map $(SIMCUPTI_O) $(LDFLAGS) -o $@ -ldl -lpthread
	$(Q)ln -sf libcupti.so.13 $(SIM)/libcupti.so

sim-cupti: $(SIM)/libcupti.so.13
sim: sim-cupti

.PHONY: sim-cupti

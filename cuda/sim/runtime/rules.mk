# The runtime stand-in: a thin shared library, and a static archive of the same objects.

RT_DONE    := $(addprefix cuda/sim/runtime/,driver.c error.c context.c device.c memory.c array.c copy.c \
                stream.c graph_node.c register.c launch.c texture.c pass.c)
RT_SOURCES := $(RT_DONE) $(addprefix cuda/sim/runtime/,unsupported.c watched.c watching.c)
RT_OBJECTS := $(call objs,$(RT_SOURCES))
RT_SHARED  := $(SIM)/libcudart.so.13
RT_STATIC  := $(SIM)/libweir_sim_cudart_static.a
RT_LIST    := $(SIM)/unsupported-runtime.txt
SIMRT_UNSUPPORTED := $(RT_LIST)

RT_GEN := $(OBJ)/cuda/sim/gen/runtime

$(foreach s,$(RT_SOURCES),$(eval EXTRA_$(s) := $$(CUDAINC) -I$(RT_GEN)))
# What they define as cudaX is rt_of_cudaX; cudaX itself, made in watched.c, calls it.
$(foreach s,$(RT_DONE),$(eval EXTRA_$(s) += -include $(RT_GEN)/rename.gen.h))

$(RT_GEN)/headers.i: cuda/sim/runtime/headers.h $(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h) | check-tools
	@mkdir -p $(@D)
	$(Q)$(CC) -E -P $(CUDAINC) -x c $< -o $@

# The stamp is newer than the sources; the generated files only change when their content does.
$(RT_GEN)/stamp: $(RT_GEN)/headers.i cuda/sim/runtime/gen.py cuda/sim/driver/gen.py $(SIMGEN)/unsupported.txt $(RT_SOURCES) cuda/sim/runtime/register.h
	$(say) GEN $(RT_GEN)
	$(Q)python3 cuda/sim/runtime/gen.py $< $(CUDA_HOME)/include $(SIMGEN)/unsupported.txt $(RT_GEN) $(RT_SOURCES) cuda/sim/runtime/register.h
	@touch $@

$(RT_GEN)/rt.gen.h $(RT_GEN)/driver.gen.h $(RT_GEN)/pass.gen.h $(RT_GEN)/unsupported.gen.h $(RT_GEN)/rename.gen.h $(RT_GEN)/watched.gen.h: $(RT_GEN)/stamp ;

$(RT_OBJECTS): | $(RT_GEN)/stamp

$(RT_SHARED): $(RT_OBJECTS) cuda/sim/runtime/libcudart.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(LDSAN) -Wl,-soname,libcudart.so.13 -Wl,-Bsymbolic -Wl,-z,now \
	  -Wl,--version-script=cuda/sim/runtime/libcudart.map -o $@ $(RT_OBJECTS) -ldl -lpthread
	$(Q)ln -sf libcudart.so.13 $(SIM)/libcudart.so

$(RT_STATIC): $(RT_OBJECTS)
	@mkdir -p $(@D)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $(RT_OBJECTS)

# One name a line, for `weir run --sim --list-unsupported`.
$(RT_LIST): $(RT_GEN)/unsupported.gen.h
	@mkdir -p $(@D)
	$(Q)sed -n 's/^X(\(.*\))$$/\1/p' $< > $@

sim-rt: $(RT_SHARED) $(RT_STATIC) $(RT_LIST)
sim: sim-rt

.PHONY: sim-rt

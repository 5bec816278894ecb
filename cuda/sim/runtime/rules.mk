# The runtime stand-in: a thin shared library, and a static archive of the same objects.

RT_SOURCES := $(addprefix cuda/sim/runtime/,driver.c error.c context.c device.c memory.c array.c copy.c \
                stream.c graph.c graph_node.c register.c launch.c texture.c unsupported.c)
RT_OBJECTS := $(call objs,$(RT_SOURCES))
RT_SHARED  := $(SIM)/libcudart.so.13
RT_STATIC  := $(SIM)/libweir_sim_cudart_static.a
RT_LIST    := $(SIM)/unsupported-runtime.txt
SIMRT_UNSUPPORTED := $(RT_LIST)

$(foreach s,$(RT_SOURCES),$(eval EXTRA_$(s) := $$(CUDAINC)))

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

# One name a line, for `weir run --sim --list-unsupported`: also what only the driver beneath lacks.
$(RT_LIST): cuda/sim/runtime/unsupported.def cuda/sim/runtime/list.py $(RT_SHARED) $(SIMGEN)/unsupported.txt $(SIM)/libcuda.so.1
	@mkdir -p $(@D)
	$(Q)python3 cuda/sim/runtime/list.py $< $(RT_SHARED) $(SIMGEN)/unsupported.txt $(SIM)/libcuda.so.1 > $@

sim-rt: $(RT_SHARED) $(RT_STATIC) $(RT_LIST)
sim: sim-rt

# After a change of what is done: make the table anew.
rt-unsupported: $(filter-out %/unsupported.o,$(RT_OBJECTS))
	$(Q)python3 cuda/sim/runtime/unsupported.py $(CUDA_HOME)/include $^ > cuda/sim/runtime/unsupported.def

.PHONY: sim-rt rt-unsupported

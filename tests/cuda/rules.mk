# tests/cuda: the engine on CUDA's driver API, tried on the software device.
#   probe          a program on libweir.so's exports; test_open runs it where CUDA is missing, broken, there
#   the others     the allocator linked in, libweir-cuda.so opened by it, the driver's own functions beside

CUDAT        := $(O)/tests/cuda
CUDAT_SUITES := $(addprefix $(CUDAT)/,test_open test_backend test_faults)
CUDAT_OBJS   := $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(call objs,tests/cuda/rig.c)
CUDAT_INSIDE := $(filter-out $(CUDAT)/test_open,$(CUDAT_SUITES))

TESTS      += $(CUDAT_SUITES)
TEST_TOOLS += $(CUDAT)/probe

$(CUDAT_INSIDE): $(CUDAT)/%: $(OBJ)/tests/cuda/%.o $(CUDAT_OBJS) $(SIM)/libcuda.so.1 $(LIB)/libweir-cuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -rdynamic -o $@ $(filter %.o,$^) $(SIM)/libcuda.so.1 \
	  -Wl,-rpath,'$$ORIGIN/../../lib/sim:$$ORIGIN/../../lib' $(CHECK_LIBS) -lm -ldl -pthread

$(CUDAT)/test_open: $(OBJ)/tests/cuda/test_open.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)

$(CUDAT)/probe: $(OBJ)/tests/cuda/probe.o $(LIB)/libweir.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $< -L$(LIB) -lweir -Wl,-rpath,'$$ORIGIN/../../lib' -pthread

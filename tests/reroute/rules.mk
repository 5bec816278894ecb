# The rerouting modes: programs that must not be able to tell.

REROUTE     := $(O)/tests/reroute
REROUTE_OBJ := $(OBJ)/tests/reroute

$(REROUTE_OBJ)/kernels.o: tests/reroute/kernels.cu cuda/sim/weir_kernel.h cuda/sim/twin.h | examples-nvcc
	@mkdir -p $(@D)
	$(say) NVCC $<
	$(Q)$(EX_NVCC) -gencode arch=compute_75,code=compute_75 -c $< -o $@

$(REROUTE)/trap: $(REROUTE_OBJ)/trap.o $(REROUTE_OBJ)/kernels.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_LIB) -lcudart -L$(CUDA_LIB)/stubs -lcuda -lpthread

$(REROUTE)/test_traps: $(REROUTE_OBJ)/test_traps.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)

TESTS      += $(REROUTE)/test_traps
NOT_ASAN   += tests/reroute/test_traps
NOT_TSAN   += tests/reroute/test_traps
TEST_TOOLS += $(REROUTE)/trap

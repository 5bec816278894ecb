# Innocents: programs without waste, under the built weir.

INNOCENTS := $(O)/tests/innocents/innocents

$(OBJ)/tests/innocents/kernels.o: tests/innocents/kernels.cu cuda/sim/weir_kernel.h cuda/sim/twin.h | examples-nvcc
	@mkdir -p $(@D)
	$(say) NVCC $<
	$(Q)$(EX_NVCC) -gencode arch=compute_75,code=compute_75 -c $< -o $@

$(INNOCENTS): $(call objs,$(addprefix tests/innocents/,innocents.c applications.c samples.c servers.c solvers.c)) $(OBJ)/tests/innocents/kernels.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -lcuda -lpthread

INNOCENTS_TESTS := $(O)/tests/innocents/test_programs $(O)/tests/innocents/test_programs_all

$(INNOCENTS_TESTS): $(O)/tests/innocents/%: $(OBJ)/tests/innocents/%.o $(OBJ)/tests/tools/command.o | $(INNOCENTS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3 jansson)

TESTS     += $(O)/tests/innocents/test_programs
TESTS_ALL += $(O)/tests/innocents/test_programs_all
NOT_ASAN  += $(INNOCENTS_TESTS:$(O)/%=%)
NOT_TSAN  += $(INNOCENTS_TESTS:$(O)/%=%)

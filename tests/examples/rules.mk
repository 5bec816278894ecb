# tests/examples: the example programs, run on the software device; and the same programs without their
# kernels' host twins, which must find their results wrong.

TX          := $(O)/tests/examples
TX_NO_TWINS := $(addprefix $(TX)/no_twins/,$(EX_CUDA))

TESTS += $(TX)/test_examples

$(TX_NO_TWINS): $(TX)/no_twins/%: $(OBJ)/$(EX_DIR)/%.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(NVCC) -cudart shared -L$(CUDA_STUBS) $(EX_SAN) $< -o $@

$(TX)/test_examples: $(OBJ)/tests/examples/test_examples.o | $(TX_NO_TWINS) $(EXAMPLES_SHARED) $(EXAMPLES_SIM_STATIC)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -o $@ $< $(CHECK_LIBS) -lm -pthread

tests-examples: $(TX)/test_examples $(TX_NO_TWINS)
.PHONY: tests-examples

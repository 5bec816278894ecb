# Weir's library and Weir's preload library in one process.

ENGINET := $(O)/tests/engine

$(ENGINET)/client: $(OBJ)/tests/engine/client.o $(LIB)/libweir.so $(LIB)/libweir-cuda.so | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $< -L$(LIB) -lweir -Wl,-rpath,'$$ORIGIN/../../lib' \
	  -L$(CUDA_STUBS) -lcuda -pthread

$(ENGINET)/test_engine: $(OBJ)/tests/engine/test_engine.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)

$(ENGINET)/tensors: $(OBJ)/tests/engine/tensors.o $(LIB)/libweir.so $(LIB)/libweir-cuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $< -L$(LIB) -lweir -Wl,-rpath,'$$ORIGIN/../../lib' -pthread

$(ENGINET)/test_tensors: $(OBJ)/tests/engine/test_tensors.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)

TESTS      += $(ENGINET)/test_tensors
NOT_ASAN   += tests/engine/test_tensors
NOT_TSAN   += tests/engine/test_tensors
$(ENGINET)/test_tensors: | $(ENGINET)/tensors
TESTS      += $(ENGINET)/test_engine
NOT_ASAN   += tests/engine/test_engine
NOT_TSAN   += tests/engine/test_engine
$(ENGINET)/test_engine: | $(ENGINET)/client

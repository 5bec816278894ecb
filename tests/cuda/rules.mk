# tests/cuda: the engine on CUDA's driver API, tried on the software device.
#   probe          a program on libweir.so's exports; test_open runs it where CUDA is missing, broken, there
#   cublas.c       a cuBLAS that runs on the software device
#   cusolver.c     a cuSOLVER that does
#   cudnn.c        a cuDNN that does
#   the others     the allocator linked in, libweir-cuda.so opened by it, the driver's own functions beside

CUDAT        := $(O)/tests/cuda
CUDAT_SUITES := $(addprefix $(CUDAT)/,test_open test_backend test_copy test_stream test_capture test_pinned test_faults test_reuse test_stress test_compute test_unset)
CUDAT_ALL    := $(addprefix $(CUDAT)/,test_faults_all test_reuse_all test_stress_all test_compute_all)
CUDAT_LONG   := $(CUDAT_ALL:%_all=%_long)
CUDAT_OBJS   := $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS) $(call objs,tests/cuda/rig.c)
CUDAT_INSIDE := $(filter-out $(CUDAT)/test_open,$(CUDAT_SUITES))

TESTS      += $(CUDAT_SUITES)
TESTS_ALL  += $(CUDAT_ALL)
TESTS_LONG += $(CUDAT_LONG)
TEST_TOOLS += $(CUDAT)/probe
VALGRIND_TESTS += $(CUDAT)/test_unset

CUDAT_LIBS := $(SIM)/libcuda.so.1 $(LIB)/libweir-cuda.so
$(eval $(call one_program,$(CUDAT)/suites,$(CUDAT_INSIDE),$(CUDAT_OBJS) $(CUDAT_LIBS),$$(SIM_LINK)))
$(eval $(call one_program,$(CUDAT)/suites_all,$(CUDAT_ALL),$(CUDAT_OBJS) $(CUDAT_LIBS),$$(SIM_LINK)))
$(eval $(call one_program,$(CUDAT)/suites_long,$(CUDAT_LONG),$(CUDAT_OBJS) $(CUDAT_LIBS),$$(SIM_LINK)))

# cuBLAS's place on the software device: opened by its path, found by its soname.
$(CUDAT)/libcublas-strict.so: $(OBJ)/tests/cuda/cublas.o $(SIM)/libcuda.so.1
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -shared -Wl,-soname,libcublas.so.13 -o $@ $^

# cuSOLVER's, in the same way.
$(CUDAT)/libcusolver-strict.so: $(OBJ)/tests/cuda/cusolver.o $(SIM)/libcuda.so.1
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -shared -Wl,-soname,libcusolver.so.12 -o $@ $^ -lm

# cuDNN's, in the same way; and one that has nothing.
$(CUDAT)/libcudnn-strict.so: $(OBJ)/tests/cuda/cudnn.o $(SIM)/libcuda.so.1
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -shared -Wl,-soname,libcudnn.so.9 -o $@ $^

$(CUDAT)/libcudnn-empty.so:
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -shared -Wl,-soname,libcudnn.so.9 -o $@ -x c /dev/null

# Tensors on the software device; as the suites of core/grad.
CUDNN_OBJS := $(sort $(CUDAT_OBJS)) $(call objs,tests/tensor/rig.c)
TESTS      += $(CUDAT)/test_cudnn
$(CUDAT)/test_cudnn: $(OBJ)/tests/cuda/test_cudnn.o $(CUDNN_OBJS) $(SIM)/libcuda.so.1 $(LIB)/libweir-cuda.so $(SIM)/libweir-twins.so | $(CUDAT)/libcudnn-strict.so $(CUDAT)/libcudnn-empty.so $(CUDAT)/libcublas-strict.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $(filter %.o,$^) $(SIM_LINK)

$(CUDAT)/test_compute: | $(CUDAT)/libcublas-strict.so
$(O)/tests/ops/test_linalg $(O)/tests/grad/test_grad: | $(CUDAT)/libcublas-strict.so $(CUDAT)/libcusolver-strict.so

$(CUDAT)/test_open: $(OBJ)/tests/cuda/test_open.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)

$(CUDAT)/probe: $(OBJ)/tests/cuda/probe.o $(LIB)/libweir.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $< -L$(LIB) -lweir -Wl,-rpath,'$$ORIGIN/../../lib' -pthread

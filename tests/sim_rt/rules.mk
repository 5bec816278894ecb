# tests/sim_rt: the runtime stand-in, on the shared library, on the static archive (_static), and with
# per-thread default streams (_ptds). The suites find both stand-ins by an rpath, and need no environment.

ST     := $(O)/tests/sim_rt
ST_OBJ := $(OBJ)/tests/sim_rt
# Not a RUNPATH: it must also serve the runtime's own dlopen of the driver.
ST_RPATH := --disable-new-dtags,-rpath,'$$ORIGIN/../../lib/sim'
ST_NVCC   = $(NVCC) -std=c++17 -O1 -g -I. -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=sm_90 -no-compress \
            -Xcompiler -Wall,-D_GNU_SOURCE,-fPIC $(if $(SAN),-DWEIR_SANITIZED)
ST_SUITES := test_runtime test_runtime_static test_runtime_ptds test_surface test_launch \
             test_launch_static test_launch_ptds

# A client of CUPTI, where the Toolkit has its headers.
ST_CUPTI  := $(if $(SIMCUPTI_INC),test_cupti_runtime)

TESTS      += $(addprefix $(ST)/,$(ST_SUITES) $(ST_CUPTI))
TEST_TOOLS += $(ST)/plugin.so

EXTRA_tests/sim_rt/test_runtime.c := $(CUDAINC)

$(ST_OBJ)/test_runtime_ptds.o: tests/sim_rt/test_runtime.c | check-tools
	@mkdir -p $(@D)
	$(say) CC "$< (ptds)"
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) $(CUDAINC) -DCUDA_API_PER_THREAD_DEFAULT_STREAM -c $< -o $@

$(ST_OBJ)/test_launch.o: tests/sim_rt/test_launch.cu tests/sim_rt/sim.h cuda/sim/weir_kernel.h cuda/sim/weir_texture.h cuda/sim/twin.h | examples-nvcc
	@mkdir -p $(@D)
	$(say) NVCC $<
	$(Q)$(ST_NVCC) -c $< -o $@

$(ST_OBJ)/test_launch_ptds.o: tests/sim_rt/test_launch.cu tests/sim_rt/sim.h cuda/sim/weir_kernel.h cuda/sim/weir_texture.h cuda/sim/twin.h | examples-nvcc
	@mkdir -p $(@D)
	$(say) NVCC "$< (ptds)"
	$(Q)$(ST_NVCC) --default-stream per-thread -c $< -o $@

$(ST)/test_runtime $(ST)/test_runtime_ptds $(ST)/test_launch $(ST)/test_launch_ptds: $(ST)/%: $(ST_OBJ)/%.o $(RT_SHARED) $(SIM)/libcuda.so.1
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CXX) $(LDSAN) -rdynamic -o $@ $< $(RT_SHARED) -Wl,$(ST_RPATH) $(CHECK_LIBS) -ldl -pthread

$(ST)/test_runtime_static $(ST)/test_launch_static: $(ST)/%_static: $(ST_OBJ)/%.o $(RT_STATIC) $(SIM)/libcuda.so.1
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CXX) $(LDSAN) -rdynamic -o $@ $< $(RT_STATIC) -Wl,$(ST_RPATH) $(CHECK_LIBS) -ldl -pthread

$(ST)/test_surface: $(ST_OBJ)/test_surface.o $(RT_SHARED) $(RT_STATIC) $(RT_LIST) $(SIM)/libcupti.so.13
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -o $@ $< -Wl,$(ST_RPATH) $(CHECK_LIBS) -ldl -pthread

EXTRA_tests/sim_rt/test_cupti_runtime.c := $(CUDAINC) $(if $(SIMCUPTI_INC),-isystem $(SIMCUPTI_INC))

$(ST)/test_cupti_runtime: $(ST_OBJ)/test_cupti_runtime.o $(RT_SHARED) $(SIM)/libcuda.so.1 $(SIM)/libcupti.so.13
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -o $@ $< $(RT_SHARED) $(SIM)/libcupti.so.13 -Wl,$(ST_RPATH) $(CHECK_LIBS) -ldl -pthread

$(ST)/plugin.so: tests/sim_rt/plugin.cu cuda/sim/weir_kernel.h cuda/sim/weir_texture.h cuda/sim/twin.h | examples-nvcc $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) NVCC $@
	$(Q)$(ST_NVCC) -shared -cudart shared -L$(CUDA_STUBS) $< -o $@

tests-sim-rt: $(ST)/plugin.so $(addprefix $(ST)/,$(ST_SUITES))
.PHONY: tests-sim-rt

# Examples: programs on CUDA, built so that they run on a GPU and on the software device, and programs on
# Weir's own library.
#   $(O)/examples/NAME             shared runtime (-cudart shared)
#   $(O)/examples/sim_static/NAME  the runtime stand-in's static archive
#   $(O)/examples/static/NAME      NVIDIA's static runtime: what nvcc does by default; needs a real driver
# The driver example knows no runtime, and is in the first folder only; so are those that know weir.h and no
# CUDA at all (EX_WEIR).

comma := ,

EX      := $(O)/examples
EX_DIR  := tools/examples
EX_CUDA := train pipeline stencil
EX_WEIR := memory infer resnet18 encoder decoder linear loader streams parallel train_mlp train_cnn train_text
EX_ARCH ?= -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=sm_90
EX_NVCC  = $(NVCC) -std=c++17 -O2 -g -I. -Xcompiler -Wall,-fno-omit-frame-pointer
EX_TWIN := --export-dynamic-symbol=weir_twin_*
# The runtime of a Toolkit that make deps fetched is in no folder that the loader knows.
EX_RPATH = $(if $(filter $(TOOLKIT)/%,$(CUDA_HOME)),-Xlinker '-rpath=$(CUDA_LIB)')
# A sanitized stand-in needs the sanitizer's runtime in the program, first.
EX_SAN   = $(foreach s,$(subst $(comma), ,$(SAN)),-Xcompiler -fsanitize=$(s))

EXAMPLES_SHARED     := $(addprefix $(EX)/,$(EX_CUDA) $(EX_WEIR) driver ctypes_vector.py ranges.py)
EXAMPLES_SIM_STATIC := $(addprefix $(EX)/sim_static/,$(EX_CUDA))
EXAMPLES_STATIC     := $(addprefix $(EX)/static/,$(EX_CUDA))
EXAMPLES_SHARED     += $(EX)/fixed/train
EXAMPLES            := $(EXAMPLES_SHARED) $(EXAMPLES_SIM_STATIC) $(EXAMPLES_STATIC)

examples-nvcc:
	@test -x "$(NVCC)" || { echo "The examples need nvcc, which is not at $(NVCC): install the CUDA Toolkit or set CUDA_HOME." >&2; exit 1; }

$(OBJ)/$(EX_DIR)/%.o: $(EX_DIR)/%.cu $(EX_DIR)/check.h $(EX_DIR)/train_model.h cuda/sim/weir_kernel.h cuda/sim/twin.h | examples-nvcc
	@mkdir -p $(@D)
	$(say) NVCC $<
	$(Q)$(EX_NVCC) $(EX_ARCH) -c $< -o $@

$(EX)/fixed/train $(EX_CUDA:%=$(EX)/%): $(EX)/%: $(OBJ)/$(EX_DIR)/%.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(NVCC) -cudart shared -L$(CUDA_STUBS) $(EX_SAN) -Xlinker '$(EX_TWIN)' $(EX_RPATH) $< -o $@

$(EXAMPLES_SIM_STATIC): $(EX)/sim_static/%: $(OBJ)/$(EX_DIR)/%.o $(RT_STATIC)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(NVCC) -cudart none $(EX_SAN) -Xlinker '$(EX_TWIN)' $< $(RT_STATIC) -o $@ -ldl -lpthread

$(EXAMPLES_STATIC): $(EX)/static/%: $(OBJ)/$(EX_DIR)/%.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(NVCC) -cudart static -Xlinker '$(EX_TWIN)' $< -o $@

# The driver example: an image of its kernels inside, their host twins beside. It is linked against
# names of the driver's functions alone.
$(OBJ)/$(EX_DIR)/driver_kernels.fatbin: $(EX_DIR)/driver_kernels.cu cuda/sim/weir_kernel.h | examples-nvcc
	@mkdir -p $(@D)
	$(say) NVCC $<
	$(Q)$(EX_NVCC) $(EX_ARCH) -fatbin $< -o $@

$(OBJ)/$(EX_DIR)/driver_kernels.o: $(EX_DIR)/driver_kernels.cu cuda/sim/weir_kernel.h cuda/sim/twin.h
	@mkdir -p $(@D)
	$(say) CXX $<
	$(Q)$(CXX) -x c++ -std=c++17 -O2 -g -Wall -fno-exceptions -fno-rtti -I. -c $< -o $@

EXTRA_$(EX_DIR)/driver.c = $(CUDAINC) -DWEIR_EXAMPLE_IMAGE='"$(OBJ)/$(EX_DIR)/driver_kernels.fatbin"'
$(OBJ)/$(EX_DIR)/driver.o: $(OBJ)/$(EX_DIR)/driver_kernels.fatbin

$(EX)/driver: $(OBJ)/$(EX_DIR)/driver.o $(OBJ)/$(EX_DIR)/driver_kernels.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) -Wl,'$(EX_TWIN)' $^ -o $@ -L$(CUDA_STUBS) -lcuda -lm

# As a program built against an installed Weir; core/weir.h is weir.h there.
$(foreach e,$(EX_WEIR),$(eval EXTRA_$(EX_DIR)/$(e).c = -Icore))

$(EX_WEIR:%=$(EX)/%): $(EX)/%: $(OBJ)/$(EX_DIR)/%.o $(LIB)/libweir.so $(LIB)/libweir-cuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $< -o $@ -L$(LIB) -lweir -Wl,-rpath,'$$ORIGIN/../lib' -pthread

$(EX)/%.py: $(EX_DIR)/%.py
	@mkdir -p $(@D)
	$(Q)install -m 755 $< $@

$(EX)/ranges.py: | $(EX)/libnvtx3interop.so.1 $(EX)/ctypes_vector.py

# Never sanitized: Python loads it.
$(EX)/libnvtx3interop.so.1: $(EX_DIR)/nvtx.c
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -O2 -shared -fPIC $(CUDAINC) -Wl,-soname,$(@F) $< -o $@ -ldl

examples: $(EXAMPLES) ## the example programs, below $(O)/examples
all: examples
.PHONY: examples examples-nvcc

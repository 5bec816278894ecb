# The suite of NVTX's side, and its victims: built with NVIDIA's headers, no flags of ours, never instrumented.

NV     := $(O)/tests/victims/nvtx
NV_SRC := tests/victims/nvtx
NV_CC   = $(CC) -O2 -g -Wall -Wextra -pthread $(CUDAINC)
NV_ALL := $(NV)/nests $(NV)/edges $(NV)/extension $(NV)/libtool.so $(NV)/libplain-tool.so

NVTX_TEST := $(O)/tests/interpose/test_nvtx

# The memory extension came with CUDA 12.3's headers.
ifneq ($(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExtMem.h),)
TESTS      += $(NVTX_TEST)
TEST_TOOLS += $(NV_ALL)
endif

$(NVTX_TEST): $(O)/tests/interpose/%: $(OBJ)/tests/interpose/%.o $(OBJ)/tests/interpose/loader_run.o \
              $(OBJ)/tests/interpose/nvtx_account.o $(CORE_TRACE_READER_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) -ldl -pthread

$(NV)/nests: $(NV_SRC)/nests.c $(VL)/libcudart.so.13
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(NV_CC) -o $@ $< $(VL)/libcudart.so.13 -Wl,-rpath,'$$ORIGIN/../loader' -ldl

$(NV)/edges $(NV)/extension: $(NV)/%: $(NV_SRC)/%.c
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(NV_CC) -o $@ $< -ldl

$(NV)/libplain-tool.so: NV_CC += -DNO_EXTENSION
$(NV)/libtool.so $(NV)/libplain-tool.so: $(NV_SRC)/tool.c
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(NV_CC) -shared -fPIC -Wl,-soname,$(@F) -o $@ $<

# core: what everything else stands on. Other folders link these lists of objects:
#   CORE_BASE_OBJS          status, clock, options, map: no dependency but libc
#   CORE_UNWIND_OBJS        the unwinder's seam
#   CORE_JSON_OBJS          JSON and pickles, written; JSON, read from untrusted files
#   CORE_MEMORY_OBJS        the allocator, streams and the opening of CUDA, on top of base
#   CORE_TENSOR_OBJS        tensors and the cpu they calculate on, on top of memory
#   CORE_TRACE_WRITER_OBJS  base and the writing side: the preload library
#   CORE_TRACE_READER_OBJS  base and the reading side: the tools

CORE_BASE_OBJS         := $(call objs,core/version.c core/base/status.c core/base/clock.c core/base/options.c core/base/keep.c core/base/rules.c core/base/map.c core/base/image.c core/base/trace_name.c)
CORE_UNWIND_OBJS       := $(call objs,$(addprefix core/trace/,unwind.c stack_path.c stack_memory.c))
CORE_TRACE_WRITER_OBJS := $(CORE_BASE_OBJS) $(CORE_UNWIND_OBJS) $(call objs,core/trace/spool_writer.c core/trace/spool_request.c core/trace/stack.c core/trace/stack_signs.c core/trace/api.c)
CORE_JSON_OBJS         := $(call objs,core/base/dump.c core/base/json.c)
CORE_MEMORY_OBJS       := $(CORE_JSON_OBJS) $(CORE_UNWIND_OBJS) \
                          $(call objs,core/base/host_memory.c core/trace/notify.c core/backend/name.c core/backend/plugin.c) \
                          $(call objs,$(wildcard core/memory/*.c core/stream/*.c))
CORE_TENSOR_OBJS       := $(call objs,core/trace/spool_writer.c core/trace/spool_request.c core/trace/api.c) \
                          $(call objs,$(wildcard core/backend/cpu/*.c core/tensor/*.c core/ops/*.c core/grad/*.c core/io/*.c core/nn/*.c))
CORE_TRACE_READER_OBJS := $(CORE_BASE_OBJS) $(call objs,core/trace/spool_reader.c core/trace/spool_request.c core/trace/api.c)

# The cpu's loops: vectors wherever the result is the same to the bit. Nobody asks for errno or
# traps; x86-64 has a second level.
CPU_LOOP_FLAGS := -O3 -fno-math-errno -fno-trapping-math
EXTRA_core/backend/cpu/factor.c       := $(CPU_LOOP_FLAGS)
EXTRA_core/backend/cpu/conv.c         := $(CPU_LOOP_FLAGS)
EXTRA_core/backend/cpu/kernels.c      := $(CPU_LOOP_FLAGS)
EXTRA_core/backend/cpu/index.c        := $(CPU_LOOP_FLAGS)
EXTRA_core/backend/cpu/cpu.c          := $(CPU_LOOP_FLAGS)
EXTRA_core/backend/cpu/kernels_avx2.c := $(CPU_LOOP_FLAGS) $(if $(filter x86_64,$(ARCH)),-mavx2 -mf16c)
EXTRA_core/backend/cpu/kernels_avx512.c := $(CPU_LOOP_FLAGS) \
  $(if $(filter x86_64,$(ARCH)),-mavx512f -mavx512bw -mavx512dq -mavx512vl -mf16c -mprefer-vector-width=512)
EXTRA_core/backend/cpu/window.c       := $(CPU_LOOP_FLAGS)
EXTRA_core/backend/cpu/copy.c         := -O3
EXTRA_core/backend/cpu/rows.c         := $(CPU_LOOP_FLAGS)
EXTRA_core/backend/cpu/update.c       := $(CPU_LOOP_FLAGS)
EXTRA_core/backend/cpu/rows_avx2.c    := $(CPU_LOOP_FLAGS) $(if $(filter x86_64,$(ARCH)),-mavx2)
EXTRA_core/backend/cpu/rows_avx512.c  := $(CPU_LOOP_FLAGS) $(if $(filter x86_64,$(ARCH)),-mavx512f -mavx512bw -mavx512vl -mprefer-vector-width=512)
TILE_FLAGS := -O3 -ffp-contract=fast
EXTRA_core/backend/cpu/tile.c        := $(TILE_FLAGS)
EXTRA_core/backend/cpu/tile_avx2.c   := $(TILE_FLAGS) $(if $(filter x86_64,$(ARCH)),-mavx2 -mfma)
EXTRA_core/backend/cpu/tile_avx512.c := $(TILE_FLAGS) $(if $(filter x86_64,$(ARCH)),-mavx512f -mfma)

core: $(LIB)/libweir.so $(LIB)/libweir.a

$(LIB)/libweir.so.0: $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS) core/libweir.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(LDSAN) $(LDFLAGS) -Wl,-soname,libweir.so.0 -Wl,--version-script,core/libweir.map \
	  -Wl,-z,now $(if $(SAN),,-Wl,-z,defs) -o $@ $(filter %.o,$^) -lm -ldl -pthread

# The static library: one object of all, in which only what libweir.so exports is global, so that a
# program's own names never meet ours.
$(LIB)/libweir.a: $(LIB)/libweir.so.0
	@mkdir -p $(@D) $(OBJ)/core
	$(say) AR $@
	$(Q)nm -D --defined-only $< | sed -n 's/.* \(weir_[a-z0-9_]*\)@@.*/\1/p' >$(OBJ)/core/exported
	$(Q)ld -r -o $(OBJ)/core/libweir.o $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS)
	$(Q)objcopy --keep-global-symbols=$(OBJ)/core/exported $(OBJ)/core/libweir.o
	$(Q)rm -f $@ && $(AR) rcs $@ $(OBJ)/core/libweir.o

$(LIB)/libweir.so: $(LIB)/libweir.so.0
	$(Q)ln -sf libweir.so.0 $@

all: core
.PHONY: core

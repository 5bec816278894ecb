# core: what everything else stands on. Other folders link these lists of objects:
#   CORE_BASE_OBJS          status, clock, options, map: no dependency but libc
#   CORE_MEMORY_OBJS        the allocator and the opening of CUDA, on top of base
#   CORE_TRACE_WRITER_OBJS  base and the writing side: the preload library
#   CORE_TRACE_READER_OBJS  base and the reading side: the tools

CORE_BASE_OBJS         := $(call objs,core/version.c core/base/status.c core/base/clock.c core/base/options.c core/base/map.c)
CORE_TRACE_WRITER_OBJS := $(CORE_BASE_OBJS) $(call objs,core/trace/spool_writer.c core/trace/stack.c core/trace/stack_path.c core/trace/stack_memory.c core/trace/api.c)
CORE_MEMORY_OBJS       := $(call objs,core/device/current.c core/device/device.c $(addprefix core/memory/,api.c back.c check.c config.c epoch.c front.c graph.c heap.c hostroom.c meta.c pinned.c pool.c report.c slab.c stats.c))
# The whole-block cache, alone: what the preload library needs of the allocator.
CORE_WHOLE_OBJS        := $(call objs,core/memory/whole.c)
CORE_TRACE_READER_OBJS := $(CORE_BASE_OBJS) $(call objs,core/trace/spool_reader.c core/trace/api.c)

core: $(LIB)/libweir.so

$(LIB)/libweir.so.0: $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) core/libweir.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(LDSAN) $(LDFLAGS) -Wl,-soname,libweir.so.0 -Wl,--version-script,core/libweir.map \
	  -Wl,-z,now $(if $(SAN),,-Wl,-z,defs) -o $@ $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) -lm -ldl -pthread

$(LIB)/libweir.so: $(LIB)/libweir.so.0
	$(Q)ln -sf libweir.so.0 $@

all: core
.PHONY: core

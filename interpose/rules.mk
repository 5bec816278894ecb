# interpose: libweir-preload.so. Depends on libc only, exports its hooks and nothing else.

# Device times, where the Toolkit has CUPTI's headers; else one file says that they cannot be had.
CUPTI_HEADER := $(firstword $(wildcard $(CUDA_HOME)/include/cupti.h $(CUDA_HOME)/extras/CUPTI/include/cupti.h))
ACTIVITY_SRC := $(if $(CUPTI_HEADER),$(filter-out %/absent.c,$(wildcard interpose/activity/*.c)),interpose/activity/absent.c)
$(foreach s,$(ACTIVITY_SRC),$(eval EXTRA_$(s) := $(if $(CUPTI_HEADER),-isystem $(dir $(CUPTI_HEADER)))))

# Ranges, where it has NVTX's headers (a part of it that an installer may leave out): likewise.
NVTX_HEADER := $(wildcard $(CUDA_HOME)/include/nvtx3/nvToolsExt.h)
NVTX_SRC    := $(if $(NVTX_HEADER),$(filter-out %/absent.c,$(wildcard interpose/nvtx/*.c)),interpose/nvtx/absent.c)

# Hashes of what copies carry, where the machine has libxxhash's header; all of it is in there.
XXHASH      := $(shell printf '\043include <xxhash.h>\n' | $(CC) $(CPPFLAGS) -E - >/dev/null 2>&1 && echo yes)
CONTENT_SRC := $(if $(XXHASH),$(filter-out %/absent.c,$(wildcard interpose/content/*.c)),interpose/content/absent.c)

INTERPOSE_SRC := $(sort $(filter-out interpose/activity/% interpose/content/% interpose/nvtx/%,$(wildcard interpose/*/*.c)) $(ACTIVITY_SRC) $(CONTENT_SRC) $(NVTX_SRC)) $(wildcard interpose/*/*.S)
PRELOAD       := $(LIB)/libweir-preload.so
PRELOAD_OBJS  := $(call objs,$(INTERPOSE_SRC)) $(CORE_TRACE_WRITER_OBJS) $(call objs,core/base/bias.c)

# No program can be preloaded with a sanitizer it was not built for, so in a sanitizer build this one
# library is built without; its parts are instrumented where tests link them.
ifneq ($(SAN),)
PRELOAD_OBJS := $(patsubst $(OBJ)/%,$(OBJ)/plain/%,$(PRELOAD_OBJS))
endif

$(OBJ)/plain/%.o: %.c | check-tools
	@mkdir -p $(@D)
	$(say) CC "$< (plain)"
	$(Q)$(CC) $(filter-out -fsanitize=% -fno-sanitize-recover=%,$(BASEFLAGS)) $(CPPFLAGS) $(CFLAGS) \
	  $(EXTRA_$(firstword $(subst /, ,$<))) $(EXTRA_$<) -c $< -o $@

$(OBJ)/plain/%.o: %.S | check-tools
	@mkdir -p $(@D)
	$(say) AS "$< (plain)"
	$(Q)$(CC) $(CPPFLAGS) -g -fPIC -MMD -MP -c $< -o $@

# These functions must not be compiled into calls of themselves.
EXTRA_interpose/elf/local_libc.c := -ffreestanding $(if $(findstring clang,$(CC)),,-fno-tree-loop-distribute-patterns)

interpose: $(PRELOAD) $(LIB)/libunwind.so.8

$(PRELOAD): $(PRELOAD_OBJS) interpose/exports.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,-soname,libweir-preload.so -Wl,--version-script,interpose/exports.map \
	  -Wl,-Bsymbolic -Wl,-z,now -Wl,-z,defs -Wl,--as-needed -Wl,--exclude-libs,ALL -o $@ $(PRELOAD_OBJS) -lpthread -ldl

# The quick unwinder, beside us; where the system has none, glibc's backtrace() serves.
LIBUNWIND := $(realpath $(shell $(CC) -print-file-name=libunwind.so.8 2>/dev/null))

$(LIB)/libunwind.so.8:
	@mkdir -p $(@D)
	$(Q)if [ -n "$(LIBUNWIND)" ]; then ln -sf "$(LIBUNWIND)" $@; fi

include interpose/table/gen.mk

all: interpose
.PHONY: interpose

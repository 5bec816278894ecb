# interpose: libweir-preload.so. Depends on libc only, exports its hooks and nothing else.

INTERPOSE_OBJS := $(call objs,$(sort $(wildcard interpose/*.c)) $(wildcard interpose/trampoline_*.S))
EXTRA_interpose := $(CUDAINC)
PRELOAD        := $(LIB)/libweir-preload.so

# A test program cannot be preloaded with a sanitizer that its host lacks, so this library is never
# instrumented; its parts are, where tests link them.
interpose: $(PRELOAD) $(LIB)/libunwind.so.8

$(PRELOAD): $(INTERPOSE_OBJS) $(CORE_TRACE_WRITER_OBJS) interpose/exports.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) -shared $(LDSAN) $(LDFLAGS) -Wl,-soname,libweir-preload.so -Wl,--version-script,interpose/exports.map \
	  -Wl,-Bsymbolic -Wl,-z,now -Wl,--as-needed -Wl,--exclude-libs,ALL -o $@ \
	  $(INTERPOSE_OBJS) $(CORE_TRACE_WRITER_OBJS) -lpthread -ldl

# The quick unwinder, beside us; where the system has none, glibc's backtrace() serves.
LIBUNWIND := $(realpath $(shell $(CC) -print-file-name=libunwind.so.8))

$(LIB)/libunwind.so.8:
	@mkdir -p $(@D)
	$(Q)if [ -n "$(LIBUNWIND)" ]; then ln -sf "$(LIBUNWIND)" $@; fi

all: interpose
.PHONY: interpose

# The generated files are committed; only a change of hooks.tsv, of gen.py or of CUDA needs this.
gen:
	$(say) GEN interpose/hooks.gen.c
	$(Q)CC="$(CC)" python3 interpose/gen.py --cuda $(CUDA_HOME)

check-gen:
	$(Q)CC="$(CC)" python3 interpose/gen.py --cuda $(CUDA_HOME) --check

.PHONY: gen check-gen

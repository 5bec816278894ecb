# Tools: the weir command, benchmarks, and what packs and installs the rest.

-include $(wildcard tools/examples/rules.mk)

TOOLS_SRCS := $(sort $(wildcard tools/weir/*.c))
TOOLS_OBJS := $(call objs,$(TOOLS_SRCS))

# Wanted beside the program when it runs somewhere else (make bundle): DT_RPATH, not RUNPATH, because
# it also serves the libraries that our libraries need, and weir's own must not be mixed with others.
TOOLS_RPATH := -Wl,--disable-new-dtags -Wl,-rpath,'$$ORIGIN/../lib/weir'
TOOLS_LIBS   = $(call pkg_libs,sqlite3 jansson libdw libelf) -lpthread -ldl -lm

$(BIN)/weir: $(sort $(TOOLS_OBJS) $(REPORTS_OBJS) $(CORE_TRACE_READER_OBJS))
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) $(TOOLS_RPATH) -o $@ $^ $(TOOLS_LIBS)

weir: $(if $(REPORTS_OBJS),$(BIN)/weir)
tools: weir
all: tools
.PHONY: weir tools

# reports: spools in, a trace out; a trace in, a report out. Who links it adds
#   $(REPORTS_OBJS) $(CORE_TRACE_READER_OBJS) and $(REPORTS_LIBS)

REPORTS_OBJS := $(call objs,$(addprefix reports/,util.c schema.c trace_file.c resume.c batch.c elf_facts.c lifetime.c take.c timeline.c \
                 import.c finish.c debug_files.c symbolize.c first.c model.c sites.c unseen.c cache.c pools.c reserved.c tensors.c tensors_render.c grid.c page.c text_sites.c text.c cache_text.c json.c cache_json.c open.c report.c))
REPORTS_LIBS := $(call pkg_libs,sqlite3) $(call pkg_libs,jansson) $(call pkg_libs,libdw) $(call pkg_libs,libelf) -ldl -lm

EXTRA_reports := $(call pkg_cflags,sqlite3) $(call pkg_cflags,jansson) $(call pkg_cflags,libdw) $(call pkg_cflags,libelf)

$(OBJ)/reports/schema.o: reports/schema.sql

reports: $(REPORTS_OBJS)
all: reports
.PHONY: reports

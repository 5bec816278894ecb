# Suites and victims of the loader's side. Victims are built as a user builds them: no flags of ours,
# never instrumented.

VL       := $(O)/tests/victims/loader
VL_SRC   := tests/victims/loader
VL_CC     = $(CC) -O2 -g -Wall -Wextra -pthread '-DPLUGINS="$(abspath $(VL))/plugins"'
VL_RTS   := $(VL)/libcudart.so.12 $(VL)/libcudart.so.13 $(VL)/libcuda.so.1
VL_CALLS := $(VL)/calls-lazy $(VL)/calls-now $(VL)/calls-noplt $(VL)/calls-nopie $(VL)/calls-12
VL_ALL   := $(VL_RTS) $(VL_CALLS) $(VL)/look $(VL)/life $(VL)/plugins/plugin.so $(VL)/plugins/deep/libdeep.so \
            $(VL)/libembed.so $(VL)/libshim.so $(VL)/calls-shim $(VL)/calls-early $(VL)/libearly.so \
            $(VL)/libcudart-1a2b3c.so.13 $(VL)/plugins/packed.so $(VL)/plugins/stub.so $(VL)/pointers \
            $(VL)/libhooker.so \
            $(VL)/throw $(VL)/plugins/throw_plugin.so

# What the linter must know of them.
EXTRA_tests/victims/loader/fake_cudart.c := -DMAJOR=12 '-DSONAME="libcudart.so.12"'
EXTRA_tests/victims/loader/look.c        := '-DPLUGINS="plugins"'

LOADER_SUITES := test_loader_elf test_loader_lookup test_loader_life test_loader_quiet
LOADER_BINS   := $(addprefix $(O)/tests/interpose/,$(LOADER_SUITES))

TESTS      += $(LOADER_BINS)
TEST_TOOLS += $(VL_ALL)

$(LOADER_BINS): $(O)/tests/interpose/%: $(OBJ)/tests/interpose/%.o $(OBJ)/tests/interpose/loader_run.o \
                $(OBJ)/interpose/elf/elf.o $(OBJ)/interpose/elf/objects.o $(OBJ)/interpose/elf/bank.o $(CORE_TRACE_READER_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) -ldl -pthread

$(VL)/libcudart.so.%: $(VL_SRC)/fake_cudart.c
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)echo 'libcudart.so.$* { global: cuda*; local: *; };' >$@.map
	$(Q)$(VL_CC) -shared -fPIC -Wl,-Bsymbolic -DMAJOR=$* '-DSONAME="libcudart.so.$*"' -Wl,-soname,libcudart.so.$* \
	  -Wl,--version-script,$@.map -o $@ $< -ldl

$(VL)/libcuda.so.1: $(VL_SRC)/fake_cuda.c
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(VL_CC) -shared -fPIC -Wl,-soname,libcuda.so.1 -o $@ $<

$(VL)/calls-lazy:  VL_HOW := -Wl,-z,lazy
$(VL)/calls-now:   VL_HOW := -Wl,-z,now
$(VL)/calls-noplt: VL_HOW := -fno-plt
$(VL)/calls-nopie: VL_HOW := -no-pie -fno-pie
$(VL)/calls-shim:  VL_HOW := -Wl,--no-as-needed $(VL)/libshim.so
$(VL)/calls-early: VL_HOW := -Wl,--no-as-needed
$(VL)/calls-12:    VL_RT  := libcudart.so.12
$(VL_CALLS) $(VL)/calls-shim: $(VL_SRC)/calls.c $(VL_RTS) $(VL)/libshim.so
	$(say) VICTIM $@
	$(Q)$(VL_CC) $(VL_HOW) -o $@ $< $(VL)/$(or $(VL_RT),libcudart.so.13) -Wl,-rpath,'$$ORIGIN'

$(VL)/calls-early: $(VL_SRC)/calls.c $(VL)/libearly.so
	$(say) VICTIM $@
	$(Q)$(VL_CC) $(VL_HOW) -o $@ $< $(VL)/libcudart.so.13 $(VL)/libearly.so -Wl,-rpath,'$$ORIGIN'

$(VL)/libearly.so: $(VL_SRC)/early.c $(VL_RTS)
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(VL_CC) -shared -fPIC -Wl,-soname,$(@F) -o $@ $< $(VL)/libcudart.so.13 -Wl,-rpath,'$$ORIGIN' -ldl

$(VL)/look: $(VL_SRC)/look.c
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(VL_CC) -o $@ $< -Wl,-rpath,'$$ORIGIN' -ldl

$(VL)/life: $(VL_SRC)/life.c $(VL_RTS)
	$(say) VICTIM $@
	$(Q)$(VL_CC) -o $@ $< $(VL)/libcudart.so.13 -Wl,-rpath,'$$ORIGIN'

$(VL)/plugins/plugin.so: $(VL_SRC)/plugin.c $(VL_RTS)
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(VL_CC) -shared -fPIC -o $@ $< $(VL)/libcudart.so.13 -Wl,-rpath,'$$ORIGIN/..:$$ORIGIN/deep' -ldl

# A runtime as wheels pack it: its own soname, and the versions it was born with.
$(VL)/libcudart-1a2b3c.so.13: $(VL_SRC)/fake_cudart.c $(VL)/libcudart.so.13
	$(say) VICTIM $@
	$(Q)$(VL_CC) -shared -fPIC -Wl,-Bsymbolic -DMAJOR=14 '-DSONAME="$(@F)"' -Wl,-soname,$(@F) \
	  -Wl,--version-script,$(VL)/libcudart.so.13.map -o $@ $<

$(VL)/plugins/packed.so: $(VL_SRC)/plugin.c $(VL)/libcudart-1a2b3c.so.13
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(VL_CC) -shared -fPIC -o $@ $< $(VL)/libcudart-1a2b3c.so.13 -Wl,-rpath,'$$ORIGIN/..'

$(VL)/plugins/stub.so: $(VL_SRC)/stub.c
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(VL_CC) -shared -fPIC -o $@ $< -Wl,-rpath,'$$ORIGIN/..' -ldl

$(VL)/pointers: $(VL_SRC)/pointers.c
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(VL_CC) -rdynamic -o $@ $< -Wl,-rpath,'$$ORIGIN' -ldl

# A library that only the plug-in's RUNPATH leads to.
$(VL)/plugins/deep/libdeep.so: $(VL_SRC)/fake_cuda.c
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(VL_CC) -shared -fPIC -Wl,-soname,libdeep.so -o $@ $<

$(VL)/libhooker.so: VL_HOW := -Wl,-Bsymbolic
$(VL)/libembed.so $(VL)/libshim.so $(VL)/libhooker.so: $(VL)/lib%.so: $(VL_SRC)/%.c
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(VL_CC) -shared -fPIC $(VL_HOW) -Wl,-soname,$(@F) -o $@ $< -ldl

$(VL)/throw: $(VL_SRC)/throw.cc $(VL_SRC)/throw.h
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(or $(CXX),c++) -O2 -Wall -Wextra -pthread '-DPLUGINS="$(abspath $(VL))/plugins"' -o $@ $< -ldl

$(VL)/plugins/throw_plugin.so: $(VL_SRC)/throw_plugin.cc $(VL_SRC)/throw.h
	@mkdir -p $(@D)
	$(say) VICTIM $@
	$(Q)$(or $(CXX),c++) -O2 -Wall -Wextra -shared -fPIC -o $@ $<

tests-loader: $(LOADER_BINS) $(VL_ALL)
.PHONY: tests-loader

# What reads words beyond a text's end, in its page, is nothing for a sanitizer.
LIBC_TEST := $(O)/tests/interpose/test_local_libc
TESTS     += $(LIBC_TEST)
NOT_ASAN  += tests/interpose/test_local_libc
NOT_TSAN  += tests/interpose/test_local_libc

$(LIBC_TEST): $(OBJ)/tests/interpose/test_local_libc.o $(OBJ)/interpose/elf/local_libc.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS)

# Reads the built library as a file.
ENTRIES_TEST := $(O)/tests/interpose/test_entries
TESTS        += $(ENTRIES_TEST)

$(ENTRIES_TEST): $(OBJ)/tests/interpose/test_entries.o | $(PRELOAD)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS)

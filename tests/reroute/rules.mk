# The rerouting modes: programs that must not be able to tell.

REROUTE     := $(O)/tests/reroute
REROUTE_OBJ := $(OBJ)/tests/reroute

$(REROUTE_OBJ)/kernels.o: tests/reroute/kernels.cu cuda/sim/weir_kernel.h cuda/sim/twin.h | examples-nvcc
	@mkdir -p $(@D)
	$(say) NVCC $<
	$(Q)$(EX_NVCC) -gencode arch=compute_75,code=compute_75 -c $< -o $@

$(REROUTE)/trap $(REROUTE)/differ $(REROUTE)/subject $(REROUTE)/capturer $(REROUTE)/thrash: $(REROUTE)/%: $(REROUTE_OBJ)/%.o $(REROUTE_OBJ)/kernels.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -lcuda -lpthread

$(REROUTE)/trap: $(REROUTE_OBJ)/trap_shared.o $(REROUTE_OBJ)/trap_bounds.o $(REROUTE_OBJ)/trap_fixes.o

# Link what stands in front of them by name: no kernels.
$(REROUTE)/behind $(REROUTE)/saved $(REROUTE)/patched $(REROUTE)/placed: $(REROUTE)/%: $(REROUTE_OBJ)/%.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -lcuda -ldl -lpthread

$(REROUTE)/libinterposer.so: $(REROUTE_OBJ)/interposer.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) -shared -o $@ $^ -ldl

# Other libraries that have functions of CUDA's names, one source made for each.
OWNERS := $(addprefix $(REROUTE)/libowner-,runtime.so host.so copies.so driver.so lookups.so hidden.so)
$(REROUTE)/libowner-runtime.so: OWN := -DOWN_RUNTIME
$(REROUTE)/libowner-host.so:    OWN := -DOWN_HOST
$(REROUTE)/libowner-copies.so:  OWN := -DOWN_COPIES
$(REROUTE)/libowner-driver.so:  OWN := -DOWN_DRIVER
$(REROUTE)/libowner-lookups.so: OWN := -DOWN_LOOKUPS
$(REROUTE)/libowner-hidden.so:  OWN := -DOWN_LOOKUPS -DOWN_HIDDEN

# The same of libraries that keep the program's memory themselves.
SAVERS := $(addprefix $(REROUTE)/libsaver-,runtime.so driver.so arena.so)
$(REROUTE)/libsaver-runtime.so: OWN := -DSAVES_RUNTIME
$(REROUTE)/libsaver-driver.so:  OWN := -DSAVES_DRIVER
$(REROUTE)/libsaver-arena.so:   OWN := -DSAVES_ARENA

$(OWNERS): tests/reroute/owner.c
$(SAVERS): tests/reroute/saver.c
$(OWNERS) $(SAVERS):
	@mkdir -p $(@D)
	$(say) CC $@
	$(Q)$(CC) $(filter-out -fsanitize=% -fno-sanitize-recover=%,$(BASEFLAGS)) $(CPPFLAGS) $(CFLAGS) $(CUDAINC) $(OWN) \
	  -fPIC -shared -Wl,-Bsymbolic -o $@ $< -ldl

$(REROUTE)/libowned.so: $(REROUTE_OBJ)/owned.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) -shared -o $@ $^ -L$(CUDA_STUBS) -lcudart -lcuda

$(REROUTE)/owned: $(REROUTE_OBJ)/owned_main.o $(REROUTE)/libowned.so
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) -o $@ $< -L$(REROUTE) -l:libowned.so -Wl,--allow-shlib-undefined

$(REROUTE)/owned-linked: $(REROUTE_OBJ)/owned_main.o $(REROUTE)/libowner-runtime.so $(REROUTE)/libowned.so
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) -o $@ $< -Wl,--no-as-needed -L$(REROUTE) -l:libowner-runtime.so -l:libowned.so -Wl,--allow-shlib-undefined

# Of a name with a version, as libraries have.
$(REROUTE)/libplugin.so.1: $(REROUTE_OBJ)/plugin.o | $(CUDA_STUBS)/libcuda.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) -shared -o $@ $^ -L$(CUDA_STUBS) -lcudart

$(REROUTE)/tracer: $(REROUTE_OBJ)/tracer.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^

REROUTE_TESTS := $(addprefix $(REROUTE)/test_,traps fixes fixes_all shared differ differ_all differ_long asked behind owners patched captures captures_all captures_long places thrash thrash_all thrash_long)

$(REROUTE_TESTS): $(REROUTE)/%: $(REROUTE_OBJ)/%.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)

TESTS      += $(addprefix $(REROUTE)/test_,traps fixes shared differ asked behind owners patched captures places thrash)
TESTS_ALL  += $(REROUTE)/test_fixes_all $(REROUTE)/test_differ_all $(REROUTE)/test_captures_all $(REROUTE)/test_thrash_all
TESTS_LONG += $(REROUTE)/test_differ_long $(REROUTE)/test_captures_long $(REROUTE)/test_thrash_long
NOT_ASAN   += tests/reroute/test_traps tests/reroute/test_fixes tests/reroute/test_shared tests/reroute/test_differ tests/reroute/test_asked tests/reroute/test_behind tests/reroute/test_owners tests/reroute/test_patched tests/reroute/test_captures tests/reroute/test_places tests/reroute/test_thrash
NOT_TSAN   += tests/reroute/test_traps tests/reroute/test_fixes tests/reroute/test_shared tests/reroute/test_differ tests/reroute/test_asked tests/reroute/test_behind tests/reroute/test_owners tests/reroute/test_patched tests/reroute/test_captures tests/reroute/test_places tests/reroute/test_thrash
SAME_PLAIN += $(REROUTE_OBJ)/kernels.o
$(REROUTE_TESTS): | $(addprefix $(REROUTE)/,trap differ subject capturer thrash behind patched placed tracer libplugin.so.1 libinterposer.so owned owned-linked saved) $(OWNERS) $(SAVERS)
NOT_AROUND += $(REROUTE_TESTS:$(O)/%=%)

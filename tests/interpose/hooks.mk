# The hooks over fake CUDA libraries: table, extractors, pointer map, look-ups. The hooks' objects are
# linked into the test, with hooks_rig.c in the place of the loader's side.

HOOK_FAKES  := libcuda.so.1 libcudart.so.11.0 libcudart.so.12 libcudart.so.13
HOOK_SRC    := $(filter-out %/engine.c interpose/record/options.c interpose/reroute/options.c interpose/reroute/owners.c,$(sort $(wildcard $(patsubst %,interpose/%/*.c,table record reroute staging) interpose/record/*.S)))
HOOK_OBJS   := $(call objs,$(HOOK_SRC) interpose/elf/bank.c interpose/process/mode.c interpose/process/own_threads.c interpose/process/part.c interpose/process/recording.c interpose/process/tools.c) $(call objs,core/base/bias.c) $(sort $(CORE_TRACE_WRITER_OBJS) $(CORE_TRACE_READER_OBJS))
HOOK_RIG    := $(call objs,tests/interpose/hooks_rig.c)
HOOK_TESTS  := $(addprefix $(O)/tests/interpose/,test_hooks test_hooks_lookups test_hooks_table test_access test_race)
POINT_TEST  := $(O)/tests/interpose/test_hooks_pointers
BLOCK_CACHE_TEST  := $(O)/tests/interpose/test_block_cache

EXTRA_tests/interpose/test_race.c          := $(CUDAINC)
EXTRA_tests/interpose/test_hooks.c         := $(CUDAINC)
EXTRA_tests/interpose/test_access.c        := $(CUDAINC)
EXTRA_tests/interpose/test_hooks_lookups.c := $(CUDAINC)
EXTRA_tests/interpose/test_hooks_table.c   := $(CUDAINC)

# The linter reads it as the driver.
EXTRA_tests/interpose/fake_cuda.c = -DFAKE_DRIVER
FAKE = $(if $(filter libcuda.%,$(@F)),-DFAKE_DRIVER,-DFAKE_RUNTIME=$(word 3,$(subst ., ,$(@F))))

$(addprefix $(O)/tests/interpose/fake/,$(HOOK_FAKES)): tests/interpose/fake_cuda.c tests/interpose/fake_symbols.c tests/interpose/fake_cuda.h interpose/table/hooks.gen.h
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(BASEFLAGS) $(CPPFLAGS) $(CFLAGS) $(FAKE) -shared $(LDSAN) -Wl,-soname,$(@F) -MF $@.d -o $@ $(filter %.c,$^)

$(HOOK_TESTS): $(O)/tests/interpose/%: $(OBJ)/tests/interpose/%.o $(HOOK_RIG) $(HOOK_OBJS) interpose/exports.map | $(addprefix $(O)/tests/interpose/fake/,$(HOOK_FAKES)) $(SIM)/libcuda.so.1
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -Wl,--version-script,interpose/exports.map -o $@ $(filter %.o,$^) $(CHECK_LIBS) -ldl -pthread

$(POINT_TEST): $(call objs,tests/interpose/test_hooks_pointers.c interpose/record/pointers.c interpose/record/hash_table.c)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) -pthread

# The cache of whole blocks, on the scripted device of the allocator's suites.
$(BLOCK_CACHE_TEST): $(call objs,tests/interpose/test_block_cache.c interpose/reroute/block_cache.c core/base/bias.c tests/memory/fake.c tests/memory/rig.c) $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) -lm -pthread

TESTS += $(HOOK_TESTS) $(POINT_TEST) $(BLOCK_CACHE_TEST)

tests-hooks: $(HOOK_TESTS) $(POINT_TEST) $(BLOCK_CACHE_TEST)
.PHONY: tests-hooks

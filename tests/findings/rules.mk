# Findings: a program that commits each waste, and one that looks like it, under the built weir.

WASTER      := $(O)/tests/findings/waster
WASTER_OBJS := $(call objs,$(sort $(wildcard tests/victims/findings/*.c))) $(E2E_OBJ)/kernels.o

$(WASTER): $(WASTER_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -lcuda -lpthread

# The same, by the driver's functions, by graphs, and as a library, for by_python.py.
WASTER_WAYS := $(addprefix $(O)/tests/findings/waster_,driver graph) $(O)/tests/findings/waster.so

define waster_way
$(OBJ)/tests/findings/by_$(1)/%.o: tests/victims/findings/%.c | check-tools
	@mkdir -p $$(@D)
	$$(say) CC "$$< ($(1))"
	$$(Q)$$(CC) $$(BASEFLAGS) $$(CPPFLAGS) $$(CFLAGS) $$(EXTRA_tests) -include tests/victims/findings/by_$(1).h -c $$< -o $$@

$(O)/tests/findings/waster_$(1): $(WASTER_OBJS:$(OBJ)/tests/victims/findings/%=$(OBJ)/tests/findings/by_$(1)/%)
	@mkdir -p $$(@D)
	$$(say) LD $$@
	$$(Q)$$(E2E_LINK) $$^ -o $$@ -L$$(CUDA_STUBS) -lcudart -lcuda -lpthread
endef

$(foreach way,driver graph,$(eval $(call waster_way,$(way))))

$(O)/tests/findings/waster.so: $(WASTER_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) -shared $^ -o $@ -L$(CUDA_STUBS) -lcudart -lcuda -lpthread

TRIAL := $(O)/tests/findings/trial

$(TRIAL): $(call objs,tests/victims/trial/trial.c) $(E2E_OBJ)/kernels.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -lcuda -lpthread

FINDINGS_TESTS := $(addprefix $(O)/tests/findings/test_,findings innocents rules savings sources trial variants)

$(FINDINGS_TESTS): $(O)/tests/findings/%: $(OBJ)/tests/findings/%.o $(OBJ)/tests/tools/command.o | $(WASTER) $(WASTER_WAYS) $(TRIAL)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3 jansson)

# Which read what is found in runs of waster.
$(addprefix $(O)/tests/findings/test_,findings innocents variants): $(OBJ)/tests/findings/found.o

TESTS     += $(filter-out %/test_variants,$(FINDINGS_TESTS))
TESTS_ALL += $(O)/tests/findings/test_variants
NOT_ASAN += $(FINDINGS_TESTS:$(O)/%=%)
NOT_TSAN += $(FINDINGS_TESTS:$(O)/%=%)

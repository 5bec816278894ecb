# Findings: a program that commits each waste, and one that looks like it, under the built weir.

WASTER      := $(O)/tests/findings/waster
WASTER_OBJS := $(call objs,$(sort $(wildcard tests/victims/findings/*.c))) $(E2E_OBJ)/kernels.o

$(WASTER): $(WASTER_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -lcuda -lpthread

TRIAL := $(O)/tests/findings/trial

$(TRIAL): $(call objs,tests/victims/trial/trial.c) $(E2E_OBJ)/kernels.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -lcuda -lpthread

FINDINGS_TESTS := $(addprefix $(O)/tests/findings/test_,findings innocents rules savings sources trial)

$(FINDINGS_TESTS): $(O)/tests/findings/%: $(OBJ)/tests/findings/%.o $(OBJ)/tests/tools/command.o | $(WASTER) $(TRIAL)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3 jansson)

# Which read what is found in runs of waster.
$(addprefix $(O)/tests/findings/test_,findings innocents): $(OBJ)/tests/findings/found.o

TESTS    += $(FINDINGS_TESTS)
NOT_ASAN += $(FINDINGS_TESTS:$(O)/%=%)
NOT_TSAN += $(FINDINGS_TESTS:$(O)/%=%)

# Findings: a program that commits each waste, and one that looks like it, under the built weir.

WASTER      := $(O)/tests/findings/waster
WASTER_OBJS := $(call objs,$(sort $(wildcard tests/victims/findings/*.c))) $(E2E_OBJ)/kernels.o

$(WASTER): $(WASTER_OBJS)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(E2E_LINK) $^ -o $@ -L$(CUDA_STUBS) -lcudart -lcuda -lpthread

$(O)/tests/findings/test_findings: $(OBJ)/tests/findings/test_findings.o $(OBJ)/tests/tools/command.o | $(WASTER)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3 jansson)

TESTS    += $(O)/tests/findings/test_findings
NOT_ASAN += tests/findings/test_findings
NOT_TSAN += tests/findings/test_findings

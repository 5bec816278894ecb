# Programs that were built with a sanitizer, under the preload library; the suite builds them itself.
SANITIZERS_TEST := $(O)/tests/interpose/test_sanitizers

EXTRA_tests/interpose/test_sanitizers.c  := '-DCUDA_FLAGS="$(CUDAINC)"'
EXTRA_tests/victims/sanitizers/threads.c := $(CUDAINC)

$(SANITIZERS_TEST): $(OBJ)/tests/interpose/test_sanitizers.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)

# A sanitizer build has the software device with a sanitizer of its own.
TESTS    += $(SANITIZERS_TEST)
NOT_ASAN += tests/interpose/test_sanitizers
NOT_TSAN += tests/interpose/test_sanitizers
NOT_AROUND += tests/interpose/test_sanitizers

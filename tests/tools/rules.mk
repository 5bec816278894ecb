# Suites of the weir command. They run build/bin/weir itself, on the software device.

TOOLS_TESTS := $(addprefix $(O)/tests/tools/test_,command run)

$(TOOLS_TESTS): $(O)/tests/tools/test_%: $(OBJ)/tests/tools/test_%.o $(OBJ)/tests/tools/command.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3) -lutil

$(O)/tests/tools/victim: $(OBJ)/tests/tools/victim.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) -o $@ $^ -ldl

EXTRA_tests/tools/victim.c = -Wno-pedantic

TESTS      += $(TOOLS_TESTS)
TEST_TOOLS += $(O)/tests/tools/victim

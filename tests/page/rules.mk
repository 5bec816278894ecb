# The page of weir report --html in Chromium (page.py drives it). test-all only: make deps leaves Chromium out, which is
# 350 MiB installed.

PAGE_TEST := $(O)/tests/page/test_browser

$(PAGE_TEST): $(OBJ)/tests/page/test_browser.o $(OBJ)/tests/tools/command.o | $(O)/tests/e2e/graph_caller $(O)/tests/e2e/random_caller
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^ $(CHECK_LIBS) $(call pkg_libs,sqlite3)

TESTS_ALL    += $(PAGE_TEST)
NOT_ASAN     += tests/page/test_browser
NOT_TSAN     += tests/page/test_browser
AROUND_AGAIN += tests/page/test_browser

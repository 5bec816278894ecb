# What copies carry, as hashes: where the machine has libxxhash's header.
ifneq ($(XXHASH),)
CONTENT_TEST := $(O)/tests/interpose/test_content

$(CONTENT_TEST): $(call objs,tests/interpose/test_content.c interpose/content/reading.c interpose/content/spans.c core/base/clock.c)
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) -pthread

TESTS += $(CONTENT_TEST)
endif

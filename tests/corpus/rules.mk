# tests/corpus: the traces weir replay is tried on, made by a program; and the table of them.

CORPUS := $(addprefix $(O)/corpus/,$(addsuffix .csv,transformer checkpoint sharded images serving graphs side-stream threads pipeline))

$(O)/tests/corpus/generate: $(OBJ)/tests/corpus/generate.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $^

$(CORPUS) &: $(O)/tests/corpus/generate
	@mkdir -p $(O)/corpus
	$(say) GEN $(O)/corpus
	$(Q)$< $(O)/corpus
	@touch $(CORPUS)

corpus: $(CORPUS)
TEST_TOOLS += $(CORPUS)

replay-table: $(BIN)/weir $(CORPUS) ## peak reserved / peak live of every policy on every trace of the corpus
	@tools/scripts/replay-table.sh $(BIN)/weir $(CORPUS)

.PHONY: corpus replay-table

$(O)/tests/corpus/test_corpus: $(call objs,tests/corpus/test_corpus.c) \
    $(sort $(REPLAY_OBJS) $(REPORTS_OBJS) $(CORE_TRACE_READER_OBJS))
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(LDSAN) $(LDFLAGS) -o $@ $^ $(CHECK_LIBS) $(REPORTS_LIBS) -pthread

TESTS      += $(O)/tests/corpus/test_corpus
ONE_THREAD += tests/corpus/test_corpus

# tests/io: tensors in files.

IO_TEST_OBJS := $(sort $(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS) $(CORE_TRACE_WRITER_OBJS) $(CORE_TRACE_READER_OBJS)) \
                $(call objs,tests/io/io.c tests/core/support.c tests/memory/fake.c)
IO_TESTS     := $(addprefix $(O)/tests/io/,test_json test_npy test_safetensors test_checkpoint test_zip test_shared test_dlpack test_devices)

TESTS          += $(IO_TESTS)
VALGRIND_TESTS += $(IO_TESTS)
ONE_THREAD     += $(addprefix tests/io/,test_json)

IO_WRAP := $(call wrap,malloc calloc realloc strdup posix_memalign)

$(eval $(call one_program,$(O)/tests/io/suites,$(filter-out %/test_devices,$(IO_TESTS)),$(IO_TEST_OBJS),$$(CHECK_LIBS) -lm -ldl -pthread))
$(eval $(call one_program,$(O)/tests/io/suites_devices,$(O)/tests/io/test_devices,$(IO_TEST_OBJS),$$(IO_WRAP) $$(CHECK_LIBS) -lm -ldl -pthread))

$(O)/tests/io/test_numpy: $(OBJ)/tests/io/test_numpy.o $(OBJ)/tests/tools/command.o $(LIB)/libweir.so
	@mkdir -p $(@D)
	$(say) LD $@
	$(Q)$(CC) $(CFLAGS) $(LDSAN) -o $@ $(filter %.o,$^) $(CHECK_LIBS) $(call pkg_libs,sqlite3)

TESTS_ALL += $(O)/tests/io/test_numpy
NOT_ASAN  += tests/io/test_numpy
NOT_TSAN  += tests/io/test_numpy

# Both readers under libFuzzer, for FUZZ_SECONDS; without clang only the seeds are read. The library is built
# for it, in a tree of its own, but for what only calculates: no file's bytes decide where that reads.
FUZZ_TARGETS += fuzz-io
IO_FUZZ      := $(O)/tests/io/fuzz
IO_FUZZ_PLAIN := $(filter $(addprefix $(OBJ)/core/backend/cpu/,kernels% rows% tile% window% gemm% conv% factor%),$(CORE_TENSOR_OBJS))
IO_FUZZ_OBJS := $(sort $(filter-out $(IO_FUZZ_PLAIN),$(CORE_BASE_OBJS) $(CORE_MEMORY_OBJS) $(CORE_TENSOR_OBJS))) $(OBJ)/tests/io/fuzz_io.o

io-fuzz-objs: $(IO_FUZZ_OBJS) $(OBJ)/tests/io/fuzz_alone.o

fuzz-io: $(OBJ)/tests/io/fuzz_io.o $(IO_FUZZ_PLAIN)
	@mkdir -p $(IO_FUZZ)/corpus && tests/io/seeds.py $(IO_FUZZ)/seeds
	@if command -v $(FUZZ_CC) >/dev/null; then \
	  $(MAKE) -s O=$(IO_FUZZ)/tree CC=$(FUZZ_CC) SAN=fuzzer-no-link,address,undefined CPU_LOOP_FLAGS=-O1 CFLAGS="-O1 -g1" io-fuzz-objs && \
	  $(FUZZ_CC) -fsanitize=fuzzer,address,undefined -o $(IO_FUZZ)/fuzz_io $(IO_FUZZ_OBJS:$(O)/%=$(IO_FUZZ)/tree/%) $(IO_FUZZ_PLAIN) -lm -ldl -pthread; \
	else $(MAKE) -s O=$(IO_FUZZ)/tree SAN=address,undefined io-fuzz-objs && \
	  $(CC) -fsanitize=address,undefined -o $(IO_FUZZ)/fuzz_io $(IO_FUZZ_OBJS:$(O)/%=$(IO_FUZZ)/tree/%) \
	  $(IO_FUZZ)/tree/obj/tests/io/fuzz_alone.o $(IO_FUZZ_PLAIN) -lm -ldl -pthread; fi
	@export ASAN_OPTIONS=allocator_may_return_null=1; $(IO_FUZZ)/fuzz_io $(IO_FUZZ)/seeds/* >/dev/null && \
	if command -v $(FUZZ_CC) >/dev/null; then cd $(IO_FUZZ) && \
	  ./fuzz_io -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -verbosity=0 corpus seeds; \
	else echo "fuzz-io: $(FUZZ_CC) is not installed (apt-get install clang); only the seeds were read" >&2; exit 1; fi
.PHONY: fuzz-io io-fuzz-objs

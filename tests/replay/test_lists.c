/* test_lists.c: lists of operations: their rules, their readers, what a run says of them, and their
 * exports. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/replay/rig.h"
#include "tests/reports/synth.h"
#include "tools/replay/export.h"
#include "tools/replay/read.h"

static rp_ops list;

static void two_heaps(void)
{
  for (uint16_t i = 0, heap; i < 2; i++) {
    ck_assert_int_eq(rp_ops_heap(&list, i, &heap), WEIR_OK);
    ck_assert_uint_eq(heap, i);
  }
}

static void clear(void)
{
  rp_ops_clear(&list);
  synth_clean();
}

static const char *write_list_file(const char *name, const void *bytes, size_t count)
{
  static char path[512];
  (void)snprintf(path, sizeof path, "%s/%s", synth_dir(), name);
  FILE *f = fopen(path, "w");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(bytes, 1, count, f), count);
  ck_assert_int_eq(fclose(f), 0);
  return path;
}

static const char *put_text(const char *name, const char *text)
{
  return write_list_file(name, text, strlen(text));
}

static void refused(const char *path, weir_status status, const char *words)
{
  ck_assert_int_eq(rp_read(&list, path), status);
  ck_assert_msg(strstr(weir_error_message(), words) != NULL, "%s", weir_error_message());
  ck_assert_uint_eq(list.count, 0);
}

static void is_op(size_t i, int kind, uint32_t block, uint64_t bytes, uint64_t stream)
{
  ck_assert_uint_lt(i, list.count);
  const rp_op *op = &list.op[i];
  ck_assert_msg(op->kind == kind && op->block == block && op->bytes == bytes &&
                    op->stream == stream,
                "operation %zu: kind %d, block %u, %llu bytes, stream %llu", i, op->kind, op->block,
                (unsigned long long)op->bytes, (unsigned long long)op->stream);
}

/* ---- rules ----------------------------------------------------------------------------------- */

START_TEST(a_free_names_its_allocation_and_strangers_are_counted)
{
  two_heaps();
  ck_assert_int_eq(rp_ops_free(&list, (rp_op){.address = 16}), WEIR_OK);
  ck_assert_int_eq(rp_ops_alloc(&list, (rp_op){.address = 16, .bytes = 5, .time = 9}), WEIR_OK);
  ck_assert_int_eq(rp_ops_alloc(&list, (rp_op){.address = 0, .bytes = 5}), WEIR_OK);
  ck_assert_int_eq(rp_ops_alloc(&list, (rp_op){.address = 32, .bytes = 0}), WEIR_OK);
  ck_assert_int_eq(rp_ops_free(&list, (rp_op){.address = 16, .stream = 7, .time = 4}), WEIR_OK);
  ck_assert_int_eq(rp_ops_free(&list, (rp_op){.address = 16}), WEIR_OK);
  ck_assert_int_eq(rp_ops_free(&list, (rp_op){.address = 0}), WEIR_OK);
  ck_assert_uint_eq(list.count, 2);
  is_op(0, RP_ALLOC, 0, 5, 0);
  is_op(1, RP_FREE, 0, 5, 7);
  ck_assert_uint_eq(list.unmatched, 2);
  ck_assert_uint_eq(list.op[1].time, 0); /* time never goes back */
}
END_TEST

START_TEST(an_address_handed_out_twice_was_freed_between)
{
  rp_op op = {.address = 16, .bytes = 5};
  two_heaps();
  ck_assert_int_eq(rp_ops_alloc(&list, op), WEIR_OK);
  op.bytes = 6;
  ck_assert_int_eq(rp_ops_alloc(&list, op), WEIR_OK);
  op.heap = 1; /* an address is another block on another heap, whatever the two make together */
  for (op.address = 16; op.address <= 17; op.address++)
    ck_assert_int_eq(rp_ops_alloc(&list, op), WEIR_OK);
  ck_assert_uint_eq(list.count, 5);
  is_op(1, RP_FREE, 0, 5, 0);
  is_op(2, RP_ALLOC, 1, 6, 0);
  is_op(3, RP_ALLOC, 2, 6, 0);
  ck_assert_uint_eq(list.replaced, 1);
}
END_TEST

START_TEST(impossible_sizes_and_too_many_heaps_are_damage)
{
  uint16_t heap;
  rp_op op = {.address = 16, .bytes = RP_BYTES_MAX + 1};
  two_heaps();
  ck_assert_int_eq(rp_ops_alloc(&list, op), WEIR_ECORRUPT);
  for (uint64_t i = 2; i < RP_HEAPS_MAX; i++)
    ck_assert_int_eq(rp_ops_heap(&list, i * 1000, &heap), WEIR_OK);
  ck_assert_int_eq(rp_ops_heap(&list, 2000, &heap), WEIR_OK);
  ck_assert_uint_eq(heap, 2);
  ck_assert_int_eq(rp_ops_heap(&list, 1000, &heap), WEIR_ECORRUPT);
}
END_TEST

START_TEST(blocks_from_before_come_first_and_are_freed_where_they_were)
{
  two_heaps();
  ck_assert_int_eq(rp_ops_alloc(&list, (rp_op){.address = 16, .bytes = 5, .time = 9}), WEIR_OK);
  ck_assert_int_eq(rp_ops_free(&list, (rp_op){.address = 32, .bytes = 7, .stream = 3}), WEIR_OK);
  ck_assert_int_eq(rp_ops_free(&list, (rp_op){.address = 32, .bytes = 7}), WEIR_OK); /* again */
  ck_assert_int_eq(rp_ops_free(&list, (rp_op){.address = 16}), WEIR_OK);
  ck_assert_int_eq(rp_ops_alloc(&list, (rp_op){.address = 48, .bytes = 6}), WEIR_OK);
  ck_assert_int_eq(rp_ops_hold(&list, (rp_op){.address = 48, .bytes = 6}), WEIR_OK);
  ck_assert_int_eq(rp_ops_hold(&list, (rp_op){.address = 64, .bytes = 8}), WEIR_OK);
  ck_assert_int_eq(rp_ops_hold(&list, (rp_op){.address = 64, .bytes = 8}), WEIR_OK);
  ck_assert_int_eq(rp_ops_hold(&list, (rp_op){.address = 16, .bytes = 9}), WEIR_OK);
  ck_assert_int_eq(rp_ops_finish(&list), WEIR_OK);
  ck_assert_uint_eq(list.count, 7);
  ck_assert_uint_eq(list.blocks, 5);
  ck_assert_uint_eq(list.held_count, 2);
  ck_assert_uint_eq(list.held_bytes, 15);
  ck_assert_uint_eq(list.unmatched, 1);
  is_op(0, RP_ALLOC, 0, 7, 3);
  is_op(1, RP_ALLOC, 1, 8, 0);
  is_op(2, RP_ALLOC, 2, 5, 0);
  is_op(3, RP_FREE, 0, 7, 3);
  is_op(4, RP_FREE, 2, 5, 0);
  is_op(5, RP_ALLOC, 3, 6, 0);
  is_op(6, RP_ALLOC, 4, 9, 0); /* where another was freed: it came after the record */
}
END_TEST

/* ---- RMM ------------------------------------------------------------------------------------- */

#define HEAD "Thread,Time,Action,Pointer,Size,Stream\n"

START_TEST(an_rmm_log_is_read)
{
  const char *path = put_text("log.csv", HEAD "7,23:59:59.999998,allocate,0x7f00,1000,0x0\n"
                                              "8,23:59:59:999999,allocate,0x8f00,2000,0x55aa\r\n"
                                              "7,00:00:00.000001,allocate failure,(nil),99999,0x0\n"
                                              "\n"
                                              "7,00:00:00.000003,free,0x7f00,1000,0x1\n");
  ck_assert_int_eq(rp_read(&list, path), WEIR_OK);
  ck_assert_uint_eq(list.count, 4);
  is_op(0, RP_ALLOC, 0, 1000, 0);
  is_op(1, RP_ALLOC, 1, 2000, 0x55aa);
  is_op(2, RP_REQUEST, 0, 99999, 0);
  is_op(3, RP_FREE, 0, 1000, 0); /* 1 is the legacy default stream, as 0 is */
  ck_assert_uint_eq(list.op[0].thread, 7);
  ck_assert_uint_eq(list.op[3].time, 5000); /* over midnight */
  ck_assert_uint_eq(list.heaps, 1);
}
END_TEST

START_TEST(an_rmm_log_may_have_its_columns_in_another_order)
{
  const char *path = put_text("log.csv", "Thread,Stream,More,Size,Pointer,Action,Time\n"
                                         "1,0x3,x,64,0x100,allocate,1:02:03.5\n");
  ck_assert_int_eq(rp_read(&list, path), WEIR_OK);
  is_op(0, RP_ALLOC, 0, 64, 3);
}
END_TEST

START_TEST(a_bad_line_is_named)
{
  static const char *const lines[] = {"1,00:00:00.0,allocate,0x1,64\n",
                                      "1,00:00:00.0,allocate,0x1,-64,0x0\n",
                                      "1,00:00:00.0,allocate,0x1,6x4,0x0\n",
                                      "1,00:00:00.0,allocate,zzz,64,0x0\n",
                                      "1,00:00:00.0,allocate,0x1,99999999999999999999,0x0\n",
                                      "1,00:00,allocate,0x1,64,0x0\n",
                                      "1,aa:00:00,allocate,0x1,64,0x0\n",
                                      "1,00:00:99.0,allocate,0x1,64,0x0\n",
                                      "x,00:00:00.0,allocate,0x1,64,0x0\n",
                                      ",,allocate,,,\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    char text[256];
    (void)snprintf(text, sizeof text, "%s1,00:00:00.0,allocate,0x9,64,0x0\n%s", HEAD, lines[i]);
    refused(put_text("log.csv", text), WEIR_ECORRUPT, "line 3");
  }
  char wide[3000] = HEAD;
  memset(wide + strlen(HEAD), '1', sizeof wide - strlen(HEAD) - 1);
  wide[sizeof wide - 1] = 0;
  refused(put_text("log.csv", wide), WEIR_ECORRUPT, "line 2");
  refused(put_text("log.csv", "Thread,Time\n"), WEIR_ECORRUPT, "first line");
  refused(put_text("log.csv", HEAD "1,00:00:00.0,allocate,0x1,999999999999999,0x0\n"),
          WEIR_ECORRUPT, "999999999999999 bytes");
}
END_TEST

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(a_pytorch_snapshot_is_read)
{
  const char *path = put_text(
      "s.json",
      " {\"segments\": [], \"device_traces\": [[], [\n"
      "{\"action\": \"segment_alloc\", \"addr\": 4096, \"size\": 2097152, \"stream\": 0},\n"
      "{\"action\": \"alloc\", \"addr\": 4096, \"size\": 700, \"stream\": 3, \"time_us\": 50,"
      " \"frames\": [{\"name\": \"f\", \"filename\": \"x.py\", \"line\": 3}]},\n"
      "{\"action\": \"free_requested\", \"addr\": 4096, \"size\": 700, \"stream\": 3,"
      " \"time_us\": 52},\n"
      "{\"action\": \"free_completed\", \"addr\": 4096, \"size\": 700, \"stream\": 3}],\n"
      "[{\"action\": \"alloc\", \"addr\": 4096, \"size\": 80, \"stream\": 0}]]}");
  ck_assert_int_eq(rp_read(&list, path), WEIR_OK);
  ck_assert_uint_eq(list.count, 3);
  is_op(0, RP_ALLOC, 0, 700, 3);
  is_op(1, RP_FREE, 0, 700, 3);
  is_op(2, RP_ALLOC, 1, 80, 0);
  ck_assert_uint_eq(list.op[1].time, 2000);
  ck_assert_uint_eq(list.heaps, 2);
  ck_assert_uint_ne(list.op[0].heap, list.op[2].heap);
}
END_TEST

START_TEST(devices_of_a_snapshot_are_side_by_side)
{
  rp_result r;
  const char *path = put_text(
      "s.json",
      "{\"segments\": [], \"device_traces\": [["
      "{\"action\": \"alloc\", \"addr\": 4096, \"size\": 700, \"stream\": 0, \"time_us\": 1},"
      "{\"action\": \"free_requested\", \"addr\": 4096, \"size\": 700, \"stream\": 0,"
      " \"time_us\": 9}], ["
      "{\"action\": \"alloc\", \"addr\": 4096, \"size\": 80, \"stream\": 0, \"time_us\": 5}]]}");
  ck_assert_int_eq(rp_read(&list, path), WEIR_OK);
  ck_assert_uint_eq(list.count, 3);
  is_op(1, RP_ALLOC, 1, 80, 0);
  ck_assert_uint_eq(list.op[1].time, 4000);
  ck_assert_int_eq(rp_replay(&r, &list, &rp_malloc, &(rp_options){0}), WEIR_OK);
  ck_assert_uint_eq(r.peak_live, 780);
}
END_TEST

/* A block that is older than the record, one freed in it that is, one of the record, one that waits
 * for its stream; and the request that ended the program. The second segment is of before 2.1. */
#define OLDER                                                                                      \
  "{\"segments\": [{\"device\": 0, \"address\": 4096, \"stream\": 5, \"blocks\": ["                \
  "{\"address\": 4096, \"size\": 1024, \"requested_size\": 1000, \"state\": "                      \
  "\"active_allocated\"},"                                                                         \
  "{\"address\": 5120, \"size\": 512, \"state\": \"active_pending_free\"},"                        \
  "{\"address\": 8192, \"size\": 512, \"state\": \"active_allocated\"}]},"                         \
  "{\"device\": 0, \"address\": 65536, \"stream\": 0, \"blocks\": ["                               \
  "{\"size\": 512, \"state\": \"inactive\"}, {\"size\": 300, \"state\": \"active_allocated\"}]}]," \
  "\"device_traces\": [["                                                                          \
  "{\"action\": \"free_requested\", \"addr\": 16384, \"size\": 70, \"stream\": 0, \"time_us\": "   \
  "4},"                                                                                            \
  "{\"action\": \"alloc\", \"addr\": 8192, \"size\": 500, \"stream\": 0, \"time_us\": 5},"         \
  "{\"action\": \"oom\", \"size\": 9000, \"device_free\": 77, \"stream\": 0, \"time_us\": 6}]]}"

static void check_older(void)
{
  ck_assert_uint_eq(list.count, 6);
  is_op(0, RP_ALLOC, 0, 70, 0);
  is_op(1, RP_ALLOC, 1, 1000, 5);
  is_op(2, RP_ALLOC, 2, 300, 0);
  ck_assert_uint_eq(list.op[2].address, 65536 + 512);
  is_op(3, RP_FREE, 0, 70, 0);
  is_op(4, RP_ALLOC, 3, 500, 0);
  is_op(5, RP_REQUEST, 0, 9000, 0);
  ck_assert_uint_eq(list.op[5].address, 77);
  ck_assert_uint_eq(list.held_bytes, 1370);
  ck_assert_uint_eq(list.requests, 1);
}

START_TEST(a_snapshot_knows_older_blocks_and_requests_that_failed)
{
  ck_assert_msg(rp_read(&list, put_text("s.json", OLDER)) == WEIR_OK, "%s", weir_error_message());
  check_older();
}
END_TEST

START_TEST(pytorchs_own_pickle_is_read_in_every_protocol)
{
  char command[2048], path[512];
  (void)snprintf(path, sizeof path, "%s", put_text("s.json", OLDER));
  for (int protocol = 2; protocol <= 5; protocol++) {
    (void)snprintf(command, sizeof command,
                   "python3 -c 'import json, pickle; pickle.dump(json.load(open(\"%s\")),"
                   " open(\"%s.pickle\", \"wb\"), %d)'",
                   path, path, protocol);
    ck_assert_int_eq(system(command), 0);
    (void)snprintf(command, sizeof command, "%s.pickle", path);
    ck_assert_msg(rp_read(&list, command) == WEIR_OK, "%s", weir_error_message());
    check_older();
    rp_ops_clear(&list);
  }
}
END_TEST

START_TEST(a_pickle_that_is_no_snapshot_is_refused_with_nothing_called)
{
#define PICKLE(bytes) write_list_file("s.pickle", bytes, sizeof bytes - 1)
  refused(PICKLE("\x80\x02}."), WEIR_ECORRUPT, "no device_traces");
  refused(PICKLE("\x80\x02"
                 "cposix\nsystem\n."),
          WEIR_ENOTSUP, "posix.system");
  refused(PICKLE("\x80\x02"
                 "K\x01Q."),
          WEIR_ENOTSUP, "another file");
  refused(PICKLE("\x80\x04\x95"), WEIR_ECORRUPT, "too early");
  /* One entry, 400 times in a list that is there 100 times: 40,000 entries of 1 KiB. */
  char bomb[2048] = "\x80\x02}U\x0d"
                    "device_traces](]q\x01(}U\x06"
                    "actionU\x01xsq\x02";
  size_t n = 39;
  for (char memo = 2; memo > 0; memo--) {
    for (int i = 0; i < (memo == 2 ? 400 : 100); i++) {
      bomb[n++] = 'h';
      bomb[n++] = memo;
    }
    bomb[n++] = 'e';
  }
  bomb[n++] = 's';
  bomb[n++] = '.';
  refused(write_list_file("s.pickle", bomb, n), WEIR_ECORRUPT, "more entries than");
#undef PICKLE
}
END_TEST

START_TEST(a_bad_snapshot_is_refused_with_the_reason)
{
  refused(put_text("s.json", "{\"segments\": []}"), WEIR_ECORRUPT, "no device_traces");
  refused(put_text("s.json", "{\"device_traces\": 3}"), WEIR_ECORRUPT, "no device_traces");
  refused(put_text("s.json", "{\"device_traces\": [[7]]}"), WEIR_ECORRUPT, "without action");
  refused(put_text("s.json", "{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": \"x\"}]]}"),
          WEIR_ECORRUPT, "without addr or size");
  refused(put_text("s.json", "{\"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1,"
                             " \"size\": -5}]]}"),
          WEIR_ECORRUPT, "bytes");
  refused(put_text("s.json", "{\"device_traces\": [["), WEIR_ECORRUPT, "line 1");
}
END_TEST

START_TEST(what_is_none_of_the_kinds_is_said)
{
  refused("/nonexistent/file", WEIR_ENOENT, "/nonexistent/file");
  refused(put_text("t", "hello"), WEIR_ECORRUPT, "no trace, no spool");
  refused(put_text("t", ""), WEIR_ECORRUPT, "no trace, no spool");
  refused(synth_dir(), WEIR_ECORRUPT, "regular file");
}
END_TEST

/* Whatever a byte becomes: a list that keeps its rules and can be replayed, or a reason. */
static void mutate(const char *name, const char *text, size_t length)
{
  char *copy = malloc(length);
  ck_assert_ptr_nonnull(copy);
  memcpy(copy, text, length);
  for (size_t i = 0; i < length; i++) {
    static const char bytes[] = {0, ',', '9', '"', '[', '-', '\xff'};
    char was = copy[i];
    copy[i] = bytes[i % sizeof bytes];
    rp_ops ops = {0};
    rp_result result;
    if (rp_read(&ops, write_list_file(name, copy, i % 3 ? length : i)) == WEIR_OK)
      for (const rp_policy *const *p = rp_policies; *p; p++)
        ck_assert_int_eq(rp_replay(&result, &ops, *p, &(rp_options){0}), WEIR_OK);
    else
      ck_assert_str_ne(weir_error_message(), "");
    rp_ops_clear(&ops);
    copy[i] = was;
  }
  free(copy);
}

START_TEST(any_changed_byte_is_survived)
{
  rig_random(&list, 5, 12, 3, 1);
  for (const rp_format *f = rp_formats; f->name; f++) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    ck_assert_int_eq(f->write(out, &list, 0), WEIR_OK);
    ck_assert_int_eq(fclose(out), 0);
    mutate(f->name, text, bytes);
    free(text);
  }
}
END_TEST

/* ---- traces of our own ----------------------------------------------------------------------- */

static void make_spool(void)
{
  synth_open(synth_dir());
  synth_alloc(0, 100, 10, 0x1000, 640, 0, WEIR_MEM_DEVICE);
  synth_alloc(0, 200, 10, 0x2000, 650, 1, WEIR_MEM_DEVICE);
  synth_alloc(0, 300, 10, 0x3000, 660, (int)WEIR_DEVICE_NONE, WEIR_MEM_PINNED);
  synth_alloc(0, 350, 10, 0x4000, 670, 0, WEIR_MEM_DEVICE);
  synth_free(0, 400, 10, 0x1000);
  synth_event(0, 450, 5,
              (trace_event){.kind = WEIR_EV_ALLOC,
                            .api = synth_api("cudaMallocAsync"),
                            .a = 0x1000,
                            .bytes = 680,
                            .mem = WEIR_MEM_DEVICE,
                            .stream = WEIR_STREAM_LEGACY});
  synth_event(0, 500, 5,
              (trace_event){.kind = WEIR_EV_FREE,
                            .api = synth_api("cudaFreeAsync"),
                            .a = 0x1000,
                            .mem = WEIR_MEM_DEVICE,
                            .stream = 0x77});
  synth_event(0, 600, 5, (trace_event){.kind = WEIR_EV_RESET, .api = synth_api("cudaDeviceReset")});
  synth_event(0, 650, 5,
              (trace_event){.kind = WEIR_EV_ALLOC,
                            .api = synth_api("cudaMalloc"),
                            .status = 2, /* out of memory */
                            .bytes = 690,
                            .mem = WEIR_MEM_DEVICE});
  synth_free(0, 700, 5, 0x9999); /* never seen */
  synth_close();
}

static void check_trace(const char *path)
{
  ck_assert_msg(rp_read(&list, path) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(list.count, 8);
  is_op(0, RP_ALLOC, 0, 640, 0);
  is_op(1, RP_ALLOC, 1, 650, 0);
  is_op(2, RP_ALLOC, 2, 670, 0);
  is_op(3, RP_FREE, 0, 640, 0);
  is_op(4, RP_ALLOC, 3, 680, 0);
  is_op(5, RP_FREE, 3, 680, 0x77);
  is_op(6, RP_FREE, 2, 670, 0); /* device 0 is reset */
  is_op(7, RP_REQUEST, 0, 690, 0);
  ck_assert_uint_eq(list.heaps, 2);
  ck_assert_uint_eq(list.unmatched, 1);
  ck_assert_uint_eq(list.op[1].time, 100);
  rp_ops_clear(&list);
}

START_TEST(a_trace_and_a_spool_are_read)
{
  make_spool();
  const char *spools[] = {synth_spool(), NULL};
  check_trace(spools[0]);
  check_trace(synth_import("t.db", spools));
}
END_TEST

START_TEST(an_unfinished_trace_is_read)
{
  char path[512];
  trace_importer *im;
  uint32_t n;
  make_spool();
  (void)snprintf(path, sizeof path, "%s/live.db", synth_dir());
  ck_assert_int_eq(importer_open(&im, path, NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, &n), WEIR_OK);
  ck_assert_int_eq(importer_poll(im, NULL), WEIR_OK);
  check_trace(path);
  importer_close(im);
}
END_TEST

/* ---- a run ----------------------------------------------------------------------------------- */

static void append_list_op(bool alloc, uint64_t address, uint64_t bytes, uint16_t heap_key,
                           uint64_t time)
{
  rp_op op = {.address = address, .bytes = bytes, .time = time};
  ck_assert_int_eq(rp_ops_heap(&list, heap_key, &op.heap), WEIR_OK);
  ck_assert_int_eq((alloc ? rp_ops_alloc : rp_ops_free)(&list, op), WEIR_OK);
}

START_TEST(heaps_are_added_up_and_failures_left_out)
{
  rp_result r;
  append_list_op(true, 1, 3 * MIB, 0, 0);
  append_list_op(true, 2, 5 * MIB, 1, 1000);
  append_list_op(true, 3, 30 * MIB, 0, 2000); /* does not fit into 20 */
  append_list_op(false, 1, 0, 0, 3000);
  append_list_op(false, 3, 0, 0, 4000);
  append_list_op(true, 4, MIB, 0, 5000);
  rp_options o = {.capacity = 20 * MIB};
  ck_assert_int_eq(rp_replay(&r, &list, &rp_pytorch, &o), WEIR_OK);
  ck_assert_uint_eq(r.peak_live, 8 * MIB);
  ck_assert_uint_eq(r.peak_reserved, 40 * MIB);
  ck_assert(rp_ratio(&r) == 5.0);
  ck_assert_uint_eq(r.operations, 4);
  ck_assert_uint_eq(r.failed, 1);
  ck_assert_uint_eq(r.column[0].live, 3 * MIB);
  ck_assert_uint_eq(r.column[RP_COLUMNS / 2].live, 8 * MIB);
  ck_assert_uint_eq(r.column[RP_COLUMNS - 1].live, 6 * MIB);
}
END_TEST

static char *results_as_text(weir_status (*show)(FILE *, const rp_result *, size_t),
                             const rp_result *r, size_t count)
{
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  ck_assert_int_eq(show(out, r, count), WEIR_OK);
  ck_assert_int_eq(fclose(out), 0);
  return text;
}

START_TEST(what_failed_when_it_was_recorded_is_run_where_there_is_a_limit)
{
  rp_result r;
  append_list_op(true, 1, 3 * MIB, 0, 0);
  ck_assert_int_eq(rp_ops_request(&list, (rp_op){.bytes = 30 * MIB, .time = 1}), WEIR_OK);
  append_list_op(true, 2, 5 * MIB, 0, 2);
  ck_assert_int_eq(rp_replay(&r, &list, &rp_malloc, &(rp_options){0}), WEIR_OK);
  ck_assert_uint_eq(r.peak_live, 8 * MIB);
  ck_assert_uint_eq(r.peak_reserved, 10 * MIB); /* in pages of 2 MiB */
  ck_assert_int_eq(rp_replay(&r, &list, &rp_malloc, &(rp_options){.capacity = 20 * MIB}), WEIR_OK);
  ck_assert_uint_eq(r.peak_live, 8 * MIB);
  ck_assert_uint_eq(r.failed, 1);
  ck_assert_int_eq(rp_replay(&r, &list, &rp_malloc, &(rp_options){.capacity = 40 * MIB}), WEIR_OK);
  ck_assert_uint_eq(r.peak_live, 33 * MIB);
  ck_assert_uint_eq(r.peak_reserved, 34 * MIB);
  ck_assert_uint_eq(r.failed, 0);
  ck_assert_uint_eq(r.column[RP_COLUMNS - 1].live, 8 * MIB);
}
END_TEST

START_TEST(json_has_the_documented_members)
{
  static const char *const numbers[] = {
      "peak_live",       "peak_reserved",  "ratio",
      "segment_calls",   "syncs",          "ns_per_op",
      "operations",      "failed",         "stream_waits",
      "events",          "held_before",    "held_before_bytes",
      "failed_requests", "frees_left_out", "largest_failed_request",
      "frees_put_in"};
  rp_result r[2];
  rig_random(&list, 3, 100, 2, 1);
  for (int i = 0; i < 2; i++)
    ck_assert_int_eq(rp_replay(&r[i], &list, rp_policies[i], &(rp_options){0}), WEIR_OK);
  char *text = results_as_text(rp_show_json, r, 2);
  json_t *all = json_loads(text, 0, NULL);
  ck_assert_uint_eq(json_array_size(all), 2);
  for (size_t i = 0; i < 2; i++) {
    json_t *one = json_array_get(all, i);
    ck_assert_str_eq(json_string_value(json_object_get(one, "policy")), rp_policies[i]->name);
    ck_assert_uint_eq(json_object_size(one), 1 + sizeof numbers / sizeof *numbers);
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
      ck_assert_msg(json_is_number(json_object_get(one, numbers[n])), "%s", numbers[n]);
  }
  json_decref(all);
  free(text);
  text = results_as_text(rp_show_json, r, 1);
  all = json_loads(text, 0, NULL);
  ck_assert(json_is_object(all));
  json_decref(all);
  free(text);
  text = results_as_text(rp_show_text, r, 2);
  ck_assert_ptr_nonnull(strstr(text, "\nweir-segments "));
  free(text);
}
END_TEST

START_TEST(a_list_without_operations_is_replayed_and_drawn)
{
  rp_result r;
  char *text = NULL;
  size_t bytes;
  ck_assert_int_eq(rp_replay(&r, &list, &rp_pytorch, &(rp_options){0}), WEIR_OK);
  ck_assert(rp_ratio(&r) == 0);
  FILE *out = open_memstream(&text, &bytes);
  ck_assert_int_eq(rp_show_svg(out, &list, &r, 1), WEIR_OK);
  ck_assert_int_eq(fclose(out), 0);
  ck_assert(!strncmp(text, "<svg ", 5));
  ck_assert_str_eq(text + bytes - 7, "</svg>\n");
  free(text);
}
END_TEST

/* ---- exports --------------------------------------------------------------------------------- */

static void export_and_read(const rp_format *f)
{
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  ck_assert_int_eq(f->write(out, &list, 0), WEIR_OK);
  ck_assert_int_eq(fclose(out), 0);
  rp_ops back = {0};
  ck_assert_msg(rp_read(&back, write_list_file(f->name, text, bytes)) == WEIR_OK, "%s",
                weir_error_message());
  ck_assert_uint_eq(back.count, list.count);
  for (size_t i = 0; i < list.count; i++) {
    const rp_op *a = &list.op[i], *b = &back.op[i];
    ck_assert(a->kind == b->kind && a->block == b->block && a->bytes == b->bytes &&
              a->stream == b->stream && a->address == b->address && a->time == b->time);
  }
  rp_ops_clear(&back);
  free(text);
}

START_TEST(exports_are_read_back_as_they_were)
{
  rig_random(&list, 11, 3000, 5, 1);
  ck_assert_int_eq(rp_ops_request(&list, (rp_op){.bytes = 1000, .time = 4000000}), WEIR_OK);
  for (const rp_format *f = rp_formats; f->name; f++)
    export_and_read(f);
}
END_TEST

START_TEST(a_snapshot_keeps_devices_and_what_is_still_held)
{
  char *text = NULL;
  size_t bytes;
  append_list_op(true, 4096, 2 * MIB, 0, 0);
  append_list_op(true, 8192, 100, 1, 0);
  append_list_op(false, 4096, 0, 0, 0);
  FILE *out = open_memstream(&text, &bytes);
  ck_assert_int_eq(rp_formats[1].write(out, &list, 0), WEIR_OK);
  ck_assert_int_eq(fclose(out), 0);
  json_t *root = json_loads(text, 0, NULL);
  ck_assert_uint_eq(json_array_size(json_object_get(root, "device_traces")), 2);
  json_t *segments = json_object_get(root, "segments"), *one = json_array_get(segments, 0);
  ck_assert_uint_eq(json_array_size(segments), 1);
  ck_assert_int_eq(json_integer_value(json_object_get(one, "address")), 8192);
  ck_assert_str_eq(json_string_value(json_object_get(one, "segment_type")), "small");
  ck_assert_uint_eq(json_array_size(json_object_get(one, "blocks")), 1);
  json_decref(root);
  free(text);
  out = open_memstream(&text, &bytes);
  ck_assert_int_eq(rp_formats[0].write(out, &list, 1), WEIR_OK); /* RMM's log: of one device */
  ck_assert_int_eq(fclose(out), 0);
  ck_assert_ptr_nonnull(strstr(text, ",allocate,0x2000,100,"));
  ck_assert_ptr_null(strstr(text, "0x1000"));
  free(text);
}
END_TEST

START_TEST(an_export_to_a_full_disk_fails)
{
  rig_random(&list, 1, 100, 1, 1);
  for (const rp_format *f = rp_formats; f->name; f++) {
    FILE *out = fopen("/dev/full", "w");
    if (!out) return;
    ck_assert_int_eq(f->write(out, &list, 0), WEIR_EIO);
    (void)fclose(out);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("replay/lists");
  TCase *c = tcase_create("lists");
  tcase_set_timeout(c, 0);
  tcase_add_checked_fixture(c, NULL, clear);
  tcase_add_test(c, a_free_names_its_allocation_and_strangers_are_counted);
  tcase_add_test(c, an_address_handed_out_twice_was_freed_between);
  tcase_add_test(c, impossible_sizes_and_too_many_heaps_are_damage);
  tcase_add_test(c, blocks_from_before_come_first_and_are_freed_where_they_were);
  tcase_add_test(c, an_rmm_log_is_read);
  tcase_add_test(c, an_rmm_log_may_have_its_columns_in_another_order);
  tcase_add_test(c, a_bad_line_is_named);
  tcase_add_test(c, a_pytorch_snapshot_is_read);
  tcase_add_test(c, devices_of_a_snapshot_are_side_by_side);
  tcase_add_test(c, a_snapshot_knows_older_blocks_and_requests_that_failed);
  tcase_add_test(c, pytorchs_own_pickle_is_read_in_every_protocol);
  tcase_add_test(c, a_pickle_that_is_no_snapshot_is_refused_with_nothing_called);
  tcase_add_test(c, a_bad_snapshot_is_refused_with_the_reason);
  tcase_add_test(c, what_is_none_of_the_kinds_is_said);
  tcase_add_test(c, any_changed_byte_is_survived);
  tcase_add_test(c, a_trace_and_a_spool_are_read);
  tcase_add_test(c, an_unfinished_trace_is_read);
  tcase_add_test(c, heaps_are_added_up_and_failures_left_out);
  tcase_add_test(c, what_failed_when_it_was_recorded_is_run_where_there_is_a_limit);
  tcase_add_test(c, json_has_the_documented_members);
  tcase_add_test(c, a_list_without_operations_is_replayed_and_drawn);
  tcase_add_test(c, exports_are_read_back_as_they_were);
  tcase_add_test(c, a_snapshot_keeps_devices_and_what_is_still_held);
  tcase_add_test(c, an_export_to_a_full_disk_fails);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}

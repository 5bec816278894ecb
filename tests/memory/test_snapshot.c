/* test_snapshot.c: a snapshot has the documented structure, and says what is. The checking is done
 * by check_snapshot.py, with Python's own readers of JSON and pickles. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/dump.h"
#include "core/memory/names.h"
#include "core/weir.h"
#include "tests/memory/rig.h"

static fake f[4];
static const weir_device cuda0 = WEIR_CUDA_INIT(0);
static char folder[] = "/tmp/weir-snapshot-XXXXXX";

static void attach(int index, uint64_t capacity, uint64_t page, const char *conf)
{
  fake_init(&f[index], capacity, page);
  f[index].backend.index = index;
  ck_assert_msg(weir_memory_attach(&f[index].backend, conf) == WEIR_OK, "%s", weir_error_message());
}

static void detach(int index)
{
  ck_assert_msg(weir_memory_detach(WEIR_CUDA_AT(index)) == WEIR_OK, "%s", weir_error_message());
  ck_assert(fake_clean(&f[index]));
  fake_fini(&f[index]);
}

static int64_t figure(const char *name)
{
  int64_t value;
  ck_assert_int_eq(weir_memory_stat(&value, cuda0, name), WEIR_OK);
  return value;
}

static void *allocate_for_fake_stream(size_t bytes, int stream)
{
  void *out;
  weir_stream *s;
  ck_assert_int_eq(weir_stream_from_native(&s, cuda0, fake_handle(&f[0], stream)), WEIR_OK);
  ck_assert_msg(weir_malloc(&out, bytes, cuda0, s) == WEIR_OK, "%s", weir_error_message());
  return out;
}

static void record(weir_history_mode mode, weir_history_context context, uint64_t most)
{
  ck_assert_msg(weir_memory_record_history(cuda0, mode, context, most) == WEIR_OK, "%s",
                weir_error_message());
}

/* ---- checking -------------------------------------------------------------------------------- */

static char *path_of(const char *name)
{
  static char path[128];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* Runs the checker over a file; whether it found nothing. */
static bool run_checker(const char *path, const char *figures, char *said, size_t room)
{
  char command[1024];
  const char *source = getenv("WEIR_SOURCE");
  (void)snprintf(command, sizeof command, "python3 -B %s/tests/memory/check_snapshot.py %s %s 2>&1",
                 source ? source : ".", path, figures);
  FILE *p = popen(command, "r");
  ck_assert_ptr_nonnull(p);
  said[fread(said, 1, room - 1, p)] = 0;
  int status = pclose(p);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void check_file(const char *path, const char *figures)
{
  char said[1024];
  ck_assert_msg(run_checker(path, figures, said, sizeof said), "%s %s: %s", path, figures, said);
}

static const char *figures_now(const char *more)
{
  static char text[256];
  (void)snprintf(text, sizeof text, "reserved=%lld allocated=%lld requested=%lld active=%lld %s",
                 (long long)figure("reserved_bytes.all.current"),
                 (long long)figure("allocated_bytes.all.current"),
                 (long long)figure("requested_bytes.all.current"),
                 (long long)figure("active_bytes.all.current"), more);
  return text;
}

static void write_json(void)
{
  char *text;
  ck_assert_msg(weir_memory_snapshot(&text, cuda0) == WEIR_OK, "%s", weir_error_message());
  FILE *out = fopen(path_of("snapshot.json"), "w");
  ck_assert_ptr_nonnull(out);
  ck_assert_int_ge(fputs(text, out), 0);
  ck_assert_int_eq(fclose(out), 0);
  free(text);
}

/* As JSON and as a pickle. */
static void check_both(const char *more)
{
  char files[300];
  write_json();
  ck_assert_msg(weir_memory_dump_snapshot(path_of("snapshot.pickle")) == WEIR_OK, "%s",
                weir_error_message());
  (void)snprintf(files, sizeof files, "%s/snapshot.json %s/snapshot.pickle", folder, folder);
  check_file(files, figures_now(more));
}

static char *snapshot_json(void)
{
  char *text;
  ck_assert_int_eq(weir_memory_snapshot(&text, cuda0), WEIR_OK);
  return text;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const struct {
  uint64_t page;
  const char *conf;
} kinds[] = {{2 * MIB, NULL},
             {0, NULL},
             {0, "max_split_size_mb:32,garbage_collection_threshold:0.75"},
             {2 * MIB, "whole_block:on"},
             {2 * MIB, "roundup_power2_divisions:4"}};

START_TEST(a_snapshot_without_history_is_whole)
{
  attach(0, 1024 * MIB, kinds[_i].page, kinds[_i].conf);
  check_both("entries=0");
  void *a = allocate_for_fake_stream(1000, 0), *b = allocate_for_fake_stream(5 * MIB, 1),
       *c = allocate_for_fake_stream(40 * MIB, 0), *d = allocate_for_fake_stream(600, 2);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  check_both("entries=0");
  ck_assert_int_eq(weir_free(c), WEIR_OK);
  ck_assert_int_eq(weir_free(d), WEIR_OK);
  detach(0);
}
END_TEST

/* Blocks on three streams, some used by another, some given back to the device. */
static void random_traffic(uint64_t seed, int operations)
{
  void *slots[60] = {NULL};
  weir_stream *side;
  ck_assert_int_eq(weir_stream_from_native(&side, cuda0, fake_handle(&f[0], 3)), WEIR_OK);
  for (int i = 0; i < operations; i++) {
    uint64_t r = rig_random(&seed), k = r % 60;
    if (i % 100 == 50) fake_hold(&f[0], 3);
    if (i % 100 == 50) fake_submit(&f[0], 3, nothing, NULL);
    if (i % 100 == 90) fake_release(&f[0], 3);
    if (i % 250 == 249) ck_assert_int_eq(weir_memory_empty_cache(cuda0), WEIR_OK);
    if (i % 250 == 125) ck_assert_int_eq(weir_memory_trim(cuda0, 64 * MIB), WEIR_OK);
    if (slots[k]) {
      if (r >> 20 & 1) ck_assert_int_eq(weir_record_stream(slots[k], side), WEIR_OK);
      ck_assert_int_eq(weir_free(slots[k]), WEIR_OK);
      slots[k] = NULL;
    } else {
      slots[k] = allocate_for_fake_stream(
          r >> 8 & 1 ? 1 + (r >> 32) % 9000 : 1 + (r >> 32) % (12 * MIB), (int)(k % 3));
    }
    if (i % 300 == 299) check_both("");
  }
  for (int k = 0; k < 60; k++)
    ck_assert_int_eq(weir_free(slots[k]), WEIR_OK);
}

START_TEST(the_trace_leads_back_to_the_beginning)
{
  attach(0, 4096 * MIB, kinds[_i].page, kinds[_i].conf);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_NONE, 0);
  random_traffic(5, 600);
  check_both("whole=1");
  detach(0);
}
END_TEST

START_TEST(a_trace_that_wrapped_leads_back_too)
{
  attach(0, 4096 * MIB, kinds[_i].page, kinds[_i].conf);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 100);
  random_traffic(6, 600);
  check_both("entries=100");
  detach(0);
}
END_TEST

START_TEST(a_trace_from_the_middle_leads_back_to_there)
{
  attach(0, 1024 * MIB, 2 * MIB, NULL);
  void *a = allocate_for_fake_stream(1000, 0), *b = allocate_for_fake_stream(3 * MIB, 1),
       *c = allocate_for_fake_stream(100, 0);
  ck_assert_int_eq(weir_free(c), WEIR_OK); /* in the thread's own cache */
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0);
  c = allocate_for_fake_stream(100, 0);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  a = allocate_for_fake_stream(200 * MIB, 0);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  check_both("");
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_free(c), WEIR_OK);
  detach(0);
}
END_TEST

START_TEST(an_out_of_memory_is_an_entry)
{
  void *out;
  attach(0, 64 * MIB, 2 * MIB, NULL);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0);
  void *a = allocate_for_fake_stream(30 * MIB, 0);
  ck_assert_int_eq(weir_malloc(&out, 40 * MIB, cuda0, NULL), WEIR_EOOM);
  char *text = snapshot_json(), *oom = strstr(text, "\"action\": \"oom\", \"device_free\": ");
  ck_assert_ptr_nonnull(oom);
  ck_assert_ptr_nonnull(strstr(oom, "\"size\": 41943040"));
  free(text);
  check_both("");
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  detach(0);
}
END_TEST

static const char *const mutations[][2] = {
    {"s/active_allocated/live/", "none of"},
    {"s/.time_us.: [0-9]*, //", "no time_us"},
    {"s/total_size.: /&1/", "do not fill"},
    {"s/allocated_size.: /&1/", "add up"},
    {"s/true/1/", "no bool"},
    {"s/alloc., .addr/free_completed\", \"addr/", "is there afterwards"},
    {"s/segment_map/snapshot/", "before the first entry"},
    {"s/requested_size.: 1000/requested_size\": 999/", "add up"},
    {"s/line.: [0-9]*/line\": null/", "no int"},
    {"s/device_traces.: .\\[/device_traces\": [1, [/", "no list"}};

START_TEST(the_checker_finds_what_is_wrong)
{
  char command[512], said[1024], path[128];
  attach(0, 64 * MIB, 2 * MIB, NULL);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0);
  void *a = allocate_for_fake_stream(1000, 0);
  write_json();
  (void)snprintf(path, sizeof path, "%s", path_of("wrong.json"));
  (void)snprintf(command, sizeof command, "sed '%s' %s > %s", mutations[_i][0],
                 path_of("snapshot.json"), path);
  ck_assert_int_eq(system(command), 0);
  ck_assert(!run_checker(path, "whole=1", said, sizeof said));
  ck_assert_msg(strstr(said, mutations[_i][1]) != NULL, "%s: %s", mutations[_i][0], said);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  detach(0);
}
END_TEST

START_TEST(all_devices_are_in_a_dump)
{
  void *far;
  attach(0, 64 * MIB, 2 * MIB, NULL);
  attach(3, 64 * MIB, 0, NULL);
  const weir_device cuda3 = WEIR_CUDA_AT(3);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0);
  ck_assert_int_eq(weir_memory_record_history(cuda3, WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0),
                   WEIR_OK);
  void *near = allocate_for_fake_stream(1000, 0);
  ck_assert_int_eq(weir_malloc(&far, 7 * MIB, cuda3, NULL), WEIR_OK);
  ck_assert_int_eq(weir_memory_dump_snapshot(path_of("two.pickle")), WEIR_OK);
  check_file(path_of("two.pickle"), "whole=1 allocated=1024 entries=2");
  check_file(path_of("two.pickle"), "device=3 allocated=7340032 requested=7340032 entries=2");
  char *text;
  ck_assert_int_eq(weir_memory_snapshot(&text, cuda3), WEIR_OK);
  ck_assert_ptr_nonnull(strstr(text, "\"device_traces\": [[], [], [], [{"));
  free(text);
  ck_assert_int_eq(weir_free(near), WEIR_OK);
  ck_assert_int_eq(weir_free(far), WEIR_OK);
  detach(3);
  detach(0);
}
END_TEST

/* A captured graph's pool has its number on its segments, blocks and entries. */
START_TEST(private_pools_are_told_by_their_number)
{
  weir_graph_pool *private_pool;
  weir_graph_pool_stats stats;
  weir_stream *s;
  char text[64];
  attach(0, 256 * MIB, _i ? 0 : 2 * MIB, NULL);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_NONE, 0);
  void *common = allocate_for_fake_stream(1000, 1);
  ck_assert_int_eq(weir_graph_pool_create(&private_pool, cuda0), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_get_stats(&stats, private_pool), WEIR_OK);
  ck_assert_int_eq(weir_stream_from_native(&s, cuda0, fake_handle(&f[0], 1)), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_begin(private_pool, s), WEIR_OK);
  void *own = allocate_for_fake_stream(3000, 1);
  ck_assert_int_eq(weir_graph_pool_end(private_pool, s), WEIR_OK);
  check_both("whole=1");
  char *all = snapshot_json(), *block = strstr(all, "\"requested_size\": 3000, \"state\"");
  (void)snprintf(text, sizeof text, "\"pool_id\": [0, %llu]", (unsigned long long)stats.id);
  ck_assert_ptr_nonnull(block);
  ck_assert_ptr_nonnull(strstr(block, text));
  ck_assert(strstr(block, text) < strchr(block, '}'));
  ck_assert_ptr_nonnull(strstr(strstr(all, "device_traces"), text));
  (void)snprintf(text, sizeof text, "\"segment_pool_id\": [0, %llu]", (unsigned long long)stats.id);
  ck_assert_int_eq(strstr(all, text) != NULL, _i); /* pages are of the whole range */
  free(all);
  ck_assert_int_eq(weir_free(own), WEIR_OK);
  ck_assert_int_eq(weir_free(common), WEIR_OK);
  check_both("whole=1");
  ck_assert_int_eq(weir_graph_pool_release(private_pool), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_release(private_pool), WEIR_OK);
  detach(0);
}
END_TEST

START_TEST(tags_and_annotations_are_there_whatever_they_say)
{
  attach(0, 64 * MIB, 2 * MIB, NULL);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_NONE, 0);
  ck_assert_int_eq(weir_memory_annotate(cuda0, "step \"1\"\\\n", true), WEIR_OK);
  ck_assert_int_eq(weir_memory_set_tag("gr\xc3\xa4t\xff \"x\""), WEIR_OK);
  void *a = allocate_for_fake_stream(1000, 0);
  ck_assert_int_eq(weir_memory_set_tag(NULL), WEIR_OK);
  void *b = allocate_for_fake_stream(1000, 0);
  ck_assert_int_eq(weir_memory_annotate(cuda0, "step \"1\"\\\n", false), WEIR_OK);
  ck_assert_int_eq(weir_memory_annotate(cuda0, NULL, false), WEIR_EINVAL);
  check_both("");
  char *text = snapshot_json();
  static const char tag[] = "\"user_metadata\": \"gr\xc3\xa4t\xef\xbf\xbd \\\"x\\\"\"";
  char *first = strstr(text, tag);
  ck_assert_ptr_nonnull(first);
  ck_assert_ptr_nonnull(strstr(first + 1, tag)); /* the block's, and its entry's */
  ck_assert_ptr_nonnull(
      strstr(text, "{\"stage\": \"START\", \"name\": \"step \\\"1\\\"\\\\\\u000a\""));
  ck_assert_ptr_nonnull(strstr(text, "\"stage\": \"END\""));
  free(text);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  detach(0);
}
END_TEST

START_TEST(a_dump_that_cannot_be_written_says_so_and_leaves_nothing)
{
  struct stat st;
  attach(0, 64 * MIB, 2 * MIB, NULL);
  ck_assert_int_eq(weir_memory_dump_snapshot(path_of("no/such/folder")), WEIR_EIO);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "No such file"));
  ck_assert_int_eq(weir_memory_dump_snapshot("/dev/full"), WEIR_EIO);
  ck_assert_int_eq(stat("/dev/full", &st), 0);
  ck_assert_int_eq(weir_memory_snapshot((char *[]){NULL}, WEIR_CPU), WEIR_EINVAL);
  detach(0);
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

/* Overwrites the file with one that begins as it did, damaged by `seed`. */
static void damage(const char *from, const char *to, uint64_t seed)
{
  static char bytes[1 << 16];
  FILE *in = fopen(from, "rb");
  ck_assert_ptr_nonnull(in);
  size_t got = fread(bytes, 1, sizeof bytes, in);
  ck_assert_int_eq(fclose(in), 0);
  (void)unlink(to); /* what is mapped stays what it was */
  FILE *out = fopen(to, "wb");
  ck_assert_ptr_nonnull(out);
  for (int i = 0; i < 8; i++) /* of the header, mostly */
    bytes[rig_random(&seed) % (i < 4 ? 64 : got)] = (char)rig_random(&seed);
  ck_assert_uint_eq(fwrite(bytes, 1, got - seed % (got / 2), out), got - seed % (got / 2));
  ck_assert_int_eq(fclose(out), 0);
}

START_TEST(a_damaged_object_gives_no_names_and_no_harm)
{
  char command[512], path[128];
  Dl_info math;
  ck_assert_int_ne(dladdr((void *)(uintptr_t)&cos, &math), 0);
  (void)snprintf(path, sizeof path, "%s", path_of("libcopy.so"));
  (void)snprintf(command, sizeof command, "cp %s %s", math.dli_fname, path);
  ck_assert_int_eq(system(command), 0);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
  uint64_t address = (uint64_t)(uintptr_t)dlsym(library, "erf") + 4;
  code_names *names = names_new();
  code_name n = names_find(names, address);
  ck_assert_msg(strstr(n.function, "erf") != NULL, "%s", n.function);
  ck_assert_str_eq(n.object, path);
  ck_assert(!n.ours);
  names_free(names);
  for (uint64_t seed = 0; seed < 150; seed++) {
    damage(math.dli_fname, path, seed);
    names = names_new();
    n = names_find(names, address);
    ck_assert_str_eq(n.object, path);
    ck_assert_uint_gt(strlen(n.function), 0);
    names_free(names);
  }
  ck_assert_int_eq(unlink(path), 0);
  names = names_new();
  ck_assert_str_eq(names_find(names, address).function, "??");
  ck_assert_str_eq(names_find(names, 7).object, "");
  names_free(names);
  ck_assert_int_eq(dlclose(library), 0);
}
END_TEST

/* ---- PyTorch's own reader ---------------------------------------------------------------------
 * torch.cuda._memory_viz, where `make bench-peers` or `make test-peers` has fetched it; nothing is
 * tried where it is not there. */

START_TEST(pytorchs_own_reader_takes_it)
{
  char command[1024];
  const char *build = getenv("WEIR_BUILD");
  attach(0, 4096 * MIB, _i ? 0 : 2 * MIB, NULL);
  record(WEIR_HISTORY_ALL, WEIR_CONTEXT_ALL, 0);
  random_traffic(8, 150);
  void *a = allocate_for_fake_stream(70 * MIB, 1), *b = allocate_for_fake_stream(1000, 0);
  ck_assert_int_eq(weir_memory_dump_snapshot(path_of("viz.pickle")), WEIR_OK);
  (void)snprintf(
      command, sizeof command,
      "for viz in %s/peers/venv/lib/python3*/site-packages/torch/cuda/_memory_viz.py; do "
      "[ -e $viz ] || exit 0; python3 -B - $viz %s <<'EOF'\n"
      "import importlib.util, pickle, sys\n"
      "spec = importlib.util.spec_from_file_location('viz', sys.argv[1])\n"
      "viz = importlib.util.module_from_spec(spec)\n"
      "spec.loader.exec_module(viz)\n"
      "data = pickle.load(open(sys.argv[2], 'rb'))\n"
      "assert 'total_reserved' in viz.segsum(data)\n"
      "assert 'free completed' in viz.trace(data)\n"
      "assert 'allocate_for_fake_stream 1000' in viz.memory(data, lambda lines: lines)\n"
      "assert 'active_allocated' in viz.segments(data, lambda lines: lines)\n"
      "assert '<script' in viz.trace_plot(data) and '<script' in viz.segment_plot(data)\n"
      "EOF\ndone",
      build ? build : "build", path_of("viz.pickle"));
  ck_assert_int_eq(system(command), 0);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  detach(0);
}
END_TEST

/* ---- the writer ------------------------------------------------------------------------------ */

static void dump_values(dump_writer *d)
{
  static const uint64_t numbers[] = {
      0, 255, INT32_MAX, UINT64_C(1) << 31, UINT64_C(1) << 47, INT64_MAX, UINT64_MAX};
  dump_begin(d, '{');
  dump_key(d, "numbers");
  dump_begin(d, '[');
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    dump_unsigned(d, numbers[i]);
  dump_signed(d, -1);
  dump_signed(d, INT64_MIN);
  dump_end(d, ']');
  dump_key(d, "long");
  dump_begin(d, '[');
  for (uint64_t i = 0; i < 2500; i++)
    dump_pair(d, i, i + 1);
  dump_end(d, ']');
  dump_key(d, "reals");
  dump_begin(d, '[');
  dump_real(d, 0.1);
  dump_real(d, -2);
  dump_real(d, 1e300);
  dump_end(d, ']');
  dump_key(d, "empty");
  dump_begin(d, '[');
  dump_end(d, ']');
  uint32_t id = dump_remember(d);
  dump_key(d, "same");
  if (id) dump_recall(d, id);
  if (!id) dump_begin(d, '[');
  if (!id) dump_end(d, ']');
  dump_key_text(d, "text", "a\x80\xed\xa0\x80\t\xe2\x82\xac\xf0\x9f\x98\x80\xc0\xaf\xe2\x82");
  dump_key_bool(d, "yes", true);
  dump_end(d, '}');
}

START_TEST(what_is_dumped_is_read_again)
{
  for (int pickle = 0; pickle < 2; pickle++) {
    char command[1024];
    FILE *out = fopen(path_of("values"), "w");
    ck_assert_ptr_nonnull(out);
    dump_writer d;
    dump_start(&d, out, pickle);
    dump_values(&d);
    dump_finish(&d);
    ck_assert_int_eq(fclose(out), 0);
    (void)snprintf(command, sizeof command,
                   "python3 -c \"\nimport json, pickle\nd = %s.load(open('%s', 'rb'))\n"
                   "assert d['numbers'] == [0, 255, 2**31-1, 2**31, 2**47, 2**63-1, 2**64-1, -1, "
                   "-2**63], d\n"
                   "assert [tuple(p) for p in d['long']] == [(i, i+1) for i in range(2500)]\n"
                   "assert d['reals'] == [0.1, -2.0, 1e300] and type(d['reals'][1]) is float\n"
                   "assert d['empty'] == d['same'] == [] and d['yes'] is True\n"
                   "u = chr(0xfffd)\n"
                   "assert d['text'] == 'a' + 4*u + chr(9) + chr(0x20ac) + chr(0x1f600) + 4*u, "
                   "ascii(d['text'])\n\"",
                   pickle ? "pickle" : "json", path_of("values"));
    ck_assert_int_eq(system(command), 0);
  }
}
END_TEST

int main(void)
{
  enum { KINDS = sizeof kinds / sizeof *kinds };
  if (!mkdtemp(folder)) return 1;
  Suite *s = suite_create("snapshot");
  TCase *t = tcase_create("snapshot");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, a_snapshot_without_history_is_whole, 0, KINDS);
  tcase_add_loop_test(t, the_trace_leads_back_to_the_beginning, 0, KINDS);
  tcase_add_loop_test(t, a_trace_that_wrapped_leads_back_too, 0, 2);
  tcase_add_test(t, a_trace_from_the_middle_leads_back_to_there);
  tcase_add_test(t, an_out_of_memory_is_an_entry);
  tcase_add_loop_test(t, the_checker_finds_what_is_wrong, 0, 10);
  tcase_add_test(t, all_devices_are_in_a_dump);
  tcase_add_loop_test(t, private_pools_are_told_by_their_number, 0, 2);
  tcase_add_test(t, a_damaged_object_gives_no_names_and_no_harm);
  tcase_add_loop_test(t, pytorchs_own_reader_takes_it, 0, 2);
  tcase_add_test(t, tags_and_annotations_are_there_whatever_they_say);
  tcase_add_test(t, a_dump_that_cannot_be_written_says_so_and_leaves_nothing);
  tcase_add_test(t, what_is_dumped_is_read_again);
  suite_add_tcase(s, t);
  int failed = rig_run(s);
  char command[64];
  (void)snprintf(command, sizeof command, "rm -r %s", folder);
  return failed | (system(command) != 0);
}

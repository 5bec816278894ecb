/* synth.c: see synth.h. Failures end the test through Check. */
#include "tests/reports/synth.h"
#include <check.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "core/base/clock.h"

static char folder[256];
static char spool_path[512];
static spool_writer threads[64];
static uint64_t opened; /* ticks */

const char *synth_dir(void)
{
  if (folder[0]) return folder;
  const char *root = getenv("WEIR_SPOOL_ROOT"), *tmp = root ? root : getenv("TMPDIR");
  struct statvfs room; /* memory, where there is some: a disk spends most of the time syncing */
  bool shm = !statvfs("/dev/shm", &room) && room.f_bavail > (UINT64_C(512) << 20) / room.f_bsize;
  if (!tmp || tmp[0] != '/') tmp = shm && !access("/dev/shm", W_OK) ? "/dev/shm" : "/tmp";
  (void)snprintf(folder, sizeof(folder), "%s/weir-reports-XXXXXX", tmp);
  ck_assert_ptr_nonnull(mkdtemp(folder));
  return folder;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *walk)
{
  (void)s, (void)type, (void)walk;
  return remove(path);
}

void synth_clean(void)
{
  if (folder[0]) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
  folder[0] = '\0';
}

static void find_newest(const char *dir)
{
  struct timespec newest = {0};
  DIR *d = opendir(dir);
  ck_assert_ptr_nonnull(d);
  for (struct dirent *e; (e = readdir(d));) {
    char path[sizeof(spool_path)];
    struct stat file;
    if (!strstr(e->d_name, WEIR_SPOOL_SUFFIX)) continue;
    (void)snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
    if (stat(path, &file)) continue;
    struct timespec t = file.st_mtim;
    if (t.tv_sec < newest.tv_sec || (t.tv_sec == newest.tv_sec && t.tv_nsec < newest.tv_nsec))
      continue;
    newest = t;
    memcpy(spool_path, path, sizeof(path));
  }
  closedir(d);
}

/* Makes a tick of this spool a ns, exactly: the hint says so, and no other pair of readings is
 * usable, since real ticks are less than the first pair's and the boot is nobody's. */
static void set_clock(spool_header *h)
{
  opened = UINT64_C(1) << 62;
  h->clock_kind = WEIR_CLOCK_MONOTONIC;
  h->clock_hint_hz = 1000000000;
  h->clock_first.ticks = opened;
  memset(h->boot_id, 0x5a, sizeof(h->boot_id));
}

void synth_open_limited(const char *dir, uint64_t limit_bytes)
{
  memset(threads, 0, sizeof(threads));
  spool_options o = {.directory = dir,
                     .limit_bytes = limit_bytes,
                     .api_count = api_total,
                     .api_hash = api_table_hash(api_total)};
  ck_assert_msg(spool_open(&o) == WEIR_OK, "%s", weir_error_message());
  set_clock(spool_current());
  spool_path[0] = '\0';
  find_newest(dir);
  ck_assert(spool_path[0]);
}

void synth_open(const char *dir)
{
  synth_open_limited(dir, 0);
}

const char *synth_spool(void)
{
  return spool_path;
}

spool_writer *synth_thread(int n)
{
  return &threads[n];
}

void synth_close(void)
{
  for (int i = 0; i < 64; i++)
    if (threads[i].thread) spool_writer_release(&threads[i]);
  spool_close();
}

uint16_t synth_api(const char *name)
{
  for (uint32_t i = 1; i < api_total; i++)
    if (api_row(i)->name && !strcmp(api_row(i)->name, name)) return (uint16_t)i;
  ck_abort_msg("no function %s", name);
}

bool synth_event(int n, uint64_t at_ns, uint64_t ns, trace_event e)
{
  trace_event *slot = spool_writer_slots(&threads[n], 1);
  if (!slot) return false;
  e.start = opened + at_ns;
  event_set_duration(&e, ns);
  memcpy((char *)slot + 4, (const char *)&e + 4, sizeof(e) - 4);
  spool_writer_commit(&threads[n], 1);
  return true;
}

void synth_alloc(int n, uint64_t at, uint64_t ns, uint64_t pointer, uint64_t bytes, int device,
                 int mem)
{
  synth_event(
      n, at, ns,
      (trace_event){.kind = WEIR_EV_ALLOC,
                    .api = synth_api(mem == WEIR_MEM_PINNED ? "cudaMallocHost" : "cudaMalloc"),
                    .flags = WEIR_EVF_RUNTIME,
                    .a = pointer,
                    .bytes = bytes,
                    .device = (uint8_t)device,
                    .src_device = WEIR_DEVICE_NONE,
                    .mem = (uint8_t)mem});
}

void synth_free(int n, uint64_t at, uint64_t ns, uint64_t pointer)
{
  synth_event(n, at, ns,
              (trace_event){.kind = WEIR_EV_FREE,
                            .api = synth_api("cudaFree"),
                            .flags = WEIR_EVF_RUNTIME | WEIR_EVF_IMPLICIT_SYNC,
                            .a = pointer,
                            .device = WEIR_DEVICE_NONE,
                            .src_device = WEIR_DEVICE_NONE});
}

void synth_copy(int n, uint64_t at, uint64_t ns, int copy, uint64_t bytes, int device,
                int src_device, int mem, int src_mem, int flags)
{
  synth_event(
      n, at, ns,
      (trace_event){.kind = WEIR_EV_COPY,
                    .api = synth_api(flags & WEIR_EVF_ASYNC ? "cudaMemcpyAsync" : "cudaMemcpy"),
                    .flags = (uint8_t)(flags | WEIR_EVF_RUNTIME),
                    .a = 0x7f0000000000,
                    .b = 0x7e0000000000,
                    .bytes = bytes,
                    .copy_kind = (uint8_t)copy,
                    .device = (uint8_t)device,
                    .src_device = (uint8_t)src_device,
                    .mem = (uint8_t)(mem | src_mem << 4),
                    .stream = WEIR_STREAM_LEGACY});
}

void synth_sync(int n, uint64_t at, uint64_t ns, int type)
{
  static const char *const names[] = {"cudaDeviceSynchronize", "cudaEventSynchronize",
                                      "cudaStreamWaitEvent",   "cudaStreamSynchronize",
                                      "cudaDeviceSynchronize", "cudaStreamQuery"};
  synth_event(n, at, ns,
              (trace_event){.kind = WEIR_EV_SYNC,
                            .api = synth_api(names[type]),
                            .flags = WEIR_EVF_RUNTIME,
                            .sync_type = (uint8_t)type,
                            .device = 0,
                            .src_device = WEIR_DEVICE_NONE,
                            .stream = WEIR_STREAM_LEGACY});
}

bool synth_extended(int n, event_kind kind, uint64_t a, uint64_t b, const void *payload,
                    size_t bytes)
{
  trace_event head = {.a = a, .b = b, .start = opened};
  return spool_writer_extended(&threads[n], kind, &head, payload, bytes);
}

bool synth_graph(int n, uint64_t at, uint64_t exec, const graph_node_info *nodes, size_t count)
{
  trace_event head = {.start = opened + at, .a = exec, .graph_fact = WEIR_GRAPH_MADE, .mem = 1};
  return spool_writer_extended(&threads[n], WEIR_EV_GRAPH, &head, nodes, count * sizeof *nodes);
}

bool synth_stack(int n, uint32_t id, const uint64_t *frames, size_t depth)
{
  return synth_extended(n, WEIR_EV_STACK, id, 0, frames, depth * sizeof(*frames));
}

static module_stamp stamp;

void synth_stamp(uint64_t bytes, int64_t mtime_ns)
{
  stamp = (module_stamp){bytes, mtime_ns};
}

bool synth_module(int n, uint64_t base, uint64_t start, uint64_t end, const char *path,
                  const void *build_id, size_t build_id_bytes)
{
  char payload[4096];
  module_info info = {.base = base,
                      .start = start,
                      .end = end,
                      .build_id_bytes = (uint32_t)build_id_bytes,
                      .path_bytes = (uint32_t)strlen(path)};
  memcpy(payload, &info, sizeof(info));
  if (build_id_bytes) memcpy(payload + sizeof(info), build_id, build_id_bytes);
  memcpy(payload + sizeof(info) + build_id_bytes, path, info.path_bytes);
  size_t used = sizeof(info) + build_id_bytes + info.path_bytes;
  if (stamp.bytes) memcpy(payload + used, &stamp, sizeof(stamp));
  return synth_extended(n, WEIR_EV_MODULE, 1, 0, payload, used + (stamp.bytes ? sizeof(stamp) : 0));
}

const char *synth_import(const char *name, const char *const *spools)
{
  static char path[512];
  trace_importer *im = NULL;
  importer_options o = {.overwrite = true, .command = "synthetic"};
  (void)snprintf(path, sizeof(path), "%s/%s", synth_dir(), name);
  ck_assert_msg(importer_open(&im, path, &o) == WEIR_OK, "%s", weir_error_message());
  for (; *spools; spools++)
    ck_assert_msg(importer_add(im, *spools, false, NULL) == WEIR_OK, "%s", weir_error_message());
  ck_assert_msg(importer_finish(im) == WEIR_OK, "%s", weir_error_message());
  importer_close(im);
  return path;
}

int64_t synth_number(const char *trace, const char *sql)
{
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  ck_assert_int_eq(sqlite3_open_v2(trace, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  sqlite3_busy_timeout(db, 10000);
  ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK, "%s: %s", sql,
                sqlite3_errmsg(db));
  ck_assert_msg(sqlite3_step(q) == SQLITE_ROW, "%s: %s", sql, sqlite3_errmsg(db));
  int64_t n = sqlite3_column_int64(q, 0);
  sqlite3_finalize(q);
  sqlite3_close(db);
  return n;
}

static char *report(const char *trace, report_format format, int width)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  report_settings o = {.format = format, .width = width};
  ck_assert_ptr_nonnull(f);
  weir_status s = report_summary(f, trace, &o);
  ck_assert_msg(s == WEIR_OK, "%s", weir_error_message());
  (void)fclose(f);
  return text;
}

void synth_change(const char *trace, const char *sql)
{
  sqlite3 *db = NULL;
  ck_assert_int_eq(sqlite3_open(trace, &db), SQLITE_OK);
  ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
                sqlite3_errmsg(db));
  sqlite3_close(db);
}

static uint64_t random_state;

void synth_seed(uint64_t seed)
{
  random_state = seed;
}

uint64_t synth_below(uint64_t n)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (random_state >> 11) % n;
}

json_t *synth_json(const char *trace)
{
  json_error_t error;
  char *text = report(trace, WEIR_REPORT_JSON_1, 0);
  json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  ck_assert_msg(json != NULL, "%s in: %s", error.text, text);
  free(text);
  return json;
}

char *synth_text(const char *trace, int width)
{
  return report(trace, WEIR_REPORT_TEXT, width);
}

int64_t synth_total(const json_t *report, const char *name)
{
  json_t *value = json_object_get(json_object_get(report, "totals"), name);
  ck_assert_msg(json_is_integer(value), "totals.%s is missing", name);
  return json_integer_value(value);
}

const char *synth_import_this(void)
{
  const char *one[] = {NULL, NULL};
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

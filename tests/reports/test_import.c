/* test_import.c: spools in, exact rows out. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/reports/synth.h"

static const char *one[2];

static const char *import_spool(void)
{
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

START_TEST(every_event_is_one_row_with_its_values)
{
  synth_open(synth_dir());
  synth_alloc(0, 1000, 500, 0x7f0000001000, 4096, 1, WEIR_MEM_DEVICE);
  synth_event(0, 2000, 700,
              (trace_event){.kind = WEIR_EV_COPY,
                            .api = synth_api("cudaMemcpyAsync"),
                            .flags = WEIR_EVF_RUNTIME | WEIR_EVF_ASYNC,
                            .status = 1,
                            .copy_kind = WEIR_COPY_HTOD,
                            .device = 1,
                            .src_device = WEIR_DEVICE_NONE,
                            .mem = WEIR_MEM_DEVICE | WEIR_MEM_PINNED << 4,
                            .stack = 7u << 24,
                            .a = UINT64_MAX,
                            .b = UINT64_C(1) << 63,
                            .bytes = 123,
                            .stream = 42});
  synth_close();
  const char *t = import_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event"), 2);
  ck_assert_int_eq(synth_number(t,
                                "SELECT count(*) FROM event WHERE kind=1 AND process=1 AND thread=1"
                                " AND start=1000 AND \"end\"=1500 AND status=0 AND stack IS NULL"
                                " AND context=0 AND device=1 AND src_device IS NULL AND copy=0"
                                " AND mem=3 AND src_mem=0 AND flags=8 AND a=0x7f0000001000"
                                " AND bytes=4096 AND call IS NULL"),
                   1);
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM event WHERE kind=3 AND start=2000"
                      " AND \"end\"=2700 AND status=1 AND context=7 AND device=1 AND copy=1"
                      " AND mem=3 AND src_mem=2 AND flags=9 AND a=-1"
                      " AND b=-9223372036854775808 AND bytes=123 AND stream=42"),
      1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event e JOIN api a ON a.id=e.api WHERE"
                                   " (e.kind=1 AND a.name='cudaMalloc') OR"
                                   " (e.kind=3 AND a.name='cudaMemcpyAsync')"),
                   2);
}
END_TEST

/* So many streams that what is known of them is forgotten on the way. */
START_TEST(calls_that_are_alike_share_a_template)
{
  enum { STREAMS = 140000 };
  trace_event e = {.kind = WEIR_EV_LAUNCH, .api = synth_api("cudaLaunchKernel")};
  synth_open(synth_dir());
  for (uint64_t i = 0; i < STREAMS; i++) {
    e.stream = 3 + i;
    synth_event(0, 10 * i, 1, e);
    synth_event(0, 10 * i + 5, 1, e);
  }
  e.stream = 3;
  synth_event(0, 10 * STREAMS, 1, e);
  synth_close();
  const char *t = import_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event"), 2 * STREAMS + 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event WHERE stream <> 3 + (id - 1) / 2"),
                   1); /* the last */
  ck_assert_int_eq(synth_number(t, "SELECT count(DISTINCT stream) FROM template"), STREAMS);
  ck_assert_int_le(synth_number(t, "SELECT count(*) FROM template"), STREAMS + 1);
}
END_TEST

START_TEST(a_finished_trace_is_one_file_with_ids_and_meta)
{
  char side[600];
  synth_open(synth_dir());
  synth_sync(0, 10, 20, WEIR_SYNC_CONTEXT);
  synth_close();
  const char *t = import_spool();
  ck_assert_int_eq(synth_number(t, "PRAGMA user_version"), 2);
  ck_assert_int_eq(synth_number(t, "PRAGMA application_id"), 0x57454952);
  ck_assert_int_eq(synth_number(t, "SELECT value FROM meta WHERE key='finished'"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT value='synthetic' FROM meta WHERE key='command'"), 1);
  /* Of a machine that is not known. */
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM meta WHERE key='clock_ns'"), 0);
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode='delete'"), 1);
  static const char *const ends[] = {"-wal", "-shm", "-journal"};
  for (int i = 0; i < 3; i++) {
    (void)snprintf(side, sizeof(side), "%s%s", t, ends[i]);
    ck_assert_int_ne(access(side, F_OK), 0);
  }
}
END_TEST

START_TEST(stacks_are_shared_by_threads_and_frames_know_their_module)
{
  const uint64_t a[] = {0x1010, 0x2010, 0x1020}, b[] = {0x1010};
  synth_open(synth_dir());
  for (int n = 0; n < 2; n++) {
    synth_module(n, 0x1000, 0x1000, 0x1fff, "/lib/one.so", "\x12\xab", 2);
    synth_module(n, 0x2000, 0x2000, 0x2fff, "/lib/two.so", NULL, 0);
    synth_stack(n, 5 + (uint32_t)n, a, 3);
    synth_stack(n, 9, b, 1);
    for (uint32_t id = 5; id < 10; id++)
      synth_event(n, 1000, 1,
                  (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cudaFree"), .stack = id});
  }
  synth_close();
  const char *t = import_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM stack"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM module WHERE start IS NOT NULL"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM frame"), 3);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM stack_frame"), 4);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event WHERE stack IS NOT NULL"), 4);
  ck_assert_int_eq(synth_number(t, "SELECT count(DISTINCT stack) FROM event"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM frame f JOIN module m ON m.id=f.module"
                                   " WHERE (f.address<0x2000)=(m.path='/lib/one.so')"),
                   3);
  ck_assert_int_eq(synth_number(t, "SELECT build_id='12ab' FROM module WHERE path='/lib/one.so'"),
                   1);
  ck_assert_int_eq(
      synth_number(t, "SELECT group_concat(originalIP)='4112,8208,4128' FROM (SELECT * FROM"
                      " CUDA_CALLCHAINS WHERE id=(SELECT id FROM stack WHERE depth=3)"
                      " ORDER BY stackDepth)"),
      1);
  /* who ended has no maps to go on with, but is known again */
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM resume WHERE what IN (2, 3)"), 0);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM resume WHERE process = 1 AND what = 0"),
                   1);
}
END_TEST

START_TEST(an_address_means_something_else_after_an_unload)
{
  const uint64_t frames[] = {0x1010};
  synth_open(synth_dir());
  module_info gone = {.base = 0x1000};
  synth_module(0, 0x1000, 0x1000, 0x1fff, "/lib/old.so", NULL, 0);
  synth_stack(0, 1, frames, 1);
  synth_event(0, 100, 1, (trace_event){.kind = WEIR_EV_CALL, .stack = 1});
  ck_assert(synth_extended(0, WEIR_EV_MODULE, 0, 0, &gone, sizeof(gone)));
  synth_module(0, 0x1000, 0x1000, 0x1fff, "/lib/new.so", NULL, 0);
  synth_stack(0, 1, frames, 1);
  synth_event(0, 200, 1, (trace_event){.kind = WEIR_EV_CALL, .stack = 1});
  synth_close();
  const char *t = import_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(DISTINCT stack) FROM event"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM frame"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM module WHERE path='/lib/old.so'"
                                   " AND unloaded IS NOT NULL"),
                   1);
}
END_TEST

START_TEST(names_notes_threads_and_coverage_arrive)
{
  synth_open(synth_dir());
  spool_header *h = spool_current();
  atomic_store(&h->coverage[synth_api("cudaMalloc")], WEIR_COVER_LOOKED_UP | WEIR_COVER_CALLED);
  atomic_store(&h->coverage[synth_api("cudaFree")], WEIR_COVER_PASSED);
  atomic_store(&h->unknown_lookups, 3);
  strcpy(h->unknown_name, "cuBrandNew");
  spool_drop(17, 28);
  synth_extended(2, WEIR_EV_NAME, 0, WEIR_NAME_DEVICE, "Paper GPU", 9);
  synth_extended(2, WEIR_EV_NAME, 0x55, WEIR_NAME_KERNEL, "saxpy", 5);
  synth_extended(2, WEIR_EV_NOTE, 0, 0, "a note", 6);
  synth_extended(2, WEIR_EV_THREAD, 0, 0, "worker", 6);
  synth_close();
  const char *t = import_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM name WHERE kind='device' AND handle=0"
                                   " AND name='Paper GPU'"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM name WHERE kind='kernel' AND handle=0x55"
                                   " AND name='saxpy' AND time = 0"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM note WHERE text='a note' AND thread=1"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM thread WHERE name='worker'"), 1);
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM ThreadNames n JOIN StringIds s ON s.id=n.nameId"
                      " WHERE s.value='worker'"),
      1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM coverage"), 2);
  ck_assert_int_eq(synth_number(t,
                                "SELECT count(*) FROM coverage c JOIN api a ON a.id=c.api WHERE"
                                " (name='cudaMalloc' AND looked_up AND called AND NOT passed) OR"
                                " (name='cudaFree' AND passed AND NOT looked_up AND NOT called)"),
                   2);
  ck_assert_int_eq(synth_number(t, "SELECT dropped=17 AND drop_errno=28 AND unknown_lookups=3"
                                   " AND unknown_name='cuBrandNew' FROM process"),
                   1);
}
END_TEST

START_TEST(text_that_is_no_utf8_is_made_readable)
{
  synth_open(synth_dir());
  synth_extended(0, WEIR_EV_NOTE, 0, 0, "\xff\xfe ok \xc3\xa9\xc3", 9);
  synth_close();
  ck_assert_int_eq(synth_number(import_spool(), "SELECT text='?? ok \xc3\xa9?' FROM note"), 1);
}
END_TEST

/* Every small number in each of the fields that lie beside each other in a record. */
START_TEST(calls_that_differ_in_any_small_number_are_told_apart)
{
  int64_t sum = 0;
  synth_open(synth_dir());
  for (unsigned i = 0; i < 4096; i++) {
    trace_event e = {.kind = WEIR_EV_CALL,
                     .api = (uint16_t)(1 + (i & 7)),
                     .detail = (uint8_t)(i >> 3 & 7),
                     .device = (uint8_t)(i >> 6 & 7),
                     .src_device = (uint8_t)(i >> 9 & 7)};
    sum += (int64_t)i * (e.api + 11 * e.detail + 121 * e.device + 1331 * e.src_device);
    e.a = i;
    synth_event(0, 1000 + i * 20, 10, e);
  }
  synth_close();
  const char *t = import_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM template"), 4096);
  ck_assert_int_eq(
      synth_number(t, "SELECT sum(a * (api + 11 * copy + 121 * device + 1331 * src_device))"
                      " FROM event"),
      sum);
}
END_TEST

START_TEST(a_batched_call_is_one_call_and_many_copies)
{
  synth_open(synth_dir());
  for (int i = 0; i < 3; i++)
    synth_copy(0, 1000, 50, WEIR_COPY_HTOD, 10, 0, WEIR_DEVICE_NONE, WEIR_MEM_DEVICE,
               WEIR_MEM_PINNED, i ? WEIR_EVF_BATCH | WEIR_EVF_ASYNC : WEIR_EVF_ASYNC);
  synth_close();
  const char *t = import_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event WHERE call=1"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY m JOIN"
                                   " CUPTI_ACTIVITY_KIND_RUNTIME r USING(correlationId)"),
                   3);
}
END_TEST

START_TEST(an_item_whose_calls_first_one_is_lost_is_a_call)
{
  synth_open(synth_dir());
  for (int i = 0; i < 3; i++)
    synth_copy(0, 1000, 50, WEIR_COPY_HTOD, 10, 0, WEIR_DEVICE_NONE, WEIR_MEM_DEVICE,
               WEIR_MEM_PINNED, WEIR_EVF_BATCH | WEIR_EVF_ASYNC);
  synth_close();
  const char *t = import_spool();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM call"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM copy WHERE call=1"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT sum(flags & 32) FROM event"), 64);
}
END_TEST

/* Two processes in one trace: a child writes its own spool, opened earlier on the clock. */
START_TEST(processes_share_one_clock_and_time_begins_at_the_earliest)
{
  char first[512];
  synth_open(synth_dir());
  uint64_t base = spool_current()->clock_first.mono_ns;
  synth_sync(0, 5000, 10, WEIR_SYNC_CONTEXT);
  synth_close();
  (void)snprintf(first, sizeof(first), "%s", synth_spool());
  synth_open(synth_dir());
  spool_current()->clock_first.mono_ns = base + 2000;
  synth_sync(0, 100, 10, WEIR_SYNC_STREAM);
  synth_close();
  const char *both[] = {first, synth_spool(), NULL};
  const char *t = synth_import("both.db", both);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM process"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT start FROM event WHERE process=1"), 5000);
  ck_assert_int_eq(synth_number(t, "SELECT start FROM event WHERE process=2"), 2100);
  const char *reversed[] = {both[1], both[0], NULL};
  t = synth_import("reversed.db", reversed);
  ck_assert_int_eq(synth_number(t, "SELECT start FROM event WHERE process=2"), 5000);
}
END_TEST

START_TEST(a_spool_that_opened_before_the_trace_shifts_it)
{
  char later[512];
  trace_importer *im = NULL;
  char t[512];
  synth_open(synth_dir());
  uint64_t base = spool_current()->clock_first.mono_ns;
  synth_sync(0, 5000, 10, WEIR_SYNC_CONTEXT);
  synth_alloc(0, 6000, 10, 0x1000, 64, 0, WEIR_MEM_DEVICE);
  synth_close();
  (void)snprintf(later, sizeof(later), "%s", synth_spool());
  synth_open(synth_dir());
  spool_current()->clock_first.mono_ns = base - 3000;
  synth_sync(0, 100, 10, WEIR_SYNC_STREAM);
  synth_close();
  (void)snprintf(t, sizeof(t), "%s/shift.db", synth_dir());
  ck_assert_int_eq(importer_open(&im, t, NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, later, true, NULL), WEIR_OK);
  ck_assert_int_eq(importer_poll(im, NULL), WEIR_OK);
  ck_assert_int_eq(synth_number(t, "SELECT start FROM event WHERE kind = 5"), 5000);
  ck_assert_int_eq(importer_add(im, synth_spool(), true, NULL), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert_int_eq(synth_number(t, "SELECT start FROM process WHERE id=1"), 3000);
  ck_assert_int_eq(synth_number(t, "SELECT start FROM event WHERE process=1 AND kind = 5"), 8000);
  ck_assert_int_eq(synth_number(t, "SELECT \"end\" FROM event WHERE process=1 AND kind = 5"), 8010);
  ck_assert_int_eq(synth_number(t, "SELECT start FROM block"), 9010);
  ck_assert_int_eq(synth_number(t, "SELECT start FROM event WHERE process=2"), 100);
  ck_assert_int_eq(synth_number(t, "SELECT start FROM process WHERE id=2"), 0);
}
END_TEST

/* The collector's idea of a tick changes while the program runs: what a thread wrote before another
 * stays before it, whichever is read first. */
START_TEST(a_corrected_clock_reorders_nothing)
{
  enum { POLLS = 600, STEP = 1000000 };
  char t[512];
  trace_importer *im = NULL;
  synth_open(synth_dir());
  spool_header *h = spool_current();
  clock_pair first = h->clock_first;
  h->clock_kind = WEIR_CLOCK_CNTVCT; /* the importer must go by the header, not by its own clock */
  if (clock_source_in_use == WEIR_CLOCK_CNTVCT) h->clock_kind = WEIR_CLOCK_TSC;
  (void)snprintf(t, sizeof(t), "%s/clock.db", synth_dir());
  ck_assert_int_eq(importer_open(&im, t, NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), true, NULL), WEIR_OK);
  for (uint64_t i = 1; i <= POLLS; i++) {
    uint64_t now = i * STEP, wrong = now / 10000 * (i % 3);
    atomic_store(&h->last_ticks, first.ticks + now);
    atomic_store(&h->last_mono_ns, first.mono_ns + now + (i % 2 ? wrong : -wrong));
    synth_free(0, now - 10, 9, i); /* read in this poll */
    if (i > 1)
      synth_alloc(1, now - STEP - 1, 9, i - 1, 64, 0, 0); /* after a free of the last one */
    ck_assert_int_eq(importer_poll(im, NULL), WEIR_OK);
  }
  synth_close();
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM event f JOIN event a ON a.a = f.a AND a.kind = 1"
                      " WHERE f.kind = 2 AND f.\"end\" <= a.start AND a.start <= a.\"end\""),
      POLLS - 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM (SELECT \"end\" - lag(start) OVER"
                                   " (ORDER BY id) AS d FROM event WHERE kind = 2) WHERE d < 0"),
                   0);
  /* ... and nothing is further from its place than the worst idea there was. */
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event WHERE kind = 2 AND"
                                   " abs(start - (a * 1000000 - 10)) > a * 1000000 / 2500"),
                   0);
}
END_TEST

START_TEST(ends_are_recorded)
{
  trace_importer *im = NULL;
  char t[512];
  uint32_t number = 99;
  synth_open(synth_dir());
  synth_sync(0, 5000, 10, WEIR_SYNC_CONTEXT);
  synth_close();
  (void)snprintf(t, sizeof(t), "%s/end.db", synth_dir());
  ck_assert_int_eq(importer_open(&im, t, NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), true, &number), WEIR_OK);
  ck_assert_uint_eq(number, 0);
  ck_assert_int_eq(importer_end(im, number, WEIR_END_SIGNAL, 9), WEIR_OK);
  ck_assert_int_eq(importer_end(im, number, WEIR_END_EXIT, 0), WEIR_OK);
  ck_assert_int_eq(importer_end(im, 1, WEIR_END_EXIT, 0), WEIR_EINVAL);
  ck_assert_uint_eq(importer_events(im), 1);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert_int_eq(
      synth_number(t, "SELECT end_reason='signal' AND end_detail=9 AND events=1 FROM process"), 1);
}
END_TEST

/* A writer that goes on while the importer polls: a child process, told when to stop by its end. */
START_TEST(a_live_import_sees_all_and_once)
{
  enum { EVENTS = 300000, THREADS = 3 };
  int ready[2];
  char t[512], byte;
  ck_assert_int_eq(pipe(ready), 0);
  const char *dir = synth_dir();
  pid_t child = fork();
  if (child == 0) {
    synth_open(dir);
    if (write(ready[1], "x", 1) != 1) _exit(2);
    for (int i = 0; i < EVENTS; i++)
      synth_event(
          i % THREADS, (uint64_t)i * 100, 50,
          (trace_event){.kind = WEIR_EV_CALL, .a = (uint64_t)i, .b = (uint64_t)(i % THREADS)});
    synth_close();
    _exit(atomic_load(&spool_current()->dropped) ? 3 : 0);
  }
  ck_assert_int_eq(read(ready[0], &byte, 1), 1);
  char find[600], spool[512] = "";
  (void)snprintf(find, sizeof(find), "ls %s/*.spool", dir);
  FILE *ls = popen(find, "r");
  ck_assert_ptr_nonnull(fgets(spool, sizeof(spool), ls));
  pclose(ls);
  spool[strcspn(spool, "\n")] = '\0';
  trace_importer *im = NULL;
  (void)snprintf(t, sizeof(t), "%s/live.db", dir);
  ck_assert_int_eq(importer_open(&im, t, NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, spool, true, NULL), WEIR_OK);
  int status = 0;
  uint64_t sum = 0, now;
  while (waitpid(child, &status, WNOHANG) == 0) {
    ck_assert_int_eq(importer_poll(im, &now), WEIR_OK);
    sum += now;
    ck_assert_uint_eq(sum, importer_events(im));
    if (now)
      ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event"), (int64_t)sum); /* in WAL */
  }
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(importer_end(im, 0, WEIR_END_EXIT, 0), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event"), EVENTS);
  ck_assert_int_eq(synth_number(t, "SELECT count(DISTINCT a) FROM event"), EVENTS);
  ck_assert_int_eq(synth_number(t, "SELECT max(a)=299999 AND min(a)=0 FROM event"), 1);
  ck_assert_int_eq(synth_number(t,
                                "SELECT count(*) FROM (SELECT a, lag(a) OVER (PARTITION BY thread"
                                " ORDER BY id) AS p FROM event) WHERE p IS NOT NULL AND a<>p+3"),
                   0);
}
END_TEST

/* A person's query that lasts keeps the trace in WAL; it is complete all the same. */
START_TEST(somebody_who_reads_does_not_hinder_the_finish)
{
  trace_importer *im = NULL;
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  char t[512];
  synth_open(synth_dir());
  synth_sync(0, 10, 20, WEIR_SYNC_CONTEXT);
  synth_close();
  (void)snprintf(t, sizeof(t), "%s/read.db", synth_dir());
  ck_assert_int_eq(importer_open(&im, t, NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, NULL), WEIR_OK);
  ck_assert_int_eq(importer_poll(im, NULL), WEIR_OK);
  ck_assert_int_eq(sqlite3_open(t, &db), SQLITE_OK);
  ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT id FROM api", -1, &q, NULL), SQLITE_OK);
  ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
  sqlite3_finalize(q);
  sqlite3_close(db);
  ck_assert_int_eq(synth_number(t, "SELECT value FROM meta WHERE key='finished'"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event"), 1);
}
END_TEST

/* What a collector had written when it was asked, or died, is as long as its last event says. */
START_TEST(an_unfinished_trace_has_a_duration)
{
  trace_importer *im = NULL;
  char t[512];
  synth_open(synth_dir());
  synth_sync(0, 3000000, 2000000, WEIR_SYNC_CONTEXT);
  (void)snprintf(t, sizeof(t), "%s/live.db", synth_dir());
  ck_assert_int_eq(importer_open(&im, t, NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), true, NULL), WEIR_OK);
  ck_assert_int_eq(importer_poll(im, NULL), WEIR_OK);
  ck_assert_int_eq(synth_number(t, "SELECT value FROM meta WHERE key='duration_ns'"), 5000000);
  json_t *report = synth_json(t);
  ck_assert(json_is_false(json_object_get(report, "complete")));
  ck_assert_int_eq(json_integer_value(json_object_get(report, "duration_ns")), 5000000);
  json_decref(report);
  importer_close(im);
  synth_close();
}
END_TEST

/* Another boot's wall clock is all that is known of when it was; it may say anything. */
START_TEST(a_wall_clock_that_cannot_be_makes_no_decades)
{
  char first[512];
  synth_open(synth_dir());
  synth_sync(0, 100, 10, WEIR_SYNC_CONTEXT);
  synth_close();
  (void)snprintf(first, sizeof(first), "%s", synth_spool());
  synth_open(synth_dir());
  spool_current()->boot_id[0] ^= 1;
  spool_current()->realtime_ns += UINT64_C(65) * 365 * 86400 * 1000000000;
  synth_sync(0, 100, 10, WEIR_SYNC_STREAM);
  synth_close();
  const char *both[] = {first, synth_spool(), NULL};
  const char *t = synth_import("boots.db", both);
  ck_assert_int_lt(synth_number(t, "SELECT value FROM meta WHERE key='duration_ns'"),
                   3600000000000);
}
END_TEST

START_TEST(a_process_without_cuda_is_a_row_with_no_events)
{
  synth_open(synth_dir());
  synth_close();
  const char *t = import_spool();
  ck_assert_int_eq(synth_number(t, "SELECT events FROM process"), 0);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM PROCESSES"), 1);
}
END_TEST

static void progress(void *context, uint64_t done, uint64_t guess)
{
  uint64_t *last = context;
  ck_assert_uint_gt(done, *last);
  ck_assert_uint_ge(guess, done);
  *last = done;
}

START_TEST(progress_goes_up_to_the_number_of_events)
{
  trace_importer *im = NULL;
  uint64_t last = 0;
  char t[512];
  importer_options o = {.progress = progress, .progress_context = &last};
  synth_open(synth_dir());
  for (int i = 0; i < 50000; i++)
    synth_event(0, (uint64_t)i, 1, (trace_event){.kind = WEIR_EV_CALL});
  synth_close();
  (void)snprintf(t, sizeof(t), "%s/p.db", synth_dir());
  ck_assert_int_eq(importer_open(&im, t, &o), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, NULL), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert_uint_eq(last, 50000);
}
END_TEST

/* Two texts behind a head, as a writer makes it, or with lengths that lie. */
static void write_python_frame(uint64_t number, uint32_t line, unsigned claimed, const char *texts)
{
  char payload[256];
  python_frame_info info = {
      .line = line, .function_bytes = (uint16_t)claimed, .file_bytes = (uint16_t)claimed};
  memcpy(payload, &info, sizeof info);
  (void)snprintf(payload + sizeof info, sizeof payload - sizeof info, "%s", texts);
  synth_extended(0, WEIR_EV_PYTHON_FRAME, WEIR_PYTHON_FRAME_FIRST + number, 0, payload,
                 sizeof info + strlen(texts));
}

START_TEST(python_frames_are_named_by_the_first_record_that_makes_sense)
{
  const char *spools[] = {NULL, NULL};
  synth_open(synth_dir());
  synth_alloc(0, 1, 1, 0x1000, 64, 0, WEIR_MEM_DEVICE);
  write_python_frame(1, 7, 60000, "f1a1");
  write_python_frame(1, 8, 2, "f1a1");
  write_python_frame(1, 9, 2, "f2a2");
  write_python_frame(2, 0, 0, "");
  write_python_frame(3, 5, 2,
                     "\xff\xfe"
                     "a3");
  synth_extended(0, WEIR_EV_PYTHON_FRAME, WEIR_PYTHON_FRAME_FIRST + 4, 0, "abc", 3);
  synth_close();
  spools[0] = synth_spool();
  const char *t = synth_import("python.db", spools);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM python_frame"), 3);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM python_frame WHERE function = 'f1' AND"
                                   " file = 'a1' AND line = 8 AND"
                                   " address = 0x5059000000000001"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM python_frame WHERE function IS NULL AND"
                                   " file IS NULL AND line IS NULL"),
                   1);
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM python_frame WHERE function = char(63, 63)"), 1);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/import");
  TCase *t = tcase_create("rows");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, python_frames_are_named_by_the_first_record_that_makes_sense);
  tcase_add_test(t, every_event_is_one_row_with_its_values);
  tcase_add_test(t, calls_that_are_alike_share_a_template);
  tcase_add_test(t, a_finished_trace_is_one_file_with_ids_and_meta);
  tcase_add_test(t, stacks_are_shared_by_threads_and_frames_know_their_module);
  tcase_add_test(t, an_address_means_something_else_after_an_unload);
  tcase_add_test(t, names_notes_threads_and_coverage_arrive);
  tcase_add_test(t, text_that_is_no_utf8_is_made_readable);
  tcase_add_test(t, calls_that_differ_in_any_small_number_are_told_apart);
  tcase_add_test(t, a_batched_call_is_one_call_and_many_copies);
  tcase_add_test(t, an_item_whose_calls_first_one_is_lost_is_a_call);
  tcase_add_test(t, processes_share_one_clock_and_time_begins_at_the_earliest);
  tcase_add_test(t, a_spool_that_opened_before_the_trace_shifts_it);
  tcase_add_test(t, a_corrected_clock_reorders_nothing);
  tcase_add_test(t, ends_are_recorded);
  tcase_add_test(t, a_live_import_sees_all_and_once);
  tcase_add_test(t, somebody_who_reads_does_not_hinder_the_finish);
  tcase_add_test(t, an_unfinished_trace_has_a_duration);
  tcase_add_test(t, a_wall_clock_that_cannot_be_makes_no_decades);
  tcase_add_test(t, a_process_without_cuda_is_a_row_with_no_events);
  tcase_add_test(t, progress_goes_up_to_the_number_of_events);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}

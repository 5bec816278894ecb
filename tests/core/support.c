/* support.c: see support.h. */
#include "tests/core/support.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Bytes that may be written there; 0: it is no folder. */
static uint64_t room_in(const char *place)
{
  struct statvfs fs;
  return place && strlen(place) <= 200 && !statvfs(place, &fs) ? fs.f_bavail * fs.f_frsize : 0;
}

/* In memory where a suite has room there; containers may give 64 MiB. */
void make_folder(char out[256])
{
  const char *places[] = {getenv("WEIR_SPOOL_ROOT"), "/dev/shm", getenv("TMPDIR"), "/tmp"};
  const uint64_t enough = UINT64_C(1) << 30;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < 4; i++) {
      uint64_t room = room_in(places[i]);
      if (pass ? !room : room < enough) continue;
      (void)snprintf(out, 256, "%s/weir-test-XXXXXX", places[i]);
      if (mkdtemp(out)) return;
    }
  ck_abort_msg("no folder to work in: %s", strerror(errno));
}

void remove_folder(const char *path)
{
  char file[1024];
  DIR *dir = opendir(path);
  if (!dir) return;
  for (struct dirent *e; (e = readdir(dir));) {
    (void)snprintf(file, sizeof file, "%s/%s", path, e->d_name);
    unlink(file);
  }
  closedir(dir);
  rmdir(path);
}

void open_spool(const char *folder, uint64_t limit_bytes)
{
  spool_options options = {.directory = folder};
  if (limit_bytes) options.limit_bytes = limit_bytes + WEIR_SPOOL_BLOCKS;
  weir_status status = spool_open(&options);
  ck_assert_msg(status == WEIR_OK, "%s", weir_error_message());
}

void spool_path(char out[512], const char *folder, int pid, int n)
{
  (void)snprintf(out, 512, "%s/%d-%d%s", folder, pid, n, WEIR_SPOOL_SUFFIX);
}

bool put_event(spool_writer *w, uint64_t key, uint64_t number)
{
  trace_event *e = spool_writer_slots(w, 1);
  if (!e) return false;
  e->kind = WEIR_EV_CALL;
  e->flags = 0;
  e->api = 1;
  e->start = number * 10;
  event_set_duration(e, number & 1023);
  e->status = 0;
  e->stack = 0;
  e->device = e->src_device = WEIR_DEVICE_NONE;
  e->detail = e->mem = 0;
  e->a = key;
  e->b = number;
  e->bytes = key ^ number;
  e->stream = ~number;
  spool_writer_commit(w, 1);
  return true;
}

static uint8_t pattern(uint64_t key, uint64_t number, size_t i)
{
  return (uint8_t)(key * 31 + number * 7 + i);
}

bool put_note(spool_writer *w, uint64_t key, uint64_t number, size_t bytes)
{
  uint8_t payload[WEIR_SPOOL_MAX_EXTRA * 64];
  trace_event head = {.a = key, .b = number};
  for (size_t i = 0; i < bytes; i++)
    payload[i] = pattern(key, number, i);
  return spool_writer_extended(w, WEIR_EV_NOTE, &head, payload, bytes);
}

static weir_status tally_event(tally *t, uint32_t thread, const trace_event *e)
{
  uint64_t key = e->a % KEYS;
  if (t->refuse_at && t->total + 1 == t->refuse_at) {
    t->refuse_at = 0;
    return WEIR_EIO;
  }
  if (e->b != t->next[key]) t->out_of_order++;
  t->next[key] = e->b + 1;
  if (t->thread[key] && t->thread[key] != thread) t->wrong_thread++;
  t->thread[key] = thread;
  t->total++;
  return WEIR_OK;
}

static weir_status count_event(void *context, uint32_t thread, uint32_t tid, const trace_event *e)
{
  tally *t = context;
  (void)tid;
  weir_status status = tally_event(t, thread, e);
  if (status) return status;
  t->events[e->a % KEYS]++;
  if (e->bytes != (e->a ^ e->b) || e->stream != ~e->b || e->start != e->b * 10) t->wrong_payload++;
  return WEIR_OK;
}

static weir_status count_extended(void *context, uint32_t thread, uint32_t tid,
                                  const trace_event *head, const void *payload, size_t bytes)
{
  tally *t = context;
  const uint8_t *p = payload;
  (void)tid;
  weir_status status = tally_event(t, thread, head);
  if (status) return status;
  t->notes[head->a % KEYS]++;
  bool right = head->kind == WEIR_EV_NOTE && head->bytes == bytes;
  for (size_t i = 0; i < bytes; i++)
    right &= p[i] == pattern(head->a, head->b, i);
  if (!right) t->wrong_payload++;
  return WEIR_OK;
}

spool_visitor visitor(tally *t)
{
  return (spool_visitor){.context = t, .event = count_event, .extended = count_extended};
}

spool_damage drain_all(const char *path, tally *t)
{
  spool_reader *r;
  spool_visitor v = visitor(t);
  weir_status status = spool_reader_open(&r, path, false);
  ck_assert_msg(status == WEIR_OK, "%s", weir_error_message());
  status = spool_drain(r, &v, true);
  ck_assert_msg(status == WEIR_OK, "%s", weir_error_message());
  spool_damage damage = spool_reader_damage(r);
  spool_reader_close(r);
  return damage;
}

int run_suite(Suite *suite)
{
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

uint64_t random_next(uint64_t *state)
{
  uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

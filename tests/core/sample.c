/* sample.c: see sample.h. */
#include "tests/core/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void put_one(spool_writer *w, uint64_t key, uint64_t i)
{
  bool put = i % 7 == 3 ? put_note(w, key, i, 20 + i * 9) : put_event(w, key, i);
  if (!put) _exit(1);
}

static void write_sample(const char *folder)
{
  spool_writer full = {0}, open = {0};
  spool_options options = {.directory = folder, .limit_bytes = 4 << 20};
  if (spool_open(&options)) _exit(1);
  for (uint64_t i = 0; i < SAMPLE_FULL; i++)
    put_one(&full, 1, i);
  spool_writer_release(&full);
  for (uint64_t i = 0; i < SAMPLE_OPEN; i++)
    put_one(&open, 2, i);
  _exit(0);
}

static const trace_event *slot_at(const sample *s, uint32_t chunk, uint32_t slot)
{
  const uint8_t *p = s->bytes + WEIR_SPOOL_HEADER + (size_t)chunk * WEIR_SPOOL_UNIT + slot * 64u;
  return (const trace_event *)(const void *)p;
}

/* Where each record lies. */
static void find_records(sample *s)
{
  for (uint32_t record = 0; record < SAMPLE_RECORDS; record++) {
    uint32_t chunk = record >= SAMPLE_FULL, slot = s->used[chunk];
    const trace_event *e = slot_at(s, chunk, slot);
    s->first[record] = slot;
    s->used[chunk] += 1u + (e->kind >= 32 ? e->status : 0);
    s->after[record] = s->used[chunk];
  }
  s->used[0]++; /* the end mark */
}

void make_sample(sample *s, const char *folder)
{
  int status = -1;
  memset(s, 0, sizeof *s);
  pid_t child = fork();
  if (child == 0) write_sample(folder);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  spool_path(s->path, folder, child, 0);
  s->bytes = aligned_alloc(64, SAMPLE_BYTES);
  FILE *f = fopen(s->path, "rb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fread(s->bytes, 1, SAMPLE_BYTES, f), SAMPLE_BYTES);
  ck_assert_int_eq(fgetc(f), EOF);
  (void)fclose(f);
  find_records(s);
}

void recommit(uint8_t *bytes, uint32_t chunk, uint32_t slot)
{
  uint8_t *p = bytes + WEIR_SPOOL_HEADER + (size_t)chunk * WEIR_SPOOL_UNIT + slot * 64u;
  trace_event *e = (trace_event *)(void *)p;
  atomic_store(&e->commit, event_check(e, UINT64_C(1) << 16 | slot));
}

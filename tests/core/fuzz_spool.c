/* fuzz_spool.c: the reader under a fuzzer. With clang: -fsanitize=fuzzer,address. Elsewhere, with
 * -DFUZZ_ALONE, a program that runs the files it is given. */
#include "tests/core/fuzz_spool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/trace/spool.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink; /* so that every delivered byte is read */

static weir_status touch_event(void *context, uint32_t thread, uint32_t tid, const trace_event *e)
{
  (void)context;
  sink += thread + tid + e->a + e->b + e->bytes + event_duration(e);
  return WEIR_OK;
}

static weir_status touch_extended(void *context, uint32_t thread, uint32_t tid,
                                  const trace_event *head, const void *payload, size_t bytes)
{
  const uint8_t *p = payload;
  uint64_t *budget = context;
  sink += thread + tid + head->a;
  for (size_t i = 0; i < bytes; i++)
    sink += p[i];
  if (head->kind == WEIR_EV_STACK && bytes != head->bytes * 8) abort();
  if (head->kind == WEIR_EV_MODULE) {
    module_info info;
    memcpy(&info, p, sizeof info);
    for (size_t i = 0; i < (size_t)info.build_id_bytes + info.path_bytes; i++)
      sink += p[sizeof info + i];
  }
  if (*budget && !--*budget) return WEIR_EIO; /* a visitor that fails once */
  return WEIR_OK;
}

static void write_at_offset(int fd, const void *bytes, size_t count, uint64_t offset)
{
  if (pwrite(fd, bytes, count, (off_t)offset) != (ssize_t)count) abort();
}

static void put_header(int fd, const fuzz_head *head, const uint8_t **data, const uint8_t *end)
{
  static spool_header h;
  memset(&h, 0, sizeof h);
  memcpy(h.magic, WEIR_SPOOL_MAGIC, sizeof h.magic);
  h.version = WEIR_SPOOL_VERSION;
  h.header_bytes = WEIR_SPOOL_HEADER;
  h.chunk_bytes = WEIR_SPOOL_CHUNK;
  unsigned entries = head->entries % (FUZZ_CHUNKS + 1u);
  atomic_store(&h.chunks, entries);
  const size_t bytes = sizeof(chunk_entry);
  for (unsigned i = 0; i < entries && (size_t)(end - *data) >= bytes; i++, *data += bytes)
    write_at_offset(fd, *data, bytes, WEIR_SPOOL_DIRECTORY + i * bytes);
  for (unsigned i = 0; i < head->patches && end - *data >= 4; i++, *data += 4) {
    uint16_t at, value;
    memcpy(&at, *data, 2);
    memcpy(&value, *data + 2, 2);
    memcpy((char *)&h + at % 512, &value, 2);
  }
  write_at_offset(fd, &h, sizeof h, 0);
}

/* Chunk `index`, as its entry in the file has it, put where a chunk can be. */
static chunk_entry entry_of(int fd, uint32_t index)
{
  chunk_entry e;
  const uint32_t first = WEIR_SPOOL_HEADER / WEIR_SPOOL_UNIT;
  uint64_t at = WEIR_SPOOL_DIRECTORY + (uint64_t)index * sizeof e;
  if (pread(fd, &e, sizeof e, (off_t)at) != (ssize_t)sizeof e) memset(&e, 0, sizeof e);
  if (e.place < first || e.place >= first + FUZZ_UNITS) e.place = first + index;
  if (!e.units || e.units > first + FUZZ_UNITS - e.place) e.units = 1;
  return e;
}

static void put_slots(int fd, const fuzz_head *head, const uint8_t *data, const uint8_t *end)
{
  uint32_t per_chunk = head->per_chunk ? head->per_chunk : 1, chunk = 0, slot = head->first;
  for (uint32_t n = 0; end - data >= 64 && chunk < FUZZ_CHUNKS; data += 64) {
    trace_event e;
    memcpy(&e, data, sizeof e);
    chunk_entry c = entry_of(fd, chunk);
    const uint64_t generation = atomic_load(&c.state) >> WEIR_CHUNK_STATE_BITS;
    slot %= c.units * (WEIR_SPOOL_UNIT / 64);
    if (head->flags & FUZZ_COMMIT)
      atomic_store(&e.commit, event_check(&e, generation << 16 | slot));
    write_at_offset(fd, &e, 64, (uint64_t)c.place * WEIR_SPOOL_UNIT + slot * 64u);
    slot++;
    if (++n % per_chunk == 0) {
      chunk++;
      slot = head->first;
    }
  }
}

static void read_it(const char *path, bool live, uint64_t budget)
{
  spool_reader *r;
  spool_visitor v = {&budget, touch_event, touch_extended};
  if (spool_reader_open(&r, path, live)) return;
  for (int i = 0; i < 3; i++)
    spool_drain(r, &v, i == 2);
  const spool_header *h = spool_reader_header(r);
  sink += strlen(h->exe) + h->cmdline[h->cmdline_bytes] + h->unknown_name[0];
  clock_map map = spool_reader_clock(r);
  sink += (uint64_t)clock_to_mono_ns(&map, budget);
  sink += spool_reader_damage(r).chunks;
  spool_reader_close(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static int fd = -1;
  static char path[64];
  fuzz_head head;
  const uint8_t *end = data + size;
  if (fd < 0) {
    fd = memfd_create("fuzz_spool", 0);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  }
  if (size < sizeof head) return 0;
  memcpy(&head, data, sizeof head);
  data += sizeof head;
  const uint64_t whole = WEIR_SPOOL_HEADER + FUZZ_UNITS * WEIR_SPOOL_UNIT;
  if (ftruncate(fd, 0) || ftruncate(fd, (off_t)whole)) abort();
  put_header(fd, &head, &data, end);
  put_slots(fd, &head, data, end);
  if (head.flags & FUZZ_CUT && ftruncate(fd, (off_t)(WEIR_SPOOL_HEADER + head.cut * 64u))) abort();
  read_it(path, head.flags & FUZZ_LIVE, head.cut);
  return 0;
}

#ifdef FUZZ_ALONE
int main(int argc, char **argv)
{
  static uint8_t data[1 << 20];
  for (int i = 1; i < argc; i++) {
    FILE *f = fopen(argv[i], "rb");
    if (!f) return 1;
    size_t size = fread(data, 1, sizeof data, f);
    (void)fclose(f);
    uint8_t *exact = malloc(size ? size : 1); /* so that reading past the end is seen */
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
  }
  (void)printf("%d inputs read\n", argc - 1);
  return 0;
}
#endif

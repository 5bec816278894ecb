/* cpu/places.c: the places of elements that are not 0, or of each as often as it states.
 *
 * Chunks are counted, in any order and by several threads; the counts become sums of what comes
 * before; then every chunk knows where its places go. */
#include "core/backend/cpu/cpu.h"
#include "core/backend/threads.h"

enum { PLACES_GRAIN = CPU_GRAIN / WEIR_PLACES_CHUNK };

/* How often each of the n elements from `from` on counts, n at most CPU_BLOCK. */
static void read_times(int64_t *times, const weir_places *p, int64_t from, int64_t n)
{
  const cpu_level *level = cpu_level_in_use();
  const char *in = (const char *)p->in + (size_t)from * cpu_dtype_bytes(p->dtype);
  uint8_t truth[CPU_BLOCK];
  if (p->times) {
    level->cast[WEIR_INT64][p->dtype](times, in, n);
    for (int64_t i = 0; i < n; i++)
      times[i] = times[i] > 0 ? times[i] : 0;
    return;
  }
  const uint8_t *yes = p->dtype == WEIR_BOOL ? (const uint8_t *)in : truth;
  if (yes == truth) level->cast[WEIR_BOOL][p->dtype](truth, in, n);
  for (int64_t i = 0; i < n; i++)
    times[i] = yes[i] != 0;
}

static int64_t end_of_chunk(const weir_places *p, int64_t chunk)
{
  int64_t end = (chunk + 1) * WEIR_PLACES_CHUNK;
  return end < p->count ? end : p->count;
}

static int64_t places_block(int64_t from, int64_t end)
{
  return end - from < CPU_BLOCK ? end - from : CPU_BLOCK;
}

static void count_chunks(void *arg, int64_t from, int64_t to)
{
  const weir_places *p = arg;
  int64_t times[CPU_BLOCK];
  for (int64_t c = from; c < to; c++) {
    int64_t sum = 0, end = end_of_chunk(p, c), n;
    for (int64_t i = c * WEIR_PLACES_CHUNK; i < end; i += n) {
      n = places_block(i, end);
      read_times(times, p, i, n);
      for (int64_t k = 0; k < n; k++)
        sum += times[k];
    }
    p->sums[c] = sum;
  }
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Where the last place was, so that the next one of the same row needs no division. */
typedef struct place_row {
  int64_t start, end; /* places of the row */
  int64_t at[WEIR_DIMS];
} place_row;

static void find_row(place_row *row, const weir_places *p, int64_t place)
{
  int last = p->dims - 1;
  int64_t i = place / p->size[last];
  row->start = i * p->size[last];
  row->end = row->start + p->size[last];
  for (int d = last - 1; d >= 0; d--) {
    row->at[d] = i % p->size[d];
    i /= p->size[d];
  }
}

/* `count` places to their numbers from `to` on. */
static void store_places(const weir_places *p, place_row *row, const int64_t *place, int64_t count,
                         int64_t to)
{
  int last = p->dims - 1;
  for (int64_t k = 0; k < count && to + k < p->room; k++) {
    int64_t *out = p->out + to + k;
    if (place[k] < row->start || place[k] >= row->end) find_row(row, p, place[k]);
    for (int d = 0; d < last; d++)
      out[d * p->room] = row->at[d];
    out[last * p->room] = place[k] - row->start;
  }
}

/* The places among n elements that each count once or not at all; returns how many. */
static int64_t pick_places(int64_t *place, const int64_t *times, int64_t from, int64_t n)
{
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    place[count] = from + i;
    count += times[i];
  }
  return count;
}

static int64_t repeat_places(const weir_places *p, place_row *row, const int64_t *times,
                             int64_t from, int64_t n, int64_t to)
{
  int64_t start = to;
  for (int64_t i = 0; i < n; i++) {
    int64_t place = from + i;
    for (int64_t k = 0; k < times[i] && to < p->room; k++)
      store_places(p, row, &place, 1, to++);
  }
  return to - start;
}

static void write_chunks(void *arg, int64_t from, int64_t to)
{
  const weir_places *p = arg;
  int64_t times[CPU_BLOCK], place[CPU_BLOCK + 1];
  place_row row = {0, 0, {0}};
  for (int64_t c = from; c < to; c++) {
    int64_t at = p->sums[c], end = end_of_chunk(p, c), n, count;
    if (at == p->sums[c + 1]) continue;
    for (int64_t i = c * WEIR_PLACES_CHUNK; i < end; i += n) {
      n = places_block(i, end);
      read_times(times, p, i, n);
      if (p->times) {
        at += repeat_places(p, &row, times, i, n, at);
        continue;
      }
      count = pick_places(place, times, i, n);
      store_places(p, &row, place, count, at);
      at += count;
    }
  }
}

weir_status cpu_places(void *self, void *stream, const weir_places *p)
{
  (void)self, (void)stream;
  weir_places mine = *p;
  int64_t chunks = (p->count + WEIR_PLACES_CHUNK - 1) / WEIR_PLACES_CHUNK, sum = 0;
  parallel_for(chunks, PLACES_GRAIN, p->out ? write_chunks : count_chunks, &mine);
  if (p->out) return WEIR_OK;
  for (int64_t c = 0; c < chunks; c++) {
    int64_t here = p->sums[c];
    p->sums[c] = sum;
    sum += here;
  }
  p->sums[chunks] = sum;
  return WEIR_OK;
}

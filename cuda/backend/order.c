/* order.c: running reductions, lines in order, and places in sequences that are (weir_scan,
 * weir_sort_rows, weir_search): in how many launches, and the memory between them, which is the
 * allocator's, in the stream's order. */
#include "cuda/backend/launch.h"

/* ---- running reductions ---------------------------------------------------------------------- */

/* Kernels of a row, by accumulator: for integers, for floating point, for complex64. */
#define SCANS_OF(name) WEIR_KERNEL_scan_##name##_integer, WEIR_KERNEL_scan_##name##_real
#define SCANS_sum      SCANS_OF(sum), WEIR_KERNEL_scan_sum_complex
#define SCANS_product  SCANS_OF(product), WEIR_KERNEL_scan_product_complex
#define SCANS_log_sum  WEIR_KERNEL_scan_log_sum_real, WEIR_KERNEL_scan_log_sum_real
#define SCANS_last_max SCANS_OF(last_max)
#define SCANS_last_min SCANS_OF(last_min)
static const struct scan_row {
  const char *name;
  uint32_t computes; /* the set of dtypes that it has kernels for */
  uint8_t kernel[3];
} scan_rows[WEIR_SCAN_COUNT] = {
#define ROW(name, text, computes, host, device) {text, computes, {SCANS_##device}},
    WEIR_SCAN_OPS(ROW)
#undef ROW
};

enum { SCAN_PARTS = 1024, SCAN_LEAST = 4096 };

/* Parts a line is cut into where lines alone are too few: each of SCAN_LEAST elements or more. */
static int64_t scan_parts(cuda_device_state *d, const k_scan *a)
{
  int64_t busy = 4 * (int64_t)cuda_processors(d), least = a->of.inner > 1 ? 64 : SCAN_LEAST;
  int64_t blocks = a->of.inner > 1 ? (a->lines + WEIR_THREADS - 1) / WEIR_THREADS : a->lines;
  int64_t parts = busy / blocks, most = a->of.length / least;
  if (parts > most) parts = most;
  return parts > SCAN_PARTS ? SCAN_PARTS : parts > 1 ? parts : 1;
}

static weir_status scan_stage(cuda_device_state *d, void *stream, k_scan *a, int stage)
{
  const struct scan_row *row = &scan_rows[a->of.op];
  int column = a->of.dtype == WEIR_COMPLEX64 ? 2 : k_is_real(a->of.dtype);
  bool together = a->of.inner == 1 && stage != WEIR_K_SCAN_STARTS;
  int64_t count = stage == WEIR_K_SCAN_STARTS ? a->lines : a->lines * a->count;
  a->stage = stage;
  return cuda_launch(d, stream, (enum kernel_id)row->kernel[column],
                     cuda_blocks(d, count, together ? 1 : WEIR_THREADS), a, row->name);
}

weir_status cuda_scan(void *self, void *stream, const weir_scan *s)
{
  cuda_device_state *d = self;
  const struct scan_row *row = &scan_rows[s->op];
  if (!(row->computes >> s->dtype & 1)) return cuda_no_kernel(row->name, s->dtype);
  k_scan a = {.of = *s, .lines = s->outer * s->inner, .count = 1, .piece = s->length};
  int64_t parts = scan_parts(d, &a);
  uint64_t bytes = (uint64_t)(a.lines * parts) * WEIR_PART_BYTES;
  if (parts == 1 || cuda_core_calls->allocate(&a.parts, bytes, d->index, stream)) {
    a.parts = NULL;
    return scan_stage(d, stream, &a, WEIR_K_SCAN_ELEMENTS);
  }
  a.piece = (s->length + parts - 1) / parts;
  a.count = (s->length + a.piece - 1) / a.piece;
  weir_status st = scan_stage(d, stream, &a, WEIR_K_SCAN_TOTALS);
  if (!st) st = scan_stage(d, stream, &a, WEIR_K_SCAN_STARTS);
  if (!st) st = scan_stage(d, stream, &a, WEIR_K_SCAN_ELEMENTS);
  weir_status released = cuda_core_calls->release(a.parts);
  return st ? st : released;
}

/* ---- lines in order -------------------------------------------------------------------------- */

static weir_status sort_step(cuda_device_state *d, void *stream, const k_sort *a, bool wide,
                             enum kernel_id narrow_kernel, int64_t blocks)
{
  return cuda_launch(d, stream, (enum kernel_id)((int)narrow_kernel + wide),
                     cuda_blocks(d, blocks, 1), a, "sort");
}

/* `to` has room for the items of all lines, twice where a line has several tiles. */
static weir_status sort_in(cuda_device_state *d, void *stream, k_sort *a, bool wide, void *other)
{
  int64_t n = a->of.length, all = a->lines * a->of.keep;
  weir_status st = sort_step(d, stream, a, wide, WEIR_KERNEL_sort_tiles_narrow,
                             a->slots ? a->tiles : a->tiles * a->lines);
  for (a->run = WEIR_SORT_TILE; !st && a->run < n; a->run *= 2) {
    a->from = a->to;
    a->to = other;
    other = (void *)a->from;
    st = sort_step(d, stream, a, wide, WEIR_KERNEL_sort_merge_narrow, a->tiles * a->lines);
  }
  a->from = a->to;
  if (st) return st;
  return sort_step(d, stream, a, wide, WEIR_KERNEL_sort_take_narrow,
                   (all + WEIR_THREADS - 1) / WEIR_THREADS);
}

weir_status cuda_sort_rows(void *self, void *stream, const weir_sort_rows *s)
{
  cuda_device_state *d = self;
  void *room;
  k_sort a = {.of = *s, .lines = s->outer * s->inner, .bytes = (int32_t)k_bytes(s->dtype)};
  if (s->dtype == WEIR_COMPLEX64) return cuda_no_kernel("sort", s->dtype);
  bool wide = a.bytes == 8 || s->length >= UINT32_MAX, several = s->length > WEIR_SORT_TILE;
  if (!several)
    for (a.slots = 1; a.slots < s->length;)
      a.slots *= 2;
  int64_t lines_each = several ? 1 : WEIR_SORT_TILE / a.slots;
  a.tiles = several ? (s->length - 1) / WEIR_SORT_TILE + 1 : (a.lines - 1) / lines_each + 1;
  uint64_t bytes = (uint64_t)(a.lines * s->length) * (wide ? 16 : 8);
  weir_status st = cuda_core_calls->allocate(&room, several ? 2 * bytes : bytes, d->index, stream);
  if (st) return st;
  a.to = room;
  st = sort_in(d, stream, &a, wide, (char *)room + bytes);
  weir_status released = cuda_core_calls->release(room);
  return st ? st : released;
}

/* ---- searching ------------------------------------------------------------------------------- */

weir_status cuda_search(void *self, void *stream, const weir_search *s)
{
  cuda_device_state *d = self;
  k_search a = {*s};
  if (s->dtype == WEIR_COMPLEX64 || s->dtype == WEIR_BOOL)
    return cuda_no_kernel("searchsorted", s->dtype);
  return cuda_launch(d, stream,
                     k_is_real(s->dtype) ? WEIR_KERNEL_search_real : WEIR_KERNEL_search_integer,
                     cuda_blocks(d, s->rows * s->each, WEIR_THREADS), &a, "searchsorted");
}

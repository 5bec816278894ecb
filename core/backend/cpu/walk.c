/* cpu/walk.c: operands of any strides and dtype, as contiguous blocks.
 *
 * A walk stands at one element of an operand and goes row by row (a row: the last dimension). As
 * long as a row's elements follow each other a block is taken where it lies; else it is copied
 * together, by element size alone: the type does not matter here. */
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/scalar_type.h"

static const uint8_t sizes[WEIR_DTYPES] = {
#define BYTES(name, value, text, bytes, type) [WEIR_##name] = bytes,
    WEIR_DTYPE_MAP(BYTES)
#undef BYTES
};

weir_status cpu_no_kernel(const char *what, weir_dtype dtype)
{
  return fail_unsupported("\"%s_cpu\" not implemented for '%s'", what, scalar_type(dtype));
}

size_t cpu_dtype_bytes(weir_dtype dtype)
{
  return sizes[dtype];
}

/* Whether elements follow each other through the whole loop. */
static bool is_flat_operand(const weir_operand *o, int dims, const int64_t *size)
{
  int64_t next = 1;
  for (int d = dims - 1; d >= 0; d--) {
    if (size[d] != 1 && o->stride[d] != next) return false;
    next *= size[d];
  }
  return true;
}

void cpu_walk_start(cpu_walk *w, const weir_operand *o, int dims, const int64_t *size, int64_t from)
{
  w->bytes = sizes[o->dtype];
  w->at = o->data;
  w->dims = 0;
  if (is_flat_operand(o, dims, size)) {
    w->at += from * (int64_t)w->bytes;
    return;
  }
  w->dims = dims;
  w->size = size;
  w->stride = o->stride;
  for (int d = dims - 1; d >= 0; d--) {
    w->place[d] = from % size[d];
    from /= size[d];
    w->at += w->place[d] * o->stride[d] * (int64_t)w->bytes;
  }
  w->left = size[dims - 1] - w->place[dims - 1];
}

/* To the beginning of the next row. */
static void next_row(cpu_walk *w)
{
  int last = w->dims - 1;
  int64_t bytes = (int64_t)w->bytes;
  w->at -= w->size[last] * w->stride[last] * bytes;
  w->left = w->size[last];
  for (int d = last - 1; d >= 0; d--) {
    w->at += w->stride[d] * bytes;
    if (++w->place[d] < w->size[d]) return;
    w->place[d] = 0;
    w->at -= w->size[d] * w->stride[d] * bytes;
  }
}

static void forward(cpu_walk *w, int64_t n)
{
  int64_t step = w->dims ? w->stride[w->dims - 1] : 1;
  w->at += n * step * (int64_t)w->bytes;
  if (w->dims && !(w->left -= n)) next_row(w);
}

static bool in_place(const cpu_walk *w, int64_t n)
{
  return !w->dims || (w->stride[w->dims - 1] == 1 && n <= w->left);
}

const void *cpu_walk_take(cpu_walk *w, int64_t n, void *room)
{
  if (in_place(w, n)) {
    const void *at = w->at;
    forward(w, n);
    return at;
  }
  for (char *to = room; n;) {
    int64_t part = n < w->left ? n : w->left;
    cpu_move_elements(to, 1, w->at, w->stride[w->dims - 1], part, w->bytes);
    to += part * (int64_t)w->bytes;
    n -= part;
    forward(w, part);
  }
  return room;
}

bool cpu_walk_repeats(const cpu_walk *w, int64_t n)
{
  return w->dims && !w->stride[w->dims - 1] && n <= w->left;
}

void cpu_walk_skip(cpu_walk *w, int64_t n)
{
  forward(w, n);
}

void *cpu_walk_place(cpu_walk *w, int64_t n)
{
  void *at = w->at;
  if (!in_place(w, n)) return NULL;
  forward(w, n);
  return at;
}

void cpu_walk_put(cpu_walk *w, int64_t n, const void *from)
{
  for (const char *at = from; n;) {
    int64_t part = n < w->left ? n : w->left;
    cpu_move_elements(w->at, w->stride[w->dims - 1], at, 1, part, w->bytes);
    at += part * (int64_t)w->bytes;
    n -= part;
    forward(w, part);
  }
}

int64_t cpu_block(int dims, const int64_t *size, int64_t from, int64_t to, int64_t most)
{
  int64_t n = to - from < most ? to - from : most;
  int64_t row = dims > 1 ? size[dims - 1] : 0;
  if (row < CPU_BLOCK / 4) return n;
  int64_t left = row - from % row;
  return n < left ? n : left;
}

const void *cpu_widen(const void *x, weir_dtype from, weir_dtype compute, int64_t n, void *room)
{
  const cpu_level *level = cpu_level_in_use();
  weir_dtype to = cpu_kernel_dtype(compute);
  if (from == to && from == compute) return x;
  if (compute == to || from == compute) {
    level->cast[to][from](room, x, n);
    return room;
  }
  uint16_t half[CPU_SHORT_BLOCK];
  level->cast[compute][from](half, x, n);
  level->cast[to][compute](room, half, n);
  return room;
}

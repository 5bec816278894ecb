/* place.c: see place.h. */
#include "reports/metrics/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/json.h"
#include "core/trace/event.h"
#include "reports/tally/private.h"

enum { MOST_FRAMES = 256 };

static const char *base_of(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool begins(const char *text, const char *with)
{
  return !strncmp(text, with, strlen(with));
}

/* A piece of the state's text, cut and with an end. */
static void copy_text(const wr_tally_state *s, wr_piece_of_text piece, char *out, size_t room)
{
  size_t n = piece.bytes < room - 1 ? piece.bytes : room - 1;
  if (piece.at > s->text.count || n > s->text.count - piece.at) n = 0;
  if (n) memcpy(out, s->text.entry + piece.at, n);
  out[n] = 0;
}

/* Cut where a character begins, and with U+FFFD for what is none. */
static void clean_place(char out[WR_PLACE_BYTES])
{
  char copy[WR_PLACE_BYTES];
  size_t n = 0;
  memcpy(copy, out, sizeof copy);
  copy[sizeof copy - 1] = 0;
  const unsigned char *at = (const unsigned char *)copy, *end = at + strlen(copy);
  while (at < end) {
    const unsigned bytes = utf8_sequence(at, end);
    const size_t more = bytes ? bytes : 3;
    if (n + more >= WR_PLACE_BYTES) break;
    memcpy(out + n, bytes ? (const char *)at : "\xef\xbf\xbd", more);
    n += more;
    at += bytes ? bytes : 1;
  }
  out[n] = 0;
}

/* ---- modules --------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
  const wr_tally_module *x = *(const wr_tally_module *const *)a,
                        *y = *(const wr_tally_module *const *)b;
  return (x->info.start > y->info.start) - (x->info.start < y->info.start);
}

static void sort_modules(wr_places *p)
{
  const wr_table *all = &p->state->module;
  p->sorted = true;
  p->by_start = all->count ? malloc(all->count * sizeof(wr_tally_module *)) : NULL;
  for (uint32_t i = 0; p->by_start && i < all->count; i++) {
    const wr_tally_module *m = wr_table_at(all, i);
    if (!m->unloaded) p->by_start[p->count++] = m;
  }
  if (p->by_start) qsort(p->by_start, p->count, sizeof(wr_tally_module *), by_start);
}

static const wr_tally_module *module_of(wr_places *p, uint64_t address)
{
  if (!p->sorted) sort_modules(p);
  uint32_t low = 0, high = p->count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (p->by_start[middle]->info.start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low && address < p->by_start[low - 1]->info.end ? p->by_start[low - 1] : NULL;
}

/* How much a native frame is the program's own: 0 not at all. */
static int own_of(const char *path)
{
  const char *name = base_of(path);
  if (begins(name, "libcuda.so") || begins(name, "libcudart") || begins(name, "libweir")) return 0;
  if (begins(name, "libffi") || begins(name, "_ctypes") || begins(name, "libpython")) return 1;
  if (begins(name, "libc.so") || begins(name, "libc-") || begins(name, "ld-")) return 1;
  if (begins(name, "libstdc++") || begins(name, "libpthread")) return 1;
  return strstr(name, ".so") ? 2 : 3;
}

static void put_native(const wr_places *p, const wr_tally_module *m, uint64_t address,
                       char out[WR_PLACE_BYTES])
{
  char path[512], name[WR_PLACE_BYTES];
  const uint64_t offset = address - m->info.base;
  copy_text(p->state, m->path, path, sizeof path);
  if (p->name && p->name(p->name_context, path, offset, name, sizeof name))
    (void)snprintf(out, WR_PLACE_BYTES, "%s", name);
  else
    (void)snprintf(out, WR_PLACE_BYTES, "%.100s+%#llx", base_of(path), (unsigned long long)offset);
}

/* ---- scripts --------------------------------------------------------------------------------- */

static bool is_script(uint64_t address)
{
  return address >= WEIR_PYTHON_FRAME_FIRST && address - WEIR_PYTHON_FRAME_FIRST < UINT64_C(1)
                                                                                       << 32;
}

/* Returns how much it is the program's own, as own_of() has it: above all native frames. */
static int put_script(const wr_tally_state *s, uint64_t address, char out[WR_PLACE_BYTES])
{
  char function[80], file[512];
  const wr_python_frame *f = wr_table_find(&s->python, wr_key_of_one(WR_OF_PYTHON, address));
  if (!f) return 0;
  copy_text(s, f->function, function, sizeof function);
  copy_text(s, f->file, file, sizeof file);
  const bool installed = strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") ||
                         strstr(file, "/lib/python") || file[0] == '<';
  (void)snprintf(out, WR_PLACE_BYTES, "%s (%.60s:%u)", function, base_of(file), f->line);
  return installed ? 4 : 5;
}

/* ---- a stack --------------------------------------------------------------------------------- */

static int put_frame(wr_places *p, uint64_t address, int least, char out[WR_PLACE_BYTES])
{
  char path[512];
  if (is_script(address)) return put_script(p->state, address, out);
  const wr_tally_module *m = module_of(p, address);
  if (!m) return 0;
  copy_text(p->state, m->path, path, sizeof path);
  const int own = own_of(path);
  if (own > least) put_native(p, m, address, out);
  return own;
}

void wr_place_of(wr_places *p, uint64_t stack, char out[WR_PLACE_BYTES])
{
  const wr_tally_stack *x =
      stack > WR_STACK_FORGOTTEN ? wr_table_find(&p->state->stack, stack) : NULL;
  int best = 0;
  (void)snprintf(out, WR_PLACE_BYTES, "unknown");
  for (uint32_t i = 0; x && i < x->depth && i < MOST_FRAMES && best < 5; i++) {
    char frame[WR_PLACE_BYTES];
    if (x->first > p->state->frame.count || i >= p->state->frame.count - x->first) break;
    const uint64_t address = *(const uint64_t *)wr_table_at(&p->state->frame, x->first + i);
    const int own = put_frame(p, address, best, frame);
    if (own <= best) continue;
    best = own;
    memcpy(out, frame, sizeof frame);
  }
  clean_place(out);
}

void wr_places_clear(wr_places *p)
{
  free(p->by_start);
  p->by_start = NULL;
  p->count = 0;
  p->sorted = false;
}

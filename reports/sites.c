/* sites.c: see sites.h. */
#include "reports/sites.h"
#include <stdlib.h>
#include <string.h>
#include "core/trace/api.h"
#include "reports/symbolize.h"

wr_site_sum *wr_site_sum_of(wr_site_sums *s, int64_t stack, uint32_t api)
{
  bool added;
  uint64_t *at = wr_map_put(&s->index, wr_mix(wr_mix(5, (uint64_t)stack), api), &added);
  if (!at) return NULL;
  if (!added) return &s->sum[*at];
  if (!wr_grow(&s->sum, &s->capacity, s->count + 1, sizeof(*s->sum))) return NULL;
  *at = s->count++;
  s->sum[*at] = (wr_site_sum){.stack = stack, .api = api};
  return &s->sum[*at];
}

bool wr_block_sum_add(wr_site_sums *s, int64_t stack, int device, uint64_t bytes)
{
  bool added;
  uint64_t *at =
      wr_map_put(&s->block_index, wr_mix(wr_mix(6, (uint64_t)stack), (uint64_t)device), &added);
  if (!at) return false;
  if (added) {
    if (!wr_grow(&s->block, &s->block_capacity, s->block_count + 1, sizeof(*s->block)))
      return false;
    *at = s->block_count++;
    s->block[*at] = (wr_block_sum){.stack = stack, .device = device};
  }
  s->block[*at].blocks++;
  s->block[*at].bytes += bytes;
  return true;
}

void wr_site_sums_free(wr_site_sums *s)
{
  wr_map_free(&s->index);
  wr_map_free(&s->block_index);
  free(s->sum);
  free(s->block);
  *s = (wr_site_sums){0};
}

/* ---- from a stack to its site ---------------------------------------------------------------- */

static const char *base_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *start)
{
  return !strncmp(text, start, strlen(start));
}

/* CUDA's own driver and runtime, and us: never the program's place. */
static bool foreign_module(const wr_frame *f)
{
  const char *name = base_name(f->module);
  return starts_with(name, "libcuda.so") || starts_with(name, "libcudart.so") ||
         starts_with(name, "libweir");
}

/* The plain name in "cudaError cudaMalloc<float>(float**, unsigned long)". */
static void plain_name(const char *name, char out[64])
{
  size_t end = strcspn(name, "<("), start = end;
  while (start && !strchr(" *&:", name[start - 1]))
    start--;
  size_t n = end - start < 63 ? end - start : 63;
  memcpy(out, name + start, n);
  out[n] = '\0';
}

/* A function of CUDA's, or one of the toolkit's C++ conveniences around it. */
static bool cuda_function(const wr_frame *f)
{
  char name[64];
  if (f->file && starts_with(base_name(f->file), "cuda_runtime")) return true;
  if (!f->function) return false;
  plain_name(f->function, name);
  if (name[0] != 'c' && name[0] != '_') return false;
  if (starts_with(name, "__cudart")) return true;
  for (uint32_t i = 1; i < weir_api_count; i++)
    if (weir_api(i)->name && !strcmp(weir_api(i)->name, name)) return true;
  return false;
}

/* An interpreter and what it calls through: a script's own frame says more, where there is one. */
static bool interpreter(const wr_frame *f)
{
  const char *name = base_name(f->module);
  return starts_with(name, "libffi") || starts_with(name, "_ctypes") ||
         starts_with(name, "libpython") || starts_with(name, "python");
}

/* The place of the site among the frames; `count` when there is none. A runtime that was linked in
 * has its own frames in the program's module: all up to the function that was called are CUDA's. */
static size_t site_frame(const wr_frame *f, size_t count)
{
  size_t at = 0;
  for (size_t i = 0; i < count && i < 16; i++)
    if (foreign_module(&f[i]) || cuda_function(&f[i])) at = i + 1;
  if (at >= count) return count;
  for (size_t i = at; interpreter(&f[at]) && i < count; i++)
    if (f[i].function && starts_with(f[i].function, "py::")) return i;
  return at;
}

/* Everything that belongs to a site but the numbers; a key tells equal ones. */
typedef struct place {
  uint64_t key;
  wr_site site;
} place;

typedef struct maker {
  wr_model *m;
  const wr_db *db;
  wr_symbols *symbols;
  wr_map by_stack; /* stack -> place */
  wr_map by_key;   /* hash of the place -> place */
  place *places;
  size_t count, capacity;
} maker;

static weir_status out_of_memory(const maker *k)
{
  return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", k->db->path);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
  for (; text && *text; text++)
    hash = wr_mix(hash, (unsigned char)*text);
  return wr_mix(hash, 0x100);
}

static char *clean(const char *text)
{
  return wr_text(text, strlen(text), true);
}

static char *function_of(const wr_frame *f)
{
  if (f->function) return clean(f->function);
  char *raw = f->module[0]
                  ? wr_format("%s+0x%llx", base_name(f->module), (unsigned long long)f->offset)
                  : wr_format("0x%llx", (unsigned long long)f->offset);
  char *text = raw ? clean(raw) : NULL;
  free(raw);
  return text;
}

static bool fill_place(wr_site *s, const wr_frame *f)
{
  if (!f) {
    s->function = clean("(no stack)");
    s->module = clean("");
    return s->function && s->module;
  }
  s->function = function_of(f);
  s->module = clean(base_name(f->module));
  s->file = f->file ? clean(f->file) : NULL;
  s->line = f->line;
  return s->function && s->module && (s->file || !f->file);
}

weir_status wr_site_words(wr_symbols *symbols, int64_t stack, char **out)
{
  const wr_frame *frames = NULL;
  size_t count = 0;
  wr_site site = {0};
  weir_status s = stack ? wr_symbols_stack(symbols, stack, &frames, &count) : WEIR_OK;
  if (s) return s;
  size_t at = site_frame(frames, count);
  bool good = fill_place(&site, at < count ? &frames[at] : count ? &frames[count - 1] : NULL);
  *out = !good       ? NULL
         : site.file ? wr_format("%s  %s:%d", site.function, base_name(site.file), site.line)
                     : wr_format("%s", site.function);
  free(site.function);
  free(site.module);
  free(site.file);
  return *out ? WEIR_OK : weir_fail(WEIR_ENOMEM, "naming a call site: out of host memory");
}

static weir_status place_of(maker *k, int64_t stack, size_t *out)
{
  const uint64_t *known = wr_map_get(&k->by_stack, (uint64_t)stack);
  if (known) {
    *out = (size_t)*known;
    return WEIR_OK;
  }
  const wr_frame *frames = NULL;
  size_t count = 0;
  weir_status s = stack ? wr_symbols_stack(k->symbols, stack, &frames, &count) : WEIR_OK;
  if (s) return s;
  size_t at = site_frame(frames, count);
  const wr_frame *f = at < count ? &frames[at] : count ? &frames[count - 1] : NULL;
  uint64_t key = 7;
  if (f) {
    key = hash_text(hash_text(hash_text(key, f->function), f->file), f->module);
    key = wr_mix(key, f->file ? (uint64_t)f->line : f->offset);
  }
  bool added;
  uint64_t *by_key = wr_map_put(&k->by_key, key, &added);
  uint64_t *by_stack = wr_map_put(&k->by_stack, (uint64_t)stack, NULL);
  if (!by_key || !by_stack) return out_of_memory(k);
  if (added) {
    if (!wr_grow(&k->places, &k->capacity, k->count + 1, sizeof(place))) return out_of_memory(k);
    *by_key = k->count;
    k->places[k->count] = (place){.key = key, .site.stack = stack};
    if (!fill_place(&k->places[k->count++].site, f)) return out_of_memory(k);
  }
  *out = (size_t)(*by_stack = *by_key);
  return WEIR_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* One list in the making: sums by place and function. */
typedef struct draft {
  wr_map index;
  struct draft_site {
    size_t place;
    uint32_t api; /* 0: none */
    int64_t stack;
    bool implicit;
    uint64_t calls, bytes, ns, weight; /* weight: what the list is ordered by */
  } * site;
  size_t count, capacity;
} draft;

static weir_status draft_add(maker *k, draft *d, int64_t stack, uint32_t api,
                             const uint64_t numbers[3], uint64_t weight, bool implicit)
{
  size_t at = 0;
  bool added;
  weir_status s = place_of(k, stack, &at);
  if (s) return s;
  uint64_t *slot = wr_map_put(&d->index, (uint64_t)at << 16 | (api & 0xffff), &added);
  if (!slot) return out_of_memory(k);
  if (added) {
    if (!wr_grow(&d->site, &d->capacity, d->count + 1, sizeof(*d->site))) return out_of_memory(k);
    *slot = d->count++;
    d->site[*slot] = (struct draft_site){.place = at, .api = api, .stack = stack};
  }
  struct draft_site *site = &d->site[*slot];
  site->calls += numbers[0], site->bytes += numbers[1], site->ns += numbers[2];
  site->weight += weight;
  site->implicit |= implicit;
  return WEIR_OK;
}

static int by_weight(const void *left, const void *right)
{
  const struct draft_site *a = left, *b = right;
  if (a->weight != b->weight) return a->weight < b->weight ? 1 : -1;
  if (a->calls != b->calls) return a->calls < b->calls ? 1 : -1;
  return a->stack < b->stack ? -1 : a->stack > b->stack;
}

static char *frame_line(const wr_frame *f)
{
  char *function = function_of(f), *line = NULL;
  if (function && f->file) {
    char *file = clean(f->file);
    line = file ? wr_format("%s (%s:%d)", function, file, f->line) : NULL;
    free(file);
  } else if (function && f->function && f->module[0]) {
    line = wr_format("%s (%s)", function, base_name(f->module));
  } else if (function) {
    line = wr_format("%s", function);
  }
  free(function);
  return line;
}

static weir_status keep_frames(maker *k, wr_site *site)
{
  const wr_frame *frames = NULL;
  size_t count = 0;
  weir_status s =
      site->stack ? wr_symbols_stack(k->symbols, site->stack, &frames, &count) : WEIR_OK;
  if (s || !count) return s;
  site->frames = calloc(count, sizeof(char *));
  if (!site->frames) return out_of_memory(k);
  for (size_t i = 0; i < count; i++) {
    site->frames[site->frame_count++] = frame_line(&frames[i]);
    if (!site->frames[i]) return out_of_memory(k);
  }
  return WEIR_OK;
}

static const char *name_of_api(const wr_model *m, uint32_t api)
{
  for (size_t i = 0; i < m->api_count; i++)
    if (m->apis[i].api == api) return m->apis[i].name;
  return "(no function)";
}

/* The heaviest sites of a draft, which is freed. */
static weir_status draft_finish(maker *k, draft *d, int top, bool with_api, wr_sites *out)
{
  weir_status s = WEIR_OK;
  if (d->count) qsort(d->site, d->count, sizeof(*d->site), by_weight);
  size_t keep = d->count < (size_t)top ? d->count : (size_t)top;
  out->all = d->count;
  out->site = calloc(keep ? keep : 1, sizeof(wr_site));
  if (!out->site) s = out_of_memory(k);
  for (size_t i = 0; !s && i < keep; i++) {
    const struct draft_site *from = &d->site[i];
    const wr_site *at = &k->places[from->place].site;
    wr_site *to = &out->site[out->count++];
    *to = (wr_site){.function = clean(at->function),
                    .module = clean(at->module),
                    .line = at->line,
                    .file = at->file ? clean(at->file) : NULL,
                    .stack = from->stack,
                    .calls = from->calls,
                    .bytes = from->bytes,
                    .ns = from->ns,
                    .implicit = from->implicit,
                    .api = with_api ? clean(name_of_api(k->m, from->api)) : NULL};
    bool whole = to->function && to->module && (to->file || !at->file) && (to->api || !with_api);
    s = whole ? keep_frames(k, to) : out_of_memory(k);
  }
  wr_map_free(&d->index);
  free(d->site);
  *d = (draft){0};
  return s;
}

static weir_status call_lists(maker *k, const wr_site_sums *sums, int top)
{
  draft alloc = {0}, copy = {0}, sync = {0};
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < sums->count; i++) {
    const wr_site_sum *x = &sums->sum[i];
    if (x->alloc_calls)
      s = draft_add(k, &alloc, x->stack, x->api,
                    (uint64_t[3]){x->alloc_calls, x->alloc_bytes, x->alloc_ns}, x->alloc_bytes,
                    false);
    if (!s && x->copy_calls)
      s = draft_add(k, &copy, x->stack, x->api,
                    (uint64_t[3]){x->copy_calls, x->copy_bytes, x->copy_ns}, x->copy_bytes, false);
    if (!s && x->sync_calls)
      s = draft_add(k, &sync, x->stack, x->api, (uint64_t[3]){x->sync_calls, 0, x->sync_ns},
                    x->sync_ns, x->implicit);
  }
  weir_status a = draft_finish(k, &alloc, top, true, &k->m->alloc);
  weir_status c = draft_finish(k, &copy, top, true, &k->m->copy);
  weir_status y = draft_finish(k, &sync, top, true, &k->m->sync);
  return s ? s : a ? a : c ? c : y;
}

/* Blocks live at exit (`device` WR_HOST) or at the device's peak. */
static weir_status block_list(maker *k, const wr_site_sums *sums, int device, int top,
                              wr_sites *out)
{
  draft d = {0};
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < sums->block_count; i++) {
    const wr_block_sum *b = &sums->block[i];
    if (b->device != device) continue;
    s = draft_add(k, &d, b->stack, 0, (uint64_t[3]){b->blocks, b->bytes, 0}, b->bytes, false);
  }
  weir_status f = draft_finish(k, &d, top, false, out);
  return s ? s : f;
}

weir_status wr_sites_make(wr_model *m, const wr_site_sums *sums, const wr_db *db, int top)
{
  maker k = {.m = m, .db = db};
  weir_status s = wr_symbols_open(&k.symbols, db);
  if (!s) s = call_lists(&k, sums, top);
  if (!s) s = block_list(&k, sums, WR_HOST, top, &m->leak);
  for (int device = 0; !s && device < WR_HOST; device++)
    if (m->devices[device].seen) s = block_list(&k, sums, device, top, &m->devices[device].owners);
  for (size_t i = 0; i < k.count; i++) {
    free(k.places[i].site.function);
    free(k.places[i].site.file);
    free(k.places[i].site.module);
  }
  free(k.places);
  wr_map_free(&k.by_stack);
  wr_map_free(&k.by_key);
  wr_symbols_close(k.symbols);
  return s;
}

void wr_sites_free(wr_sites *s)
{
  for (size_t i = 0; i < s->count; i++) {
    wr_site *x = &s->site[i];
    for (size_t f = 0; f < x->frame_count; f++)
      free(x->frames[f]);
    free(x->frames);
    free(x->function);
    free(x->file);
    free(x->module);
    free(x->api);
  }
  free(s->site);
  *s = (wr_sites){0};
}

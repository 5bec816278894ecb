/* sites.c: see sites.h. */
#include "reports/model/sites.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/api.h"
#include "core/trace/event.h"
#include "reports/symbols/symbolize.h"

wr_site_sum *wr_site_sum_of(wr_site_sums *s, int64_t stack, uint32_t api, uint32_t kind)
{
  bool added;
  uint64_t key = hash_mix(hash_mix(5, (uint64_t)stack), (uint64_t)kind << 32 | api);
  uint64_t *at = hash_map_place(&s->index, key, &added);
  if (!at) return NULL;
  if (!added) return &s->sum[*at];
  if (!wr_grow(&s->sum, &s->capacity, s->count + 1, sizeof(*s->sum))) return NULL;
  *at = s->count++;
  s->sum[*at] = (wr_site_sum){.stack = stack, .api = api, .kind = kind};
  return &s->sum[*at];
}

bool wr_block_sum_add(wr_site_sums *s, int64_t stack, int device, uint64_t bytes)
{
  bool added;
  uint64_t *at = hash_map_place(&s->block_index,
                                hash_mix(hash_mix(6, (uint64_t)stack), (uint64_t)device), &added);
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
  hash_map_free(&s->index);
  hash_map_free(&s->block_index);
  free(s->sum);
  free(s->block);
  *s = (wr_site_sums){0};
}

const char *wr_direction_name(int copy)
{
  switch (copy) {
  case WEIR_COPY_HTOD:
    return "h2d";
  case WEIR_COPY_DTOH:
    return "d2h";
  case WEIR_COPY_DTOD:
    return "d2d";
  case WEIR_COPY_HTOH:
    return "h2h";
  case WEIR_COPY_PTOP:
    return "p2p";
  default:
    return "unknown";
  }
}

const char *wr_mem_name(int mem)
{
  static const char *const names[] = {"unknown",  "pageable", "pinned", "device",
                                      "managed",  "array",    "host",   "physical",
                                      "imported", "code",     "context"};
  return mem >= 0 && mem < (int)(sizeof names / sizeof *names) ? names[mem] : "unknown";
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
  if (starts_with(name, "__cuda") || starts_with(name, "__device_stub_")) return true;
  for (uint32_t i = 1; i < api_total; i++)
    if (api_row(i)->name && !strcmp(api_row(i)->name, name)) return true;
  return false;
}

/* The function that a kernel is called by, which the compiler makes, is no place of its own: what
 * launches is who calls it. */
static bool launch_stub(const wr_frame *f)
{
  return f->function && starts_with(f->function, "__device_stub_");
}

/* An interpreter and what it calls through: a script's own frame says more, where there is one. */
static bool interpreter(const wr_frame *f)
{
  return wr_is_interpreter(base_name(f->module));
}

bool wr_is_interpreter(const char *name)
{
  return starts_with(name, "libffi") || starts_with(name, "_ctypes") ||
         starts_with(name, "libpython") || starts_with(name, "python");
}

/* ---- whose frame it is ----------------------------------------------------------------------- */

/* Where packages, the compiler and the system have their sources. */
static bool library_source(const char *path)
{
  static const char *const roots[] = {"/usr/include/", "/usr/lib/", "/usr/local/include/",
                                      "/usr/local/cuda", "<frozen "};
  static const char *const parts[] = {"/site-packages/",  "/dist-packages/", "/include/c++/",
                                      "/include/thrust/", "/thrust/thrust/", "/include/cub/",
                                      "/cub/cub/",        "/cuda/std/",      "/lib/python3."};
  for (size_t i = 0; i < sizeof roots / sizeof *roots; i++)
    if (starts_with(path, roots[i])) return true;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (strstr(path, parts[i])) return true;
  return false;
}

static bool library_module(const char *path)
{
  return starts_with(path, "/lib/") || starts_with(path, "/lib64/") || library_source(path);
}

/* "void std::__invoke_impl<...>(...)" is std's: templates have their result in front. */
static bool library_function(const char *function)
{
  static const char *const spaces[] = {
      "std::", "__gnu_cxx::", "thrust::", "cub::", "cuda::", "at::", "c10::", "torch::"};
  size_t end = strcspn(function, "<("), start = end;
  while (start && function[start - 1] != ' ')
    start--;
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
    if (starts_with(function + start, spaces[i])) return true;
  return false;
}

static bool library_frame(const wr_frame *f)
{
  if (f->file && library_source(f->file)) return true;
  if (f->script) return false;
  return library_module(f->module) || (f->function && library_function(f->function));
}

/* A frame of the user's own: neither a library's nor an interpreter's, nor in no module. */
static bool own_frame(const wr_frame *f)
{
  if (library_frame(f)) return false;
  return f->script ? f->file != NULL : f->module[0] && !interpreter(f);
}

/* The place of the site among the frames; `count` when there is none. A runtime that was linked in
 * has its own frames in the program's module: all up to the function that was called are CUDA's.
 * What a library does for the user is the user's: it can be changed there alone. Where no frame is known as
 * the user's it is the innermost one, of a script where an interpreter is in between. */
static size_t site_frame(const wr_frame *f, size_t count, bool innermost)
{
  size_t at = 0;
  for (size_t i = 0; i < count && i < 16; i++)
    if (foreign_module(&f[i]) || cuda_function(&f[i]) || (i && launch_stub(&f[i - 1]))) at = i + 1;
  if (at >= count) return count;
  for (size_t i = at; !innermost && i < count; i++)
    if (own_frame(&f[i])) return i;
  for (size_t i = at; interpreter(&f[at]) && i < count; i++)
    if (f[i].script) return i;
  return at;
}

size_t wr_site_in(const wr_db *db, const wr_frame *f, size_t count)
{
  size_t at = site_frame(f, count, db->innermost_sites);
  return at == count && count ? count - 1 : at;
}

size_t wr_site_at(const wr_frame *f, size_t count)
{
  return wr_site_in(&(const wr_db){0}, f, count);
}

/* A stack as a person reads it: its frames, and which of them is the place. */
typedef struct path {
  uint32_t *frames; /* owned */
  uint32_t count, at;
  size_t place;
} path;

typedef struct maker {
  wr_model *m;
  const wr_db *db;
  wr_symbols *symbols;
  hash_map by_frame; /* hash of a frame -> its number in m->frames */
  hash_map by_stack; /* stack -> path */
  hash_map by_path;  /* hash of its frames -> path */
  hash_map by_place; /* hash of its frame -> place */
  path *paths;
  wr_site *places; /* only what names them */
  size_t path_count, path_capacity, place_count, place_capacity, frame_capacity;
} maker;

static uint64_t hash_text(uint64_t hash, const char *text)
{
  for (; text && *text; text++)
    hash = hash_mix(hash, (unsigned char)*text);
  return hash_mix(hash, 0x100);
}

static char *clean_name(const char *text)
{
  return wr_text(text, strlen(text), true);
}

static char *function_of(const wr_frame *f)
{
  if (f->function) return clean_name(f->function);
  unsigned long long offset = (unsigned long long)f->offset;
  const char *name = base_name(f->module);
  char *raw = !f->module[0] ? wr_format("0x%llx", offset)
              : f->lacks    ? wr_format("%s+0x%llx (%s)", name, offset, f->lacks)
                            : wr_format("%s+0x%llx", name, offset);
  char *text = raw ? clean_name(raw) : NULL;
  free(raw);
  return text;
}

/* Whose the code is; a JIT compiler's is a library's. */
static int owner_of(const wr_frame *f)
{
  if (f->script) return WR_OF_SCRIPT;
  bool library = !f->module[0] || interpreter(f) || strstr(base_name(f->module), ".so");
  return library ? WR_OF_LIBRARY : WR_OF_PROGRAM;
}

static bool fill_place(wr_site *s, const wr_frame *f)
{
  if (!f) {
    s->function = clean_name("(no stack)");
    s->module = clean_name("");
    return s->function && s->module;
  }
  s->function = function_of(f);
  s->module = clean_name(base_name(f->module));
  s->file = f->file ? clean_name(f->file) : NULL;
  s->line = f->line;
  s->known = f->function != NULL;
  return s->function && s->module && (s->file || !f->file);
}

/* NULL: "(no stack)". */
static weir_status name_of_frame(const wr_frame *at, wr_frame_name *out)
{
  wr_site site = {0};
  bool good = fill_place(&site, at);
  *out = (wr_frame_name){.function = site.function,
                         .file = site.file,
                         .module = site.module,
                         .line = site.line,
                         .built = at ? at->built : 0,
                         .known = site.known};
  if (!good) wr_frame_name_free(out);
  return good ? WEIR_OK : weir_fail(WEIR_ENOMEM, "naming a call site: out of host memory");
}

/* Where a program, or a file of a script's, begins: what calls it is no code of the user's. */
static bool is_outermost(const wr_frame *f)
{
  static const char *const names[] = {"main", "_start", "<module>"};
  for (size_t i = 0; f->function && i < sizeof names / sizeof *names; i++)
    if (!strcmp(f->function, names[i])) return true;
  return false;
}

static bool are_one_function(const wr_frame *a, const wr_frame *b)
{
  if (!a->function || !b->function || strcmp(a->function, b->function) != 0) return false;
  return a->file == b->file || (a->file && b->file && !strcmp(a->file, b->file));
}

/* The user's frame that called the function of the one at `at`, which may call itself; NULL: none is known. */
static const wr_frame *caller_of(const wr_frame *f, size_t count, size_t at)
{
  if (!own_frame(&f[at]) || is_outermost(&f[at])) return NULL;
  for (size_t i = at + 1; i < count; i++) {
    if (f[i].function && !strcmp(f[i].function, "_start")) return NULL;
    if (own_frame(&f[i]) && !are_one_function(&f[i], &f[at])) return &f[i];
  }
  return NULL;
}

weir_status wr_site_and_caller(wr_symbols *symbols, int64_t stack, wr_frame_name *site,
                               wr_frame_name *caller)
{
  const wr_frame *frames = NULL;
  size_t count = 0;
  *caller = (wr_frame_name){0};
  weir_status s = stack ? wr_symbols_stack(symbols, stack, &frames, &count) : WEIR_OK;
  if (s) return s;
  const size_t at = count ? wr_site_in(wr_symbols_trace(symbols), frames, count) : 0;
  const wr_frame *above = count ? caller_of(frames, count, at) : NULL;
  s = name_of_frame(count ? &frames[at] : NULL, site);
  if (s || !above) return s;
  s = name_of_frame(above, caller);
  if (s) wr_frame_name_free(site);
  return s;
}

weir_status wr_site_place(wr_symbols *symbols, int64_t stack, wr_frame_name *out)
{
  wr_frame_name caller;
  weir_status s = wr_site_and_caller(symbols, stack, out, &caller);
  wr_frame_name_free(&caller);
  return s;
}

void wr_frame_name_free(wr_frame_name *name)
{
  free(name->function);
  free(name->module);
  free(name->file);
  *name = (wr_frame_name){0};
}

weir_status wr_site_words(wr_symbols *symbols, int64_t stack, char **out)
{
  wr_frame_name site;
  weir_status s = wr_site_place(symbols, stack, &site);
  if (s) return s;
  *out = site.file ? wr_format("%s  %s:%d", site.function, base_name(site.file), site.line)
                   : wr_format("%s", site.function);
  wr_frame_name_free(&site);
  return *out ? WEIR_OK : weir_fail(WEIR_ENOMEM, "naming a call site: out of host memory");
}

/* ---- paths ----------------------------------------------------------------------------------- */

static uint64_t frame_key(const wr_frame *f)
{
  uint64_t key = hash_text(hash_text(hash_text(7, f->function), f->file), f->module);
  return hash_mix(key, f->file ? (uint64_t)f->line : f->function ? 0 : f->offset);
}

/* The number of a frame among the model's. */
static weir_status name_frame(maker *k, const wr_frame *f, uint32_t *out)
{
  bool added;
  wr_model *m = k->m;
  uint64_t *known = hash_map_place(&k->by_frame, frame_key(f), &added);
  if (!known) return wr_db_out_of_memory(k->db);
  *out = (uint32_t)*known;
  if (!added) return WEIR_OK;
  if (!wr_grow(&m->frames, &k->frame_capacity, m->frame_count + 1, sizeof(*m->frames)))
    return wr_db_out_of_memory(k->db);
  *out = (uint32_t)(*known = m->frame_count);
  wr_frame_name *n = &m->frames[m->frame_count++];
  *n = (wr_frame_name){.function = function_of(f),
                       .module = clean_name(base_name(f->module)),
                       .file = f->file ? clean_name(f->file) : NULL,
                       .line = f->line,
                       .built = f->built,
                       .known = f->function != NULL,
                       .library = library_frame(f),
                       .of = owner_of(f)};
  return n->function && n->module && (n->file || !f->file) ? WEIR_OK : wr_db_out_of_memory(k->db);
}

static weir_status place_of(maker *k, const wr_frame *f, size_t *out)
{
  bool added;
  uint64_t *known = hash_map_place(&k->by_place, f ? frame_key(f) : 7, &added);
  if (!known) return wr_db_out_of_memory(k->db);
  if (added) {
    if (!wr_grow(&k->places, &k->place_capacity, k->place_count + 1, sizeof(wr_site)))
      return wr_db_out_of_memory(k->db);
    *known = k->place_count;
    k->places[k->place_count] = (wr_site){0};
    if (!fill_place(&k->places[k->place_count++], f)) return wr_db_out_of_memory(k->db);
  }
  *out = (size_t)*known;
  return WEIR_OK;
}

static weir_status name_frames(maker *k, const wr_frame *frames, size_t count, path *x)
{
  weir_status s = WEIR_OK;
  x->frames = calloc(count ? count : 1, sizeof(*x->frames));
  if (!x->frames) return wr_db_out_of_memory(k->db);
  for (; !s && x->count < count; x->count++)
    s = name_frame(k, &frames[x->count], &x->frames[x->count]);
  return s;
}

/* The path of a stack; those of equal ones are one. */
static weir_status path_of(maker *k, int64_t stack, size_t *out)
{
  bool added;
  const uint64_t *known = hash_map_get(&k->by_stack, (uint64_t)stack);
  if (known) {
    *out = (size_t)*known;
    return WEIR_OK;
  }
  const wr_frame *frames = NULL;
  size_t count = 0;
  weir_status s = stack ? wr_symbols_stack(k->symbols, stack, &frames, &count) : WEIR_OK;
  if (s) return s;
  size_t at = wr_site_in(k->db, frames, count);
  uint64_t key = hash_mix(8, count);
  for (size_t i = 0; i < count; i++)
    key = hash_mix(key, frame_key(&frames[i]));
  uint64_t *by_path = hash_map_place(&k->by_path, key, &added);
  uint64_t *by_stack = hash_map_place(&k->by_stack, (uint64_t)stack, NULL);
  if (!by_path || !by_stack) return wr_db_out_of_memory(k->db);
  if (added) {
    if (!wr_grow(&k->paths, &k->path_capacity, k->path_count + 1, sizeof(path)))
      return wr_db_out_of_memory(k->db);
    path *x = &k->paths[k->path_count];
    *by_path = k->path_count++;
    *x = (path){.at = (uint32_t)at};
    s = place_of(k, count ? &frames[at] : NULL, &x->place);
    if (!s) s = name_frames(k, frames, count, x);
  }
  *out = (size_t)(*by_stack = *by_path);
  return s;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* One list in the making: sums by place, function and kind of copy, and by stack of these. */
typedef struct draft {
  bool of_calls; /* its sites have a function */
  hash_map index, stack_index;
  struct draft_site {
    size_t place, number;
    uint32_t api, kind; /* 0: none */
    bool implicit;
    wr_sums sums;
    uint64_t weight; /* what the list is ordered by */
  } * site;
  struct draft_stack {
    size_t site, path; /* number of the site */
    bool implicit;
    wr_sums sums;
    uint64_t weight;
  } * stack;
  size_t count, capacity, stack_count, stack_capacity;
} draft;

static void sums_add(wr_sums *to, const wr_sums *more)
{
  to->calls += more->calls, to->bytes += more->bytes, to->ns += more->ns;
}

static weir_status draft_stack_add(maker *k, draft *d, size_t site, size_t at, const wr_sums *sums,
                                   uint64_t weight, bool implicit)
{
  bool added;
  uint64_t *slot = hash_map_place(&d->stack_index, hash_mix(hash_mix(4, site), at), &added);
  if (!slot) return wr_db_out_of_memory(k->db);
  if (added) {
    if (!wr_grow(&d->stack, &d->stack_capacity, d->stack_count + 1, sizeof(*d->stack)))
      return wr_db_out_of_memory(k->db);
    *slot = d->stack_count++;
    d->stack[*slot] = (struct draft_stack){.site = site, .path = at};
  }
  struct draft_stack *x = &d->stack[*slot];
  sums_add(&x->sums, sums);
  x->weight += weight;
  x->implicit |= implicit;
  return WEIR_OK;
}

/* What a stack adds to a list; `api` and `kind` 0: not told apart. */
typedef struct share {
  int64_t stack;
  uint32_t api, kind;
  wr_sums sums;
  uint64_t weight;
  bool implicit;
} share;

static weir_status draft_add(maker *k, draft *d, const share *x)
{
  size_t at = 0;
  bool added;
  weir_status s = path_of(k, x->stack, &at);
  if (s) return s;
  size_t place = k->paths[at].place;
  uint64_t key = hash_mix(hash_mix(3, place), (uint64_t)x->kind << 32 | x->api);
  uint64_t *slot = hash_map_place(&d->index, key, &added);
  if (!slot) return wr_db_out_of_memory(k->db);
  if (added) {
    if (!wr_grow(&d->site, &d->capacity, d->count + 1, sizeof(*d->site)))
      return wr_db_out_of_memory(k->db);
    *slot = d->count++;
    d->site[*slot] = (struct draft_site){
        .place = place, .number = (size_t)*slot, .api = x->api, .kind = x->kind};
  }
  struct draft_site *site = &d->site[*slot];
  sums_add(&site->sums, &x->sums);
  site->weight += x->weight;
  site->implicit |= x->implicit;
  return draft_stack_add(k, d, site->number, at, &x->sums, x->weight, x->implicit);
}

static int by_weight(const void *left, const void *right)
{
  const struct draft_site *a = left, *b = right;
  if (a->weight != b->weight) return a->weight < b->weight ? 1 : -1;
  if (a->sums.calls != b->sums.calls) return a->sums.calls < b->sums.calls ? 1 : -1;
  return a->number < b->number ? -1 : a->number > b->number;
}

static int by_stack_weight(const void *left, const void *right)
{
  const struct draft_stack *a = left, *b = right;
  if (a->site != b->site) return a->site < b->site ? -1 : 1;
  if (a->weight != b->weight) return a->weight < b->weight ? 1 : -1;
  if (a->sums.calls != b->sums.calls) return a->sums.calls < b->sums.calls ? 1 : -1;
  return a->path < b->path ? -1 : a->path > b->path;
}

static const char *name_of_api(const wr_model *m, uint32_t api)
{
  for (size_t i = 0; i < m->api_count; i++)
    if (m->apis[i].api == api) return m->apis[i].name;
  return "(no function)";
}

/* The stacks of a site, out of a draft's sorted ones. */
static weir_status keep_stacks(const maker *k, const draft *d, size_t number, wr_site *to)
{
  size_t low = 0, high = d->stack_count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (d->stack[middle].site < number)
      low = middle + 1;
    else
      high = middle;
  }
  for (high = low; high < d->stack_count && d->stack[high].site == number;)
    high++;
  to->stacks = calloc(high - low + 1, sizeof(*to->stacks));
  if (!to->stacks) return wr_db_out_of_memory(k->db);
  for (size_t i = low; i < high; i++) {
    const struct draft_stack *from = &d->stack[i];
    const path *x = &k->paths[from->path];
    wr_site_stack *stack = &to->stacks[to->stack_count++];
    *stack = (wr_site_stack){
        .count = x->count, .at = x->at, .implicit = from->implicit, .sums = from->sums};
    stack->frames = calloc(x->count + 1, sizeof(*stack->frames));
    if (!stack->frames) return wr_db_out_of_memory(k->db);
    memcpy(stack->frames, x->frames, x->count * sizeof(*stack->frames));
  }
  return WEIR_OK;
}

static weir_status keep_site(const maker *k, const draft *d, const struct draft_site *from,
                             wr_site *to)
{
  const wr_site *at = &k->places[from->place];
  bool copy = from->kind != 0;
  *to = (wr_site){.function = clean_name(at->function),
                  .module = clean_name(at->module),
                  .line = at->line,
                  .known = at->known,
                  .file = at->file ? clean_name(at->file) : NULL,
                  .api = d->of_calls ? clean_name(name_of_api(k->m, from->api)) : NULL,
                  .direction = copy ? (int)(from->kind >> 8 & 255) : -1,
                  .mem = copy ? (int)(from->kind >> 4 & 15) : -1,
                  .src_mem = copy ? (int)(from->kind & 15) : -1,
                  .calls = from->sums.calls,
                  .bytes = from->sums.bytes,
                  .ns = from->sums.ns,
                  .implicit = from->implicit};
  bool whole = to->function && to->module && (to->file || !at->file) && (to->api || !d->of_calls);
  return whole ? keep_stacks(k, d, from->number, to) : wr_db_out_of_memory(k->db);
}

/* The heaviest sites of a draft, which is freed. */
static weir_status draft_finish(maker *k, draft *d, int top, wr_sites *out)
{
  weir_status s = WEIR_OK;
  if (d->count) qsort(d->site, d->count, sizeof(*d->site), by_weight);
  if (d->stack_count) qsort(d->stack, d->stack_count, sizeof(*d->stack), by_stack_weight);
  size_t keep = d->count < (size_t)top ? d->count : (size_t)top;
  out->all = d->count;
  out->site = calloc(keep ? keep : 1, sizeof(wr_site));
  if (!out->site) s = wr_db_out_of_memory(k->db);
  for (size_t i = 0; !s && i < keep; i++)
    s = keep_site(k, d, &d->site[i], &out->site[out->count++]);
  for (size_t i = keep; d->site && i < d->count; i++)
    sums_add(&out->rest, &d->site[i].sums);
  hash_map_free(&d->index);
  hash_map_free(&d->stack_index);
  free(d->site);
  free(d->stack);
  *d = (draft){0};
  return s;
}

static wr_api_row *row_of_api(wr_model *m, uint32_t api)
{
  for (size_t i = 0; i < m->api_count; i++)
    if (m->apis[i].api == api) return &m->apis[i];
  return NULL;
}

static weir_status keep_place(const maker *k, wr_api_row *row, const struct draft_site *from)
{
  const wr_site *at = &k->places[from->place];
  row->place = calloc(1, sizeof *row->place);
  if (!row->place) return wr_db_out_of_memory(k->db);
  *row->place = (wr_frame_name){.function = clean_name(at->function),
                                .module = clean_name(at->module),
                                .file = at->file ? clean_name(at->file) : NULL,
                                .line = at->line,
                                .known = at->known};
  row->place_calls = from->sums.calls;
  row->place_ns = from->sums.ns;
  bool whole = row->place->function && row->place->module && (row->place->file || !at->file);
  return whole ? WEIR_OK : wr_db_out_of_memory(k->db);
}

/* Each function's heaviest place. */
static weir_status name_callers(maker *k, const wr_site_sums *sums)
{
  draft d = {.of_calls = true};
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < sums->count; i++) {
    const wr_site_sum *x = &sums->sum[i];
    share y = {.stack = x->stack, .api = x->api, .sums = {x->calls, 0, x->ns}, .weight = x->ns};
    if (x->calls && x->stack) s = draft_add(k, &d, &y);
  }
  if (d.count) qsort(d.site, d.count, sizeof(*d.site), by_weight);
  for (size_t i = 0; !s && i < d.count; i++) {
    wr_api_row *row = row_of_api(k->m, d.site[i].api);
    if (row && !row->places++) s = keep_place(k, row, &d.site[i]);
  }
  hash_map_free(&d.index);
  hash_map_free(&d.stack_index);
  free(d.site);
  free(d.stack);
  return s;
}

static weir_status call_lists(maker *k, const wr_site_sums *sums, int top)
{
  draft alloc = {.of_calls = true}, copy = {.of_calls = true}, sync = {.of_calls = true},
        redundant = {.of_calls = true}, wider = {.of_calls = true}, asked = {.of_calls = true};
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < sums->count; i++) {
    const wr_site_sum *x = &sums->sum[i];
    share y = {.stack = x->stack, .api = x->api};
    y.sums = (wr_sums){x->alloc_calls, x->alloc_bytes, x->alloc_ns};
    y.weight = x->alloc_bytes;
    if (x->alloc_calls) s = draft_add(k, &alloc, &y);
    y.sums = (wr_sums){x->sync_calls, 0, x->sync_ns};
    y.weight = x->sync_ns;
    y.implicit = x->implicit;
    if (!s && x->sync_calls) s = draft_add(k, &sync, &y);
    y.implicit = false;
    y.sums = (wr_sums){x->redundant_calls, 0, x->redundant_ns};
    y.weight = x->redundant_ns;
    if (!s && x->redundant_calls) s = draft_add(k, &redundant, &y);
    y.sums = (wr_sums){x->wider_calls, 0, x->wider_ns};
    y.weight = x->wider_ns;
    if (!s && x->wider_calls) s = draft_add(k, &wider, &y);
    y.sums = (wr_sums){x->asked_calls, 0, x->asked_ns};
    y.weight = x->asked_ns;
    if (!s && x->asked_calls) s = draft_add(k, &asked, &y);
    y.sums = (wr_sums){x->copy_calls, x->copy_bytes, x->copy_ns};
    y.weight = x->copy_bytes;
    y.kind = x->kind;
    if (!s && x->copy_calls) s = draft_add(k, &copy, &y);
  }
  weir_status a = draft_finish(k, &alloc, top, &k->m->alloc);
  weir_status c = draft_finish(k, &copy, top, &k->m->copy);
  weir_status y = draft_finish(k, &sync, top, &k->m->sync);
  weir_status r = draft_finish(k, &redundant, top, &k->m->redundant);
  weir_status w = draft_finish(k, &wider, top, &k->m->wider);
  weir_status q = draft_finish(k, &asked, top, &k->m->asked);
  return s ? s : a ? a : c ? c : y ? y : r ? r : w ? w : q;
}

/* Blocks live at exit (`device` WR_HOST; code and contexts WR_TAKEN) or at the device's peak. */
static weir_status block_list(maker *k, const wr_site_sums *sums, int device, int top,
                              wr_sites *out)
{
  draft d = {0};
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < sums->block_count; i++) {
    const wr_block_sum *b = &sums->block[i];
    share x = {.stack = b->stack, .sums = {b->blocks, b->bytes, 0}, .weight = b->bytes};
    if (b->device == device) s = draft_add(k, &d, &x);
  }
  weir_status f = draft_finish(k, &d, top, out);
  return s ? s : f;
}

static void site_free(wr_site *x)
{
  for (size_t i = 0; i < x->stack_count; i++)
    free(x->stacks[i].frames);
  free(x->stacks);
  free(x->function);
  free(x->file);
  free(x->module);
  free(x->api);
}

weir_status wr_sites_make(wr_model *m, const wr_site_sums *sums, const wr_db *db, int top)
{
  maker k = {.m = m, .db = db};
  weir_status s = wr_symbols_open(&k.symbols, db);
  if (!s) s = call_lists(&k, sums, top);
  if (!s) s = name_callers(&k, sums);
  if (!s) s = block_list(&k, sums, WR_HOST, top, &m->leak);
  if (!s) s = block_list(&k, sums, WR_TAKEN, top, &m->taken);
  for (int device = 0; !s && device < WR_HOST; device++)
    if (m->devices[device].seen) s = block_list(&k, sums, device, top, &m->devices[device].owners);
  for (size_t i = 0; i < k.place_count; i++)
    site_free(&k.places[i]);
  for (size_t i = 0; i < k.path_count; i++)
    free(k.paths[i].frames);
  free(k.places);
  free(k.paths);
  hash_map_free(&k.by_frame);
  hash_map_free(&k.by_stack);
  hash_map_free(&k.by_path);
  hash_map_free(&k.by_place);
  if (!s) s = wr_lacking_load(&m->coverage, k.symbols);
  wr_symbols_close(k.symbols);
  return s;
}

void wr_sites_cut(wr_sites *s, int top)
{
  while (s->count > (size_t)top) {
    wr_site *x = &s->site[--s->count];
    sums_add(&s->rest, &(wr_sums){x->calls, x->bytes, x->ns});
    site_free(x);
  }
}

void wr_sites_free(wr_sites *s)
{
  for (size_t i = 0; i < s->count; i++)
    site_free(&s->site[i]);
  free(s->site);
  *s = (wr_sites){0};
}

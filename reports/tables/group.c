/* group.c: see group.h. A group is found by numbers first (a stack, a stream of a process), and of
 * those that a person would call the same one is made: places are equal across processes. */
#include "reports/tables/group.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/model/model.h"
#include "reports/tables/tables.h"

enum { THREADS, PROCESSES, FUNCTIONS, RANGES, RANKS };
enum { FRAMES = 64 /* of a stack that are written */ };

typedef struct wr_numbered { /* what a number is called */
  uint64_t number;
  char *name; /* owned */
} wr_numbered;

static const char *const by_names[] = {
    [WEIR_BY_SITE] = "site",        [WEIR_BY_STACK] = "stack",     [WEIR_BY_MODULE] = "module",
    [WEIR_BY_RANGE] = "range",      [WEIR_BY_STREAM] = "stream",   [WEIR_BY_DEVICE] = "device",
    [WEIR_BY_THREAD] = "thread",    [WEIR_BY_PROCESS] = "process", [WEIR_BY_RANK] = "rank",
    [WEIR_BY_FUNCTION] = "function"};

const char *wr_by_name(report_by by)
{
  return by > WEIR_BY_NONE && by <= WEIR_BY_FUNCTION ? by_names[by] : "site";
}

bool report_by_read(const char *name, report_by *out)
{
  for (report_by b = WEIR_BY_SITE; b <= WEIR_BY_FUNCTION; b++) {
    if (strcmp(name, by_names[b]) != 0) continue;
    *out = b;
    return true;
  }
  return false;
}

const char *wr_device_words(int64_t device, char buffer[32])
{
  if (device == WR_HOST) return "host";
  (void)snprintf(buffer, 32, "device %" PRId64, device);
  return buffer;
}

void wr_put_device(wr_named_table *t, int64_t device)
{
  char words[32];
  if (device < 0 || device == WR_HOST)
    wr_table_put_text(t, "host");
  else
    wr_table_put_device(t, device, wr_device_words(device, words));
}

/* ---- names of numbers ------------------------------------------------------------------------ */

typedef struct name_load {
  wr_groups *g;
  int kind;
} name_load;

/* number, name: by number */
static weir_status take_name(void *context, sqlite3_stmt *q)
{
  const name_load *l = context;
  wr_groups *g = l->g;
  wr_numbered n = {(uint64_t)sqlite3_column_int64(q, 0), wr_db_text(q, 1)};
  if (!n.name ||
      !wr_grow(&g->name[l->kind], &g->name_capacity[l->kind], g->names[l->kind] + 1, sizeof(n))) {
    free(n.name);
    return wr_db_out_of_memory(g->db);
  }
  g->name[l->kind][g->names[l->kind]++] = n;
  return WEIR_OK;
}

static int by_numbered(const void *left, const void *right)
{
  const wr_numbered *a = left, *b = right;
  return a->number < b->number ? -1 : a->number > b->number;
}

static const char *name_of(const wr_groups *g, int kind, uint64_t number)
{
  wr_numbered key = {.number = number};
  const wr_numbered *found =
      g->names[kind] ? bsearch(&key, g->name[kind], g->names[kind], sizeof(key), by_numbered)
                     : NULL;
  return found ? found->name : NULL;
}

const char *wr_group_function(const wr_groups *g, int64_t api)
{
  const char *name = name_of(g, FUNCTIONS, (uint64_t)api);
  return name ? name : "(no function)";
}

const char *wr_group_thread(const wr_groups *g, int64_t thread)
{
  const char *name = name_of(g, THREADS, (uint64_t)thread);
  return name ? name : "(unknown thread)";
}

static weir_status load_names(wr_groups *g)
{
  static const char ranges[] =
      "SELECT id, CASE WHEN domain <> '' THEN substr(domain, 1, 200) || ': ' ELSE '' END"
      " || substr(text, 1, 1000) FROM range_name";
  static const char threads[] =
      "SELECT t.id, 'thread ' || t.tid || CASE WHEN t.name IS NULL OR t.name = '' THEN ''"
      " ELSE ' ' || substr(t.name, 1, 64) END || CASE WHEN (SELECT count(*) FROM"
      " process) > 1 THEN ' of process ' || p.pid ELSE '' END"
      " FROM thread t LEFT JOIN process p ON p.id = t.process";
  static const char *const queries[] = {
      [THREADS] = threads,
      [PROCESSES] = "SELECT id, 'process ' || pid || ' ' || substr(exe, 1, 200) FROM process",
      [FUNCTIONS] = "SELECT id, name FROM api",
      [RANGES] = ranges,
      [RANKS] = "SELECT id, 'rank ' || rank FROM process WHERE typeof(rank) = 'integer'"};
  weir_status s = WEIR_OK;
  for (int i = THREADS; !s && i <= RANKS; i++) {
    if (i == RANGES && (g->by != WEIR_BY_RANGE || !wr_db_has_table(g->db, "range_name"))) continue;
    if (i == RANKS && (g->by != WEIR_BY_RANK || !wr_db_has_column(g->db, "process", "rank")))
      continue; /* the column: not in a trace of an older Weir */
    name_load l = {g, i};
    s = wr_db_each(g->db, queries[i], take_name, &l);
    if (g->names[i]) qsort(g->name[i], g->names[i], sizeof(wr_numbered), by_numbered);
  }
  return s;
}

weir_status wr_groups_open(wr_groups *g, const wr_db *db, report_by by)
{
  *g = (wr_groups){.by = by ? by : WEIR_BY_SITE, .db = db};
  weir_status s = wr_symbols_open(&g->symbols, db);
  if (!s) s = load_names(g);
  if (s) wr_groups_close(g);
  return s;
}

void wr_groups_close(wr_groups *g)
{
  for (size_t i = 0; i < g->count; i++) {
    free(g->group[i].text);
    free(g->group[i].frames);
    wr_frame_name_free(&g->group[i].place);
  }
  for (int k = 0; k < 5; k++) {
    for (size_t i = 0; i < g->names[k]; i++)
      free(g->name[k][i].name);
    free(g->name[k]);
  }
  free(g->group);
  hash_map_free(&g->by_number);
  hash_map_free(&g->by_name);
  if (g->symbols) wr_symbols_close(g->symbols);
  *g = (wr_groups){0};
}

/* ---- groups ---------------------------------------------------------------------------------- */

static uint64_t hash_words(uint64_t hash, const char *text)
{
  for (; text && *text; text++)
    hash = hash_mix(hash, (unsigned char)*text);
  return hash_mix(hash, 0x100);
}

/* The device that something was done on: of a copy the one it writes, or else reads. */
static int64_t device_of_template(const wr_template *c)
{
  return c->device == WR_HOST && c->kind == WEIR_EV_COPY ? c->src_device : c->device;
}

/* The numbers that tell groups apart; several may be one group. */
static uint64_t number_key(const wr_groups *g, const wr_template *c, int64_t range)
{
  switch (g->by) {
  case WEIR_BY_RANGE:
    return (uint64_t)range;
  case WEIR_BY_STREAM:
    return hash_mix(hash_mix(3, (uint64_t)c->process), (uint64_t)c->stream);
  case WEIR_BY_DEVICE:
    return (uint64_t)device_of_template(c);
  case WEIR_BY_THREAD:
    return (uint64_t)c->thread;
  case WEIR_BY_PROCESS:
  case WEIR_BY_RANK:
    return (uint64_t)c->process;
  case WEIR_BY_FUNCTION:
    return (uint64_t)c->api;
  default:
    return (uint64_t)c->stack;
  }
}

static char *stream_words(const wr_groups *g, const wr_template *c)
{
  const char *process = name_of(g, PROCESSES, (uint64_t)c->process);
  int pid = process ? (int)strcspn(process + 8, " ") + 8 : 0;
  bool several = g->names[PROCESSES] > 1;
  const char *of = several ? " of " : "", *whose = several && process ? process : "";
  if (c->stream == WEIR_STREAM_LEGACY)
    return wr_format("default stream%s%.*s", of, several ? pid : 0, whose);
  if (c->stream == WEIR_STREAM_PER_THREAD)
    return wr_format("per-thread default stream%s%.*s", of, several ? pid : 0, whose);
  if (!c->stream) return wr_format("no stream%s%.*s", of, several ? pid : 0, whose);
  return wr_format("stream 0x%" PRIx64 "%s%.*s", (uint64_t)c->stream, of, several ? pid : 0, whose);
}

static char *frame_words(const wr_frame *f)
{
  const char *slash = f->file ? strrchr(f->file, '/') : NULL;
  const char *module = strrchr(f->module, '/');
  char *raw = f->function && f->file
                  ? wr_format("%.1000s (%s:%d)", f->function, slash ? slash + 1 : f->file, f->line)
              : f->function ? wr_format("%.1000s", f->function)
                            : wr_format("%s+0x%llx", module ? module + 1 : f->module,
                                        (unsigned long long)f->offset);
  char *text = raw ? wr_text(raw, strlen(raw), true) : NULL;
  free(raw);
  return text;
}

/* A whole stack, innermost first. */
static weir_status stack_words(wr_groups *g, int64_t stack, char **out)
{
  const wr_frame *frames = NULL;
  size_t count = 0, bytes = 0;
  weir_status s = stack ? wr_symbols_stack(g->symbols, stack, &frames, &count) : WEIR_OK;
  FILE *to = s ? NULL : open_memstream(out, &bytes);
  if (s) return s;
  if (!to) return wr_db_out_of_memory(g->db);
  if (!count) (void)fputs("(no stack)", to);
  for (size_t i = 0; i < count && i < FRAMES; i++) {
    char *words = frame_words(&frames[i]);
    if (!words) s = wr_db_out_of_memory(g->db);
    (void)fprintf(to, "%s%s", i ? " < " : "", words ? words : "");
    free(words);
  }
  if (count > FRAMES) (void)fprintf(to, " < %zu more", count - FRAMES);
  if (fclose(to) && !s) s = wr_db_out_of_memory(g->db);
  return s;
}

weir_status wr_group_place(wr_groups *g, int64_t stack, wr_frame_name *out)
{
  return wr_site_place(g->symbols, stack, out);
}

static char *numbered_words(const wr_groups *g, int kind, int64_t number, const char *otherwise)
{
  const char *name = name_of(g, kind, (uint64_t)number);
  return wr_format("%s", name ? name : otherwise);
}

static weir_status name_group(wr_groups *g, wr_group *x, const wr_template *c, int64_t range)
{
  char buffer[32];
  weir_status s = WEIR_OK;
  switch (g->by) {
  case WEIR_BY_RANGE:
    x->text = numbered_words(g, RANGES, range, "(no range)");
    break;
  case WEIR_BY_STREAM:
    x->text = stream_words(g, c);
    break;
  case WEIR_BY_DEVICE:
    x->text = wr_format("%s", wr_device_words(device_of_template(c), buffer));
    break;
  case WEIR_BY_THREAD:
    x->text = numbered_words(g, THREADS, c->thread, "(unknown)");
    break;
  case WEIR_BY_PROCESS:
    x->text = numbered_words(g, PROCESSES, c->process, "(unknown)");
    break;
  case WEIR_BY_RANK:
    x->text = numbered_words(g, RANKS, c->process, "(no rank)");
    break;
  case WEIR_BY_FUNCTION:
    x->text = numbered_words(g, FUNCTIONS, c->api, "(no function)");
    break;
  default:
    s = wr_site_place(g->symbols, c->stack, &x->place);
    if (s || g->by == WEIR_BY_SITE) return s;
    if (g->by == WEIR_BY_STACK) return stack_words(g, c->stack, &x->frames);
    x->text = wr_format("%s", x->place.module[0] ? x->place.module : "(unknown)");
  }
  return x->text ? s : wr_db_out_of_memory(g->db);
}

static uint64_t name_key(const wr_groups *g, const wr_group *x)
{
  if (g->by == WEIR_BY_STACK) return hash_words(13, x->frames);
  if (g->by != WEIR_BY_SITE) return hash_words(14, x->text);
  return hash_mix(hash_words(hash_words(15, x->place.function), x->place.file),
                  x->place.file ? (uint64_t)x->place.line : 0);
}

static void group_free(wr_group *x)
{
  free(x->text);
  free(x->frames);
  wr_frame_name_free(&x->place);
}

/* Takes x, or what is called the same. */
static weir_status keep_group(wr_groups *g, wr_group *x, size_t *out)
{
  bool added = false;
  uint64_t *at = hash_map_place(&g->by_name, name_key(g, x), &added);
  if (!at) return wr_db_out_of_memory(g->db);
  if (added) {
    if (!wr_grow(&g->group, &g->capacity, g->count + 1, sizeof(*x)))
      return wr_db_out_of_memory(g->db);
    *at = g->count;
    g->group[g->count++] = *x;
  } else {
    group_free(x);
  }
  *out = (size_t)*at;
  return WEIR_OK;
}

weir_status wr_group_of(wr_groups *g, const wr_template *c, int64_t range, size_t *out)
{
  uint64_t key = number_key(g, c, range);
  const uint64_t *known = hash_map_get(&g->by_number, key);
  if (known) {
    *out = (size_t)*known;
    return WEIR_OK;
  }
  wr_group x = {0};
  weir_status s = name_group(g, &x, c, range);
  if (!s) s = keep_group(g, &x, out);
  if (s) {
    group_free(&x);
    return s;
  }
  return hash_map_put(&g->by_number, key, *out) ? wr_db_out_of_memory(g->db) : WEIR_OK;
}

/* ---- in tables ------------------------------------------------------------------------------- */

static bool by_place(const wr_groups *g)
{
  return g->by == WEIR_BY_SITE || g->by == WEIR_BY_STACK;
}

size_t wr_group_columns(const wr_groups *g, wr_column out[2])
{
  out[0] =
      (wr_column){by_place(g) ? "place" : wr_by_name(g->by), by_place(g) ? "in" : wr_by_name(g->by),
                  by_place(g) ? WR_COLUMN_PLACE : WR_COLUMN_TEXT, 0};
  if (g->by != WEIR_BY_STACK) return 1;
  out[1] = (wr_column){"stack", "stack, innermost first", WR_COLUMN_TEXT, 0};
  return 2;
}

void wr_group_put(const wr_groups *g, wr_named_table *t, const wr_group *x)
{
  if (!x)
    wr_table_put_text(t, "(all others)");
  else if (by_place(g))
    wr_table_put_place(t, x->place.function, x->place.file, x->place.line);
  else if (g->by == WEIR_BY_DEVICE && strcmp(x->text, "host") != 0)
    wr_table_put_device(t, strtoll(x->text + strlen("device "), NULL, 10), x->text);
  else
    wr_table_put_text(t, x->text);
  if (g->by == WEIR_BY_STACK) wr_table_put_text(t, x ? x->frames : NULL);
}

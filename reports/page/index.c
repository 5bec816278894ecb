/* index.c: see index.h. Every text goes through wr_put_json_text(); '<', which in JSON can be in a
 * text only, is written as an escape, so that nothing in the index ends the script it is in. */
#include "reports/page/index.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/findings/source.h"
#include "reports/write/json_1.h"

enum { LANE_TITLE = 2200 };

typedef struct index_writer {
  FILE *to;
  page_parts *p;
  uint64_t texts_cut;
} index_writer;

static void put_text(index_writer *w, const char *text)
{
  w->texts_cut += page_put_text(w->to, text);
}

static void put_number(index_writer *w, const char *before, int64_t number)
{
  (void)fprintf(w->to, "%s%lld", before, (long long)number);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void put_devices(index_writer *w)
{
  const char *comma = "";
  (void)fputs("\"devices\":[", w->to);
  for (int i = 0; i < WR_HOST; i++) {
    const wr_device *d = &w->p->model->devices[i];
    if (!d->seen) continue;
    const wr_in_use *u = &d->in_use[WR_BY_DRIVER];
    (void)fprintf(w->to, "%s{\"ordinal\":%d,\"name\":", comma, i);
    put_text(w, d->name);
    if (u->samples)
      put_number(w, ",\"capacity_bytes\":", (int64_t)u->total);
    else
      (void)fputs(",\"capacity_bytes\":null", w->to);
    (void)fputc('}', w->to);
    comma = ",";
  }
  (void)fputc(']', w->to);
}

static void put_processes(index_writer *w)
{
  const wr_model *m = w->p->model;
  (void)fputs(",\"processes\":[", w->to);
  for (size_t i = 0; i < m->process_count; i++) {
    (void)fputs(i ? "," : "", w->to);
    put_number(w, "{\"pid\":", m->processes[i].pid);
    (void)fputs(",\"name\":", w->to);
    put_text(w, m->processes[i].exe);
    (void)fputc('}', w->to);
  }
  (void)fputc(']', w->to);
}

static const char *mode_of(const wr_model *m)
{
  return m->cache.mode ? m->cache.mode : m->process_count ? m->processes[0].mode : "";
}

/* What the page lacks of the trace is said in it. */
static void put_own_notes(index_writer *w, const char *comma)
{
  const page_places *p = w->p->places;
  const wr_findings *f = w->p->findings;
  if (f && f->unavailable) {
    (void)fprintf(w->to, "%s\"No findings: %s.\"", comma, f->unavailable);
    comma = ",";
  }
  if (p->texts_cut + w->texts_cut) {
    (void)fprintf(w->to, "%s\"Long texts of the trace are cut:", comma);
    put_number(w, " ", (int64_t)p->texts_cut + (int64_t)w->texts_cut);
    (void)fputs(".\"", w->to);
    comma = ",";
  }
  if (p->stacks_cut)
    (void)fprintf(w->to, "%s\"Deep stacks, or too many of them, are cut: %llu.\"", comma,
                  (unsigned long long)p->stacks_cut);
}

static void put_run(index_writer *w)
{
  const wr_model *m = w->p->model;
  bool times = w->p->calls->device_times;
  (void)fputs("\"run\":{\"command\":", w->to);
  put_text(w, m->command);
  (void)fputs(",\"weir\":", w->to);
  put_text(w, m->version);
  put_number(w, ",\"start_ms\":", m->start_realtime_ns / 1000000);
  put_number(w, ",\"duration_ns\":", m->duration_ns > 0 ? m->duration_ns : 0);
  (void)fputs(",\"mode\":", w->to);
  put_text(w, mode_of(m));
  (void)fprintf(w->to, ",\"finished\":%s,\"device_times\":%s,\"host_times_only_note\":",
                m->finished ? "true" : "false", times ? "true" : "false");
  put_text(w, times ? NULL
              : wr_device_times_asked(&m->device_times)
                  ? "Times are the host's, of its calls: the run has no device times."
                  : "Times are the host's, of its calls: the run has no device times "
                    "(weir run --device-times).");
  (void)fputc(',', w->to);
  put_devices(w);
  put_processes(w);
  (void)fputs(",\"notes\":[", w->to);
  for (size_t i = 0; i < m->note_count; i++) {
    (void)fputs(i ? "," : "", w->to);
    put_text(w, m->notes[i]);
  }
  put_own_notes(w, m->note_count ? "," : "");
  (void)fputs("]}", w->to);
}

static void put_totals(index_writer *w)
{
  const wr_totals *t = &w->p->model->total;
  const char *comma = "";
  (void)fputs(",\n\"totals\":{", w->to);
#define TOTAL(name)                                                                                \
  (void)fputs(comma, w->to);                                                                       \
  put_number(w, "\"" #name "\":", (int64_t)t->name);                                               \
  comma = ",";
  WR_TOTAL_MAP(TOTAL)
#undef TOTAL
  (void)fputc('}', w->to);
}

/* ---- places ---------------------------------------------------------------------------------- */

enum { MOST_QUOTED = 2000 };

static void put_strings(index_writer *w)
{
  const page_places *p = w->p->places;
  (void)fputs(",\n\"strings\":[", w->to);
  for (size_t i = 0; i < p->texts; i++) {
    (void)fputs(i ? "," : "", w->to);
    wr_put_json_text(w->to, p->text[i]);
  }
  (void)fputc(']', w->to);
}

static void put_frames(index_writer *w)
{
  static const char *const names[] = {"{\"function\":[", "],\"file\":[", "],\"line\":["};
  const page_places *p = w->p->places;
  (void)fputs(",\n\"frames\":", w->to);
  for (int k = 0; k < 3; k++) {
    (void)fputs(names[k], w->to);
    for (size_t i = 0; i < p->frames; i++) {
      const page_frame *f = &p->frame[i];
      int64_t file = f->file ? (int64_t)f->file : -1;
      put_number(w, i ? "," : "", k == 0 ? (int64_t)f->function : k == 1 ? file : f->line);
    }
  }
  (void)fputs("]}", w->to);
}

static void put_stacks(index_writer *w)
{
  const page_places *p = w->p->places;
  (void)fputs(",\n\"stacks\":[", w->to);
  for (size_t i = 0, at = 0; i < p->stacks; i++) {
    (void)fputs(i ? ",[" : "[", w->to);
    for (size_t first = at; at < p->stack_end[i]; at++)
      put_number(w, at > first ? "," : "", p->stacked[at]);
    (void)fputc(']', w->to);
  }
  (void)fputc(']', w->to);
}

static void put_sites(index_writer *w)
{
  static const char *const names[] = {"{\"stack\":[", "],\"frame\":[", "],\"api\":["};
  const page_places *p = w->p->places;
  (void)fputs(",\n\"sites\":", w->to);
  for (int k = 0; k < 3; k++) {
    (void)fputs(names[k], w->to);
    for (size_t i = 0; i < p->sites; i++) {
      const page_site *s = &p->site[i];
      int64_t frame = s->stack ? (int64_t)page_place_of(p, s->stack) : -1;
      put_number(w, i ? "," : "",
                 k == 0   ? (int64_t)s->stack
                 : k == 1 ? frame
                          : (int64_t)p->api_text[s->api]);
    }
  }
  (void)fputs("]}", w->to);
}

/* The source lines of the sites, where they are at hand. */
static weir_status put_sources(index_writer *w)
{
  const page_places *p = w->p->places;
  bool *seen = calloc(p->frames + 1, 1);
  const char *comma = "";
  if (!seen) return weir_fail(WEIR_ENOMEM, "writing a page: out of host memory");
  (void)fputs(",\n\"sources\":[", w->to);
  for (size_t i = 0, quoted = 0; w->p->quoted && i < p->sites && quoted < MOST_QUOTED; i++) {
    uint32_t at = page_place_of(p, p->site[i].stack);
    if (seen[at] || at == p->frames) continue;
    seen[at] = true;
    const page_frame *f = &p->frame[at];
    if (!f->file || !f->line) continue;
    char *text =
        wr_source_line(p->text[f->file], f->line, w->p->model->start_realtime_ns, f->built);
    if (!text) continue;
    (void)fputs(comma, w->to);
    put_number(w, "{\"frame\":", at);
    (void)fputs(",\"text\":", w->to);
    put_text(w, text);
    (void)fputc('}', w->to);
    free(text);
    comma = ",";
    quoted++;
  }
  (void)fputc(']', w->to);
  free(seen);
  return WEIR_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int device_number(int device)
{
  return device == WR_HOST ? -1 : device;
}

static const char *kind_name(int mem)
{
  static const char *const names[] = {"unknown",  "pageable", "pinned",  "device",
                                      "managed",  "array",    "host",    "physical",
                                      "imported", "code",     "context", "all"};
  int count = (int)(sizeof(names) / sizeof(names[0]));
  return names[mem == PAGE_ALL_KINDS ? count - 1 : mem > 0 && mem < count - 1 ? mem : 0];
}

static int level_column(index_writer *w, const page_series *s, int which)
{
  int column = page_column_new(w->p->columns, PAGE_DV);
  page_rows rows = {.to = w->p->columns, .column = &column, .columns = 1};
  for (uint32_t b = 0; b < w->p->calls->cube.bins.count; b++) {
    const page_level *l = &s->level[b];
    *page_row(&rows) = which == 0 ? l->least : which == 1 ? l->most : l->end;
  }
  page_rows_end(&rows);
  return column;
}

static void put_memory(index_writer *w)
{
  const page_memory *m = w->p->memory;
  (void)fputs(",\n\"memory_kinds\":[", w->to);
  for (int mem = 0; mem < 12; mem++) {
    (void)fputs(mem ? "," : "", w->to);
    put_text(w, kind_name(mem == 11 ? PAGE_ALL_KINDS : mem));
  }
  (void)fputs("],\n\"memory\":[", w->to);
  for (size_t i = 0; i < m->series_count; i++) {
    const page_series *s = &m->series[i];
    put_number(w, i ? ",{\"device\":" : "{\"device\":", device_number(s->device));
    put_number(w, ",\"kind\":", s->mem == PAGE_ALL_KINDS ? 11 : s->mem < 11 ? s->mem : 0);
    (void)fprintf(w->to, ",\"registered\":%s", s->registered ? "true" : "false");
    put_number(w, ",\"min\":", level_column(w, s, 0));
    put_number(w, ",\"max\":", level_column(w, s, 1));
    put_number(w, ",\"end\":", level_column(w, s, 2));
    put_number(w, ",\"peak_bytes\":", s->peak);
    put_number(w, ",\"peak_ns\":", s->peak_ns > 0 ? s->peak_ns : 0);
    (void)fputc('}', w->to);
  }
  (void)fputc(']', w->to);
}

static int area_column(index_writer *w, const page_area *a)
{
  int column = page_column_new(w->p->columns, PAGE_DV);
  page_put(w->p->columns, column, a->end, 1, w->p->calls->cube.bins.count);
  return column;
}

static void put_blocks(index_writer *w)
{
  static const char *const names[] = {"start", "end", "bytes", "site", "device"};
  const page_memory *m = w->p->memory;
  uint64_t kept = 0;
  int column[5];
  for (int k = 0; k < 5; k++)
    column[k] = page_column_new(w->p->columns, k == 0 ? PAGE_DV : k == 4 ? PAGE_ZV : PAGE_V);
  page_rows rows = {.to = w->p->columns, .column = column, .columns = 5};
  for (size_t i = 0; i < m->blocks; i++) {
    const page_block *b = &m->block[i];
    int64_t *row = page_row(&rows);
    row[0] = b->start, row[1] = b->end, row[2] = (int64_t)b->bytes;
    row[3] = b->site, row[4] = device_number(b->device);
    kept += b->bytes;
  }
  page_rows_end(&rows);
  (void)fputs(",\"blocks\":{", w->to);
  for (int k = 0; k < 5; k++)
    (void)fprintf(w->to, "\"%s\":%d,", names[k], column[k]);
  put_number(w, "\"count\":", (int64_t)m->blocks);
  put_number(w, ",\"all\":", (int64_t)m->all_blocks);
  put_number(w, ",\"bytes_left_out\":", (int64_t)(m->all_bytes - kept));
  (void)fputc('}', w->to);
}

static void put_peak(index_writer *w, const page_peak *p)
{
  put_number(w, "{\"device\":", p->device);
  put_number(w, ",\"bytes\":", (int64_t)p->bytes);
  put_number(w, ",\"at_ns\":", p->at_ns > 0 ? p->at_ns : 0);
  (void)fputs(",\"sites\":[", w->to);
  for (size_t i = 0; i < p->areas; i++)
    put_number(w, i ? "," : "", p->area[i].site);
  (void)fputs("],\"columns\":[", w->to);
  for (size_t i = 0; i < p->areas; i++)
    put_number(w, i ? "," : "", area_column(w, &p->area[i]));
  put_number(w, "],\"rest\":", area_column(w, &p->area[p->areas]));
}

/* The device with the largest peak, and the others. */
static void put_peaks(index_writer *w)
{
  const page_memory *m = w->p->memory;
  const page_peak *most = NULL;
  const char *comma = "";
  for (size_t i = 0; i < m->peaks; i++)
    if (m->peak[i].device != WR_HOST && (!most || m->peak[i].bytes > most->bytes))
      most = &m->peak[i];
  (void)fputs(",\n\"peak\":", w->to);
  if (most) {
    put_peak(w, most);
    put_blocks(w);
    (void)fputc('}', w->to);
  } else {
    (void)fputs("null", w->to);
  }
  (void)fputs(",\n\"other_peaks\":[", w->to);
  for (size_t i = 0; i < m->peaks; i++) {
    if (&m->peak[i] == most || m->peak[i].device == WR_HOST) continue;
    (void)fputs(comma, w->to);
    put_peak(w, &m->peak[i]);
    (void)fputc('}', w->to);
    comma = ",";
  }
  (void)fputc(']', w->to);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* `"what":{"a":3,"b":4` */
static void put_columns(index_writer *w, const char *what, const char *const names[],
                        const int column[], int count)
{
  (void)fprintf(w->to, ",\n\"%s\":{", what);
  for (int k = 0; k < count; k++)
    (void)fprintf(w->to, "%s\"%s\":%d", k ? "," : "", names[k], column[k]);
}

static void put_cube(index_writer *w)
{
  static const char *const names[] = {"bin",   "site",  "class",   "direction", "route",
                                      "count", "bytes", "host_ns", "device_ns"};
  static const page_cube_field fields[] = {
      PAGE_CELL_BIN,   PAGE_CELL_SITE,  PAGE_CELL_CLASS,   PAGE_CELL_DIRECTION, PAGE_CELL_ROUTE,
      PAGE_CELL_COUNT, PAGE_CELL_BYTES, PAGE_CELL_HOST_NS, PAGE_CELL_DEVICE_NS};
#define CLASS_NAME(id, name) "\"" name "\","
  static const char classes[] = PAGE_CLASS_MAP(CLASS_NAME);
#undef CLASS_NAME
  int column[PAGE_CELL_FIELDS];
  (void)fprintf(w->to, ",\n\"classes\":[%.*s]", (int)sizeof(classes) - 2, classes);
  page_cube_columns(&w->p->calls->cube, w->p->columns, fields, column, PAGE_CELL_FIELDS);
  put_columns(w, "cube", names, column, PAGE_CELL_FIELDS);
  (void)fputc('}', w->to);
}

static void put_changes(index_writer *w)
{
  static const char *const names[] = {"bin", "site", "class", "count", "bytes"};
  static const page_cube_field fields[] = {PAGE_CELL_BIN, PAGE_CELL_SITE, PAGE_CELL_CLASS,
                                           PAGE_CELL_COUNT, PAGE_CELL_BYTES};
  page_cube *c = &w->p->memory->changes;
  int column[5];
  page_cube_columns(c, w->p->columns, fields, column, 5);
  put_columns(w, "changes", names, column, 5);
  put_number(w, ",\"bins\":{\"count\":", c->bins.count);
  put_number(w, ",\"width_ns\":", c->bins.width_ns);
  (void)fputs("}}", w->to);
}

typedef struct lane_names {
  index_writer *w;
  hash_map tid;  /* thread -> tid plus 1 */
  hash_map name; /* thread -> text */
  hash_map pid;  /* process -> pid */
} lane_names;

static weir_status take_thread(void *context, sqlite3_stmt *q)
{
  lane_names *x = context;
  uint64_t row = (uint64_t)sqlite3_column_int64(q, 0);
  const char *name = (const char *)sqlite3_column_text(q, 2);
  uint32_t text = 0;
  weir_status s = name ? page_text_of(x->w->p->places, name, &text) : WEIR_OK;
  if (!s) s = hash_map_put(&x->tid, row, (uint64_t)sqlite3_column_int64(q, 1));
  return s ? s : hash_map_put(&x->name, row, text);
}

static int64_t number_in(const hash_map *map, int64_t key)
{
  const uint64_t *value = hash_map_get(map, (uint64_t)key);
  return value ? (int64_t)*value : 0;
}

static void put_lane(const lane_names *x, const page_lane *l, int64_t pid)
{
  index_writer *w = x->w;
  const char *name = w->p->places->text[number_in(&x->name, l->thread)];
  char title[LANE_TITLE];
  if (l->device)
    (void)snprintf(title, sizeof(title), "device %lld, stream %lld%s", (long long)l->ordinal,
                   (long long)l->stream, l->several ? " and further ones" : "");
  else
    (void)snprintf(title, sizeof(title), "%s%sthread %lld%s", name, *name ? ", " : "",
                   (long long)number_in(&x->tid, l->thread), l->several ? " and further ones" : "");
  (void)fputs("{\"title\":", w->to);
  put_text(w, title);
  (void)fprintf(w->to, ",\"kind\":\"%s\"", l->device ? "device" : "host");
  put_number(w, ",\"device\":", l->device ? l->ordinal : -1);
  put_number(w, ",\"stream\":", l->device ? l->stream : -1);
  put_number(w, ",\"process\":", pid);
  put_number(w, ",\"thread\":", l->device ? -1 : number_in(&x->tid, l->thread));
  (void)fputc('}', w->to);
}

static weir_status put_lanes(index_writer *w)
{
  const page_lanes *x = &w->p->calls->lanes;
  const wr_model *m = w->p->model;
  lane_names names = {.w = w};
  weir_status s =
      wr_db_each(w->p->db, "SELECT id, tid, name FROM main.thread", take_thread, &names);
  for (size_t i = 0; !s && i < m->process_count; i++)
    s = hash_map_put(&names.pid, (uint64_t)m->processes[i].id, (uint64_t)m->processes[i].pid);
  (void)fputs(",\n\"lanes\":[", w->to);
  for (size_t i = 0; !s && i < x->count; i++) {
    (void)fputs(i ? ",\n" : "", w->to);
    put_lane(&names, &x->lane[i], number_in(&names.pid, x->lane[i].process));
  }
  (void)fputc(']', w->to);
  hash_map_free(&names.tid);
  hash_map_free(&names.name);
  hash_map_free(&names.pid);
  return s;
}

enum { OPS_AHEAD = 16 /* those of a lane lie among those of all */ };

static void put_ops(index_writer *w)
{
  static const char *const names[] = {"lane",  "start", "duration", "class",
                                      "bytes", "site",  "event",    "name"};
  static const page_encoding encodings[] = {PAGE_DV, PAGE_DV, PAGE_V,  PAGE_V,
                                            PAGE_V,  PAGE_V,  PAGE_DV, PAGE_V};
  static const char *const bin_names[] = {"lane", "bin", "busy_ns", "count"};
  page_lanes *x = &w->p->calls->lanes;
  int column[PAGE_OPS_COLUMNS], bins[4];
  bool sorted = page_ops_sort(x);
  w->p->columns->failed |= !sorted;
  for (int k = 0; k < PAGE_OPS_COLUMNS; k++)
    column[k] = page_column_new(w->p->columns, encodings[k]);
  page_rows rows = {.to = w->p->columns, .column = column, .columns = PAGE_OPS_COLUMNS};
  for (size_t i = 0; sorted && i < x->ops; i++) {
    const page_op *o = &x->op[x->order[i]];
    if (i + OPS_AHEAD < x->ops) __builtin_prefetch(&x->op[x->order[i + OPS_AHEAD]]);
    bool launch = o->of == PAGE_LAUNCH || o->of == PAGE_GRAPH;
    int64_t *row = page_row(&rows);
    row[0] = o->lane, row[1] = o->start, row[2] = o->ns, row[3] = o->of;
    row[4] = launch ? 0 : (int64_t)o->bytes;
    row[5] = o->site, row[6] = o->event;
    row[7] = (int64_t)page_kernel_of(w->p->calls, o);
  }
  page_rows_end(&rows);
  put_columns(w, "ops", names, column, PAGE_OPS_COLUMNS);
  put_number(w, ",\"count\":", (int64_t)x->ops);
  put_number(w, ",\"all\":", (int64_t)x->all_ops);
  put_number(w, ",\"shortest_kept_ns\":", x->shortest_ns);
  (void)fputc('}', w->to);
  page_lane_columns(x, w->p->columns, bins);
  put_columns(w, "lane_bins", bin_names, bins, 4);
  (void)fputc('}', w->to);
}

static void put_flames(index_writer *w)
{
  static const char *const names[] = {"stack",       "peak_bytes",        "alloc_count",
                                      "alloc_bytes", "wait_ns",           "transfer_bytes",
                                      "transfer_ns", "transfer_device_ns"};
  const page_calls *c = w->p->calls;
  int column[8];
  for (int k = 0; k < 8; k++)
    column[k] = page_column_new(w->p->columns, k ? PAGE_V : PAGE_DV);
  page_rows rows = {.to = w->p->columns, .column = column, .columns = 8};
  for (size_t i = 0; i < c->flames; i++) {
    const page_flame *f = &c->flame[i];
    const int64_t values[8] = {(int64_t)i,
                               (int64_t)f->peak_bytes,
                               (int64_t)f->alloc_count,
                               (int64_t)f->alloc_bytes,
                               (int64_t)f->wait_ns,
                               (int64_t)f->transfer_bytes,
                               (int64_t)f->transfer_ns,
                               (int64_t)f->transfer_device_ns};
    bool any = false;
    for (int k = 1; k < 8; k++)
      any |= values[k] != 0;
    if (any) memcpy(page_row(&rows), values, sizeof(values));
  }
  page_rows_end(&rows);
  put_columns(w, "flames", names, column, 8);
  (void)fputc('}', w->to);
}

static void put_place(index_writer *w, const char *before, int device)
{
  if (device == WR_HOST)
    (void)fprintf(w->to, "%s\"host\"", before);
  else
    put_number(w, before, device);
}

static int by_route_number(const void *left, const void *right)
{
  const page_route *a = left, *b = right;
  return a->number < b->number ? -1 : a->number > b->number;
}

/* In the order of their numbers, which the cube has. */
static void put_matrix(index_writer *w)
{
  const page_calls *c = w->p->calls;
  const char *comma = "";
  if (c->routes) qsort(c->route, c->routes, sizeof(*c->route), by_route_number);
  (void)fputs(",\n\"matrix\":[", w->to);
  for (size_t i = 0; i < c->routes; i++) {
    const page_route *r = &c->route[i];
    if (!r->number) continue;
    (void)fputs(comma, w->to);
    put_number(w, "{\"direction\":", r->direction);
    (void)fprintf(w->to, ",\"src_memory\":\"%s\",\"dst_memory\":\"%s\"", kind_name(r->src_mem),
                  kind_name(r->mem));
    put_place(w, ",\"src\":", r->src);
    put_place(w, ",\"dst\":", r->dst);
    put_number(w, ",\"count\":", (int64_t)r->count);
    put_number(w, ",\"bytes\":", (int64_t)r->bytes);
    put_number(w, ",\"host_ns\":", (int64_t)r->host_ns);
    if (r->device_ns)
      put_number(w, ",\"device_ns\":", (int64_t)r->device_ns);
    else
      (void)fputs(",\"device_ns\":null", w->to);
    (void)fputc('}', w->to);
    comma = ",";
  }
  (void)fputc(']', w->to);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static weir_status put_findings(index_writer *w)
{
  const wr_findings *f = w->p->findings;
  (void)fputs(",\n\"findings\":", w->to);
  if (!f || f->unavailable) {
    (void)fputs("null", w->to);
    return WEIR_OK;
  }
  json_t *o = wr_findings_old(f);
  if (!o) return weir_fail(WEIR_ENOMEM, "writing a page: out of host memory");
  (void)json_dumpf(o, w->to, JSON_COMPACT);
  json_decref(o);
  return WEIR_OK;
}

static weir_status put_index(index_writer *w)
{
  const page_bins *bins = &w->p->calls->cube.bins;
  page_memory_finish(w->p->memory);
  (void)fputs("{\"schema\":\"weir-page/1\"", w->to);
  put_totals(w);
  put_number(w, ",\n\"bins\":{\"count\":", bins->count);
  put_number(w, ",\"width_ns\":", bins->width_ns);
  (void)fputc('}', w->to);
  put_memory(w);
  put_peaks(w);
  put_cube(w);
  put_changes(w);
  weir_status s = put_lanes(w);
  put_ops(w);
  put_flames(w);
  put_matrix(w);
  if (!s) s = put_findings(w);
  if (!s) s = put_sources(w);
  put_sites(w);
  put_stacks(w);
  put_frames(w);
  put_strings(w);
  (void)fputs(",\n\"columns\":", w->to);
  page_columns_describe(w->to, w->p->columns);
  (void)fputs(",\n", w->to);
  put_run(w);
  (void)fputs("}\n", w->to);
  return s;
}

weir_status page_index_write(FILE *out, page_parts *parts)
{
  char *text = NULL;
  size_t bytes = 0;
  index_writer w = {.to = open_memstream(&text, &bytes), .p = parts};
  weir_status s = w.to ? put_index(&w) : WEIR_OK;
  bool failed = !w.to || ferror(w.to) || page_columns_failed(parts->columns);
  if (w.to && fclose(w.to)) failed = true;
  if (!s && failed) s = weir_fail(WEIR_ENOMEM, "writing a page: out of host memory");
  for (size_t i = 0; !s && i < bytes; i++)
    text[i] == '<' ? (void)fputs("\\u003c", out) : (void)fputc(text[i], out);
  free(text);
  return s;
}

/* take.c: records of a spool become rows of a trace.
 *
 * Called by the spool reader for every record, once. A record is either taken whole (its rows are
 * in the batch) or refused with a status, and then delivered again later; so whatever can fail is
 * done before the first row is added. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/api.h"
#include "core/trace/stack.h"
#include "core/weir/dtype.h"
#include "reports/import/graph.h"
#include "reports/import/importer.h"
#include "reports/import/resume.h"

/* The thread's place in s->thread, made (with its row) at first sight. */
static weir_status find_thread(wr_spool *s, uint32_t serial, uint32_t tid, size_t *index)
{
  trace_importer *im = s->im;
  const uint64_t *known = hash_map_get(&s->threads, serial);
  if (known) {
    *index = (size_t)*known;
    return WEIR_OK;
  }
  if (!wr_grow(&s->thread, &s->thread_capacity, s->thread_count + 1, sizeof(wr_thread)))
    return wr_out_of_memory(im);
  wr_row *row = wr_batch_row(&im->batch, WR_TABLE_THREAD);
  if (!row) return wr_out_of_memory(im);
  uint64_t *entry = hash_map_place(&s->threads, serial, NULL);
  if (!entry) {
    im->batch.rows[WR_TABLE_THREAD].count--;
    return wr_out_of_memory(im);
  }
  *index = s->thread_count++;
  *entry = *index;
  s->thread[*index] = (wr_thread){.id = ++im->threads, .last_end = INT64_MIN};
  *row = (wr_row){.v = {im->threads, s->process, serial, tid}, .nulls = 1u << 4};
  return WEIR_OK;
}

/* A function our table lacks (a newer writer's): its number must have a name for the views. */
static weir_status warn_unknown_api(trace_importer *im, uint32_t api)
{
  bool added;
  if (!hash_map_place(&im->odd_apis, api, &added)) return wr_out_of_memory(im);
  if (!added) return WEIR_OK;
  char buffer[24];
  wr_op row = {.sql = "INSERT OR IGNORE INTO api(id, name, layer, category, hooked) "
                      "VALUES(?,?2,'unknown','other',0)",
               WR_NUMBERS(api),
               WR_TEXTS(wr_format("%s", wr_api_name(api, buffer)))};
  wr_op string = {.sql = "INSERT OR IGNORE INTO StringIds VALUES(?,?)",
                  WR_NUMBERS(api),
                  WR_TEXTS(wr_format("%s", wr_api_name(api, buffer)))};
  weir_status st = wr_batch_op(&im->batch, row);
  weir_status t = wr_batch_op(&im->batch, string);
  return st ? st : t;
}

/* The narrow row; what it shares with others is in its template. */
static void fill_event(wr_row *row, const wr_spool *s, const wr_taken *x, int64_t template)
{
  const trace_event *e = x->e;
  row->v[WR_EVENT_TEMPLATE] = template;
#define FILL(name, value) row->v[WR_EVENT_##name] = (int64_t)(value);
  WR_EVENT_MAP(FILL)
#undef FILL
}

/* CUDA_ERROR_STUB_LIBRARY, cudaErrorInsufficientDriver, CUDA_ERROR_NO_DEVICE,
 * CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE; the runtime's have
 * the same numbers. */
static bool says_no_device(unsigned status)
{
  return status == 34 || status == 35 || status == 100 || status == 803 || status == 804;
}

static void note_reach(trace_importer *im, const trace_event *e)
{
  if (!e->status && (e->kind <= WEIR_EV_MEMSET || e->kind == WEIR_EV_LAUNCH)) im->reached = true;
  if (im->refused_api || !says_no_device(e->status)) return;
  im->refused_api = e->api;
  im->refused = e->status;
}

static int64_t stack_of(const wr_spool *s, uint32_t serial, const trace_event *e)
{
  const uint64_t *stack = NULL;
  if (e->stack & 0xffffff)
    stack = hash_map_get(&s->local_stacks, (uint64_t)serial << 32 | (e->stack & 0xffffff));
  return stack ? (int64_t)*stack : 0;
}

/* When it was called and returned. */
static void place_event(wr_spool *s, wr_thread *t, wr_taken *x)
{
  const trace_event *e = x->e;
  bool sane = wr_length(s, event_duration(e)) > 0;
  x->start = wr_time(s, e->start);
  x->end = sane ? wr_time(s, e->start + event_duration(e)) : x->start;
  if (x->end < x->start) x->end = x->start; /* the sum is damaged */
  t->last_end = x->end;
  if (e->kind == WEIR_EV_SYNC && wr_length(s, e->b) > 0) /* polls: until the last returned */
    t->last_end = wr_time(s, e->start + e->b);
  if (t->last_end < x->end) t->last_end = x->end;
  wr_span(s->im, x->start, t->last_end);
}

/* The rows of one event: all of them, or none but its template. */
static weir_status add_event_row(wr_spool *s, wr_thread *t, wr_taken *x)
{
  trace_importer *im = s->im;
  int64_t template = 0;
  weir_status st = wr_template_of(&im->templates, &im->batch, &x->who, x->e, &template);
  if (st) return st;
  bool further = x->e->flags & WEIR_EVF_BATCH;
  wr_row *item = further ? wr_batch_row(&im->batch, WR_TABLE_BATCH_ITEM) : NULL;
  if (further && !item) return wr_out_of_memory(im);
  wr_row *within = t->open_count ? wr_batch_row(&im->batch, WR_TABLE_EVENT_RANGE) : NULL;
  wr_row *row = !t->open_count || within ? wr_batch_row(&im->batch, WR_TABLE_EVENT) : NULL;
  if (!row) {
    if (item) im->batch.rows[WR_TABLE_BATCH_ITEM].count--;
    if (within) im->batch.rows[WR_TABLE_EVENT_RANGE].count--;
    return wr_out_of_memory(im);
  }
  place_event(s, t, x);
  fill_event(row, s, x, template);
  x->id = ++im->events;
  if (within) *within = (wr_row){.v = {x->id, wr_range_innermost(t)}};
  if (item)
    *item = (wr_row){.v = {x->id, t->last_call}};
  else if (x->e->kind != WEIR_EV_CACHE)
    t->last_call = x->id, t->last_start = x->e->start;
  return WEIR_OK;
}

static weir_status take_event_record(void *context, uint32_t serial, uint32_t tid,
                                     const trace_event *e)
{
  wr_spool *s = context;
  trace_importer *im = s->im;
  trace_event alone;
  size_t index = 0;
  weir_status st = WEIR_OK;
  if (im->batch.rows[WR_TABLE_EVENT].count + im->batch.rows[WR_TABLE_RANGE].count >=
      WR_BATCH_EVENTS)
    st = wr_importer_flush(im);
  if (!st) st = find_thread(s, serial, tid, &index);
  if (!st && e->kind == WEIR_EV_RANGE) return wr_take_range(s, serial, &s->thread[index], e);
  if (!st && e->api >= api_total) st = warn_unknown_api(im, e->api);
  if (st) return st;
  wr_thread *t = &s->thread[index];
  if (e->flags & WEIR_EVF_BATCH && !t->last_call) { /* the first item of its call is lost */
    alone = *e;
    alone.flags &= (uint8_t)~WEIR_EVF_BATCH;
    e = &alone;
  }
  wr_taken x = {.who = {s->process, t->id, stack_of(s, serial, e)}, .e = e};
  st = add_event_row(s, t, &x);
  if (st) return st;
  s->events++;
  if (t->correlations) wr_correlate(s, t, e->start, x.id);
  if (t->hash.start) wr_copy_hashed(s, t, e, x.id);
  wr_memory_keep(&im->memory, &x);
  if (!im->reached) note_reach(im, e);
  return WEIR_OK;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static weir_status find_frame(wr_spool *s, uint64_t address, int64_t time, int64_t *id)
{
  trace_importer *im = s->im;
  uint64_t key = wr_frame_key(s, address);
  uint64_t *known = hash_map_get(&s->frames, key);
  if (!known) {
    wr_row *row = wr_batch_row(&im->batch, WR_TABLE_FRAME);
    if (!row) return wr_out_of_memory(im);
    known = hash_map_place(&s->frames, key, NULL);
    if (!known) {
      im->batch.rows[WR_TABLE_FRAME].count--;
      return wr_out_of_memory(im);
    }
    *known = (uint64_t)++im->frames;
    *row = (wr_row){.v = {im->frames, s->process, (int64_t)address, time}, .nulls = 1u << 4};
  }
  *id = (int64_t)*known;
  return WEIR_OK;
}

/* Adds a stack nobody has shown yet. Frames added before a failure are found again. */
static weir_status add_stack(wr_spool *s, const uint64_t *frames, size_t depth, int64_t time)
{
  trace_importer *im = s->im;
  int64_t ids[WEIR_STACK_MAX_DEPTH];
  for (size_t i = 0; i < depth; i++) {
    weir_status st = find_frame(s, frames[i], time, &ids[i]);
    if (st) return st;
  }
  wr_batch_rows *rows = &im->batch.rows[WR_TABLE_STACK_FRAME];
  wr_batch_rows *stacks = &im->batch.rows[WR_TABLE_STACK];
  if (!wr_grow(&rows->row, &rows->capacity, rows->count + depth, sizeof(wr_row)) ||
      !wr_grow(&stacks->row, &stacks->capacity, stacks->count + 1, sizeof(wr_row)))
    return wr_out_of_memory(im);
  int64_t id = ++im->stacks;
  stacks->row[stacks->count++] = (wr_row){.v = {id, s->process, (int64_t)depth, time}};
  for (size_t i = 0; i < depth; i++)
    rows->row[rows->count++] = (wr_row){.v = {id, (int64_t)i, ids[i]}};
  return WEIR_OK;
}

static weir_status take_stack(wr_spool *s, uint32_t serial, const trace_event *head,
                              const void *payload, size_t bytes)
{
  uint64_t frames[WEIR_STACK_MAX_DEPTH], hash = wr_stack_seed(s);
  size_t depth = bytes / sizeof(uint64_t);
  if (depth > WEIR_STACK_MAX_DEPTH) depth = WEIR_STACK_MAX_DEPTH;
  memcpy(frames, payload, depth * sizeof(uint64_t));
  for (size_t i = 0; i < depth; i++)
    hash = hash_mix(hash, frames[i]);
  uint64_t *local =
      hash_map_place(&s->local_stacks, (uint64_t)serial << 32 | (head->a & 0xffffff), NULL);
  uint64_t *known = hash_map_get(&s->stacks, hash);
  if (!local) return wr_out_of_memory(s->im);
  if (!known) {
    weir_status st = add_stack(s, frames, depth, wr_time(s, head->start));
    if (st) return st;
    known = hash_map_place(&s->stacks, hash, NULL);
    if (!known) return wr_out_of_memory(s->im); /* the stack is there twice, which harms nobody */
    *known = (uint64_t)s->im->stacks;
  }
  *local = *known;
  return wr_resume_keep(s, WR_RESUME_STACK, (uint64_t)serial << 32 | (head->a & 0xffffff), *known);
}

/* ---- the other extended records -------------------------------------------------------------- */

/* The modules loaded now are kept by base: its row, and, under another key, what it is. */
static uint64_t module_key(const module_info *info)
{
  return hash_mix(3, info->base);
}

static uint64_t identity_key(const module_info *info)
{
  return hash_mix(4, info->base);
}

/* From now on the same address may be another frame. */
static weir_status new_unload(wr_spool *s)
{
  s->unloads++;
  weir_status st = wr_resume_keep(s, WR_RESUME_FACT, WR_FACT_UNLOADS, s->unloads);
  if (!st) st = wr_resume_keep(s, WR_RESUME_FACT, WR_FACT_FRAMES_FROM, (uint64_t)s->im->frames);
  if (!st) st = wr_resume_keep(s, WR_RESUME_FACT, WR_FACT_STACKS_FROM, (uint64_t)s->im->stacks);
  return st;
}

static weir_status unload_module(wr_spool *s, const module_info *info, int64_t time)
{
  weir_status st = new_unload(s);
  uint64_t *known = hash_map_get(&s->modules, module_key(info));
  if (!known || st) return st;
  wr_op op = {.sql = "UPDATE module SET unloaded = ? WHERE id = ?",
              WR_NUMBERS(time, (int64_t)*known)};
  hash_map_remove(&s->modules, module_key(info));
  st = wr_resume_drop(s, WR_RESUME_MODULE, module_key(info));
  if (st) return st;
  return wr_batch_op(&s->im->batch, op);
}

static void hex_text(char *out, const unsigned char *bytes, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
    out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
  }
  out[2 * count] = '\0';
}

/* What is after the path; zeros: nothing is. */
static module_stamp stamp_of(const char *end, size_t left)
{
  module_stamp stamp = {0};
  if (left >= sizeof(stamp)) memcpy(&stamp, end, sizeof(stamp));
  return stamp;
}

/* The row of StringIds of a text, made where it is new. Takes `text`. */
static weir_status string_of(trace_importer *im, char *text, int64_t *id)
{
  if (!text) return wr_out_of_memory(im);
  uint64_t key = 5;
  for (const char *p = text; *p; p++)
    key = hash_mix(key, (unsigned char)*p);
  const uint64_t *known = hash_map_get(&im->texts, key);
  if (known) {
    *id = (int64_t)*known;
    free(text);
    return WEIR_OK;
  }
  *id = im->strings + 1;
  wr_op op = {.sql = "INSERT INTO StringIds VALUES(?,?)", WR_NUMBERS(*id), WR_TEXTS(text)};
  weir_status st = wr_batch_op(&im->batch, op);
  if (st) return st;
  im->strings++;
  uint64_t *entry = hash_map_place(&im->texts, key, NULL);
  if (entry) *entry = (uint64_t)*id; /* else the text is there twice, which harms nobody */
  return WEIR_OK;
}

static weir_status add_module(wr_spool *s, const module_info *info, module_stamp stamp,
                              const char *build_id, char *path, char *path_again, int64_t time)
{
  trace_importer *im = s->im;
  int64_t string = 0;
  weir_status named = string_of(im, path_again, &string);
  uint64_t *row = named ? NULL : hash_map_place(&s->modules, module_key(info), NULL);
  wr_op op = {.sql = "INSERT INTO module(id, process, base, start, \"end\", string, loaded, bytes,"
                     " mtime, path, build_id) VALUES(?,?,?,?,?,?,?,NULLIF(?,0),NULLIF(?,0),?,"
                     "NULLIF(?,''))",
              WR_NUMBERS(im->modules + 1, s->process, (int64_t)info->base, (int64_t)info->start,
                         (int64_t)info->end, string, time, (int64_t)stamp.bytes, stamp.mtime_ns),
              WR_TEXTS(path, wr_format("%s", build_id))};
  if (row) *row = (uint64_t)++im->modules;
  weir_status kept = row ? wr_resume_keep(s, WR_RESUME_MODULE, module_key(info), *row) : WEIR_OK;
  weir_status st = wr_batch_op(&im->batch, op);
  return named ? named : !row || !path ? wr_out_of_memory(im) : st ? st : kept;
}

/* Every thread may report a module: the first row counts while it stays loaded. Another module in
 * the same place means that the old one's end went unseen. */
static weir_status take_module(wr_spool *s, const trace_event *head, const void *payload,
                               size_t bytes)
{
  module_info info;
  if (bytes < sizeof(info)) return WEIR_OK;
  memcpy(&info, payload, sizeof(info));
  int64_t time = wr_time(s, head->start);
  if (head->a == 0) return unload_module(s, &info, time);
  size_t left = bytes - sizeof(info);
  if (info.build_id_bytes > left || info.path_bytes > left - info.build_id_bytes) return WEIR_OK;
  const char *tail = (const char *)payload + sizeof(info), *path = tail + info.build_id_bytes;
  uint64_t identity = hash_mix(hash_mix(4, info.start), info.end);
  size_t named = (size_t)info.build_id_bytes + info.path_bytes;
  for (size_t i = 0; i < named; i++)
    identity = hash_mix(identity, (unsigned char)tail[i]);
  uint64_t *known = hash_map_place(&s->modules, identity_key(&info), NULL);
  if (!known) return wr_out_of_memory(s->im);
  if (hash_map_get(&s->modules, module_key(&info))) {
    if (*known == identity) return WEIR_OK;
    weir_status st = unload_module(s, &info, time);
    if (st) return st;
  }
  *hash_map_get(&s->modules, identity_key(&info)) = identity;
  weir_status kept = wr_resume_keep(s, WR_RESUME_MODULE, identity_key(&info), identity);
  if (kept) return kept;
  char build_id[2 * 64 + 1];
  hex_text(build_id, (const unsigned char *)tail,
           info.build_id_bytes > 64 ? 64 : info.build_id_bytes);
  return add_module(s, &info, stamp_of(tail + named, left - named), build_id,
                    wr_text(path, info.path_bytes, false), wr_text(path, info.path_bytes, false),
                    time);
}

static weir_status take_name_record(wr_spool *s, const trace_event *head, const void *payload,
                                    size_t bytes)
{
  if (head->b == WEIR_NAME_CATEGORY) return wr_take_category(s, head, payload, bytes);
  static const char *const kinds[] = {
      "unknown", "kernel", "device",  "api",      "category", "os_thread", "device_label",
      "stream",  "event",  "context", "resource", "heap",     "region",    "device_bus"};
  enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
  int64_t string = 0;
  weir_status st = WEIR_OK; /* Nsight's views have numbers of names */
  if (head->b == WEIR_NAME_OS_THREAD || head->b == WEIR_NAME_KERNEL)
    st = string_of(s->im, wr_text(payload, bytes, false), &string);
  wr_op op = {.sql = "INSERT INTO name(process, handle, bytes, time, string, kind, name)"
                     " VALUES(?,?,?,?,NULLIF(?,0),?,?)",
              WR_NUMBERS(s->process, (int64_t)head->a, (int64_t)head->stream,
                         wr_time(s, head->start), string),
              WR_TEXTS(wr_format("%s", kinds[head->b < KINDS ? head->b : 0]),
                       wr_text(payload, bytes, false))};
  weir_status added = wr_batch_op(&s->im->batch, op);
  return st ? st : added;
}

static weir_status take_note(wr_spool *s, size_t thread, const trace_event *head,
                             const void *payload, size_t bytes)
{
  wr_op op = {.sql = "INSERT INTO note(process, thread, time, text) VALUES(?,?,?,?)",
              WR_NUMBERS(s->process, s->thread[thread].id, wr_time(s, head->start)),
              WR_TEXTS(wr_text(payload, bytes, false))};
  return wr_batch_op(&s->im->batch, op);
}

static weir_status take_recording(wr_spool *s, const trace_event *head)
{
  const int64_t time = wr_time(s, head->start);
  const char *what = head->a == WEIR_RECORD_ALL ? "all" : "memory";
  wr_op op = {.sql = "INSERT INTO recording(process, time, unrecorded_calls, recorded)"
                     " VALUES(?,?,?,?)",
              WR_NUMBERS(s->process, time, (int64_t)head->b),
              WR_TEXTS(wr_format("%s", what))};
  wr_span(s->im, time, time);
  return wr_batch_whole(&s->im->batch, op);
}

static weir_status take_thread_name(wr_spool *s, size_t thread, const void *payload, size_t bytes)
{
  trace_importer *im = s->im;
  wr_op op = {.sql = "UPDATE thread SET name = ?2 WHERE id = ?1",
              WR_NUMBERS(s->thread[thread].id),
              WR_TEXTS(wr_text(payload, bytes, false))};
  int64_t string;
  weir_status a = wr_batch_op(&im->batch, op);
  weir_status b = string_of(im, wr_text(payload, bytes, false), &string);
  return a ? a : b;
}

/* "[8, 20]" (new), or NULL. */
static char *shape_text(const tensor_info *info)
{
  char text[WEIR_TENSOR_DIMS * 24 + 3] = "[";
  size_t at = 1;
  for (int i = 0; i < info->dims && i < WEIR_TENSOR_DIMS; i++)
    at += (size_t)snprintf(text + at, sizeof(text) - at, i ? ", %lld" : "%lld",
                           (long long)info->size[i]);
  return wr_format("%s]", text);
}

/* The first of a number stays: a writer gives a number once. */
static weir_status take_python_frame(wr_spool *s, const trace_event *head, const void *payload,
                                     size_t bytes)
{
  python_frame_info info;
  if (bytes < sizeof(info)) return WEIR_OK;
  memcpy(&info, payload, sizeof(info));
  const char *function = (const char *)payload + sizeof(info), *file;
  if ((size_t)info.function_bytes + info.file_bytes > bytes - sizeof(info)) return WEIR_OK;
  file = function + info.function_bytes;
  wr_op op = {.sql = "INSERT OR IGNORE INTO python_frame(process, address, line, function, file)"
                     " VALUES(?1,?2,NULLIF(?3,0),NULLIF(?4,''),NULLIF(?5,''))",
              WR_NUMBERS(s->process, (int64_t)head->a, info.line),
              WR_TEXTS(wr_text(function, info.function_bytes, false),
                       wr_text(file, info.file_bytes, false))};
  return wr_batch_whole(&s->im->batch, op);
}

static weir_status take_tensor(wr_spool *s, size_t thread, const trace_event *head,
                               const void *payload, size_t bytes)
{
  static const char *const dtypes[] = {
#define DTYPE_NAME(name, value, text, size, type) [value] = text,
      WEIR_DTYPE_MAP(DTYPE_NAME)
#undef DTYPE_NAME
  };
  tensor_info info;
  if (bytes < sizeof(info)) return WEIR_OK;
  memcpy(&info, payload, sizeof(info));
  const char *name = (const char *)payload + sizeof(info), *module = name + info.name_bytes;
  if ((size_t)info.name_bytes + info.module_bytes > bytes - sizeof(info)) return WEIR_OK;
  bool made = info.fact == WEIR_TENSOR_MADE;
  bool known = info.dtype && info.dtype < sizeof(dtypes) / sizeof(dtypes[0]);
  int64_t time = wr_time(s, head->start);
  wr_op op = {.sql = "INSERT INTO tensor(process, thread, time, fact, storage, address, bytes, mem,"
                     " device, dtype, shape, name, module) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,"
                     "NULLIF(?9,-1),?10,?11,NULLIF(?12,''),?13)",
              WR_NUMBERS(s->process, s->thread[thread].id, time, info.fact, (int64_t)head->a,
                         (int64_t)info.address, (int64_t)info.bytes, head->mem & 15,
                         head->device == WEIR_DEVICE_NONE ? -1 : head->device),
              .texts = 4};
  if (made) {
    op.text[0] = wr_format("%s", known ? dtypes[info.dtype] : "unknown");
    op.text[1] = shape_text(&info);
    op.text[3] = wr_text(module, info.module_bytes, false);
  }
  op.text[2] = wr_text(name, info.name_bytes, false);
  bool whole = op.text[2] && (!made || (op.text[0] && op.text[1] && op.text[3]));
  weir_status st = wr_batch_op(&s->im->batch, op);
  wr_span(s->im, time, time);
  return whole ? st : wr_out_of_memory(s->im);
}

static weir_status take_extended(void *context, uint32_t serial, uint32_t tid,
                                 const trace_event *head, const void *payload, size_t bytes)
{
  wr_spool *s = context;
  const wr_batch *b = &s->im->batch;
  size_t thread = 0,
         waiting = b->rows[WR_TABLE_STACK_FRAME].count + b->op_count +
                   b->rows[WR_TABLE_DEVICE_WORK].count + b->rows[WR_TABLE_COPY_HASH].count +
                   b->rows[WR_TABLE_ACCESS_WORD].count + b->rows[WR_TABLE_GRAPH_NODE].count;
  weir_status st = waiting >= 4 * (size_t)WR_BATCH_EVENTS ? wr_importer_flush(s->im) : WEIR_OK;
  if (!st) st = find_thread(s, serial, tid, &thread);
  if (st) return st;
  switch (head->kind) {
  case WEIR_EV_STACK:
    return take_stack(s, serial, head, payload, bytes);
  case WEIR_EV_MODULE:
    return take_module(s, head, payload, bytes);
  case WEIR_EV_RANGE_NAME:
    return wr_take_range_name(s, serial, head, payload, bytes);
  case WEIR_EV_NAME:
    return take_name_record(s, head, payload, bytes);
  case WEIR_EV_NOTE:
    return take_note(s, thread, head, payload, bytes);
  case WEIR_EV_THREAD:
    return take_thread_name(s, thread, payload, bytes);
  case WEIR_EV_TENSOR:
    return take_tensor(s, thread, head, payload, bytes);
  case WEIR_EV_PYTHON_FRAME:
    return take_python_frame(s, head, payload, bytes);
  case WEIR_EV_CORRELATION:
    return wr_take_correlation(s, &s->thread[thread], head);
  case WEIR_EV_DEVICE_WORK:
    return wr_take_device_work(s, payload, bytes);
  case WEIR_EV_DEVICE_FACT:
    return wr_take_device_fact(s, head, payload, bytes);
  case WEIR_EV_RECORDING:
    return take_recording(s, head);
  case WEIR_EV_COPY_HASH:
    return wr_take_copy_hash(s, &s->thread[thread], head, payload, bytes);
  case WEIR_EV_ASKED:
    return wr_take_asked(s, &s->thread[thread], head, payload, bytes);
  case WEIR_EV_ACCESS:
    return wr_take_access(s, head, payload, bytes);
  case WEIR_EV_GRAPH:
    return wr_graph_take(s, &s->thread[thread], head, payload, bytes);
  default:
    return WEIR_OK; /* a newer writer's */
  }
}

const spool_visitor wr_take_visitor = {.event = take_event_record, .extended = take_extended};

/* tensors.c: see tensors.h. All facts are read in the order of their times, so that a tensor made
 * by one thread and given back by another has its life; then each place's peak is known, and what
 * was live then is summed up. Texts are kept once. */
#include "reports/model/tensors.h"

#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"

enum { NONE = 0, ENDED = 255 }; /* the text ""; no fact of a tensor: a process has ended */

typedef struct life { /* of one storage */
  uint64_t bytes;
  size_t begin, end; /* which fact; end SIZE_MAX: never */
  int64_t process;
  bool left; /* never given back */
  uint32_t place, name, module, dtype, shape;
} life;

typedef struct pass {
  wr_tensors *t;
  const wr_db *db;
  hash_map texts;       /* hash -> place in t->text, plus 1 */
  hash_map live;        /* process and storage -> place in lives, plus 1 */
  hash_map per_process; /* process -> how many of its are live */
  hash_map places;      /* device and kind -> place in t->place, plus 1 */
  life *lives;
  size_t life_count, life_room, text_room, place_room;
  size_t *peak; /* by place: the fact at which it was */
  size_t peak_room;
  uint64_t *now, *tensors_now; /* by place */
  size_t now_room, tensors_room;
  size_t facts;
} pass;

/* SIZE_MAX: out of memory. */
static size_t keep_text(pass *p, const char *text, size_t bytes)
{
  wr_tensors *t = p->t;
  uint64_t hash = hash_mix(5, bytes);
  for (size_t i = 0; i < bytes; i++)
    hash = hash_mix(hash, (unsigned char)text[i]);
  uint64_t *known = hash_map_place(&p->texts, hash, NULL);
  if (!known) return SIZE_MAX;
  if (*known) return (size_t)*known - 1;
  if (!wr_grow(&t->text, &p->text_room, t->text_count + 1, sizeof(char *))) return SIZE_MAX;
  char *copy = wr_text(text, bytes, true);
  if (!copy) return SIZE_MAX;
  t->text[t->text_count++] = copy;
  *known = t->text_count;
  return t->text_count - 1;
}

static size_t column_text(pass *p, sqlite3_stmt *q, int column)
{
  const char *text = (const char *)sqlite3_column_text(q, column);
  return text ? keep_text(p, text, (size_t)sqlite3_column_bytes(q, column)) : NONE;
}

/* The place's number, or SIZE_MAX. */
static size_t find_place(pass *p, int device, bool pinned)
{
  wr_tensors *t = p->t;
  uint64_t *known = hash_map_place(&p->places, (uint64_t)(device + 1) << 1 | pinned, NULL);
  if (!known) return SIZE_MAX;
  if (*known) return (size_t)*known - 1;
  size_t n = t->count;
  if (!wr_grow(&t->place, &p->place_room, n + 1, sizeof *t->place) ||
      !wr_grow(&p->peak, &p->peak_room, n + 1, sizeof *p->peak) ||
      !wr_grow(&p->now, &p->now_room, n + 1, sizeof *p->now) ||
      !wr_grow(&p->tensors_now, &p->tensors_room, n + 1, sizeof *p->tensors_now))
    return SIZE_MAX;
  t->place[n] = (wr_tensor_place){.device = device, .pinned = pinned};
  p->peak[n] = p->now[n] = p->tensors_now[n] = 0;
  *known = ++t->count;
  return n;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void end_life(pass *p, life *l)
{
  uint64_t *live = hash_map_get(&p->per_process, (uint64_t)l->process);
  if (l->end != SIZE_MAX) return; /* with its process */
  l->end = p->facts;
  p->now[l->place] -= l->bytes;
  p->tensors_now[l->place]--;
  if (live) --*live;
}

static void end_tensor(pass *p, const uint64_t *slot, uint64_t key)
{
  life *l = &p->lives[*slot - 1];
  l->left = false;
  end_life(p, l);
  hash_map_remove(&p->live, key);
}

/* What the process never gave back goes with it. */
static void end_process(pass *p, int64_t process)
{
  size_t at = 0;
  uint64_t key, *slot;
  const uint64_t *live = hash_map_get(&p->per_process, (uint64_t)process);
  if (!live || !*live) return;
  while (hash_map_next(&p->live, &at, &key, &slot)) {
    life *l = &p->lives[*slot - 1];
    if (l->process == process && l->end == SIZE_MAX) end_life(p, l);
  }
}

static weir_status begin_tensor(pass *p, sqlite3_stmt *q, uint64_t key)
{
  int device = sqlite3_column_type(q, 6) == SQLITE_NULL ? -1 : sqlite3_column_int(q, 6);
  size_t place = find_place(p, device, sqlite3_column_int(q, 5) == WEIR_MEM_PINNED);
  size_t dtype = column_text(p, q, 7), shape = column_text(p, q, 8), module = column_text(p, q, 10);
  if (place == SIZE_MAX || dtype == SIZE_MAX || shape == SIZE_MAX || module == SIZE_MAX ||
      !wr_grow(&p->lives, &p->life_room, p->life_count + 1, sizeof(life)))
    return wr_db_out_of_memory(p->db);
  int64_t process = sqlite3_column_int64(q, 0);
  uint64_t *live = hash_map_place(&p->per_process, (uint64_t)process, NULL);
  uint64_t *slot = hash_map_place(&p->live, key, NULL);
  if (!slot || !live) return wr_db_out_of_memory(p->db);
  if (*slot) { /* its end went unseen */
    end_tensor(p, slot, key);
    if (!(slot = hash_map_place(&p->live, key, NULL))) return wr_db_out_of_memory(p->db);
  }
  uint64_t bytes = (uint64_t)sqlite3_column_int64(q, 4);
  p->lives[p->life_count++] = (life){.bytes = bytes,
                                     .begin = p->facts,
                                     .end = SIZE_MAX,
                                     .process = process,
                                     .left = true,
                                     .place = (uint32_t)place,
                                     .name = NONE,
                                     .module = (uint32_t)module,
                                     .dtype = (uint32_t)dtype,
                                     .shape = (uint32_t)shape};
  *slot = p->life_count;
  ++*live;
  wr_tensor_place *t = &p->t->place[place];
  t->made++;
  t->made_bytes += bytes;
  p->now[place] += bytes;
  p->tensors_now[place]++;
  if (p->now[place] <= t->peak_bytes && t->made > 1) return WEIR_OK;
  t->peak_bytes = p->now[place];
  t->peak_tensors = p->tensors_now[place];
  t->peak_at = sqlite3_column_int64(q, 1);
  p->peak[place] = p->facts;
  return WEIR_OK;
}

/* process, time, fact, storage, bytes, mem, device, dtype, shape, name, module */
static weir_status take_tensor_row(void *context, sqlite3_stmt *q)
{
  pass *p = context;
  uint64_t key =
      hash_mix((uint64_t)sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 3));
  int fact = sqlite3_column_int(q, 2);
  p->facts++;
  if (fact == ENDED) {
    end_process(p, sqlite3_column_int64(q, 0));
    return WEIR_OK;
  }
  if (fact == WEIR_TENSOR_MADE) return begin_tensor(p, q, key);
  uint64_t *slot = hash_map_get(&p->live, key);
  if (!slot) return WEIR_OK; /* made before the trace began */
  if (fact == WEIR_TENSOR_GONE) end_tensor(p, slot, key);
  if (fact != WEIR_TENSOR_NAMED) return WEIR_OK;
  size_t name = column_text(p, q, 9);
  if (name == SIZE_MAX) return wr_db_out_of_memory(p->db);
  p->lives[*slot - 1].name = (uint32_t)name;
  return WEIR_OK;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Where a tensor with a name of more parts belongs, that was made in no module. */
static weir_status name_modules(pass *p)
{
  for (size_t i = 0; i < p->life_count; i++) {
    life *l = &p->lives[i];
    const char *name = p->t->text[l->name], *dot = strrchr(name, '.');
    if (*p->t->text[l->module] || !dot) continue;
    size_t module = keep_text(p, name, (size_t)(dot - name));
    if (module == SIZE_MAX) return wr_db_out_of_memory(p->db);
    l->module = (uint32_t)module;
  }
  return WEIR_OK;
}

static int by_bytes(const void *a, const void *b)
{
  const wr_tensor_row *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  int order = strcmp(x->module, y->module);
  if (!order) order = strcmp(x->name, y->name);
  if (!order) order = strcmp(x->shape, y->shape);
  return order ? order : strcmp(x->dtype, y->dtype);
}

typedef struct sums {
  wr_tensor_row *row; /* owned */
  size_t count, room;
  hash_map known; /* what tells rows apart -> place in row, plus 1 */
} sums;

static bool add_to_sums(sums *s, uint64_t key, wr_tensor_row row)
{
  uint64_t *known = hash_map_place(&s->known, key, NULL);
  if (!known || !wr_grow(&s->row, &s->room, s->count + 1, sizeof *s->row)) return false;
  if (!*known) {
    s->row[s->count++] = row;
    *known = s->count;
    return true;
  }
  s->row[*known - 1].tensors++;
  s->row[*known - 1].bytes += row.bytes;
  return true;
}

static size_t end_sums(sums *s, wr_tensor_row **out, size_t *kept, int top)
{
  hash_map_free(&s->known);
  if (s->count) qsort(s->row, s->count, sizeof *s->row, by_bytes);
  *out = s->row;
  *kept = s->count < (size_t)top ? s->count : (size_t)top;
  return s->count;
}

static weir_status sum_place(pass *p, size_t place, int top)
{
  wr_tensor_place *t = &p->t->place[place];
  char **text = p->t->text;
  sums modules = {0}, tensors = {0};
  bool good = true;
  for (size_t i = 0; good && i < p->life_count; i++) {
    const life *l = &p->lives[i];
    if (l->place != place) continue;
    if (l->left) {
      t->end_tensors++;
      t->end_bytes += l->bytes;
    }
    if (l->begin > p->peak[place] || l->end <= p->peak[place]) continue;
    uint64_t key = hash_mix(hash_mix(hash_mix(l->module, l->name), l->dtype), l->shape);
    good = add_to_sums(&modules, hash_mix(6, l->module),
                       (wr_tensor_row){text[l->module], "", "", "", 1, l->bytes}) &&
           add_to_sums(&tensors, key,
                       (wr_tensor_row){text[l->module], text[l->name], text[l->dtype],
                                       text[l->shape], 1, l->bytes});
  }
  t->all_modules = end_sums(&modules, &t->modules, &t->module_count, top);
  t->all_tensors = end_sums(&tensors, &t->tensors, &t->tensor_count, top);
  return good ? WEIR_OK : wr_db_out_of_memory(p->db);
}

/* Devices first, by number; then what is page-locked, then the host's other memory. */
static int by_place(const void *a, const void *b)
{
  const wr_tensor_place *x = a, *y = b;
  unsigned m = (unsigned)x->device, n = (unsigned)y->device;
  return m != n ? (m > n) - (m < n) : y->pinned - x->pinned;
}

/* A damaged or older trace may have no such table. */
static weir_status tensors_exist(const wr_db *db, bool *out)
{
  sqlite3_stmt *q = NULL;
  weir_status s = wr_db_prepare(db,
                                "SELECT 1 FROM sqlite_schema WHERE name = 'tensor' AND type ="
                                " 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'",
                                &q);
  if (s) return s;
  int code = sqlite3_step(q);
  *out = code == SQLITE_ROW;
  if (code != SQLITE_ROW && code != SQLITE_DONE) s = wr_db_fail(db, "reading");
  sqlite3_finalize(q);
  return s;
}

weir_status wr_tensors_load(wr_tensors *t, const wr_db *db, int top)
{
  pass p = {.t = t, .db = db};
  bool there = false;
  weir_status s = tensors_exist(db, &there);
  if (s || !there) return s;
  if (keep_text(&p, "", 0) == SIZE_MAX) s = wr_db_out_of_memory(db);
  if (!s)
    s = wr_db_each(db,
                   "SELECT process, time, fact, storage, bytes, mem, device, dtype, shape, name,"
                   " module, id FROM tensor UNION ALL SELECT id, \"end\", 255, 0, 0, 0, NULL, NULL,"
                   " NULL, NULL, NULL, 9223372036854775807 FROM process WHERE \"end\" IS NOT NULL"
                   " ORDER BY time, 12",
                   take_tensor_row, &p);
  if (!s) s = name_modules(&p);
  for (size_t i = 0; !s && i < t->count; i++)
    s = sum_place(&p, i, top);
  if (!s && t->count) qsort(t->place, t->count, sizeof *t->place, by_place);
  hash_map_free(&p.texts);
  hash_map_free(&p.live);
  hash_map_free(&p.per_process);
  hash_map_free(&p.places);
  free(p.lives);
  free(p.peak);
  free(p.now);
  free(p.tensors_now);
  return s;
}

void wr_tensors_free(wr_tensors *t)
{
  for (size_t i = 0; i < t->count; i++) {
    free(t->place[i].modules);
    free(t->place[i].tensors);
  }
  for (size_t i = 0; i < t->text_count; i++)
    free(t->text[i]);
  free(t->place);
  free(t->text);
  *t = (wr_tensors){0};
}

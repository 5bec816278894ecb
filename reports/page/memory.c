/* memory.c: see memory.h. */
#include "reports/page/memory.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/sort.h"
#include "reports/base/util.h"
#include "core/trace/event.h"
#include "reports/import/lifetime.h"

typedef struct page_live { /* a block that was live at the moment the walk has come to */
  int64_t born, start;
  int64_t bytes;
  uint32_t series, all, total; /* `all`, `total`, plus 1: of its device, of all; 0: none */
  uint32_t peak, area;         /* peak: plus 1, 0 none */
} page_live;

typedef struct page_life { /* a block that is kept for the walk back */
  int64_t died;            /* INT64_MAX: it is not known to have */
  int64_t born, start, end;
  uint64_t bytes;
  uint32_t at; /* template */
  bool freed;  /* while its process went on */
} page_life;

enum { MOST_LIVES = 1 << 20 /* 48 MiB */ };

/* What is the same of blocks of a template, found with the first of them in each walk. */
typedef struct page_block_use {
  bool summed, undone;
  uint32_t site;
  uint32_t began, ended; /* lines of the changes */
  page_live live;        /* but for the block's own; series UINT32_MAX: it has none */
} page_block_use;

typedef struct block_row {
  int how, mem, device;
  bool registered, freed; /* freed: while its process went on */
  int64_t born, died, start, end;
  uint64_t bytes;
  int64_t stack;
} block_row;

static weir_status take_process_end(void *context, sqlite3_stmt *q)
{
  page_memory *m = context;
  return hash_map_put(&m->process_end, (uint64_t)sqlite3_column_int64(q, 0),
                      (uint64_t)sqlite3_column_int64(q, 1));
}

/* What never ended lasts as long as its process; an unfinished one's, as long as the run. */
static int64_t end_of_life(const page_memory *m, const wr_block *b)
{
  const uint64_t *end = b->ended ? NULL : hash_map_get(&m->process_end, (uint64_t)b->process);
  return b->ended ? b->end : end ? (int64_t)*end : m->model->duration_ns;
}

static block_row row_of_block(const page_memory *m, const wr_block *b)
{
  /* as `memory` has it */
  bool on_host = b->registered || !(wr_mem_device_side(b->mem) || wr_mem_taken(b->mem));
  return (block_row){.how = (int)b->how,
                     .mem = b->registered ? WEIR_MEM_PINNED : b->mem,
                     .device = on_host ? WR_HOST : b->device,
                     .registered = b->registered,
                     .freed = b->ended,
                     .born = b->born,
                     .died = b->dead ? b->died : INT64_MAX,
                     .start = b->start,
                     .end = end_of_life(m, b),
                     .bytes = b->bytes,
                     .stack = b->stack};
}

static bool is_device_side(const block_row *b)
{
  return wr_mem_device_side(b->mem) && !b->registered;
}

/* ---- series ---------------------------------------------------------------------------------- */

static int series_of(const page_memory *m, int device, int mem, bool registered)
{
  for (size_t i = 0; i < m->series_count; i++)
    if (m->series[i].device == device && m->series[i].mem == mem &&
        m->series[i].registered == registered)
      return (int)i;
  return -1;
}

static weir_status add_series(page_memory *m, page_series series)
{
  if (!wr_grow(&m->series, &m->series_capacity, m->series_count + 1, sizeof(series)))
    return wr_db_out_of_memory(m->db);
  series.level = calloc(m->bins.count, sizeof(*series.level));
  series.bin = m->bins.count;
  if (!series.level) return wr_db_out_of_memory(m->db);
  m->series[m->series_count++] = series;
  return WEIR_OK;
}

static weir_status add_peak(page_memory *m, int device, sqlite3_stmt *q)
{
  page_peak p = {.device = device,
                 .bytes = (uint64_t)sqlite3_column_int64(q, 3),
                 .at_ns = sqlite3_column_int64(q, 4),
                 .place = sqlite3_column_int64(q, 5)};
  if (!p.place) return WEIR_OK;
  if (!wr_grow(&m->peak, &m->peak_capacity, m->peaks + 1, sizeof(p)))
    return wr_db_out_of_memory(m->db);
  m->peak[m->peaks++] = p;
  return WEIR_OK;
}

/* device, mem, registered, peak, peak_at, peak_place */
static weir_status take_memory(void *context, sqlite3_stmt *q)
{
  page_memory *m = context;
  bool sum = sqlite3_column_type(q, 1) == SQLITE_NULL;
  int64_t device = sqlite3_column_int64(q, 0);
  bool on_host = sqlite3_column_type(q, 0) == SQLITE_NULL || device < 0 || device >= WR_HOST;
  const page_series series = {.device = on_host ? WR_HOST : (int)device,
                              .mem = sum ? PAGE_ALL_KINDS : sqlite3_column_int(q, 1),
                              .registered = sqlite3_column_int(q, 2) != 0,
                              .peak = sqlite3_column_int64(q, 3),
                              .peak_ns = sqlite3_column_int64(q, 4)};
  if (series_of(m, series.device, series.mem, series.registered) >= 0) return WEIR_OK;
  weir_status s = add_series(m, series);
  return s || !sum ? s : add_peak(m, series.device, q);
}

/* Bins from the one being filled down to `bin`, which is the next to be filled. */
static void open_bin(page_series *s, uint32_t bin)
{
  while (s->bin > bin)
    s->level[--s->bin] = (page_level){s->now, s->now, s->now};
}

static void change_level(page_series *s, uint32_t bin, int64_t by)
{
  open_bin(s, bin);
  s->now = (int64_t)((uint64_t)s->now + (uint64_t)by);
  page_level *l = &s->level[s->bin];
  if (s->now < l->least) l->least = s->now;
  if (s->now > l->most) l->most = s->now;
}

/* ---- the first pass: what was live at the peaks, and at the end
 * -------------------------------- */

static uint64_t place_key(int device, uint32_t place)
{
  return (uint64_t)device << 32 | place;
}

static weir_status add_at_peak(page_memory *m, const page_peak *p, const block_row *b,
                               uint32_t site)
{
  page_places *places = m->calls->places;
  uint32_t stack = places->site[site].stack;
  if (p->device == WR_HOST) { /* all devices together */
    page_flame *f = page_flame_of(m->calls, stack);
    if (!f) return wr_db_out_of_memory(m->db);
    f->peak_bytes += b->bytes;
    return WEIR_OK;
  }
  uint64_t key = place_key(p->device, page_place_of(places, stack));
  uint64_t *bytes = hash_map_place(&m->at_peak, key, NULL);
  if (!bytes) return wr_db_out_of_memory(m->db);
  *bytes += b->bytes;
  return hash_map_get(&m->site_of, key) ? WEIR_OK : hash_map_put(&m->site_of, key, site + 1U);
}

/* Blocks of no template at hand share one, which is filled anew for each. */
static page_block_use *use_of(const page_memory *m, const wr_block *b)
{
  const wr_events *events = m->calls->calls;
  return &m->use[b->t ? (size_t)(b->t - events->templates) : events->count];
}

/* Of a block of device memory. */
static weir_status find_place(page_memory *m, const wr_block *b, page_block_use **out)
{
  page_places *places = m->calls->places;
  page_block_use *u = use_of(m, b);
  *out = u;
  if (u->summed && b->t) return WEIR_OK;
  *u = (page_block_use){.summed = true};
  weir_status s = page_site_of(places, b->stack, 0, &u->site);
  if (s) return s;
  /* Sites of one place are one here: cells are then no more than places by bins. */
  uint32_t place = page_place_of(places, places->site[u->site].stack);
  uint64_t *known = hash_map_place(&m->site_of_place, place, NULL);
  if (!known) return wr_db_out_of_memory(m->db);
  if (!*known) *known = u->site + UINT64_C(1);
  const uint32_t place_site = (uint32_t)(*known - 1);
  u->began = page_line_of(&m->changes, (page_key){.site = place_site, .of = PAGE_ALLOCATION});
  u->ended = page_line_of(&m->changes, (page_key){.site = place_site, .of = PAGE_FREE});
  bool made = u->began != PAGE_NO_LINE && u->ended != PAGE_NO_LINE;
  return made ? WEIR_OK : wr_db_out_of_memory(m->db);
}

static weir_status add_change(page_memory *m, uint32_t line, int64_t ns, uint64_t bytes)
{
  page_cell *cell = page_cell_of(&m->changes, ns, line);
  if (!cell) return wr_db_out_of_memory(m->db);
  cell->count++, cell->bytes += bytes;
  return WEIR_OK;
}

static weir_status add_changes(page_memory *m, const block_row *b, const page_block_use *u)
{
  weir_status s = add_change(m, u->began, b->start, b->bytes);
  return s || !b->freed ? s : add_change(m, u->ended, b->end, b->bytes);
}

static weir_status keep_life(page_memory *m, const wr_block *block, const block_row *b)
{
  if (m->lives == m->life_capacity &&
      !wr_grow(&m->life, &m->life_capacity, m->lives + 1, sizeof(*m->life)))
    return wr_db_out_of_memory(m->db);
  m->life[m->lives++] = (page_life){.died = b->died,
                                    .born = b->born,
                                    .start = b->start,
                                    .end = b->end,
                                    .bytes = b->bytes,
                                    .at = (uint32_t)(block->t - m->calls->calls->templates),
                                    .freed = b->freed};
  return WEIR_OK;
}

static weir_status sum_block(void *context, const wr_block *block)
{
  page_memory *m = context;
  block_row b = row_of_block(m, block);
  page_block_use *u;
  if (b.died < m->last_died) m->disordered = true;
  m->last_died = b.died;
  if (b.how == WR_BLOCK_UNKNOWN) return WEIR_OK;
  weir_status s = m->keeps ? keep_life(m, block, &b) : WEIR_OK;
  if (s || !is_device_side(&b)) return s;
  s = find_place(m, block, &u);
  if (!s && !m->keeps) s = add_changes(m, &b, u);
  for (size_t i = 0; !s && i < m->peaks; i++) {
    const page_peak *p = &m->peak[i];
    bool of = p->device == WR_HOST || p->device == b.device;
    if (of && b.born <= p->place && b.died > p->place) s = add_at_peak(m, p, &b, u->site);
  }
  return s;
}

/* ---- blocks that are kept -------------------------------------------------------------------- */

/* By the number of the last row: none is kept of a trace of many blocks, or of one that SQLite reads. */
static weir_status choose_keeping(page_memory *m)
{
  int64_t rows = 0;
  weir_status s = WEIR_OK;
  if (m->rows.by_pages) s = wr_db_number(m->db, "SELECT max(id) FROM main.block_row", &rows);
  m->keeps = m->rows.by_pages && rows < MOST_LIVES;
  return s;
}

/* Finds blocks by where they were born, if that is one place each and before they died. */
static weir_status find_births(page_memory *m)
{
  int64_t first = INT64_MAX, last = INT64_MIN;
  bool good = m->lives > 0;
  free(m->birth);
  m->birth = NULL;
  for (size_t i = 0; i < m->lives; i++) {
    const page_life *l = &m->life[i];
    if (l->born < first) first = l->born;
    if (l->born > last) last = l->born;
    good = good && l->born < l->died;
  }
  uint64_t span = good ? (uint64_t)last - (uint64_t)first + 1 : 0;
  if (!span || span > 8 * (uint64_t)m->lives + 1024) return WEIR_OK;
  m->birth = calloc(span, sizeof(*m->birth));
  if (!m->birth) return wr_db_out_of_memory(m->db);
  m->first_birth = first;
  m->last_birth = m->next_birth = last;
  for (size_t i = 0; good && i < m->lives; i++) {
    uint32_t *at = &m->birth[m->life[i].born - first];
    good = !*at;
    *at = (uint32_t)i + 1;
  }
  if (good) return WEIR_OK;
  free(m->birth);
  m->birth = NULL;
  return WEIR_OK;
}

static weir_status add_birth(page_memory *m, const page_life *l)
{
  const page_block_use *u = &m->use[l->at];
  return u->summed ? add_change(m, u->began, l->start, l->bytes) : WEIR_OK;
}

/* Births up to a place. */
static weir_status add_births(page_memory *m, int64_t *next, int64_t until)
{
  weir_status s = WEIR_OK;
  for (; !s && *next <= m->last_birth && *next < until; ++*next) {
    uint32_t at = m->birth[*next - m->first_birth];
    if (at) s = add_birth(m, &m->life[at - 1]);
  }
  return s;
}

/* In the order of places, as far as it is known, so that bins mostly ascend. */
static weir_status add_kept_changes(page_memory *m)
{
  weir_status s = WEIR_OK;
  int64_t next = m->first_birth;
  for (size_t i = 0; !s && i < m->lives; i++) {
    const page_life *l = &m->life[i];
    s = m->birth ? add_births(m, &next, l->died) : add_birth(m, l);
    if (!s && l->freed && m->use[l->at].summed)
      s = add_change(m, m->use[l->at].ended, l->end, l->bytes);
  }
  return s || !m->birth ? s : add_births(m, &next, INT64_MAX);
}

/* In the order of deaths, those that died at one place in the order that they have. */
static weir_status sort_lives(page_memory *m)
{
  int64_t last = INT64_MIN;
  for (size_t i = 0; i < m->lives; i++)
    if (m->life[i].died != INT64_MAX && m->life[i].died > last) last = m->life[i].died;
  for (size_t i = 0; i < m->lives; i++) /* too far from the others for a sort by numbers */
    if (m->life[i].died == INT64_MAX) m->life[i].died = last + 1;
  if (!wr_sort_records(m->life, m->lives, sizeof(*m->life), offsetof(page_life, died)))
    for (size_t i = 1; i < m->lives; i++) {
      page_life moved = m->life[i];
      size_t at = i;
      for (; at && m->life[at - 1].died > moved.died; at--)
        m->life[at] = m->life[at - 1];
      m->life[at] = moved;
    }
  for (size_t i = 0; i < m->lives; i++)
    if (m->life[i].died == last + 1) m->life[i].died = INT64_MAX;
  return find_births(m);
}

/* The places that had most at a device's peak, in order. */
static void choose_areas(page_memory *m, page_peak *p)
{
  size_t at = 0;
  uint64_t key, *bytes;
  while (hash_map_next(&m->at_peak, &at, &key, &bytes)) {
    if (key >> 32 != (uint64_t)p->device) continue;
    page_area area = {.place = (uint32_t)key, .bytes = (int64_t)*bytes};
    size_t i = p->areas < PAGE_AREAS ? p->areas++ : PAGE_AREAS;
    for (; i && (p->area[i - 1].bytes < area.bytes ||
                 (p->area[i - 1].bytes == area.bytes && p->area[i - 1].place > area.place));
         i--)
      if (i < PAGE_AREAS) p->area[i] = p->area[i - 1];
    if (i < PAGE_AREAS) p->area[i] = area;
  }
}

static weir_status make_areas(page_memory *m, page_peak *p)
{
  if (p->device == WR_HOST) return WEIR_OK;
  choose_areas(m, p);
  memset(&p->area[p->areas], 0, sizeof(page_area) * (PAGE_AREAS + 1 - p->areas));
  for (size_t i = 0; i <= p->areas; i++) {
    page_area *a = &p->area[i];
    const uint64_t *site =
        i < p->areas ? hash_map_get(&m->site_of, place_key(p->device, a->place)) : NULL;
    a->site = site ? (uint32_t)*site - 1 : 0;
    a->bin = m->bins.count;
    a->end = calloc(m->bins.count, sizeof(*a->end));
    if (!a->end) return wr_db_out_of_memory(m->db);
  }
  return WEIR_OK;
}

/* ---- the walk back --------------------------------------------------------------------------- */

static void change_area(page_area *a, uint32_t bin, int64_t by)
{
  while (a->bin > bin)
    a->end[--a->bin] = a->now;
  a->now = (int64_t)((uint64_t)a->now + (uint64_t)by);
}

/* What was live right behind a device's peak is what its bin shows. */
static void look_at_peak(const page_memory *m, page_peak *p)
{
  uint32_t bin = page_bin_of(&m->bins, p->at_ns);
  p->seen = true;
  for (size_t i = 0; i <= p->areas; i++) {
    change_area(&p->area[i], bin, 0);
    p->area[i].end[bin] = p->area[i].now;
  }
}

/* The walk comes to a place. */
static void pass_place(page_memory *m, int64_t place)
{
  for (size_t i = 0; i < m->peaks; i++)
    if (!m->peak[i].seen && m->peak[i].device != WR_HOST && place <= m->peak[i].place)
      look_at_peak(m, &m->peak[i]);
}

static void change_block(page_memory *m, const page_live *l, int64_t ns, int64_t by)
{
  if (ns < m->last_ns) m->last_ns = ns;
  uint32_t bin = page_bin_again(&m->bins, &m->near, m->last_ns);
  change_level(&m->series[l->series], bin, by);
  if (l->all) change_level(&m->series[l->all - 1], bin, by);
  if (l->total) change_level(&m->series[l->total - 1], bin, by);
  if (l->peak) change_area(&m->peak[l->peak - 1].area[l->area], bin, by);
}

/* Those of kept blocks, whose births are found by their places. */
static void undo_kept_births(page_memory *m, int64_t until)
{
  for (; m->next_birth >= m->first_birth && m->next_birth >= until; m->next_birth--) {
    uint32_t at = m->birth[m->next_birth - m->first_birth];
    if (!at) continue;
    const page_life *l = &m->life[at - 1];
    const page_live *use = &m->use[l->at].live;
    if (use->series == UINT32_MAX) continue;
    pass_place(m, l->born);
    change_block(m, use, l->start, (int64_t)(0 - l->bytes));
  }
}

static void push_live(page_memory *m, const page_live *l)
{
  size_t at = m->live_count++;
  for (; at && m->live[(at - 1) / 2].born < l->born; at = (at - 1) / 2)
    m->live[at] = m->live[(at - 1) / 2];
  m->live[at] = *l;
}

static page_live pop_live(page_memory *m)
{
  page_live first = m->live[0], moved = m->live[--m->live_count];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < m->live_count; at = child) {
    if (child + 1 < m->live_count && m->live[child + 1].born > m->live[child].born) child++;
    if (m->live[child].born <= moved.born) break;
    m->live[at] = m->live[child];
  }
  m->live[at] = moved;
  return first;
}

/* Births from the place of the next end on. */
static void undo_births(page_memory *m, int64_t until)
{
  if (m->birth) {
    undo_kept_births(m, until);
    return;
  }
  while (m->live_count && m->live[0].born >= until) {
    pass_place(m, m->live[0].born);
    page_live l = pop_live(m);
    change_block(m, &l, l.start, (int64_t)(0 - (uint64_t)l.bytes));
  }
}

/* Whether a is left out sooner: it is smaller, or as large and shorter. */
static bool is_lesser_block(const page_block *a, const page_block *b)
{
  if (a->bytes != b->bytes) return a->bytes < b->bytes;
  return (uint64_t)a->end - (uint64_t)a->start < (uint64_t)b->end - (uint64_t)b->start;
}

static weir_status keep_block(page_memory *m, const page_block *b)
{
  m->all_blocks++, m->all_bytes += b->bytes;
  size_t at = 0;
  if (m->blocks < PAGE_BLOCKS) {
    if (!wr_grow(&m->block, &m->block_capacity, m->blocks + 1, sizeof(*b)))
      return wr_db_out_of_memory(m->db);
    for (at = m->blocks++; at && is_lesser_block(b, &m->block[(at - 1) / 2]); at = (at - 1) / 2)
      m->block[at] = m->block[(at - 1) / 2];
    m->block[at] = *b;
    return WEIR_OK;
  }
  if (!is_lesser_block(&m->block[0], b)) return WEIR_OK;
  for (size_t child; (child = 2 * at + 1) < m->blocks; at = child) {
    if (child + 1 < m->blocks && is_lesser_block(&m->block[child + 1], &m->block[child])) child++;
    if (!is_lesser_block(&m->block[child], b)) break;
    m->block[at] = m->block[child];
  }
  m->block[at] = *b;
  return WEIR_OK;
}

/* Where a block of the device side is shown around its device's peak. */
static void find_area(const page_memory *m, page_live *l, int device, uint32_t place)
{
  for (size_t i = 0; i < m->peaks; i++) {
    const page_peak *p = &m->peak[i];
    if (p->device != device || device == WR_HOST) continue;
    l->peak = (uint32_t)i + 1;
    for (l->area = 0; l->area < p->areas && p->area[l->area].place != place; l->area++) {
    }
  }
}

/* What changes with a block: the series that it is in, and its area. */
static weir_status find_changes(page_memory *m, const wr_block *block, const block_row *b,
                                page_block_use **out)
{
  page_block_use *u = use_of(m, block);
  *out = u;
  if (u->undone && block->t) return WEIR_OK;
  weir_status s = is_device_side(b) ? find_place(m, block, out) : WEIR_OK;
  if (s) return s;
  u->summed &= is_device_side(b);
  u->undone = true;
  u->live = (page_live){.series = (uint32_t)series_of(m, b->device, b->mem, b->registered)};
  if (u->live.series == UINT32_MAX || !is_device_side(b)) return WEIR_OK;
  const page_places *places = m->calls->places;
  if (b->device != WR_HOST)
    u->live.all = (uint32_t)(series_of(m, b->device, PAGE_ALL_KINDS, false) + 1);
  u->live.total = (uint32_t)(series_of(m, WR_HOST, PAGE_ALL_KINDS, false) + 1);
  find_area(m, &u->live, b->device, page_place_of(places, places->site[u->site].stack));
  return WEIR_OK;
}

static weir_status undo_life(page_memory *m, const page_block_use *u, const page_life *b)
{
  weir_status s = WEIR_OK;
  page_live l = u->live;
  if (u->summed) {
    const int device = m->series[l.series].device;
    s = keep_block(m, &(page_block){b->start, b->end, b->bytes, u->site, device});
  }
  l.born = b->born, l.start = b->start, l.bytes = (int64_t)b->bytes;
  if (!s && !m->birth && !wr_grow(&m->live, &m->live_capacity, m->live_count + 1, sizeof(l)))
    s = wr_db_out_of_memory(m->db);
  if (s) return s;
  undo_births(m, b->died);
  if (b->died != INT64_MAX) pass_place(m, b->died);
  change_block(m, &l, b->died == INT64_MAX ? m->last_ns : b->end, l.bytes);
  if (!m->birth) push_live(m, &l);
  return WEIR_OK;
}

static weir_status undo_block(void *context, const wr_block *block)
{
  page_memory *m = context;
  block_row b = row_of_block(m, block);
  page_block_use *u;
  if (b.how == WR_BLOCK_UNKNOWN) return WEIR_OK;
  weir_status s = find_changes(m, block, &b, &u);
  if (s || u->live.series == UINT32_MAX) return s;
  return undo_life(
      m, u,
      &(page_life){
          .died = b.died, .born = b.born, .start = b.start, .end = b.end, .bytes = b.bytes});
}

static weir_status undo_kept(page_memory *m, const page_life *l)
{
  page_block_use *u = &m->use[l->at];
  return u->live.series == UINT32_MAX ? WEIR_OK : undo_life(m, u, l);
}

/* What changes with a block of each template that blocks are of. */
static weir_status find_kept_changes(page_memory *m)
{
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < m->lives; i++) {
    uint32_t at = m->life[i].at;
    page_block_use *u = &m->use[at];
    if (u->undone) continue;
    const wr_template *t = &m->calls->calls->templates[at];
    const wr_block block = {.process = t->process,
                            .stack = t->stack,
                            .device = (int)t->device,
                            .mem = (int)t->mem,
                            .registered = t->kind == WEIR_EV_HOSTREG,
                            .t = t};
    const block_row row = row_of_block(m, &block);
    s = find_changes(m, &block, &row, &u);
  }
  return s;
}

/* From the last that died; of those that died at one place, the last first, or, where lives were sorted, the first. */
static weir_status walk_kept(page_memory *m)
{
  weir_status s = m->disordered ? sort_lives(m) : WEIR_OK;
  if (!s) s = find_kept_changes(m);
  for (size_t end = m->lives, first; !s && end; end = first) {
    first = end - 1;
    while (m->disordered && first && m->life[first - 1].died == m->life[end - 1].died)
      first--;
    for (size_t i = first; !s && i < end; i++)
      s = undo_kept(m, &m->life[i]);
  }
  return s;
}

static weir_status walk_back(page_memory *m)
{
  if (m->keeps) return walk_kept(m);
  return m->disordered ? wr_blocks_from_last_death(&m->rows, undo_block, m)
                       : wr_blocks_back(&m->rows, undo_block, m);
}

static void finish_walk(page_memory *m)
{
  undo_births(m, INT64_MIN);
  pass_place(m, INT64_MIN);
  for (size_t i = 0; i < m->series_count; i++)
    open_bin(&m->series[i], 0);
  for (size_t i = 0; i < m->peaks; i++)
    for (size_t k = 0; m->peak[i].device != WR_HOST && k <= m->peak[i].areas; k++)
      change_area(&m->peak[i].area[k], 0, 0);
}

weir_status page_memory_begin(page_memory *m, page_calls *calls)
{
  *m = (page_memory){.db = calls->db,
                     .calls = calls,
                     .last_died = INT64_MIN,
                     .last_ns = INT64_MAX,
                     .use = calloc(calls->calls->count + 1, sizeof(page_block_use))};
  if (!m->use) return wr_db_out_of_memory(m->db);
  weir_status s = wr_blocks_open(&m->rows, calls->calls);
  if (!s) s = choose_keeping(m);
  if (!s) s = wr_blocks_listen(&m->rows);
  calls->blocks = &m->rows;
  return s;
}

static weir_status sum_blocks(page_memory *m)
{
  weir_status s = wr_blocks_each(&m->rows, sum_block, m);
  if (s || !m->keeps) return s;
  s = find_births(m);
  return s ? s : add_kept_changes(m);
}

weir_status page_memory_load(page_memory *m, const wr_model *model)
{
  m->model = model;
  m->bins = m->changes.bins = m->calls->cube.bins;
  weir_status s =
      wr_db_each(m->db, "SELECT device, mem, registered, peak, peak_at, peak_place FROM memory",
                 take_memory, m);
  if (!s)
    s = wr_db_each(m->db, "SELECT id, \"end\" FROM main.process WHERE \"end\" IS NOT NULL",
                   take_process_end, m);
  if (!s) s = sum_blocks(m);
  for (size_t i = 0; !s && i < m->peaks; i++)
    s = make_areas(m, &m->peak[i]);
  if (!s) s = walk_back(m);
  if (!s) finish_walk(m);
  return s;
}

static int by_start(const void *left, const void *right)
{
  const page_block *a = left, *b = right;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->bytes < b->bytes ? 1 : -(a->bytes > b->bytes);
}

void page_memory_finish(page_memory *m)
{
  if (m->blocks) qsort(m->block, m->blocks, sizeof(*m->block), by_start);
}

void page_memory_free(page_memory *m)
{
  for (size_t i = 0; i < m->series_count; i++)
    free(m->series[i].level);
  for (size_t i = 0; i < m->peaks; i++)
    for (size_t k = 0; k <= PAGE_AREAS; k++)
      free(m->peak[i].area[k].end);
  free(m->series);
  free(m->peak);
  free(m->block);
  free(m->live);
  free(m->life);
  free(m->birth);
  free(m->use);
  hash_map_free(&m->at_peak);
  hash_map_free(&m->site_of);
  hash_map_free(&m->site_of_place);
  page_cube_free(&m->changes);
  hash_map_free(&m->process_end);
  wr_blocks_close(&m->rows);
  *m = (page_memory){0};
}

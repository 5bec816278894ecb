/* places.c: see places.h. Equal things are found by a hash of 64 bits; texts are compared
 * besides. */
#include "reports/page/places.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/base/util.h"
#include "reports/model/sites.h"

enum {
  LONGEST_TEXT = 2000,   /* bytes */
  DEEPEST_STACK = 256,   /* frames */
  MOST_STACKED = 3000000 /* frames of all stacks; further stacks have their first alone */
};

/* Bytes of a text that are kept: whole characters. */
static size_t kept_bytes(const char *text)
{
  size_t n = strnlen(text, LONGEST_TEXT + 1);
  if (n <= LONGEST_TEXT) return n;
  for (n = LONGEST_TEXT; n > LONGEST_TEXT - 4 && ((unsigned char)text[n] & 0xc0) == 0x80; n--) {
  }
  return n;
}

/* Cleaned and cut (new). */
static char *short_text(const char *text, bool *cut)
{
  size_t n = kept_bytes(text);
  *cut = text[n] != 0;
  char *clean = wr_text(text, n, true);
  if (!clean || !*cut) return clean;
  char *marked = wr_format("%s…", clean);
  free(clean);
  return marked;
}

bool page_put_text(FILE *out, const char *text)
{
  bool cut = false;
  char *shown = text ? short_text(text, &cut) : NULL;
  if (shown)
    wr_put_json_text(out, shown);
  else
    (void)fputs("null", out);
  free(shown);
  return cut;
}

/* Takes `clean`, which is new. */
static weir_status intern_text(page_places *p, char *clean, uint32_t *out)
{
  uint64_t key = 7;
  for (const char *c = clean; *c; c++)
    key = hash_mix(key, (unsigned char)*c);
  for (;; key = hash_mix(key, 1)) {
    bool added;
    uint64_t *number = hash_map_place(&p->by_text, key, &added);
    if (!number) break;
    if (!added && strcmp(p->text[*number], clean) != 0) continue;
    *out = (uint32_t)*number;
    if (!added) {
      free(clean);
      return WEIR_OK;
    }
    if (!wr_grow(&p->text, &p->text_capacity, p->texts + 1, sizeof(*p->text))) {
      hash_map_remove(&p->by_text, key);
      break;
    }
    *out = (uint32_t)p->texts;
    *number = p->texts;
    p->text[p->texts++] = clean;
    return WEIR_OK;
  }
  free(clean);
  return wr_db_out_of_memory(p->db);
}

weir_status page_text_of(page_places *p, const char *text, uint32_t *out)
{
  bool cut = false;
  char *clean = short_text(text, &cut);
  if (!clean) return wr_db_out_of_memory(p->db);
  p->texts_cut += cut;
  return intern_text(p, clean, out);
}

static weir_status function_of(page_places *p, const wr_frame *f, uint32_t *out)
{
  if (f->function) return page_text_of(p, f->function, out);
  const char *slash = strrchr(f->module, '/');
  unsigned long long offset = (unsigned long long)f->offset;
  char *name = f->module[0] ? wr_format("%s+0x%llx", slash ? slash + 1 : f->module, offset)
                            : wr_format("0x%llx", offset);
  weir_status s = name ? page_text_of(p, name, out) : wr_db_out_of_memory(p->db);
  free(name);
  return s;
}

static weir_status frame_of(page_places *p, const wr_frame *f, uint32_t *out)
{
  page_frame frame = {.line = f->file && f->line > 0 ? f->line : 0, .built = f->built};
  bool added;
  weir_status s = function_of(p, f, &frame.function);
  if (!s && f->file) s = page_text_of(p, f->file, &frame.file);
  if (s) return s;
  uint64_t key = hash_mix(hash_mix(hash_mix(7, frame.function), frame.file), (uint64_t)frame.line);
  uint64_t *number = hash_map_place(&p->by_frame, key, &added);
  if (!number || !wr_grow(&p->frame, &p->frame_capacity, p->frames + 1, sizeof(*p->frame)))
    return wr_db_out_of_memory(p->db);
  if (added) {
    *number = p->frames;
    p->frame[p->frames++] = frame;
  }
  *out = (uint32_t)*number;
  return WEIR_OK;
}

/* The frames of a stack of the trace's, from its site's on, behind those of the others. */
static weir_status push_frames(page_places *p, int64_t stack, size_t *count)
{
  const wr_frame *frames = NULL;
  size_t all = 0;
  *count = 0;
  weir_status s = stack ? wr_symbols_stack(p->symbols, stack, &frames, &all) : WEIR_OK;
  if (s || !all) return s;
  size_t at = wr_site_in(p->db, frames, all), n = all - at;
  size_t most = p->stacked_count > MOST_STACKED ? 1 : DEEPEST_STACK;
  p->stacks_cut += n > most;
  if (n > most) n = most;
  if (!wr_grow(&p->stacked, &p->stacked_capacity, p->stacked_count + n, sizeof(*p->stacked)))
    return wr_db_out_of_memory(p->db);
  for (; !s && *count < n; ++*count)
    s = frame_of(p, &frames[at + *count], &p->stacked[p->stacked_count + *count]);
  return s;
}

static weir_status intern_stack(page_places *p, size_t count, uint32_t *out)
{
  uint64_t key = hash_mix(7, count);
  bool added;
  for (size_t i = 0; i < count; i++)
    key = hash_mix(key, p->stacked[p->stacked_count + i]);
  uint64_t *number = hash_map_place(&p->by_stack, key, &added);
  if (!number || !wr_grow(&p->stack_end, &p->stack_capacity, p->stacks + 1, sizeof(size_t)))
    return wr_db_out_of_memory(p->db);
  if (added) {
    *number = p->stacks;
    p->stacked_count += count;
    p->stack_end[p->stacks++] = p->stacked_count;
  }
  *out = (uint32_t)*number;
  return WEIR_OK;
}

weir_status page_stack_of(page_places *p, int64_t stack, uint32_t *out)
{
  const uint64_t *known = hash_map_get(&p->by_row, (uint64_t)stack);
  size_t count = 0;
  if (known) {
    *out = (uint32_t)*known;
    return WEIR_OK;
  }
  weir_status s = push_frames(p, stack, &count);
  if (!s) s = intern_stack(p, count, out);
  return s ? s : hash_map_put(&p->by_row, (uint64_t)stack, *out);
}

static weir_status api_text_of(page_places *p, uint32_t api)
{
  char buffer[24];
  if (!api || p->api_text[api]) return WEIR_OK;
  return page_text_of(p, wr_api_name(api, buffer), &p->api_text[api]);
}

weir_status page_site_of(page_places *p, int64_t stack, uint32_t api, uint32_t *out)
{
  uint32_t of = 0;
  bool added;
  weir_status s = page_stack_of(p, stack, &of);
  if (!s) s = api_text_of(p, api & 0xffff);
  if (s) return s;
  uint64_t *number = hash_map_place(&p->by_site, (uint64_t)of << 16 | (api & 0xffff), &added);
  if (!number || !wr_grow(&p->site, &p->site_capacity, p->sites + 1, sizeof(*p->site)))
    return wr_db_out_of_memory(p->db);
  if (added) {
    *number = p->sites;
    p->site[p->sites++] = (page_site){of, api & 0xffff};
  }
  *out = (uint32_t)*number;
  return WEIR_OK;
}

uint32_t page_place_of(const page_places *p, uint32_t stack)
{
  return stack ? p->stacked[p->stack_end[stack - 1]] : (uint32_t)p->frames;
}

weir_status page_places_open(page_places *p, const wr_db *db)
{
  uint32_t zero;
  *p = (page_places){.db = db, .api_text = calloc(65536, sizeof(uint32_t))};
  if (!p->api_text) return wr_db_out_of_memory(db);
  weir_status s = wr_symbols_open(&p->symbols, db);
  if (!s) s = page_text_of(p, "", &zero);
  return s ? s : page_site_of(p, 0, 0, &zero);
}

void page_places_close(page_places *p)
{
  for (size_t i = 0; i < p->texts; i++)
    free(p->text[i]);
  free(p->text);
  free(p->frame);
  free(p->stack_end);
  free(p->stacked);
  free(p->site);
  free(p->api_text);
  hash_map_free(&p->by_text);
  hash_map_free(&p->by_frame);
  hash_map_free(&p->by_stack);
  hash_map_free(&p->by_row);
  hash_map_free(&p->by_site);
  if (p->symbols) wr_symbols_close(p->symbols);
  *p = (page_places){0};
}

/* named.c: tensors by name (core/weir/io.h): a list in the order of arrival, and an open hash table
 * of places in it. */
#include "core/io/named.h"

#include <stdlib.h>
#include <string.h>
#include "core/base/json.h"

static weir_status no_named_memory(void)
{
  (void)weir_fail(WEIR_ENOMEM, "no host memory left for a list of tensors");
  return WEIR_ENOMEM;
}

weir_status weir_tensors_create(weir_tensors **out)
{
  WEIR_REQUIRE(out);
  *out = calloc(1, sizeof **out);
  return *out ? WEIR_OK : no_named_memory();
}

void named_free(named_list *l)
{
  for (size_t i = 0; i < l->count; i++)
    free(l->items[i].name);
  free(l->items);
  free(l->table);
}

void weir_tensors_release(weir_tensors *set)
{
  if (!set) return;
  for (size_t i = 0; i < set->tensors.count; i++)
    weir_tensor_release(set->tensors.items[i].value);
  for (size_t i = 0; i < set->metadata.count; i++)
    free(set->metadata.items[i].value);
  for (size_t i = 0; i < set->skipped.count; i++)
    free(set->skipped.items[i].value);
  named_free(&set->tensors);
  named_free(&set->skipped);
  named_free(&set->metadata);
  free(set);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* FNV-1a, mixed once more: names differ at their ends. */
static size_t hash(const char *name)
{
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
  return (size_t)(h ^ h >> 29);
}

/* Where the name is in the table, or is to be. The table has an empty slot. */
static size_t named_slot_of(const named_list *l, const char *name)
{
  size_t at = hash(name) & (l->room - 1);
  while (l->table[at] && strcmp(l->items[l->table[at] - 1].name, name) != 0)
    at = (at + 1) & (l->room - 1);
  return at;
}

static void rebuild(named_list *l)
{
  memset(l->table, 0, l->room * sizeof *l->table);
  for (size_t i = 0; i < l->count; i++)
    l->table[named_slot_of(l, l->items[i].name)] = (uint32_t)i + 1;
}

/* Room for one more item. */
static weir_status grow_list(named_list *l)
{
  if (l->items && l->count < l->room / 2) return WEIR_OK;
  size_t room = l->room ? l->room * 2 : 16;
  if (room > UINT32_MAX) return no_named_memory();
  named_item *items = calloc(room / 2, sizeof *items);
  if (!items) return no_named_memory();
  if (l->items) memcpy(items, l->items, l->count * sizeof *items);
  free(l->items);
  l->items = items;
  uint32_t *table = realloc(l->table, room * sizeof *table);
  if (!table) return no_named_memory();
  l->table = table;
  l->room = room;
  rebuild(l);
  return WEIR_OK;
}

named_item *named_find(const named_list *l, const char *name)
{
  uint32_t place = l->room && name ? l->table[named_slot_of(l, name)] : 0;
  return place ? &l->items[place - 1] : NULL;
}

weir_status named_add(named_list *l, const char *name, void *value)
{
  weir_status st = grow_list(l);
  char *copy = st ? NULL : strdup(name);
  if (st || !copy) return st ? st : no_named_memory();
  l->table[named_slot_of(l, name)] = (uint32_t)l->count + 1;
  l->items[l->count++] = (named_item){copy, value};
  return WEIR_OK;
}

/* ---- tensors --------------------------------------------------------------------------------- */

static weir_status check_name(const char *name, const char *what)
{
  if (!utf8_valid(name, strlen(name))) return fail_invalid("%s is not UTF-8", what);
  return WEIR_OK;
}

weir_status weir_tensors_put(weir_tensors *set, const char *name, weir_tensor *t)
{
  WEIR_REQUIRE(set, name, t);
  weir_status st = check_name(name, "a tensor's name");
  if (st) return st;
  named_item *there = named_find(&set->tensors, name);
  if (!there) {
    if (!(st = named_add(&set->tensors, name, t))) (void)weir_tensor_retain(t);
    return st;
  }
  weir_tensor *before = there->value;
  there->value = weir_tensor_retain(t);
  weir_tensor_release(before);
  return WEIR_OK;
}

weir_tensor *weir_tensors_get(const weir_tensors *set, const char *name)
{
  const named_item *i = set ? named_find(&set->tensors, name) : NULL;
  return i ? i->value : NULL;
}

size_t weir_tensors_count(const weir_tensors *set)
{
  return set ? set->tensors.count : 0;
}

const char *weir_tensors_name(const weir_tensors *set, size_t place)
{
  return place < weir_tensors_count(set) ? set->tensors.items[place].name : NULL;
}

weir_tensor *weir_tensors_at(const weir_tensors *set, size_t place)
{
  return place < weir_tensors_count(set) ? set->tensors.items[place].value : NULL;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static void take_away(named_list *l, named_item *item)
{
  free(item->name);
  free(item->value);
  memmove(item, item + 1, (size_t)(l->items + l->count - item - 1) * sizeof *item);
  l->count--;
  rebuild(l);
}

weir_status weir_tensors_set_metadata(weir_tensors *set, const char *key, const char *text)
{
  WEIR_REQUIRE(set, key);
  weir_status st = check_name(key, "a key");
  if (!st && text) st = check_name(text, "a key's text");
  if (st) return st;
  named_item *there = named_find(&set->metadata, key);
  if (!text) {
    if (there) take_away(&set->metadata, there);
    return WEIR_OK;
  }
  char *copy = strdup(text);
  if (!copy) return no_named_memory();
  if (!there) {
    if ((st = named_add(&set->metadata, key, copy))) free(copy);
    return st;
  }
  free(there->value);
  there->value = copy;
  return WEIR_OK;
}

const char *weir_tensors_metadata(const weir_tensors *set, const char *key)
{
  const named_item *i = set ? named_find(&set->metadata, key) : NULL;
  return i ? i->value : NULL;
}

size_t weir_tensors_metadata_count(const weir_tensors *set)
{
  return set ? set->metadata.count : 0;
}

const char *weir_tensors_metadata_key(const weir_tensors *set, size_t place)
{
  return place < weir_tensors_metadata_count(set) ? set->metadata.items[place].name : NULL;
}

/* ---- what was skipped ------------------------------------------------------------------------ */

weir_status tensors_skip(weir_tensors *set, const char *name, const char *kind)
{
  if (named_find(&set->skipped, name)) return WEIR_OK;
  char *copy = strdup(kind);
  if (!copy) return no_named_memory();
  weir_status st = named_add(&set->skipped, name, copy);
  if (st) free(copy);
  return st;
}

size_t weir_tensors_skipped_count(const weir_tensors *set)
{
  return set ? set->skipped.count : 0;
}

const char *weir_tensors_skipped_name(const weir_tensors *set, size_t place)
{
  return place < weir_tensors_skipped_count(set) ? set->skipped.items[place].name : NULL;
}

const char *weir_tensors_skipped_kind(const weir_tensors *set, size_t place)
{
  return place < weir_tensors_skipped_count(set) ? set->skipped.items[place].value : NULL;
}

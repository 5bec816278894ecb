/* memo.c: open addressing, grown at half full. */
#include "core/nn/memo.h"

#include <stdint.h>
#include <stdlib.h>

/* Where the key is, or could be. */
static size_t place(const weir_memo *m, const void *key)
{
  size_t at = (size_t)(((uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
  for (at &= m->room - 1; m->slot[at].key && m->slot[at].key != key;)
    at = (at + 1) & (m->room - 1);
  return at;
}

void **weir_memo_get(const weir_memo *m, const void *key)
{
  if (!m->room) return NULL;
  size_t at = place(m, key);
  return m->slot[at].key ? &m->slot[at].value : NULL;
}

static weir_status grow(weir_memo *m)
{
  weir_memo larger = {.count = m->count, .room = m->room ? 2 * m->room : 32};
  larger.slot = calloc(larger.room, sizeof *larger.slot);
  if (!larger.slot) return weir_fail(WEIR_ENOMEM, "no host memory for a walk over modules");
  for (size_t i = 0; i < m->room; i++)
    if (m->slot[i].key) larger.slot[place(&larger, m->slot[i].key)] = m->slot[i];
  free(m->slot);
  *m = larger;
  return WEIR_OK;
}

weir_status weir_memo_put(weir_memo *m, const void *key, void *value)
{
  weir_status st = 2 * (m->count + 1) > m->room ? grow(m) : WEIR_OK;
  if (st) return st;
  size_t at = place(m, key);
  m->slot[at].key = key;
  m->slot[at].value = value;
  m->count++;
  return WEIR_OK;
}

void weir_memo_free(weir_memo *m)
{
  free(m->slot);
  *m = (weir_memo){0};
}

/* sample.c: see sample.h. Sites, and hashes that were seen, share their places with others of the
 * same key: then a site is looked at longer, or a repeat goes unnoticed. */
#include "interpose/content/sample.h"

#include <stdatomic.h>

enum {
  SITES = 1 << 10,
  SEEN = 1 << 12,
  FIRST = 16, /* that a site has to pay with before anything repeats */
  DEAR = 5    /* that a copy costs at most: one, and one a MiB */
};

static bool sampling;
static _Atomic uint32_t spent[SITES], earned[SITES];
static _Atomic uint64_t seen[SEEN]; /* 54 bits of a hash, and 10 of the site; 0: none */

static uint64_t mix_words(uint64_t a, uint64_t b)
{
  uint64_t x = (a ^ b) * UINT64_C(0x9e3779b97f4a7c15);
  return x ^ x >> 29;
}

static uint32_t price(uint64_t bytes)
{
  uint64_t more = bytes >> 20;
  return more < DEAR - 1 ? (uint32_t)more + 1 : (uint32_t)DEAR;
}

void sample_start(void)
{
  sampling = true;
}

unsigned sample_site(const hook_call *c, const event_fields *e)
{
  unsigned magnitude = e->bytes ? 64 - (unsigned)__builtin_clzll(e->bytes) : 0;
  uint64_t call = (uint64_t)c->api << 16 | e->detail << 8 | magnitude;
  return (unsigned)(mix_words(mix_words(call, c->thread->outermost), e->device) % SITES);
}

bool sample_takes(unsigned site, uint64_t bytes)
{
  uint32_t has = FIRST + atomic_load_explicit(&earned[site], memory_order_relaxed);
  if (!sampling) return true;
  if (atomic_load_explicit(&spent[site], memory_order_relaxed) >= has) return false;
  atomic_fetch_add_explicit(&spent[site], price(bytes), memory_order_relaxed);
  return true;
}

static void earn(unsigned site, uint64_t bytes)
{
  atomic_fetch_add_explicit(&earned[site], 2 * price(bytes), memory_order_relaxed);
}

void sample_hashed(unsigned site, uint64_t bytes, const content_digest *d)
{
  if (!sampling) return;
  uint64_t key = mix_words(d->hash[0], bytes), value = key / SITES * SITES + site;
  _Atomic uint64_t *place = &seen[(key >> 40) % SEEN];
  uint64_t before = atomic_exchange_explicit(place, value, memory_order_relaxed);
  bool again = before && before / SITES == value / SITES;
  if (again || d->uniform) earn(site, bytes);
  if (again && before % SITES != site) earn((unsigned)(before % SITES), bytes);
}

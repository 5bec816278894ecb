/* sample.c: see sample.h. Sites, and hashes that were seen, share their places with others of the
 * same key: then a site is looked at longer, or a repeat goes unnoticed. */
#include "interpose/content/sample.h"

#include <stdatomic.h>
#include "core/base/clock.h"
#include "interpose/record/copy_sites.h"

enum {
  SEEN = 1 << 12,
  FIRST = 16, /* that a site has to pay with before anything repeats */
  DEAR = 5    /* that a copy costs at most: one, and one a MiB */
};

#define MIB          (UINT64_C(1) << 20)
#define LARGE        MIB         /* bytes: a copy of more is hashed if its print was seen */
#define MEDIUM       (MIB / 4)   /* so is one of more, after the first ones of a site that varies */
#define HASH_BYTES   8192        /* that a hash counts beyond what it reads */
#define RATE         (16 * MIB)  /* bytes a second by which the allowance grows, */
#define AT_START     (32 * MIB)  /* what it is at the start, */
#define AT_MOST      (256 * MIB) /* what it grows to, */
#define KEPT         (8 * MIB)   /* and what repeats leave of it */
#define PAUSE        (UINT64_C(1) << 21) /* ticks that a site is quiet when it is used up */
#define NS_OF(bytes) ((bytes)*UINT64_C(1000000000) / RATE)

static bool sampling;
static _Atomic uint64_t seen[SEEN], prints[SEEN]; /* of a hash, and the site; 0: none */
static _Atomic bool varies[COPY_SITES]; /* its last known copy was not equal to the one before */

/* The allowance is the time since then, at the rate; ns on the monotonic clock. */
static _Atomic uint64_t used_until;

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
  uint64_t now = clock_monotonic_ns();
  sampling = true;
  atomic_store(&used_until, now > NS_OF(AT_START) ? now - NS_OF(AT_START) : 0);
}

bool sample_is_on(void)
{
  return sampling;
}

/* Takes the bytes, and what a hash counts more, out of the allowance, if `kept` bytes are left. */
static bool take_allowance(uint64_t bytes, uint64_t kept)
{
  uint64_t now = clock_monotonic_ns(), cost = NS_OF(bytes + HASH_BYTES);
  uint64_t was = atomic_load_explicit(&used_until, memory_order_relaxed), from, to;
  do {
    from = now > NS_OF(AT_MOST) && was < now - NS_OF(AT_MOST) ? now - NS_OF(AT_MOST) : was;
    to = from + cost;
    if (to + NS_OF(kept) > now) return false;
  } while (!atomic_compare_exchange_weak(&used_until, &was, to));
  return true;
}

static void quieten_site(unsigned site, uint64_t until)
{
  atomic_store_explicit(&copy_places[site].quiet_until, until, memory_order_relaxed);
}

static sample_choice pay(unsigned site, uint32_t costs, sample_choice what)
{
  atomic_fetch_add_explicit(&copy_places[site].spent, costs, memory_order_relaxed);
  return what;
}

static bool is_varying(unsigned site)
{
  return atomic_load_explicit(&varies[site], memory_order_relaxed);
}

sample_choice sample_choose(unsigned site, uint64_t bytes, uint64_t now)
{
  if (!sampling) return SAMPLE_HASH;
  if (now < atomic_load_explicit(&copy_places[site].quiet_until, memory_order_relaxed))
    return SAMPLE_LEAVE;
  uint32_t paid = atomic_load_explicit(&copy_places[site].spent, memory_order_relaxed);
  uint32_t has = FIRST + atomic_load_explicit(&copy_places[site].earned, memory_order_relaxed);
  if (paid >= has) {
    quieten_site(site, UINT64_MAX);
    return SAMPLE_LEAVE;
  }
  bool large = bytes > (paid >= FIRST && is_varying(site) ? MEDIUM : LARGE);
  bool whole = large && !paid && bytes <= CONTENT_WHOLE_MOST;
  if (whole && take_allowance(bytes, KEPT)) return pay(site, price(bytes), SAMPLE_HASH);
  if (take_allowance(large ? CONTENT_PRINT_BYTES : bytes, paid >= FIRST ? KEPT : 0))
    return large ? pay(site, 1, SAMPLE_PRINT) : pay(site, price(bytes), SAMPLE_HASH);
  quieten_site(site, now + PAUSE);
  return SAMPLE_LEAVE;
}

/* Puts the site's place into that of the key. Returns whether the key was there, and at which site. */
static bool exchange_seen(_Atomic uint64_t *table, uint64_t key, unsigned site, unsigned *before)
{
  uint64_t value = key / COPY_SITES * COPY_SITES + site;
  uint64_t was = atomic_exchange_explicit(&table[(key >> 40) % SEEN], value, memory_order_relaxed);
  *before = (unsigned)(was % COPY_SITES);
  return was && was / COPY_SITES == value / COPY_SITES;
}

static bool note_print(unsigned site, const content_region *region, content_spans *spans)
{
  uint64_t print;
  unsigned before;
  if (!content_print_of(region, &print, spans)) return false;
  return exchange_seen(prints, mix_words(print, region->width * region->height), site, &before);
}

void sample_rest(unsigned site, uint64_t ticks)
{
  if (sampling && ticks && is_varying(site)) quieten_site(site, clock_ticks() + ticks);
}

void sample_give_up(unsigned site)
{
  if (sampling) quieten_site(site, UINT64_MAX);
}

/* The site is not quiet any more: it has something to pay with. */
static void earn(unsigned site, uint64_t bytes)
{
  atomic_fetch_add_explicit(&copy_places[site].earned, 2 * price(bytes), memory_order_relaxed);
  quieten_site(site, 0);
}

sample_print sample_print_copy(const content_copy *copy, const content_region *region,
                               copy_hash_info *info, spans_verdict *v)
{
  content_spans spans;
  uint64_t bytes = region->width * region->height;
  bool seen_before = note_print(copy->site, region, &spans);
  *v = copy->upload ? spans_compare(copy->site, copy->dst, &spans, info) : *v;
  if (!seen_before && !v->known) return SAMPLE_IS_NEW;
  uint64_t kept = is_varying(copy->site) ? 2 * KEPT : KEPT; /* what is left for prints */
  if (bytes <= CONTENT_WHOLE_MOST && take_allowance(bytes, kept)) {
    atomic_fetch_add_explicit(&copy_places[copy->site].spent, price(bytes) - 1,
                              memory_order_relaxed);
    return SAMPLE_IS_PAID;
  }
  if (v->known) earn(copy->site, 0);
  return seen_before ? SAMPLE_IS_ALIKE : SAMPLE_IS_NEW;
}

void sample_hashed(const content_copy *copy, const content_region *region, const content_digest *d,
                   const spans_verdict *v)
{
  unsigned before, site = copy->site;
  content_spans pieces;
  copy_hash_info unused;
  uint64_t bytes = region->width * region->height;
  if (!sampling) return;
  bool noted = copy->print || bytes <= MEDIUM;
  if (!noted) (void)note_print(site, region, &pieces);
  if (!noted && copy->upload) (void)spans_compare(site, copy->dst, &pieces, &unused);
  bool again = exchange_seen(seen, mix_words(d->hash[0], bytes), site, &before);
  if (v->known) atomic_store_explicit(&varies[site], !v->equal, memory_order_relaxed);
  if (again || d->uniform || v->known) earn(site, bytes);
  if (again && before != site) earn(before, bytes);
}

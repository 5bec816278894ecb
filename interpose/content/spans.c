/* spans.c: see spans.h. */
#include "interpose/content/spans.h"

#include <stdatomic.h>
#include <string.h>
#include "core/base/clock.h"

enum {
  PLACES = 1 << 11,
  SPAN_BITS = 6,
  PIECE_BITS = 5,
  ENOUGH = 12, /* copies that are known until a site rests */
  REST = 5     /* part of the time since the first one that it does */
};

typedef struct span_place {
  uint64_t dst;
  unsigned site;
  content_spans spans;
  unsigned known; /* copies */
  uint64_t since; /* ticks: the first of them */
  bool rested;    /* before the last copy */
} span_place;

static span_place places[PLACES];
static _Atomic bool taken[PLACES];

void spans_begin(content_spans *s, uint64_t bytes, bool pieces)
{
  unsigned bits = 64 - (unsigned)__builtin_clzll((bytes - 1) | 1);
  memset(s, 0, sizeof *s);
  s->bytes = bytes;
  s->pieces = pieces;
  s->shift = bits - (pieces ? PIECE_BITS : SPAN_BITS);
}

/* Bytes at the end of these that are equal. */
static uint64_t equal_tail(const unsigned char *at, uint64_t bytes)
{
  const uint64_t all = at[bytes - 1] * UINT64_C(0x0101010101010101);
  uint64_t left = bytes, word;
  for (; left >= sizeof word; left -= sizeof word) {
    memcpy(&word, at + left - sizeof word, sizeof word);
    if (word != all) break;
  }
  while (left && at[left - 1] == at[bytes - 1])
    left--;
  return bytes - left;
}

/* What lies between two pieces counts as equal if they are. */
void spans_end_with(content_spans *s, const unsigned char *read, uint64_t from, uint64_t bytes)
{
  uint64_t equal = equal_tail(read, bytes);
  bool goes_on = from && read[0] == s->last && (s->equal || !s->pieces);
  s->equal = equal == bytes;
  s->last = read[bytes - 1];
  if (!s->equal || !goes_on) s->equal_from = from + bytes - equal;
}

static bool is_same_span(const content_spans *a, const content_spans *b, unsigned i)
{
  uint64_t least = a->bytes < b->bytes ? a->bytes : b->bytes;
  bool in_both = a->bytes == b->bytes || ((uint64_t)i + 1) << a->shift <= least;
  return in_both && a->hash[i] == b->hash[i];
}

static void compare(const content_spans *now, const content_spans *before, copy_hash_info *out)
{
  bool was_same = true;
  out->before = before->bytes;
  for (unsigned i = 0; i < spans_count(now); i++) {
    uint64_t from = (uint64_t)i << now->shift, left = now->bytes - from;
    uint64_t bytes = left >> now->shift ? UINT64_C(1) << now->shift : left;
    bool same = is_same_span(now, before, i);
    out->same += same ? bytes : 0;
    out->changed += was_same && !same;
    was_same = same;
  }
}

/* Of a copy half of which is one byte, or three quarters of which are as before, more are hashed. */
static bool is_mostly_known(const content_spans *s, const copy_hash_info *info)
{
  bool padded = s->equal_from && s->equal_from <= s->bytes / 2;
  return padded || (info->before && s->bytes - info->same <= s->bytes / 4);
}

static uint64_t may_rest(span_place *p)
{
  uint64_t now = clock_ticks();
  if (!p->known) p->since = now;
  bool rests = ++p->known >= ENOUGH && !p->rested;
  p->rested = rests;
  return rests ? (now - p->since) / REST : 0;
}

spans_verdict spans_compare(unsigned site, uint64_t dst, const content_spans *s,
                            copy_hash_info *out)
{
  spans_verdict v = {.rest = 0};
  uint64_t key = (dst ^ (uint64_t)site << 48 ^ s->pieces) * UINT64_C(0x9e3779b97f4a7c15);
  unsigned at = (unsigned)(key >> 32) % PLACES;
  span_place *p = &places[at];
  out->before = out->same = out->changed = 0;
  out->tail = s->bytes - s->equal_from;
  out->last = s->last;
  if (!s->bytes || atomic_exchange_explicit(&taken[at], true, memory_order_acquire)) return v;
  bool same_place = p->site == site && p->dst == dst && p->spans.shift == s->shift &&
                    p->spans.pieces == s->pieces;
  if (same_place && p->spans.bytes)
    compare(s, &p->spans, out);
  else
    *p = (span_place){.dst = dst, .site = site};
  p->spans = *s;
  v.known = is_mostly_known(s, out);
  v.equal = out->before == s->bytes && out->same == s->bytes;
  if (v.known)
    v.rest = may_rest(p);
  else
    p->rested = false;
  atomic_store_explicit(&taken[at], false, memory_order_release);
  return v;
}

void spans_forked(void)
{
  for (unsigned i = 0; i < PLACES; i++)
    if (atomic_load_explicit(&taken[i], memory_order_relaxed))
      atomic_store_explicit(&taken[i], false, memory_order_relaxed);
}

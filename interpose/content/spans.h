/* spans.h: which parts of an upload are as they were in the last one from there to there.
 *
 * A copy of n bytes is cut at multiples of its *span*: 33 to 64 of them, of a power of two of bytes
 * that depends on n rounded up to a power of two. So spans are at the same addresses in a buffer
 * that is filled again, in a table of which a few entries changed, and in a history that has
 * grown, where a share of the size would move with it. Of each span a hash of 32 bits is kept, and
 * of the copy how many bytes at its end are equal.
 *
 * A copy is *known* if most of it need not be sent. Where many are, some are enough to show that it
 * goes on so: the site may *rest* for a fifth of the time since the first of them, and then two
 * copies in a row show how much changes from one to the next.
 *
 * The last copy of each site and destination has a place in a table, maybe instead of another's,
 * which is then compared with none. No lock: a place that another thread is at is left alone. */
#ifndef WEIR_INTERPOSE_SPANS_H
#define WEIR_INTERPOSE_SPANS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/trace/event.h"

enum {
  SPANS = 64,
  SPANS_LEAST = 16384 /* bytes of a copy that is cut: of fewer, few take as long */
};

typedef struct content_spans {
  uint64_t bytes;       /* of the copy; 0: it was not cut */
  uint64_t equal_from;  /* from there on all that was read is `last` */
  uint32_t hash[SPANS]; /* of each span, or of the first bytes of each */
  unsigned shift;       /* a span has 1 << shift bytes */
  bool pieces;          /* first bytes */
  bool equal;           /* all that was read last is `last` */
  unsigned char last;
} content_spans;

/* Begins with a copy of so many bytes. */
void spans_begin(content_spans *s, uint64_t bytes, bool pieces);

/* How many there are. */
static inline unsigned spans_count(const content_spans *s)
{
  return (unsigned)((s->bytes + (UINT64_C(1) << s->shift) - 1) >> s->shift);
}

/* The bytes that were read are those from `from` on: after all that were read so far. */
void spans_end_with(content_spans *s, const unsigned char *read, uint64_t from, uint64_t bytes);

typedef struct spans_verdict {
  bool known, equal; /* equal: as far as it was looked at, all of it is there */
  uint64_t rest;     /* ticks */
} spans_verdict;

/* What the copy has in common with the last one of this site that went to `dst`, which it
 * replaces. */
spans_verdict spans_compare(unsigned site, uint64_t dst, const content_spans *s,
                            copy_hash_info *out);

/* In a forked child: no other thread compares. */
void spans_forked(void);

#endif

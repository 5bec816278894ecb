/* sample.h: --hash=auto, the default: which copies are hashed where not all are.
 *
 * Of each site (record/copy_sites.h) the first copies are hashed, and each repeat (the same bytes
 * were hashed before, at any site; or all bytes of a copy are equal) pays for two more, at its site
 * and at the one that the bytes were last seen at. A site that has nothing to pay with is *quiet*:
 * its copies are not looked at from then on.
 *
 * A *large* copy, but for a site's first ones, is hashed only where a *print* of it, a hash of some
 * pieces spread over it, was seen before, or most of these pieces are as in the last copy to there
 * (spans.h). A print shows that it is worth it, and no more: bytes are the same where the hashes of
 * all of them are.
 *
 * A copy that is mostly as the one before pays as a repeat does, and its site rests at times.
 *
 * All that is read in a process has one *allowance*, of bytes; each hash counts some more than it
 * reads. It grows with time, so that hashing takes less than a hundredth of it, and where it is
 * used up, sites are quiet for a while. Repeats leave some of it for sites that are new.
 *
 * Which copies are hashed depends on nothing but their order, as long as the allowance suffices. No
 * lock. */
#ifndef WEIR_INTERPOSE_CONTENT_SAMPLE_H
#define WEIR_INTERPOSE_CONTENT_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/content/content.h"

/* Of a copy of more bytes not all are hashed unless WEIR_HASH sets another bound. */
#define CONTENT_WHOLE_MOST (UINT64_C(64) << 20)

/* What is done about a copy. */
typedef enum sample_choice {
  SAMPLE_LEAVE, /* nothing; its site is quiet for some time or for good */
  SAMPLE_HASH,
  SAMPLE_PRINT /* sample_print_copy() decides */
} sample_choice;

/* From now on not all copies are hashed. Before the first event. */
void sample_start(void);

/* Whether not all copies are hashed. */
bool sample_is_on(void);

/* What is done about the next copy of the site, of so many bytes; it is paid for. `now`: ticks. */
sample_choice sample_choose(unsigned site, uint64_t bytes, uint64_t now);

/* The site has shown enough for so long, unless its copies are equal: of these each is wanted. */
void sample_rest(unsigned site, uint64_t ticks);

/* No copy of the site can be hashed. */
void sample_give_up(unsigned site);

typedef enum sample_print {
  SAMPLE_IS_NEW, /* no copy before it had that print, or it cannot be read, or it costs too much */
  SAMPLE_IS_ALIKE, /* one had: to hash it would cost too much */
  SAMPLE_IS_PAID   /* one had: it is to be hashed, and paid for */
} sample_print;

/* What is done about a copy of which a print is made; of an upload the record gets what its pieces
 * have in common with those of the one before it. */
sample_print sample_print_copy(const content_copy *copy, const content_region *region,
                               copy_hash_info *info, spans_verdict *v);

/* The copy had these bytes. `v`: of all of them. */
void sample_hashed(const content_copy *copy, const content_region *region, const content_digest *d,
                   const spans_verdict *v);

#endif

/* sample.h: --hash=auto: which copies are hashed where not all are.
 *
 * A *site* is the calls of one function and direction, at one depth of a thread's stack, of about
 * as many bytes. The first copies of each are hashed, and each repeat (the same bytes were hashed
 * before, at any site; or all bytes of a copy are equal) pays for two more, at its site and at the
 * one that the bytes were last seen at. So a site where nothing repeats is soon left alone. Which
 * copies that are depends on nothing but their order; no lock, no clock. */
#ifndef WEIR_INTERPOSE_SAMPLE_H
#define WEIR_INTERPOSE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/content/reading.h"
#include "interpose/record/event_fill.h"

/* From now on not all copies are hashed. Before the first event. */
void sample_start(void);

/* The number of a copy's site. */
unsigned sample_site(const hook_call *c, const event_fields *e);

/* Whether the next copy of the site, of so many bytes, is to be hashed; it counts as one that is. */
bool sample_takes(unsigned site, uint64_t bytes);

/* A copy of the site had these bytes. */
void sample_hashed(unsigned site, uint64_t bytes, const content_digest *d);

#endif

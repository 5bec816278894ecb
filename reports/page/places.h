/* places.h: texts, frames, stacks and sites of a page: each once, by number.
 *
 * A stack begins with its site's frame, the innermost that is the program's; CUDA's and Weir's own
 * are left out. A *site* is a stack and the function that was called there. Stack 0 has no frame,
 * site 0 is stack 0 without a function. Limits keep an untrusted trace's page within bounds; what
 * they took is counted. */
#ifndef WEIR_REPORTS_PAGE_PLACES_H
#define WEIR_REPORTS_PAGE_PLACES_H

#include <stdio.h>
#include "core/base/map.h"
#include "reports/symbols/symbolize.h"

typedef struct page_frame {
  uint32_t function, file; /* numbers of texts; file 0: not known */
  int line;
  int64_t built; /* when its module's file was last changed, ns since 1970; 0: not known */
} page_frame;

typedef struct page_site {
  uint32_t stack, api;
} page_site;

typedef struct page_places {
  const wr_db *db;     /* borrowed */
  wr_symbols *symbols; /* owned */
  hash_map by_text, by_frame, by_stack, by_row, by_site;
  char **text; /* owned; 0: "" */
  size_t texts, text_capacity;
  page_frame *frame; /* owned */
  size_t frames, frame_capacity;
  size_t *stack_end; /* owned: where the frames of each stack end in `stacked` */
  size_t stacks, stack_capacity;
  uint32_t *stacked; /* owned */
  size_t stacked_count, stacked_capacity;
  page_site *site; /* owned */
  size_t sites, site_capacity;
  uint32_t *api_text;             /* owned: [65536], text of a function; 0: not yet */
  uint64_t texts_cut, stacks_cut; /* by the limits */
} page_places;

/* To be closed whatever comes of it. */
weir_status page_places_open(page_places *p, const wr_db *db);
void page_places_close(page_places *p);

/* The number of a text of the trace, cleaned and of bounded length. */
weir_status page_text_of(page_places *p, const char *text, uint32_t *out);

/* The number of a stack of the trace's (0: none). */
weir_status page_stack_of(page_places *p, int64_t stack, uint32_t *out);

weir_status page_site_of(page_places *p, int64_t stack, uint32_t api, uint32_t *out);

/* The frame that a stack's place is by; p->frames for stack 0. */
uint32_t page_place_of(const page_places *p, uint32_t stack);

/* A text as it stands in the index: cleaned, quoted, of bounded length. True: it was cut. */
bool page_put_text(FILE *out, const char *text);

#endif

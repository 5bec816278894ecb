/* api.h: the numbers and names of CUDA's functions, as events carry them.
 *
 * core/trace/api.def is generated from interpose/table/hooks.tsv (and shared with nothing else);
 * numbers are append-only, so an older spool stays readable. Row 0 is "no function". */
#ifndef WEIR_TRACE_API_H
#define WEIR_TRACE_API_H

#include <stdint.h>

typedef enum api_category {
  WEIR_API_NONE,
  WEIR_API_ALLOC,
  WEIR_API_FREE,
  WEIR_API_COPY,
  WEIR_API_MEMSET,
  WEIR_API_SYNC,
  WEIR_API_LAUNCH,
  WEIR_API_STREAM,
  WEIR_API_EVENT,
  WEIR_API_CONTEXT,
  WEIR_API_HOSTREG,
  WEIR_API_MODULE,
  WEIR_API_QUERY,
  WEIR_API_OTHER
} api_category;

/* What becomes of a function's calls. interpose/table/unrecorded.tsv has the class of each but
 * the second, and why. */
typedef enum api_class {
  WEIR_API_UNREACHED, /* known, and neither wrapped nor without effect: not seen */
  WEIR_API_WRAPPED,   /* in the hook table */
  WEIR_API_ASKS,      /* not wrapped: it answers, and changes nothing */
  WEIR_API_SETS,      /* not wrapped: it sets how something later is done */
  WEIR_API_BELOW      /* the runtime's: seen as the driver's function that it makes */
} api_class;

typedef struct api_info {
  const char *name; /* exported symbol, variant suffix included: cudaMemcpyAsync_ptsz */
  uint8_t layer;    /* 0: cu*, 1: cuda*, 2: weir_*, which are libweir's */
  uint8_t category; /* api_category */
  uint8_t how;      /* api_class */
} api_info;

/* Number of rows, row 0 included. */
extern const uint32_t api_total;

/* Row `api`; NULL when out of range. Borrowed, static. */
const api_info *api_row(uint32_t api);

/* The row of an exact name; 0 when there is none. Walks the table: not for hot paths. */
uint32_t api_find_name(const char *name);

/* FNV-1a 64 over the names of rows 1..count-1, NUL-separated: a writer's table and a reader's agree
 * on their common part when the hashes over the smaller count do. */
uint64_t api_table_hash(uint32_t count);

#endif

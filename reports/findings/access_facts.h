/* access_facts.h: which memory launches were handed, as their access sets have it (SCHEMA.md).
 *
 * A launch is *known* where its set is there whole; one of a graph where all that the graph runs are
 * kernels with such sets, and copies and memsets, which have their addresses. What a known launch touches
 * of memory is taken to be what its words point into: a pointer in the device's memory, a texture or a
 * module's variable may lead to more. */
#ifndef WEIR_REPORTS_ACCESS_FACTS_H
#define WEIR_REPORTS_ACCESS_FACTS_H

#include "reports/events/events.h"

typedef struct wr_access_set {
  int64_t process, number;
  size_t first, count, found; /* of its words; as many as were there */
  int64_t parameters;         /* of the kernels that are handed it; -1: not known */
} wr_access_set;

/* Where a word is: the number of its parameter, and of the word in it; -1 each: not known. */
typedef struct wr_access_place {
  int32_t parameter, part;
} wr_access_place;

/* What a graph's launch runs: the nodes that are alike. */
typedef struct wr_access_run {
  bool is_kernel, known;          /* known: what it touches, of a kernel where its set is whole */
  uint64_t kernel;                /* handle */
  int64_t set;                    /* a kernel's; number */
  uint64_t target, source, bytes; /* a copy's, a memset's; source 0: none */
} wr_access_run;

typedef struct wr_access {
  const wr_events *events; /* borrowed */
  /* private */
  wr_access_set *set; /* owned */
  size_t sets, set_capacity;
  hash_map by_number;     /* process and number -> place of a set, from 1 */
  uint64_t *word;         /* owned: of a set ascending */
  wr_access_place *where; /* owned: of each word */
  size_t words;
  uint32_t *of;       /* owned: by template, the place of its set, from 1; 0: not known */
  wr_access_run *run; /* owned: those of a content together */
  size_t runs, run_capacity;
  hash_map contents; /* of graphs -> where its runs begin, and from bit 32 on how many */
  hash_map launched; /* event of a graph's launch -> content */
} wr_access;

/* Reads the sets. Closed by wr_access_close() whatever this returns. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_access_open(wr_access *x, const wr_events *events);
void wr_access_close(wr_access *x);

/* Whether there are any. */
bool wr_access_any(const wr_access *x);

/* The words of a kernel's launch that is known, ascending (borrowed); NULL: it is not known. */
const uint64_t *wr_access_words(const wr_access *x, const wr_event *e, size_t *count);

/* The set of a kernel's launch that is known (borrowed), and of its words where they are; NULL: it is
 * not known. */
const wr_access_set *wr_access_set_of(const wr_access *x, const wr_event *e);

/* Whether it is known what the launch is handed. */
bool wr_access_known(const wr_access *x, const wr_event *e);

/* What the launch of a graph runs (borrowed); *count 0: it is not known. */
const wr_access_run *wr_access_runs(const wr_access *x, const wr_event *e, size_t *count);

/* Whether one of these, of a known launch, touches memory of these bytes. */
bool wr_access_run_touches(const wr_access *x, const wr_event *e, const wr_access_run *r,
                           uint64_t address, uint64_t bytes);

/* Whether a known launch is handed memory of these bytes. */
bool wr_access_touches(const wr_access *x, const wr_event *e, uint64_t address, uint64_t bytes);

#endif

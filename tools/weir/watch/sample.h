/* sample.h: what collectors answer to ps and top (tools/weir/collect/watch.h), read without trust:
 * whatever an answer is, it becomes rows or nothing. */
#ifndef WEIR_TOOLS_WEIR_WATCH_SAMPLE_H
#define WEIR_TOOLS_WEIR_WATCH_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLE_HOST = -1 };

/* The lists of a process. */
typedef enum sample_list {
  SAMPLE_MEMORY, /* what: kind; n: live bytes, blocks, peak bytes */
  SAMPLE_COPIES, /* direction; calls, bytes */
  SAMPLE_WAITS,  /* cause; calls, ns */
  SAMPLE_HITS,   /* kind; allocations, bytes */
  SAMPLE_MISSES,
  SAMPLE_CACHED,
  SAMPLE_POOLED,
  SAMPLE_USED,
  SAMPLE_FAILURES,
  SAMPLE_SITES, /* place; live bytes, blocks */
  SAMPLE_LISTS
} sample_list;

typedef struct sample_row {
  int device;       /* ordinal, SAMPLE_HOST */
  const char *what; /* borrowed from the sample */
  uint64_t n[3];
} sample_row;

typedef struct sample_rows {
  sample_row *row; /* owned */
  unsigned count, room;
} sample_rows;

/* Numbers of a process, by the names that the answer has. */
typedef enum sample_number {
  SAMPLE_PID,
  SAMPLE_RANK, /* and 1; 0: none */
  SAMPLE_EVENTS,
  SAMPLE_RATE, /* events a second: of ps */
  SAMPLE_DROPPED,
  SAMPLE_SPOOL,
  SAMPLE_LIVE,
  SAMPLE_PEAK,
  SAMPLE_OTHER, /* live bytes of places that have no row */
  SAMPLE_NUMBERS
} sample_number;

typedef struct sample_process {
  uint64_t n[SAMPLE_NUMBERS];
  const char *program, *trace; /* "": not known */
  bool ended;
  sample_rows list[SAMPLE_LISTS];
} sample_process;

/* Answers of one or several collectors. Zero-initialised is empty. */
typedef struct sample {
  char **text; /* owned: what strings are in */
  unsigned text_count, text_room;
  sample_process *process; /* owned */
  unsigned count, room;
  uint64_t time_ns;  /* CLOCK_REALTIME of the latest answer */
  uint64_t since_ns; /* of the latest that does not know all of a run; 0: none */
  uint64_t own_ns;   /* processor time of the collectors */
} sample;

/* Adds an answer to ps, a line of it, or one to top. `text` is taken. Returns false where it is none. */
bool sample_add_ps(sample *s, char *text);
bool sample_add_top(sample *s, char *text);

void sample_clear(sample *s);

/* The same process in another sample; NULL: it is not there. */
const sample_process *sample_find(const sample *s, uint64_t pid);

/* The same row in the same list; NULL. */
const sample_row *sample_find_row(const sample_rows *rows, const sample_row *row);

#endif

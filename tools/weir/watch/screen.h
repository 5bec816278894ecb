/* screen.h: two samples as lines of text: what there is, and what was done between them. */
#ifndef WEIR_TOOLS_WEIR_WATCH_SCREEN_H
#define WEIR_TOOLS_WEIR_WATCH_SCREEN_H

#include <stdio.h>

#include "tools/weir/watch/sample.h"

enum { SCREEN_HISTORY = 120 };

/* By what processes are sorted, the most first. */
typedef enum screen_sort {
  SORT_LIVE,
  SORT_PEAK,
  SORT_COPIED,
  SORT_WAITS,
  SORT_EVENTS,
  SORT_PID,
  SORTS
} screen_sort;

/* "live", "peak", "copied", "waits", "events", "pid"; the key that chooses it is its first letter, of
 * the pid 'i'. */
const char *screen_sort_name(int sort);

typedef struct screen {
  const sample *now, *before; /* before: NULL at first */
  unsigned columns, rows;     /* rows 0: as many as there are */
  screen_sort sort;
  bool blocks; /* the terminal shows UTF-8: history is drawn with block elements */
  uint64_t history[SCREEN_HISTORY]; /* live bytes of earlier samples, the oldest first */
  unsigned history_count;
} screen;

/* The live bytes of all processes. */
uint64_t screen_live(const sample *s);

/* Prints at most `rows` lines of at most `columns` columns. */
void screen_print(FILE *out, const screen *s);

#endif

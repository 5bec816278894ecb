/* input.h: what every export of calls begins with: a trace that can be asked about calls, blocks
 * and what devices did, complete or not. */
#ifndef WEIR_REPORTS_EXPORT_INPUT_H
#define WEIR_REPORTS_EXPORT_INPUT_H

#include <stdio.h>
#include "core/base/map.h"
#include "reports/model/open.h"
#include "reports/symbols/symbolize.h"

typedef struct export_input {
  wr_input in;
  wr_symbols *symbols; /* owned */
} export_input;

/* To be closed whatever comes of it. Errors: those of wr_input_open(), ECORRUPT where what should
 * be a table of the trace is something else. */
weir_status export_input_open(export_input *x, const char *trace);
void export_input_close(export_input *x);

/* The frames of a stack, innermost first, from the program's own on: CUDA's and Weir's are left
 * out. Borrowed until the next call; none for stack 0. */
weir_status export_frames(export_input *x, int64_t stack, const wr_frame **frames, size_t *count);

/* "function", or "module+0x12"; new, NULL: out of memory. */
char *export_frame_name(const wr_frame *f);

/* Returns a key that is the same for frames that a person would not distinguish. */
uint64_t export_frame_key(const wr_frame *f);

uint64_t export_text_key(uint64_t hash, const char *text);

/* The number of a key, from 1 on in the order in which keys come; 0: out of memory. */
uint64_t export_number(hash_map *numbers, uint64_t key, bool *added);

weir_status export_out_of_memory(void);

/* Whether all that was written to `out` went there. */
weir_status export_written(FILE *out);

#endif

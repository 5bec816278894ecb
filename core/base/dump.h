/* dump.h: nested dicts and lists, written once, as JSON or as a pickle.
 *
 * The pickle is of protocol 2 and holds dicts, lists, pairs, strings, integers, floats and
 * booleans: Python's reader and memory_viz's (torch/utils/viz/MemoryViz.js) know every opcode used.
 * Long lists are written in batches, since the latter takes a batch as the arguments of one call.
 * Text that is not UTF-8 is made so. Errors are the stream's: ask ferror() at the end.
 *
 * Use: begin, then for a dict key and value in turns, then end. What was ended can be remembered
 * and put again elsewhere; JSON cannot share, so there the id is 0 and the caller writes it anew.
 */
#ifndef WEIR_BASE_DUMP_H
#define WEIR_BASE_DUMP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { WEIR_DUMP_DEPTH = 16 };

typedef struct dump_writer {
  FILE *out;                  /* borrowed */
  bool pickle;                /* else JSON */
  bool comma;                 /* JSON: something stands before, in the innermost dict or list */
  uint32_t memos;             /* remembered so far */
  unsigned depth;             /* open dicts and lists */
  int batch[WEIR_DUMP_DEPTH]; /* items of each list since its last mark; dicts: far below 0 */
} dump_writer;

void dump_start(dump_writer *d, FILE *out, bool pickle);
void dump_finish(dump_writer *d);

void dump_begin(dump_writer *d, char bracket); /* { or [ */
void dump_end(dump_writer *d, char bracket);   /* } or ] */
void dump_key(dump_writer *d, const char *name);
void dump_text(dump_writer *d, const char *text);
void dump_unsigned(dump_writer *d, uint64_t n);
void dump_signed(dump_writer *d, int64_t n);
void dump_real(dump_writer *d, double x); /* finite */
void dump_bool(dump_writer *d, bool value);
void dump_pair(dump_writer *d, uint64_t a, uint64_t b); /* a tuple; JSON: a list */

/* Right after dump_end(): an id for dump_recall(), 0: write it anew. */
uint32_t dump_remember(dump_writer *d);
void dump_recall(dump_writer *d, uint32_t id);

/* A key and its value. */
static inline void dump_key_unsigned(dump_writer *d, const char *name, uint64_t n)
{
  dump_key(d, name);
  dump_unsigned(d, n);
}

static inline void dump_key_text(dump_writer *d, const char *name, const char *text)
{
  dump_key(d, name);
  dump_text(d, text);
}

static inline void dump_key_bool(dump_writer *d, const char *name, bool value)
{
  dump_key(d, name);
  dump_bool(d, value);
}

#endif

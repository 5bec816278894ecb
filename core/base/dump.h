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

typedef struct weir_dump {
  FILE *out;                  /* borrowed */
  bool pickle;                /* else JSON */
  bool comma;                 /* JSON: something stands before, in the innermost dict or list */
  uint32_t memos;             /* remembered so far */
  unsigned depth;             /* open dicts and lists */
  int batch[WEIR_DUMP_DEPTH]; /* items of each list since its last mark; dicts: far below 0 */
} weir_dump;

void weir_dump_start(weir_dump *d, FILE *out, bool pickle);
void weir_dump_finish(weir_dump *d);

void weir_dump_begin(weir_dump *d, char bracket); /* { or [ */
void weir_dump_end(weir_dump *d, char bracket);   /* } or ] */
void weir_dump_key(weir_dump *d, const char *name);
void weir_dump_text(weir_dump *d, const char *text);
void weir_dump_unsigned(weir_dump *d, uint64_t n);
void weir_dump_signed(weir_dump *d, int64_t n);
void weir_dump_real(weir_dump *d, double x); /* finite */
void weir_dump_bool(weir_dump *d, bool value);
void weir_dump_pair(weir_dump *d, uint64_t a, uint64_t b); /* a tuple; JSON: a list */

/* Right after weir_dump_end(): an id for weir_dump_again(), 0: write it anew. */
uint32_t weir_dump_remember(weir_dump *d);
void weir_dump_again(weir_dump *d, uint32_t id);

/* A key and its value. */
static inline void weir_dump_key_unsigned(weir_dump *d, const char *name, uint64_t n)
{
  weir_dump_key(d, name);
  weir_dump_unsigned(d, n);
}

static inline void weir_dump_key_text(weir_dump *d, const char *name, const char *text)
{
  weir_dump_key(d, name);
  weir_dump_text(d, text);
}

static inline void weir_dump_key_bool(weir_dump *d, const char *name, bool value)
{
  weir_dump_key(d, name);
  weir_dump_bool(d, value);
}

#endif

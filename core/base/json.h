/* json.h: reading JSON from somebody one does not trust.
 *
 * The caller knows what must stand there and asks for it piece by piece; what stands there instead
 * is an error that names the byte. The grammar is RFC 8259's, with nothing let through: no comma
 * too many, no number with a leading zero, no control character in a string, only valid UTF-8.
 * Strings are decoded where they stand (they only get shorter) and end with a NUL, so that nothing
 * is allocated; a string with a NUL in it is refused. What is skipped may be nested 64 deep.
 *
 *   json_reader j = json_reader_of(text, bytes);
 *   bool more = true;
 *   st = json_reader_open(&j, '{');
 *   while (!st && !(st = json_reader_next(&j, '}', &more)) && more) {
 *     st = json_reader_key(&j, &key) ...  then the value
 *   }
 *   if (!st) st = json_reader_finish(&j);
 */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

typedef struct json_reader {
  char *start, *at, *end; /* borrowed; changed while it is read */
  bool first;             /* nothing of the innermost object or list has been read yet */
} json_reader;

json_reader json_reader_of(char *text, size_t bytes);

/* Errors of all: ECORRUPT, with the place. */
weir_status json_reader_open(json_reader *j, char bracket); /* { or [ */
/* Whether another item follows in the object or list that `bracket` (} or ]) ends. */
weir_status json_reader_next(json_reader *j, char bracket, bool *more);
weir_status json_reader_key(json_reader *j, char **text);    /* and its colon */
weir_status json_reader_string(json_reader *j, char **text); /* borrowed, as long as the text */
/* An integer from 0 to 2^64 - 1. */
weir_status json_reader_unsigned(json_reader *j, uint64_t *n);
/* Any value. */
weir_status json_reader_skip(json_reader *j);
/* Nothing but white space follows. */
weir_status json_reader_finish(json_reader *j);
/* Words an error of what was read last. */
weir_status json_reader_fail(const json_reader *j, const char *what);

/* Bytes of the well-formed UTF-8 sequence at `s` (Unicode 15, table 3-7), 0: it is none. */
unsigned utf8_sequence(const unsigned char *s, const unsigned char *end);
bool utf8_valid(const char *text, size_t bytes);

#endif

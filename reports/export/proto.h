/* proto.h: messages of Protocol Buffers, as bytes: what an export needs of that, and no more.
 *
 * A message is built in memory, field by field; one within another is built first. A message that
 * could not grow is `failed`, and so is what has it within. */
#ifndef WEIR_REPORTS_EXPORT_PROTO_H
#define WEIR_REPORTS_EXPORT_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message of protobuf under construction; all zero, it is empty. */
typedef struct proto {
  unsigned char *bytes; /* owned */
  size_t count, capacity;
  bool failed; /* out of memory */
} proto;

void proto_number(proto *p, unsigned field, uint64_t value);  /* a varint */
void proto_fixed64(proto *p, unsigned field, uint64_t value); /* 8 bytes */
void proto_text(proto *p, unsigned field, const char *text);  /* made UTF-8; NULL: no field */
void proto_message(proto *p, unsigned field, const proto *within);

/* A varint alone, as lists of numbers have them. */
void proto_varint(proto *p, uint64_t value);

void proto_clear(proto *p); /* and keeps its memory */
void proto_free(proto *p);

#endif

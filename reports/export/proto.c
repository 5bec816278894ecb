/* proto.c: see proto.h. */
#include "reports/export/proto.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { WIRE_VARINT = 0, WIRE_64_BITS = 1, WIRE_BYTES = 2 };

static void put_raw(proto *p, const void *bytes, size_t count)
{
  if (p->failed || !wr_grow(&p->bytes, &p->capacity, p->count + count, 1)) {
    p->failed = true;
    return;
  }
  if (count) memcpy(p->bytes + p->count, bytes, count);
  p->count += count;
}

void proto_varint(proto *p, uint64_t value)
{
  unsigned char bytes[10];
  size_t n = 0;
  for (; value >= 0x80; value >>= 7)
    bytes[n++] = (unsigned char)(value | 0x80);
  bytes[n++] = (unsigned char)value;
  put_raw(p, bytes, n);
}

static void put_field(proto *p, unsigned field, unsigned wire)
{
  proto_varint(p, (uint64_t)field << 3 | wire);
}

void proto_number(proto *p, unsigned field, uint64_t value)
{
  put_field(p, field, WIRE_VARINT);
  proto_varint(p, value);
}

void proto_fixed64(proto *p, unsigned field, uint64_t value)
{
  unsigned char bytes[8];
  for (int i = 0; i < 8; i++)
    bytes[i] = (unsigned char)(value >> 8 * i);
  put_field(p, field, WIRE_64_BITS);
  put_raw(p, bytes, sizeof bytes);
}

static void put_counted(proto *p, unsigned field, const void *bytes, size_t count)
{
  put_field(p, field, WIRE_BYTES);
  proto_varint(p, count);
  put_raw(p, bytes, count);
}

void proto_text(proto *p, unsigned field, const char *text)
{
  if (!text) return;
  char *clean = wr_text(text, strlen(text), false);
  if (!clean)
    p->failed = true;
  else
    put_counted(p, field, clean, strlen(clean));
  free(clean);
}

void proto_message(proto *p, unsigned field, const proto *within)
{
  p->failed |= within->failed;
  put_counted(p, field, within->bytes, within->count);
}

void proto_clear(proto *p)
{
  p->count = 0;
  p->failed = false;
}

void proto_free(proto *p)
{
  free(p->bytes);
  *p = (proto){0};
}

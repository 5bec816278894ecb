/* dump.c: see dump.h. */
#include "core/base/dump.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include "core/base/json.h"

enum { BATCH = 1000 }; /* as Python's own pickler */

static void put_dump_number(FILE *out, uint64_t n, int bytes)
{
  for (; bytes-- > 0; n >>= 8)
    (void)fputc((int)(n & 0xff), out);
}

/* Before each value: what separates it from the last. */
static void separate(dump_writer *d)
{
  if (!d->pickle) {
    if (d->comma) (void)fputs(", ", d->out);
  } else if (d->depth && ++d->batch[d->depth - 1] > BATCH) {
    (void)fputs("e(", d->out);
    d->batch[d->depth - 1] = 1;
  }
  d->comma = true;
}

void dump_start(dump_writer *d, FILE *out, bool pickle)
{
  *d = (dump_writer){.out = out, .pickle = pickle};
  if (pickle) (void)fputs("\x80\x02", out);
}

void dump_finish(dump_writer *d)
{
  (void)fputc(d->pickle ? '.' : '\n', d->out);
}

void dump_begin(dump_writer *d, char bracket)
{
  separate(d);
  if (d->pickle) (void)fputs(bracket == '{' ? "}(" : "](", d->out);
  if (!d->pickle) (void)fputc(bracket, d->out);
  d->comma = false;
  if (d->depth < WEIR_DUMP_DEPTH) d->batch[d->depth++] = bracket == '{' ? INT_MIN : 0;
}

void dump_end(dump_writer *d, char bracket)
{
  (void)fputc(d->pickle ? bracket == '}' ? 'u' : 'e' : bracket, d->out);
  d->comma = true;
  if (d->depth) d->depth--;
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Bytes of the text as UTF-8. */
static size_t length(const unsigned char *s, const unsigned char *end)
{
  size_t bytes = 0;
  while (s < end) {
    unsigned n = utf8_sequence(s, end);
    bytes += n ? n : sizeof replacement - 1;
    s += n ? n : 1;
  }
  return bytes;
}

static void put_character(dump_writer *d, const unsigned char *s, unsigned n)
{
  if (!n)
    (void)fputs(replacement, d->out);
  else if (!d->pickle && (*s == '"' || *s == '\\'))
    (void)fprintf(d->out, "\\%c", *s);
  else if (!d->pickle && *s < 0x20)
    (void)fprintf(d->out, "\\u%04x", *s);
  else
    (void)fwrite(s, 1, n, d->out);
}

static void put_dump_text(dump_writer *d, const char *text)
{
  const unsigned char *s = (const unsigned char *)text, *end = s + strlen(text);
  if (d->pickle) {
    (void)fputc('X', d->out);
    put_dump_number(d->out, length(s, end), 4);
  } else {
    (void)fputc('"', d->out);
  }
  while (s < end) {
    unsigned n = utf8_sequence(s, end);
    put_character(d, s, n);
    s += n ? n : 1;
  }
  if (!d->pickle) (void)fputc('"', d->out);
}

void dump_text(dump_writer *d, const char *text)
{
  separate(d);
  put_dump_text(d, text);
}

void dump_key(dump_writer *d, const char *name)
{
  dump_text(d, name);
  if (!d->pickle) (void)fputs(": ", d->out);
  d->comma = false;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* LONG1 is little-endian two's complement: eight bytes whose top bit is set need a ninth. */
static void put_long(FILE *out, uint64_t n, bool negative)
{
  bool ninth = !negative && n >> 63;
  (void)fputc('\x8a', out);
  (void)fputc(ninth ? 9 : 8, out);
  put_dump_number(out, n, 8);
  if (ninth) (void)fputc(0, out);
}

static void put_unsigned(dump_writer *d, uint64_t n)
{
  if (!d->pickle) {
    (void)fprintf(d->out, "%" PRIu64, n);
  } else if (n <= INT32_MAX) {
    (void)fputc('J', d->out);
    put_dump_number(d->out, n, 4);
  } else {
    put_long(d->out, n, false);
  }
}

void dump_unsigned(dump_writer *d, uint64_t n)
{
  separate(d);
  put_unsigned(d, n);
}

void dump_signed(dump_writer *d, int64_t n)
{
  if (n >= 0) {
    dump_unsigned(d, (uint64_t)n);
    return;
  }
  separate(d);
  if (d->pickle)
    put_long(d->out, (uint64_t)n, true);
  else
    (void)fprintf(d->out, "%" PRId64, n);
}

void dump_real(dump_writer *d, double x)
{
  char text[40];
  uint64_t bits;
  separate(d);
  if (d->pickle) {
    memcpy(&bits, &x, sizeof bits);
    (void)fputc('G', d->out);
    for (int i = 56; i >= 0; i -= 8)
      (void)fputc((int)(bits >> i & 0xff), d->out);
    return;
  }
  (void)snprintf(text, sizeof text, "%.17g", x);
  char *point = strpbrk(text, ".,");
  if (point) *point = '.'; /* whatever the locale writes */
  (void)fprintf(d->out, "%s%s", text, point || strchr(text, 'e') ? "" : ".0");
}

void dump_bool(dump_writer *d, bool value)
{
  separate(d);
  if (d->pickle)
    (void)fputc(value ? '\x88' : '\x89', d->out);
  else
    (void)fputs(value ? "true" : "false", d->out);
}

void dump_pair(dump_writer *d, uint64_t a, uint64_t b)
{
  separate(d);
  if (!d->pickle) (void)fputc('[', d->out);
  put_unsigned(d, a);
  if (!d->pickle) (void)fputs(", ", d->out);
  put_unsigned(d, b);
  (void)fputc(d->pickle ? '\x86' : ']', d->out);
}

/* ---- sharing --------------------------------------------------------------------------------- */

uint32_t dump_remember(dump_writer *d)
{
  if (!d->pickle) return 0;
  (void)fputc('r', d->out);
  put_dump_number(d->out, d->memos, 4);
  return ++d->memos;
}

void dump_recall(dump_writer *d, uint32_t id)
{
  separate(d);
  (void)fputc('j', d->out);
  put_dump_number(d->out, id - 1, 4);
}

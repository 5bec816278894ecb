/* json.c: see json.h. Every reader first looks whether there is a byte left. */
#include "core/base/json.h"
#include "core/base/require.h"

#include <string.h>

enum { DEPTH = 64 };

json_reader json_reader_of(char *text, size_t bytes)
{
  return (json_reader){text, text, text + bytes, true};
}

weir_status json_reader_fail(const json_reader *j, const char *what)
{
  return weir_fail(WEIR_ECORRUPT, "JSON, byte %zu: %s", (size_t)(j->at - j->start), what);
}

/* ---- UTF-8 ----------------------------------------------------------------------------------- */

static bool within(const unsigned char *s, unsigned from, unsigned to)
{
  return *s >= from && *s <= to;
}

unsigned utf8_sequence(const unsigned char *s, const unsigned char *end)
{
  size_t left = (size_t)(end - s);
  if (!left) return 0;
  if (*s < 0x80) return 1;
  if (within(s, 0xc2, 0xdf)) return left > 1 && within(s + 1, 0x80, 0xbf) ? 2 : 0;
  if (within(s, 0xe0, 0xef)) {
    unsigned low = *s == 0xe0 ? 0xa0 : 0x80, high = *s == 0xed ? 0x9f : 0xbf;
    return left > 2 && within(s + 1, low, high) && within(s + 2, 0x80, 0xbf) ? 3 : 0;
  }
  if (!within(s, 0xf0, 0xf4) || left < 4) return 0;
  unsigned low = *s == 0xf0 ? 0x90 : 0x80, high = *s == 0xf4 ? 0x8f : 0xbf;
  return within(s + 1, low, high) && within(s + 2, 0x80, 0xbf) && within(s + 3, 0x80, 0xbf) ? 4 : 0;
}

bool utf8_valid(const char *text, size_t bytes)
{
  const unsigned char *s = (const unsigned char *)text, *end = s + bytes;
  while (s < end) {
    unsigned n = utf8_sequence(s, end);
    if (!n) return false;
    s += n;
  }
  return true;
}

static char *utf8_put(char *to, unsigned code)
{
  if (code < 0x80) {
    *to++ = (char)code;
  } else if (code < 0x800) {
    *to++ = (char)(0xc0 | code >> 6);
    *to++ = (char)(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *to++ = (char)(0xe0 | code >> 12);
    *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    *to++ = (char)(0x80 | (code & 0x3f));
  } else {
    *to++ = (char)(0xf0 | code >> 18);
    *to++ = (char)(0x80 | (code >> 12 & 0x3f));
    *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    *to++ = (char)(0x80 | (code & 0x3f));
  }
  return to;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static void skip_json_space(json_reader *j)
{
  while (j->at < j->end && (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r'))
    j->at++;
}

static bool accept_json_mark(json_reader *j, char c)
{
  skip_json_space(j);
  if (j->at == j->end || *j->at != c) return false;
  j->at++;
  return true;
}

weir_status json_reader_open(json_reader *j, char bracket)
{
  j->first = true;
  if (accept_json_mark(j, bracket)) return WEIR_OK;
  return json_reader_fail(j, bracket == '{' ? "an object is expected" : "a list is expected");
}

weir_status json_reader_next(json_reader *j, char bracket, bool *more)
{
  *more = false;
  bool first = j->first;
  j->first = false;
  if (accept_json_mark(j, bracket)) return WEIR_OK;
  if (!first && !accept_json_mark(j, ','))
    return json_reader_fail(j, "a comma or an end is expected");
  skip_json_space(j);
  if (j->at == j->end) return json_reader_fail(j, "the text ends here");
  *more = true;
  return WEIR_OK;
}

weir_status json_reader_finish(json_reader *j)
{
  skip_json_space(j);
  return j->at == j->end ? WEIR_OK : json_reader_fail(j, "nothing more is expected");
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Four hexadecimal digits at j->at, or -1. */
static int hex4(json_reader *j)
{
  int value = 0;
  if (j->end - j->at < 4) return -1;
  for (int i = 0; i < 4; i++) {
    char c = *j->at++, low = (char)(c | 0x20);
    int digit = c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

/* The code point after \u; -1: it is none. */
static int unicode(json_reader *j)
{
  int code = hex4(j);
  if (code < 0xd800 || code > 0xdfff) return code;
  if (code > 0xdbff || j->end - j->at < 6 || j->at[0] != '\\' || j->at[1] != 'u') return -1;
  j->at += 2;
  int low = hex4(j);
  if (low < 0xdc00 || low > 0xdfff) return -1;
  return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

/* After a backslash: puts what is meant at *to. */
static weir_status escape(json_reader *j, char **to)
{
  static const char from[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  if (j->at == j->end) return json_reader_fail(j, "the text ends in a string");
  char c = *j->at++;
  const char *known = c ? strchr(from, c) : NULL;
  if (known) {
    *(*to)++ = meant[known - from];
    return WEIR_OK;
  }
  int code = c == 'u' ? unicode(j) : -1;
  if (code < 0) return json_reader_fail(j, "no such escape");
  if (code == 0) return json_reader_fail(j, "a NUL in a string");
  *to = utf8_put(*to, (unsigned)code);
  return WEIR_OK;
}

weir_status json_reader_string(json_reader *j, char **text)
{
  if (!accept_json_mark(j, '"')) return json_reader_fail(j, "a string is expected");
  char *to = *text = j->at;
  while (j->at < j->end && *j->at != '"') {
    unsigned n = utf8_sequence((unsigned char *)j->at, (unsigned char *)j->end);
    if (!n) return json_reader_fail(j, "this is not UTF-8");
    if ((unsigned char)*j->at < 0x20) return json_reader_fail(j, "a control character in a string");
    if (*j->at == '\\') {
      j->at++;
      TRY(escape(j, &to));
      continue;
    }
    for (; n; n--)
      *to++ = *j->at++;
  }
  if (j->at == j->end) return json_reader_fail(j, "the text ends in a string");
  j->at++;
  *to = 0;
  return WEIR_OK;
}

weir_status json_reader_key(json_reader *j, char **text)
{
  weir_status st = json_reader_string(j, text);
  if (!st && !accept_json_mark(j, ':')) st = json_reader_fail(j, "a colon is expected");
  return st;
}

/* ---- numbers, and what nobody asks for ------------------------------------------------------- */

static bool digit(const json_reader *j)
{
  return j->at < j->end && *j->at >= '0' && *j->at <= '9';
}

weir_status json_reader_unsigned(json_reader *j, uint64_t *n)
{
  skip_json_space(j);
  *n = 0;
  if (!digit(j)) return json_reader_fail(j, "a number that is not negative is expected");
  bool zero = *j->at == '0';
  for (int digits = 0; digit(j); j->at++, digits++) {
    uint64_t d = (uint64_t)(*j->at - '0');
    if (zero && digits) return json_reader_fail(j, "a number with a leading zero");
    if (*n > (UINT64_MAX - d) / 10) return json_reader_fail(j, "the number is too large");
    *n = *n * 10 + d;
  }
  if (j->at < j->end && (*j->at == '.' || *j->at == 'e' || *j->at == 'E'))
    return json_reader_fail(j, "an integer is expected");
  return WEIR_OK;
}

static weir_status digits(json_reader *j)
{
  if (!digit(j)) return json_reader_fail(j, "a digit is expected");
  while (digit(j))
    j->at++;
  return WEIR_OK;
}

static weir_status skip_number(json_reader *j)
{
  if (*j->at == '-') j->at++;
  bool zero = digit(j) && *j->at == '0';
  weir_status st = zero ? WEIR_OK : digits(j);
  if (zero) j->at++;
  if (!st && j->at < j->end && *j->at == '.') {
    j->at++;
    st = digits(j);
  }
  if (!st && j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
    j->at++;
    if (j->at < j->end && (*j->at == '+' || *j->at == '-')) j->at++;
    st = digits(j);
  }
  return st;
}

/* A value that is neither object nor list. */
static weir_status skip_plain(json_reader *j)
{
  static const char *const words[] = {"true", "false", "null"};
  char *text;
  if (*j->at == '"') return json_reader_string(j, &text);
  for (int i = 0; i < 3; i++) {
    size_t n = strlen(words[i]);
    if ((size_t)(j->end - j->at) >= n && !memcmp(j->at, words[i], n)) {
      j->at += n;
      return WEIR_OK;
    }
  }
  if (*j->at == '-' || digit(j)) return skip_number(j);
  return json_reader_fail(j, "a value is expected");
}

weir_status json_reader_skip(json_reader *j)
{
  char ends[DEPTH], *key; /* what ends each of the open objects and lists */
  int depth = 0;
  do {
    skip_json_space(j);
    if (j->at == j->end) return json_reader_fail(j, "a value is expected");
    char c = *j->at;
    weir_status st = WEIR_OK;
    if (c != '{' && c != '[') {
      st = skip_plain(j);
    } else {
      if (depth == DEPTH) return json_reader_fail(j, "nested too deeply");
      st = json_reader_open(j, c);
      ends[depth++] = c == '{' ? '}' : ']';
    }
    for (bool more = false; !st && depth && !more;) {
      st = json_reader_next(j, ends[depth - 1], &more);
      if (st) break;
      if (!more)
        depth--;
      else if (ends[depth - 1] == '}')
        st = json_reader_key(j, &key);
    }
    if (st) return st;
  } while (depth);
  j->first = false;
  return WEIR_OK;
}

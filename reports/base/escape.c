/* escape.c: see escape.h. */
#include "reports/base/escape.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

/* The code point of a control character of `n` bytes, 0: it is none. */
static unsigned control_of(const unsigned char *c, size_t n)
{
  if (n == 1 && (c[0] < 0x20 || c[0] == 0x7f)) return c[0];
  return n == 2 && c[0] == 0xc2 && c[1] < 0xa0 ? c[1] : 0;
}

/* The code point of a character of `n` bytes, of three or four. */
static unsigned code_point(const unsigned char *c, size_t n)
{
  unsigned code = n == 2 ? c[0] & 0x1fu : n == 3 ? c[0] & 0x0fu : c[0] & 0x07u;
  for (size_t i = 1; i < n; i++)
    code = code << 6 | (c[i] & 0x3fu);
  return code;
}

/* The code point of a character of `n` bytes that is not seen, or that changes the order of others
 * (Unicode: default ignorable, bidirectional formatting, line and paragraph separators); 0: it is
 * none. */
static unsigned unseen_of(const unsigned char *c, size_t n)
{
  static const struct {
    unsigned first, last;
  } ranges[] = {{0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e},
                {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
                {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
  if (n < 2) return 0;
  unsigned code = code_point(c, n);
  for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
    if (code >= ranges[i].first && code <= ranges[i].last) return code;
  return 0;
}

static void put_code_point(FILE *out, unsigned code)
{
  unsigned beyond = code - 0x10000;
  if (code < 0x10000)
    (void)fprintf(out, "\\u%04x", code);
  else
    (void)fprintf(out, "\\u%04x\\u%04x", 0xd800 + (beyond >> 10), 0xdc00 + (beyond & 0x3ff));
}

/* Whether these few bytes are the beginning of a character. */
static bool begins_character(const unsigned char *c, size_t bytes)
{
  size_t n = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
  for (size_t i = 1; i < bytes && i < n; i++)
    if ((c[i] & 0xc0) != 0x80) return false;
  return c[0] >= 0xc2 && c[0] <= 0xf4 && bytes < n;
}

/* Writes `bytes` of text, but for those that begin a character whose end is not among them: their
 * number. */
static size_t put_shown(FILE *out, const char *text, size_t bytes)
{
  size_t at = 0, from = 0;
  while (at < bytes) {
    const unsigned char *c = (const unsigned char *)text + at;
    size_t n = wr_utf8_length(c, bytes - at);
    if (!n && begins_character(c, bytes - at)) break;
    unsigned unseen = n ? unseen_of(c, n) : 0;
    if (unseen) {
      (void)fwrite(text + from, 1, at - from, out);
      put_code_point(out, unseen);
      from = at + n;
    }
    at += n + !n;
  }
  (void)fwrite(text + from, 1, at - from, out);
  return bytes - at;
}

static bool has_unseen(const char *text)
{
  for (size_t left = strlen(text), n; left; text += n + !n, left -= n + !n) {
    n = wr_utf8_length((const unsigned char *)text, left);
    if (n > 1 && unseen_of((const unsigned char *)text, n)) return true;
  }
  return false;
}

char *wr_show_unseen(char *text)
{
  char *shown = NULL;
  size_t bytes = 0;
  if (!text || !has_unseen(text)) return text;
  FILE *out = open_memstream(&shown, &bytes);
  if (out) (void)put_shown(out, text, strlen(text));
  if (out && fclose(out)) {
    free(shown);
    shown = NULL;
  }
  free(text);
  return shown;
}

/* A stream in which characters may come in pieces. */
typedef struct shown_stream {
  FILE *to;
  char held[4]; /* the beginning of a character */
  size_t count;
} shown_stream;

static ssize_t write_shown(void *cookie, const char *bytes, size_t count)
{
  shown_stream *s = cookie;
  char *all = malloc(s->count + count);
  if (!all) return 0;
  memcpy(all, s->held, s->count);
  memcpy(all + s->count, bytes, count);
  size_t left = put_shown(s->to, all, s->count + count);
  memcpy(s->held, all + s->count + count - left, left);
  s->count = left;
  free(all);
  return fflush(s->to) || ferror(s->to) ? 0 : (ssize_t)count;
}

static int close_shown(void *cookie)
{
  shown_stream *s = cookie;
  (void)fwrite(s->held, 1, s->count, s->to);
  int status = fflush(s->to);
  free(s);
  return status;
}

FILE *wr_show_unseen_in(FILE *to)
{
  shown_stream *s = malloc(sizeof(*s));
  if (!s) return NULL;
  *s = (shown_stream){.to = to};
  FILE *out =
      fopencookie(s, "w", (cookie_io_functions_t){.write = write_shown, .close = close_shown});
  if (!out) free(s);
  return out;
}

/* Bytes in front that every format writes as they are: most texts are nothing else. */
static size_t plain_bytes(const char *text)
{
  size_t n = 0;
  for (; text[n] >= 0x20 && text[n] < 0x7f && text[n] != '"' && text[n] != '\\'; n++) {
  }
  return n;
}

void wr_put_json_text(FILE *out, const char *text)
{
  (void)putc('"', out);
  for (size_t left = strlen(text), n; left; text += n, left -= n) {
    const unsigned char *c = (const unsigned char *)text;
    n = plain_bytes(text);
    if (n) {
      (void)fwrite(text, 1, n, out);
      continue;
    }
    n = wr_utf8_length(c, left);
    unsigned control = control_of(c, n), unseen = n ? unseen_of(c, n) : 0;
    if (!n)
      (void)fputs("\\ufffd", out);
    else if (unseen)
      put_code_point(out, unseen);
    else if (control)
      (void)fprintf(out, "\\u%04x", control);
    else
      (void)fprintf(out, "%s%.*s", *c == '"' || *c == '\\' ? "\\" : "", (int)n, text);
    n += !n;
  }
  (void)putc('"', out);
}

/* The character of `n` bytes at `c` as it may be printed; how many characters that are. */
static size_t put_clean_character(FILE *out, const unsigned char *c, size_t n)
{
  unsigned unseen = n ? unseen_of(c, n) : 0;
  if (!n || control_of(c, n))
    (void)putc('?', out);
  else if (unseen)
    put_code_point(out, unseen);
  else
    (void)fwrite(c, 1, n, out);
  return unseen > 0xffff ? 12 : unseen ? 6 : 1;
}

size_t wr_put_clean_text(FILE *out, const char *text, bool quoted)
{
  size_t count = 0;
  for (size_t left = strlen(text), n; left; text += n, left -= n) {
    const unsigned char *c = (const unsigned char *)text;
    n = plain_bytes(text);
    if (n) {
      (void)fwrite(text, 1, n, out);
      count += n;
      continue;
    }
    n = wr_utf8_length(c, left);
    if (quoted && *c == '"') (void)putc('"', out);
    count += put_clean_character(out, c, n);
    n += !n;
  }
  return count;
}

/* Whether a spreadsheet takes a text for a formula; also by the signs' full-width forms. */
static bool is_formula(const char *text)
{
  static const char *const signs[] = {
      "=", "+", "-", "@", "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0"};
  bool begins = false;
  for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
    begins |= !strncmp(text, signs[i], strlen(signs[i]));
  if (!begins) return false;
  size_t at = strspn(text, "+-");
  char *end = NULL;
  (void)strtod(text, &end);
  return at > 1 || text[at] < '0' || text[at] > '9' || *end; /* a number is none */
}

void wr_put_csv_text(FILE *out, const char *text, const char *also)
{
  bool formula = is_formula(text);
  bool quoted = formula || strpbrk(text, ",\"\r\n") || strpbrk(text, also);
  if (quoted) (void)putc('"', out);
  if (formula) (void)putc('\'', out);
  (void)wr_put_clean_text(out, text, quoted);
  if (quoted) (void)putc('"', out);
}

void wr_put_tsv_text(FILE *out, const char *text)
{
  if (is_formula(text)) (void)putc('\'', out);
  (void)wr_put_clean_text(out, text, false);
}

/* Is the dot or colon at `text[at]` part of what Markdown takes for an address? */
static bool makes_a_link(const char *text, size_t at)
{
  if (text[at] == ':') return text[at + 1] == '/';
  return text[at] == '.' && at && (text[at - 1] == 'w' || text[at - 1] == 'W');
}

static bool is_word(char c)
{
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Has `text[at]` a meaning in Markdown? An underscore within a word has none. */
static bool is_markdown(const char *text, size_t at)
{
  if (text[at] == '_') return !at || !is_word(text[at - 1]) || !is_word(text[at + 1]);
  return strchr("&<>`|*~[]\\@#!$\"'", text[at]) || makes_a_link(text, at);
}

void wr_put_markdown_text(FILE *out, const char *text)
{
  size_t bytes = strlen(text);
  for (size_t at = 0, n; at < bytes; at += n + !n) {
    n = wr_utf8_length((const unsigned char *)text + at, bytes - at);
    if (n == 1 && is_markdown(text, at))
      (void)fprintf(out, "&#%d;", text[at]);
    else
      (void)put_clean_character(out, (const unsigned char *)text + at, n);
  }
}

void wr_put_xml_text(FILE *out, const char *text)
{
  for (size_t left = strlen(text), n; left; text += n + !n, left -= n + !n) {
    n = wr_utf8_length((const unsigned char *)text, left);
    bool none = n == 3 && !strncmp(text, "\xef\xbf", 2) && (unsigned char)text[2] >= 0xbe;
    if (n == 1 && strchr("&<>\"'", *text))
      (void)fprintf(out, "&#%d;", *text);
    else
      (void)put_clean_character(out, (const unsigned char *)text, none ? 0 : n);
    if (none) text += 2, left -= 2, n = 1; /* U+FFFE and U+FFFF are no characters of XML */
  }
}

/* escape.c: see escape.h. */
#include "reports/base/escape.h"
#include <string.h>
#include "reports/base/util.h"

/* The code point of a control character of `n` bytes, 0: it is none. */
static unsigned control_of(const unsigned char *c, size_t n)
{
  if (n == 1 && (c[0] < 0x20 || c[0] == 0x7f)) return c[0];
  return n == 2 && c[0] == 0xc2 && c[1] < 0xa0 ? c[1] : 0;
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
    unsigned control = control_of(c, n);
    if (!n)
      (void)fputs("\\ufffd", out);
    else if (control)
      (void)fprintf(out, "\\u%04x", control);
    else
      (void)fprintf(out, "%s%.*s", *c == '"' || *c == '\\' ? "\\" : "", (int)n, text);
    n += !n;
  }
  (void)putc('"', out);
}

size_t wr_put_clean_text(FILE *out, const char *text, bool quoted)
{
  size_t count = 0;
  for (size_t left = strlen(text), n; left; text += n, left -= n) {
    const unsigned char *c = (const unsigned char *)text;
    n = plain_bytes(text);
    count += n ? n : 1;
    if (n) {
      (void)fwrite(text, 1, n, out);
      continue;
    }
    n = wr_utf8_length(c, left);
    if (!n || control_of(c, n))
      (void)putc('?', out);
    else
      (void)fprintf(out, "%s%.*s", quoted && *c == '"' ? "\"" : "", (int)n, text);
    n += !n;
  }
  return count;
}

void wr_put_csv_text(FILE *out, const char *text, const char *also)
{
  bool quoted = strpbrk(text, ",\"\r\n") || strpbrk(text, also);
  if (quoted) (void)putc('"', out);
  (void)wr_put_clean_text(out, text, quoted);
  if (quoted) (void)putc('"', out);
}

/* The character of `n` bytes at `c` as it may be printed. */
static void put_clean_character(FILE *out, const unsigned char *c, size_t n)
{
  if (!n || control_of(c, n))
    (void)putc('?', out);
  else
    (void)fwrite(c, 1, n, out);
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
      put_clean_character(out, (const unsigned char *)text + at, n);
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
      put_clean_character(out, (const unsigned char *)text, none ? 0 : n);
    if (none) text += 2, left -= 2, n = 1; /* U+FFFE and U+FFFF are no characters of XML */
  }
}

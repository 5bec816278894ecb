/* condition.c: see condition.h. */
#include "reports/diff/condition.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reports/base/util.h"

enum {
  FILE_BYTES = 1 << 20, /* of a budget, at most */
  DIGITS = 18,          /* of a number */
  DEVICES = 256
};

typedef struct parser {
  wr_conditions *out;
  const char *where; /* the file, or the option */
  const char *start; /* of the line */
  const char *at;
  const char *end;
  size_t line; /* 0: no file */
} parser;

/* ---- mistakes -------------------------------------------------------------------------------- */

/* Characters up to `at`, plus 1. */
static size_t column_of(const parser *p, const char *at)
{
  size_t n = 1;
  for (const char *c = p->start; c < at; c++)
    n += ((unsigned char)*c & 0xc0) != 0x80;
  return n;
}

__attribute__((format(printf, 3, 4))) static weir_status wrong(const parser *p, const char *at,
                                                               const char *format, ...)
{
  char text[512];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  size_t column = column_of(p, at);
  if (p->line) return weir_fail(WEIR_EINVAL, "%s:%zu:%zu: %s", p->where, p->line, column, text);
  return weir_fail(WEIR_EINVAL, "%s, column %zu: %s", p->where, column, text);
}

static weir_status no_memory_for_conditions(void)
{
  return weir_fail(WEIR_ENOMEM, "reading conditions: out of host memory");
}

/* The first characters of what is there, fit to print; by value. */
typedef struct excerpt {
  char text[100];
} excerpt;

static excerpt quote(const char *at, size_t bytes)
{
  excerpt q = {"the end"};
  char *clean = bytes ? wr_text(at, bytes < 80 ? bytes : 80, true) : NULL;
  if (clean) (void)snprintf(q.text, sizeof(q.text), "'%s'", clean);
  free(clean);
  return q;
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
  return c == ' ' || c == '\t' || c == '\r';
}

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void skip_blanks(parser *p)
{
  while (p->at < p->end && is_blank(*p->at))
    p->at++;
}

/* Bytes of the word that begins here: letters, digits and dots. */
static size_t word_bytes(const parser *p)
{
  size_t n = 0;
  while (p->at + n < p->end &&
         (is_letter(p->at[n]) || is_digit(p->at[n]) || p->at[n] == '.' || p->at[n] == '_'))
    n++;
  return n;
}

static bool is_word(const char *at, size_t bytes, const char *word)
{
  return strlen(word) == bytes && !strncmp(at, word, bytes);
}

/* What stands here, for a mistake: a word, or one character. */
static excerpt word_at(const parser *p)
{
  size_t n = word_bytes(p), left = (size_t)(p->end - p->at);
  if (!n && left) n = wr_utf8_length((const unsigned char *)p->at, left);
  return quote(p->at, n || !left ? n : 1);
}

/* ---- the parts of a condition ---------------------------------------------------------------- */

/* Digits, perhaps with a point: *digits / *scale. */
static weir_status read_number(parser *p, long double *digits, long double *scale)
{
  const char *from = p->at;
  size_t count = 0;
  *digits = 0, *scale = 1;
  for (bool point = false; p->at < p->end; p->at++) {
    if (*p->at == '.' && !point && p->at > from) {
      point = true;
      continue;
    }
    if (!is_digit(*p->at)) break;
    *digits = *digits * 10 + (*p->at - '0');
    if (point) *scale *= 10;
    count++;
  }
  if (!count || p->at[-1] == '.') {
    p->at = from;
    return wrong(p, from, "a number belongs here, not %s", word_at(p).text);
  }
  return count > DIGITS ? wrong(p, from, "a number has %d digits at most", DIGITS) : WEIR_OK;
}

static weir_status read_name(parser *p, wr_condition *c)
{
  const char *from = p->at;
  size_t n = 0;
  if (p->at == p->end || *p->at != '"')
    return wrong(p, from, "a name in double quotes belongs here, not %s", word_at(p).text);
  char *name = malloc((size_t)(p->end - p->at) + 1);
  if (!name) return no_memory_for_conditions();
  for (p->at++; p->at < p->end && *p->at != '"'; p->at++) {
    bool escaped = *p->at == '\\' && p->at + 1 < p->end && (p->at[1] == '"' || p->at[1] == '\\');
    p->at += escaped;
    name[n++] = *p->at;
  }
  c->name = wr_text(name, n, true);
  free(name);
  if (p->at == p->end) return wrong(p, from, "the name that begins here has no second quote");
  p->at++;
  if (!n) return wrong(p, from, "the name is empty");
  return c->name ? WEIR_OK : no_memory_for_conditions();
}

static weir_status read_device(parser *p, wr_condition *c)
{
  const char *from = p->at;
  long n = 0;
  for (; p->at < p->end && is_digit(*p->at) && n < DEVICES; p->at++)
    n = n * 10 + (*p->at - '0');
  if (p->at == from)
    return wrong(p, from, "a device's number belongs here, not %s", word_at(p).text);
  if (n >= DEVICES) return wrong(p, from, "devices have the numbers 0 to %d", DEVICES - 1);
  c->device = (int)n;
  return WEIR_OK;
}

/* A scope and its colon, where one begins. */
static weir_status read_scope(parser *p, wr_condition *c)
{
  static const struct {
    const char *word;
    int of;
  } scopes[] = {{"device", WR_OF_DEVICE}, {"site", WR_OF_SITE}, {"range", WR_OF_RANGE}};
  size_t bytes = word_bytes(p);
  c->of = WR_OF_RUN;
  for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
    if (is_word(p->at, bytes, scopes[i].word)) c->of = scopes[i].of;
  if (c->of == WR_OF_RUN) return WEIR_OK;
  p->at += bytes;
  skip_blanks(p);
  weir_status s = c->of == WR_OF_DEVICE ? read_device(p, c) : read_name(p, c);
  if (s) return s;
  skip_blanks(p);
  if (p->at == p->end || *p->at != ':')
    return wrong(p, p->at, "':' belongs here, not %s", word_at(p).text);
  p->at++;
  skip_blanks(p);
  return WEIR_OK;
}

static const char *subject_words(int of)
{
  return of == WR_OF_DEVICE ? "a device" : of == WR_OF_SITE ? "a site" : "a range";
}

/* "finding certain", "finding:certain": one name. */
static weir_status read_certainty(parser *p, wr_condition *c)
{
  char name[32];
  bool colon = false;
  for (; p->at < p->end && (is_blank(*p->at) || (*p->at == ':' && !colon)); p->at++)
    colon |= *p->at == ':';
  size_t bytes = word_bytes(p);
  (void)snprintf(name, sizeof(name), "finding:%.*s", bytes < 16 ? (int)bytes : 0, p->at);
  if (!bytes || !wr_metric_find(name, strlen(name), &c->metric))
    return wrong(p, p->at, "certain, likely or possible belongs here, not %s", word_at(p).text);
  p->at += bytes;
  return WEIR_OK;
}

static weir_status read_metric(parser *p, wr_condition *c)
{
  const char *from = p->at;
  size_t bytes = word_bytes(p);
  weir_status s = WEIR_OK;
  if (!bytes) return wrong(p, from, "a metric belongs here, not %s", word_at(p).text);
  p->at += bytes;
  if (is_word(from, bytes, "finding"))
    s = read_certainty(p, c);
  else if (!wr_metric_find(from, bytes, &c->metric))
    return wrong(p, from, "there is no metric %s; weir(1) lists them", quote(from, bytes).text);
  if (s || wr_metric_rows[c->metric].of & c->of) return s;
  return wrong(p, from, "%s has no %s; weir(1) says what has", subject_words(c->of),
               wr_metric_rows[c->metric].name);
}

static const char *const comparisons[] = {"<=", ">=", "==", "!=", "<", ">"};

const char *wr_comparison_text(wr_comparison c)
{
  return comparisons[c];
}

static weir_status read_comparison(parser *p, wr_condition *c)
{
  for (size_t i = 0; i < sizeof(comparisons) / sizeof(comparisons[0]); i++) {
    size_t n = strlen(comparisons[i]);
    if ((size_t)(p->end - p->at) < n || strncmp(p->at, comparisons[i], n) != 0) continue;
    c->comparison = (wr_comparison)i;
    p->at += n;
    return WEIR_OK;
  }
  return wrong(p, p->at, "one of <= < >= > == != belongs here, not %s", word_at(p).text);
}

/* What a unit is in bytes, in ns, in pieces; 0: it is no unit of this kind. */
static long double unit_size(wr_unit kind, const char *at, size_t bytes)
{
  static const struct {
    const char *name;
    wr_unit kind;
    double size;
  } units[] = {{"B", WR_UNIT_BYTES, 1},
               {"KiB", WR_UNIT_BYTES, 1024.0},
               {"MiB", WR_UNIT_BYTES, 1048576.0},
               {"GiB", WR_UNIT_BYTES, 1073741824.0},
               {"TiB", WR_UNIT_BYTES, 1099511627776.0},
               {"ns", WR_UNIT_TIME, 1},
               {"us", WR_UNIT_TIME, 1e3},
               {"ms", WR_UNIT_TIME, 1e6},
               {"s", WR_UNIT_TIME, 1e9},
               {"min", WR_UNIT_TIME, 60e9}};
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
    if (units[i].kind == kind && is_word(at, bytes, units[i].name)) return units[i].size;
  return 0;
}

static weir_status read_share(parser *p, wr_condition *c)
{
  if (c->relative == WR_ABSOLUTE)
    return wrong(p, p->at, "a share has a sign in front, + or -: of what the other run had");
  c->relative = WR_BY_SHARE;
  p->at++;
  return WEIR_OK;
}

/* Behind a number: its unit. */
static weir_status read_unit(parser *p, wr_condition *c, const char *number)
{
  static const char *const names[] = {
      [WR_UNIT_BYTES] = "B, KiB, MiB, GiB or TiB", [WR_UNIT_TIME] = "ns, us, ms, s or min"};
  const wr_metric_row *m = &wr_metric_rows[c->metric];
  skip_blanks(p);
  if (p->at < p->end && *p->at == '%') return read_share(p, c);
  size_t bytes = word_bytes(p);
  if (m->unit == WR_UNIT_COUNT)
    return bytes ? wrong(p, p->at, "%s is a count, which has no unit", m->name) : WEIR_OK;
  long double size = unit_size(m->unit, p->at, bytes);
  if (bytes && size <= 0)
    return wrong(p, p->at, "%s is in %s, not in %s", m->name, names[m->unit], word_at(p).text);
  if (!bytes && c->amount > 0)
    return wrong(p, number, "a unit is missing: %s is in %s", m->name, names[m->unit]);
  if (bytes) c->amount *= size;
  p->at += bytes;
  return WEIR_OK;
}

static weir_status read_value(parser *p, wr_condition *c)
{
  const char *from = p->at;
  bool minus = p->at < p->end && *p->at == '-', sign = minus || (p->at < p->end && *p->at == '+');
  long double scale = 1;
  if (sign && p->line)
    return wrong(p, from, "a limit is absolute: what is relative to another run is weir diff's");
  if (sign) c->relative = WR_BY_AMOUNT, p->at++;
  skip_blanks(p);
  const char *number = p->at;
  weir_status s = read_number(p, &c->amount, &scale);
  if (!s) s = read_unit(p, c, number);
  c->amount = (minus ? -c->amount : c->amount) / scale; /* last: 1.5 GiB is exact */
  return s;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static weir_status read_condition(parser *p)
{
  wr_conditions *all = p->out;
  const char *from = p->at;
  if (!wr_grow(&all->condition, &all->capacity, all->count + 1, sizeof(*all->condition)))
    return no_memory_for_conditions();
  wr_condition *c = &all->condition[all->count++];
  *c = (wr_condition){.line = p->line};
  weir_status s = read_scope(p, c);
  if (!s) s = read_metric(p, c);
  if (s) return s;
  skip_blanks(p);
  s = read_comparison(p, c);
  if (s) return s;
  skip_blanks(p);
  s = read_value(p, c);
  if (s) return s;
  all->findings |= wr_metric_is_of_findings(c->metric);
  const char *end = p->at;
  while (end > from && is_blank(end[-1]))
    end--;
  c->text = wr_text(from, (size_t)(end - from), true);
  skip_blanks(p);
  return c->text ? WEIR_OK : no_memory_for_conditions();
}

static weir_status read_list(parser *p)
{
  for (;;) {
    skip_blanks(p);
    weir_status s = read_condition(p);
    if (s || p->at == p->end) return s;
    if (*p->at != ',')
      return wrong(p, p->at, "a comma or the end belongs here, not %s", word_at(p).text);
    p->at++;
  }
}

weir_status wr_conditions_of_list(wr_conditions *out, const char *where, const char *list)
{
  parser p = {.out = out, .where = where, .start = list, .at = list, .end = list + strlen(list)};
  *out = (wr_conditions){0};
  weir_status s = read_list(&p);
  if (s) wr_conditions_free(out);
  return s;
}

static weir_status read_line(parser *p)
{
  p->start = p->at;
  skip_blanks(p);
  if (p->at == p->end || *p->at == '#') return WEIR_OK;
  weir_status s = read_condition(p);
  if (s || p->at == p->end || *p->at == '#') return s;
  return wrong(p, p->at, "the end of the line belongs here, not %s", word_at(p).text);
}

static weir_status read_lines(wr_conditions *out, const char *path, const char *text, size_t bytes)
{
  parser p = {.out = out, .where = path, .at = text, .start = text, .end = text};
  const char *end = text + bytes, *nul = memchr(text, 0, bytes);
  if (nul) return weir_fail(WEIR_EINVAL, "%s is no text: it has a byte of value 0", path);
  for (p.line = 1; p.at < end; p.line++) {
    const char *next = memchr(p.at, '\n', (size_t)(end - p.at));
    p.end = next ? next : end;
    weir_status s = read_line(&p);
    if (s) return s;
    p.at = next ? next + 1 : end;
  }
  return out->count ? WEIR_OK : weir_fail(WEIR_EINVAL, "%s has no limit", path);
}

static weir_status read_bytes(int fd, char *text, size_t bytes, const char *path)
{
  for (size_t have = 0; have < bytes;) {
    ssize_t n = read(fd, text + have, bytes - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return weir_fail(WEIR_EIO, "cannot read %s: %s", path, strerror(n ? errno : EIO));
    have += (size_t)n;
  }
  return WEIR_OK;
}

weir_status wr_conditions_of_file(wr_conditions *out, const char *path)
{
  struct stat file;
  *out = (wr_conditions){0};
  int fd = wr_open_regular(path, FILE_BYTES, &file);
  if (fd < 0 && errno == ENOENT) return weir_fail(WEIR_ENOENT, "there is no file %s", path);
  if (fd < 0 && errno != EINVAL && errno != EFBIG)
    return weir_fail_errno(WEIR_EIO, errno, "cannot read %s", path);
  if (fd < 0) return weir_fail(WEIR_EINVAL, "%s is no file of text of 1 byte to 1 MiB", path);
  size_t bytes = (size_t)file.st_size;
  char *text = malloc(bytes + 1);
  weir_status s = text ? read_bytes(fd, text, bytes, path) : no_memory_for_conditions();
  (void)close(fd);
  if (!s) s = read_lines(out, path, text, bytes);
  free(text);
  if (s) wr_conditions_free(out);
  return s;
}

void wr_conditions_free(wr_conditions *c)
{
  for (size_t i = 0; i < c->count; i++) {
    free(c->condition[i].text);
    free(c->condition[i].name);
  }
  free(c->condition);
  *c = (wr_conditions){0};
}

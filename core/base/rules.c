/* rules.c: see rules.h. The text may be anything: it is cut into lines and words by length, never
 * by a NUL, and what is wrong with a word is reported with its line and what would be right. */
#include "core/base/rules.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "core/base/options.h"
#include "core/base/reroutes.h"

enum { FILE_MAX = 64 << 10, SHOWN = 40 };

typedef struct word {
  const char *at; /* borrowed; not terminated */
  size_t length;
} word;

typedef struct line {
  const char *name; /* of the file */
  unsigned number;  /* from 1 */
  word rest;        /* what is still to be read of it */
  bool fixes;       /* of a file of fixes */
} line;

static bool is(word w, const char *text)
{
  return w.length == strlen(text) && !memcmp(w.at, text, w.length);
}

static weir_status wrong_word(const line *l, word w, const char *expected)
{
  char shown[SHOWN + 4];
  size_t n = w.length < SHOWN ? w.length : SHOWN;
  for (size_t i = 0; i < n; i++)
    shown[i] = isprint((unsigned char)w.at[i]) ? w.at[i] : '?';
  (void)snprintf(shown + n, sizeof shown - n, "%s", n < w.length ? "..." : "");
  return w.length ? fail_invalid("%s:%u: '%s': expected %s", l->name, l->number, shown, expected)
                  : fail_invalid("%s:%u: the line ends: expected %s", l->name, l->number, expected);
}

static bool blank(char c)
{
  return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; length 0: there is none, or a comment. */
static word next_word(line *l)
{
  word *r = &l->rest, w;
  while (r->length && blank(*r->at))
    r->at++, r->length--;
  w = (word){r->at, 0};
  if (r->length && *r->at == '#') r->length = 0;
  while (w.length < r->length && !blank(w.at[w.length]))
    w.length++;
  r->at += w.length, r->length -= w.length;
  return w;
}

static weir_status read_action(rule_entry *r, line *l, word w)
{
  static const struct {
    const char *text;
    rule_action action;
  } how[] = {{"on", WEIR_RULE_STAGING_ON},
             {"off", WEIR_RULE_STAGING_OFF},
             {"auto", WEIR_RULE_STAGING_AUTO}};
  *r = (rule_entry){.most = UINT64_MAX};
  if (is(w, "passthrough")) r->action = WEIR_RULE_PASSTHROUGH;
  if (is(w, "cache")) r->action = WEIR_RULE_CACHE;
  if (r->action) return WEIR_OK;
  if (!is(w, "staging")) return wrong_word(l, w, "passthrough, cache or staging");
  w = next_word(l);
  for (size_t i = 0; i < sizeof how / sizeof *how; i++)
    if (is(w, how[i].text)) r->action = how[i].action;
  return r->action ? WEIR_OK : wrong_word(l, w, "on, off or auto after staging");
}

static weir_status read_size(rule_entry *r, const line *l, word w)
{
  static const char expected[] =
      "size, one of >= > <= < =, and bytes with an optional K, M, G or T, as in size>=64M";
  char text[32], sign = w.at[4];
  size_t skip = w.length > 5 && sign != '=' && w.at[5] == '=' ? 6 : 5;
  uint64_t n;
  if (w.length <= skip || w.length - skip >= sizeof text) return wrong_word(l, w, expected);
  memcpy(text, w.at + skip, w.length - skip);
  text[w.length - skip] = 0;
  if (memchr(text, 0, w.length - skip) || option_size(&n, "size", text, 0))
    return wrong_word(l, w, expected);
  bool strict = skip == 5 && sign != '=';
  if (strict && n == (sign == '<' ? 0 : UINT64_MAX)) return wrong_word(l, w, "a size that can be");
  if (strict) n = sign == '<' ? n - 1 : n + 1;
  if (sign != '<' && n > r->least) r->least = n;
  if (sign != '>' && n < r->most) r->most = n;
  return r->least <= r->most ? WEIR_OK : wrong_word(l, w, "a size that the one before it allows");
}

static weir_status read_name(char out[WEIR_RULE_NAME], const line *l, word w, size_t skip)
{
  size_t n = w.length - skip;
  if (*out) return wrong_word(l, w, "each of module and function once only");
  if (!n || n >= WEIR_RULE_NAME || memchr(w.at + skip, 0, n))
    return wrong_word(l, w, "a name of 1 to 255 characters after '='");
  if (skip == 7 && memchr(w.at + skip, '/', n))
    return wrong_word(l, w, "the name of a file without its folder, as in module=libfoo.so");
  memcpy(out, w.at + skip, n);
  out[n] = 0;
  return WEIR_OK;
}

static bool begins(word w, const char *text)
{
  return w.length >= strlen(text) && !memcmp(w.at, text, strlen(text));
}

/* ---- fixes ----------------------------------------------------------------------------------- */

static int hex_value(char c)
{
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads hexadecimal digits from the front of a word; false: too many, or none. */
static bool read_offset(word *w, uint64_t *out)
{
  size_t n = 0;
  *out = 0;
  for (; n < w->length && n < 17 && hex_value(w->at[n]) >= 0; n++)
    *out = *out << 4 | (unsigned)hex_value(w->at[n]);
  w->at += n, w->length -= n;
  return n > 0 && n < 17;
}

static bool read_frame(rule_frame *f, word *w)
{
  f->id_bytes = 0;
  while (w->length > 1 && hex_value(w->at[0]) >= 0 && hex_value(w->at[1]) >= 0) {
    if (f->id_bytes == WEIR_RULE_ID) return false;
    f->id[f->id_bytes++] = (uint8_t)(hex_value(w->at[0]) << 4 | hex_value(w->at[1]));
    w->at += 2, w->length -= 2;
  }
  if (!f->id_bytes || !begins(*w, "+0x")) return false;
  w->at += 3, w->length -= 3;
  return read_offset(w, &f->offset);
}

static weir_status read_frames(rule_entry *r, const line *l, word w)
{
  word rest = {w.at + 3, w.length - 3};
  bool good = !r->frames;
  while (good) {
    good = r->frames < WEIR_RULE_FRAMES && read_frame(&r->frame[r->frames++], &rest);
    if (!rest.length || *rest.at != ',') break;
    rest.at++, rest.length--;
  }
  if (good && !rest.length) return WEIR_OK;
  return wrong_word(l, w, "at= once, with 1 to 8 frames, each BUILD-ID+0xOFFSET, ',' between them");
}

static weir_status read_fix_condition(rule_entry *r, const line *l, word w)
{
  if (begins(w, "at=")) return read_frames(r, l, w);
  if (begins(w, "module=")) return read_name(r->module, l, w, 7);
  if (begins(w, "function=")) return read_name(r->function, l, w, 9);
  return wrong_word(l, w, "at=BUILD-ID+0xOFFSET, module=NAME or function=NAME");
}

static weir_status read_fix_action(rule_entry *r, line *l, unsigned proofs)
{
  char text[16];
  word w = next_word(l);
  if (!proofs) return wrong_word(l, w, "a line 'proof ...' before the first fix");
  size_t n = w.length < sizeof text ? w.length : 0;
  memcpy(text, w.at, n);
  text[n] = 0;
  *r = (rule_entry){.action = WEIR_RULE_FIX, .most = UINT64_MAX, .proof = proofs - 1};
  if (is(w, "relaxed")) r->fix = REROUTE_RELAXED;
  bool one = n && !memchr(text, 0, n) && !memchr(text, ',', n);
  if (r->fix || (one && !reroutes_read(&r->fix, "fix", text) && r->fix)) return WEIR_OK;
  return wrong_word(l, w, "what Weir does there: relaxed, or one of 'weir run --reroute'");
}

/* Takes the rest of the line, without the blanks at its end. */
static word take_rest(line *l, const char *from)
{
  word w = {from, (size_t)(l->rest.at + l->rest.length - from)};
  while (w.length && blank(w.at[w.length - 1]))
    w.length--;
  l->rest = (word){w.at + w.length, 0};
  return w;
}

static weir_status read_proof_word(rule_proof *p, line *l, word w)
{
  const struct {
    const char *name;
    char *to;
  } words[] = {{"gain=", p->gain},
               {"pairs=", p->pairs},
               {"driver=", p->driver},
               {"date=", p->date},
               {"card=", p->card}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    size_t skip = strlen(words[i].name);
    if (!begins(w, words[i].name)) continue;
    if (words[i].to == p->card) w = take_rest(l, w.at);
    size_t n = w.length - skip;
    for (size_t k = skip; k < w.length; k++)
      if (!isprint((unsigned char)w.at[k])) n = 0;
    if (!n || n >= WEIR_RULE_WORD || *words[i].to)
      return wrong_word(l, w, "1 to 127 printable characters after '=', each of these once");
    memcpy(words[i].to, w.at + skip, n);
    return WEIR_OK;
  }
  return wrong_word(l, w, "gain=, pairs=, driver=, date= or, at the end, card=");
}

static weir_status read_proof(rule_list *out, line *l)
{
  word w;
  weir_status st = WEIR_OK;
  if (out->proofs == WEIR_RULES_MAX)
    return fail_invalid("%s:%u: one proof more than %u: expected no more", l->name, l->number,
                        WEIR_RULES_MAX);
  rule_proof *p = &out->proof[out->proofs++];
  *p = (rule_proof){0};
  while (!st && (w = next_word(l)).length)
    st = read_proof_word(p, l, w);
  return st;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static weir_status read_condition(rule_entry *r, const line *l, word w)
{
  if (l->fixes) return read_fix_condition(r, l, w);
  if (begins(w, "size>") || begins(w, "size<") || begins(w, "size=")) return read_size(r, l, w);
  if (begins(w, "module=")) return read_name(r->module, l, w, 7);
  if (begins(w, "function=")) return read_name(r->function, l, w, 9);
  return wrong_word(l, w, "size>=BYTES (or >, <=, <, =), module=NAME or function=NAME");
}

static weir_status read_line(rule_list *out, line *l)
{
  word w = next_word(l);
  if (!w.length) return WEIR_OK;
  if (out->ended) return wrong_word(l, w, "nothing after the line 'end'");
  if (l->fixes && is(w, "proof")) return read_proof(out, l);
  if (l->fixes && is(w, "end") && !next_word(l).length) {
    out->ended = true;
    return WEIR_OK;
  }
  if (l->fixes && !is(w, "fix")) return wrong_word(l, w, "proof, fix or end");
  if (out->count == WEIR_RULES_MAX)
    return fail_invalid("%s:%u: one rule more than %u: expected no more", l->name, l->number,
                        WEIR_RULES_MAX);
  rule_entry *r = &out->rule[out->count];
  weir_status st = l->fixes ? read_fix_action(r, l, out->proofs) : read_action(r, l, w);
  r->line = l->number;
  while (!st && (w = next_word(l)).length)
    st = read_condition(r, l, w);
  if (!st && l->fixes && !r->frames) st = wrong_word(l, (word){0}, "at=BUILD-ID+0xOFFSET");
  out->count += !st;
  return st;
}

static weir_status parse_lines(rule_list *out, line l, const char *text, size_t bytes)
{
  weir_status st = WEIR_OK;
  out->count = out->proofs = 0;
  out->ended = false;
  for (const char *end = text + bytes; !st && text < end;) {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    if (!stop) stop = end;
    l.number++;
    l.rest = (word){text, (size_t)(stop - text)};
    st = read_line(out, &l);
    text = stop + (stop < end);
  }
  return st;
}

weir_status rule_list_parse(rule_list *out, const char *name, const char *text, size_t bytes)
{
  return parse_lines(out, (line){.name = name}, text, bytes);
}

weir_status fix_list_parse(rule_list *out, const char *name, const char *text, size_t bytes)
{
  weir_status st = parse_lines(out, (line){.name = name, .fixes = true}, text, bytes);
  if (!st && !out->ended)
    return fail_invalid("%s: the file is cut short: expected 'end' as its last line", name);
  if (!st && !out->count) return fail_invalid("%s: there is no fix in it", name);
  return st;
}

typedef weir_status list_parser(rule_list *, const char *, const char *, size_t);

static weir_status read_file(rule_list *out, const char *path, list_parser *parse)
{
  static const char cannot[] = "%s cannot be read";
  char text[FILE_MAX + 1];
  size_t bytes = 0;
  ssize_t n;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return weir_fail_errno(WEIR_EIO, errno, cannot, path);
  while ((n = read(fd, text + bytes, sizeof text - bytes)) > 0)
    bytes += (size_t)n;
  int error = errno;
  (void)close(fd);
  if (n < 0) return weir_fail_errno(WEIR_EIO, error, cannot, path);
  if (bytes > FILE_MAX)
    return fail_invalid("%s: rules are at most %d KiB long, this is more", path, FILE_MAX >> 10);
  return parse(out, path, text, bytes);
}

weir_status rule_list_read(rule_list *out, const char *path)
{
  return read_file(out, path, rule_list_parse);
}

weir_status fix_list_read(rule_list *out, const char *path)
{
  return read_file(out, path, fix_list_parse);
}

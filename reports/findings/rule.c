/* rule.c: see rule.h. Weir's own rules are linked in as text, one after the other, each ended by a
 * NUL and all by another (reports/rules.mk). A user's are files somebody else may have written:
 * they are read whole, within limits, and what they say is checked here; what they ask, in guard.c. */
#include "core/base/reroutes.h"
#include "reports/findings/rule.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reports/base/util.h"
#include "reports/findings/words.h"

__asm__(".pushsection .rodata\n"
        ".global wr_rules_text\n"
        ".hidden wr_rules_text\n"
        "wr_rules_text: .incbin \"findings_rules.txt\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char wr_rules_text[];

enum { MOST_FILES = 256 };

static const char *const certainties[] = {"certain", "likely", "possible"};
static const char *const severities[] = {"high", "medium", "low"};
static const char *const leasts[] = {"never", "untimed", "always"};
static const char *const later_words[] = {"nothing", "copy", "round"};

const char *wr_certainty_name(wr_certainty c)
{
  return certainties[c];
}

const char *wr_severity_name(wr_severity s)
{
  return severities[s];
}

static bool read_word(const char *const words[3], const char *name, int *out)
{
  for (*out = 0; *out < 3; ++*out)
    if (!strcmp(words[*out], name)) return true;
  return false;
}

bool wr_certainty_read(const char *name, wr_certainty *out)
{
  int n;
  bool good = read_word(certainties, name, &n);
  if (good) *out = (wr_certainty)n;
  return good;
}

/* ---- one rule -------------------------------------------------------------------------------- */

static const char *rule_name(const wr_rule *r)
{
  return r->file ? r->file : r->id ? r->id : "a rule of Weir's";
}

static weir_status out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "reading rules: out of host memory");
}

static bool good_id(const char *id)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return *id && strlen(id) < 64 && strspn(id, letters) == strlen(id);
}

/* "min_bytes 65536 bytes" */
static weir_status take_threshold(wr_rule *r, const char *value)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
  size_t name = strspn(value, letters);
  char *end = NULL;
  errno = 0;
  long long number = name ? strtoll(value + name, &end, 10) : 0;
  if (!name || value[name] != ' ' || end == value + name || *end != ' ' || !end[1] || errno)
    return weir_fail(WEIR_EINVAL, "%s: threshold '%s' is not NAME NUMBER UNIT", rule_name(r),
                     value);
  if (r->thresholds == WR_RULE_THRESHOLDS)
    return weir_fail(WEIR_EINVAL, "%s: more than %d thresholds", rule_name(r), WR_RULE_THRESHOLDS);
  char *text = wr_format(":%.*s", (int)name, value);
  if (!text) return out_of_memory();
  r->threshold[r->thresholds++] = (wr_threshold){text, number};
  return WEIR_OK;
}

static weir_status take_text(char **to, const char *value)
{
  free(*to);
  *to = wr_text(value, strlen(value), true);
  return *to ? WEIR_OK : out_of_memory();
}

/* "relaxed device": a mode, and what it reroutes (core/base/reroutes.h). */
static weir_status take_prove(wr_rule *r, const char *value)
{
  unsigned bits;
  size_t mode = strcspn(value, " ");
  bool known = mode && value[mode] &&
               (!strncmp(value, "strict", mode) || !strncmp(value, "relaxed", mode)) &&
               (mode == strlen("strict") || mode == strlen("relaxed"));
  if (!known || reroutes_read(&bits, "prove", value + mode + 1) != WEIR_OK)
    return weir_fail(WEIR_EINVAL, "%s: prove '%s' is not MODE REROUTES", rule_name(r), value);
  return take_text(&r->prove, value);
}

/* A condition in SQL, on that line of the file. */
static weir_status take_calls(wr_rule *r, const char *value, int line)
{
  free(r->calls);
  return wr_words_put(&r->calls, value, rule_name(r), line);
}

/* A number from 0 to `most`. */
static bool take_number(int64_t *to, const char *value, int64_t most)
{
  size_t digits = strspn(value, "0123456789");
  if (!digits || digits > 6 || value[digits]) return false;
  *to = strtol(value, NULL, 10);
  return *to <= most;
}

static weir_status take_value(wr_rule *r, const char *key, const char *value, int line)
{
  const struct {
    const char *key;
    char **to;
  } texts[] = {{"title", &r->title}, {"fix", &r->fix},         {"needs", &r->needs},
               {"rows", &r->rows},   {"decides", &r->decides}, {"judge", &r->judge},
               {"id", &r->id}};
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
    if (!strcmp(key, texts[i].key)) return take_text(texts[i].to, value);
  int n = 0;
  bool known = true, good = true;
  if (!strcmp(key, "number"))
    good = strspn(value, "0123456789") == strlen(value) && *value && strlen(value) < 7,
    r->number = good ? (int)strtol(value, NULL, 10) : 0;
  else if (!strcmp(key, "severity"))
    good = read_word(severities, value, &n), r->severity = (wr_severity)n;
  else if (!strcmp(key, "certainty"))
    good = wr_certainty_read(value, &r->certainty);
  else if (!strcmp(key, "often"))
    good = take_number(&r->often, value, 999999);
  else if (!strcmp(key, "mostly"))
    good = take_number(&r->mostly, value, 100);
  else if (!strcmp(key, "queued"))
    good = r->queued = !strcmp(value, "device");
  else if (!strcmp(key, "least"))
    good = read_word(leasts, value, &n), r->least = (wr_least_when)n;
  else if (!strcmp(key, "later"))
    good = read_word(later_words, value, &n), r->later = (wr_later)n;
  else if (!strcmp(key, "holds"))
    good = r->holds = !strcmp(value, "bytes");
  else if (!strcmp(key, "partial"))
    good = r->partial = !strcmp(value, "judged");
  else if (!strcmp(key, "names"))
    good = r->kernels = !strcmp(value, "kernels");
  else if (!strcmp(key, "threshold"))
    return take_threshold(r, value);
  else if (!strcmp(key, "prove"))
    return take_prove(r, value);
  else if (!strcmp(key, "calls"))
    return take_calls(r, value, line);
  else
    known = false;
  if (!known) return weir_fail(WEIR_EINVAL, "%s: unknown line '-- %s:'", rule_name(r), key);
  return good ? WEIR_OK : weir_fail(WEIR_EINVAL, "%s: %s cannot be '%s'", rule_name(r), key, value);
}

/* The end of a line; *next: the begin of the one after it. */
static const char *line_end(const char *line, const char **next)
{
  const char *end = line + strcspn(line, "\n");
  *next = *end ? end + 1 : end;
  while (end > line && (end[-1] == ' ' || end[-1] == '\r'))
    end--;
  return end;
}

/* What follows "-- key: " of *at, with the lines that go on with it (new); *at: the line after them. */
static char *whole_value(const char *begin, const char **at)
{
  const char *end = line_end(begin, at);
  char *text = wr_format("%.*s", (int)(end - begin), begin);
  while (text && !strncmp(*at, "--   ", 5)) {
    const char *more = *at + 5 + strspn(*at + 5, " ");
    end = line_end(more, at);
    char *longer = wr_format("%s %.*s", text, (int)(end - more), more);
    free(text);
    text = longer;
  }
  return text;
}

/* *at: a line that begins "-- "; then the one after it. */
static weir_status take_line(wr_rule *r, const char **at, int line)
{
  char key[32];
  const char *begin = *at + 3;
  size_t n = strspn(begin, "abcdefghijklmnopqrstuvwxyz");
  if (!n || n >= sizeof(key) || begin[n] != ':' || begin[n + 1] != ' ')
    return weir_fail(WEIR_EINVAL, "%s: '%.*s' is not '-- key: value'", rule_name(r),
                     (int)strcspn(*at, "\n"), *at);
  memcpy(key, begin, n);
  key[n] = '\0';
  char *value = whole_value(begin + n + 1 + strspn(begin + n + 1, " "), at);
  weir_status s = value ? take_value(r, key, value, line) : out_of_memory();
  free(value);
  return s;
}

static weir_status check_rule(const wr_rule *r)
{
  const char *missing = !r->id ? "id" : !r->title ? "title" : !r->fix ? "fix" : NULL;
  if (missing) return weir_fail(WEIR_EINVAL, "%s has no line '-- %s: ...'", rule_name(r), missing);
  if (!good_id(r->id))
    return weir_fail(WEIR_EINVAL, "%s: id '%s' is not of small letters, digits and '-'",
                     rule_name(r), r->id);
  if (r->rows && strspn(r->rows, "abcdefghijklmnopqrstuvwxyz_ ") != strlen(r->rows))
    return weir_fail(WEIR_EINVAL, "%s: rows cannot be '%s'", rule_name(r), r->rows);
  bool select = r->sql[strspn(r->sql, " \n\r\t")];
  if (!select && !r->judge) return weir_fail(WEIR_EINVAL, "%s has no SELECT", rule_name(r));
  return WEIR_OK;
}

static void rule_free(wr_rule *r)
{
  for (int i = 0; i < r->thresholds; i++)
    free(r->threshold[i].name);
  free(r->file);
  free(r->id);
  free(r->title);
  free(r->fix);
  free(r->needs);
  free(r->rows);
  free(r->prove);
  free(r->decides);
  free(r->calls);
  free(r->sql);
  free(r->judge);
}

static int lines_to(const char *text, const char *at)
{
  int lines = 0;
  for (; text < at; text++)
    lines += *text == '\n';
  return lines;
}

/* `file` NULL: one of Weir's. */
static weir_status rule_read(wr_rule *r, const char *file, const char *text)
{
  *r = (wr_rule){.severity = WR_MEDIUM, .certainty = WR_POSSIBLE};
  weir_status s = WEIR_OK;
  if (file && !(r->file = wr_text(file, strlen(file), true))) s = out_of_memory();
  const char *at = text;
  int line = 1;
  while (!s && !strncmp(at, "-- ", 3)) {
    const char *begin = at;
    s = take_line(r, &at, line);
    line += lines_to(begin, at);
  }
  if (!s) s = wr_words_put(&r->sql, at, rule_name(r), line);
  if (!s) s = check_rule(r);
  if (s) rule_free(r);
  return s;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Steals what `r` holds. */
static weir_status add_rule(wr_rules *rules, wr_rule *r)
{
  for (size_t i = 0; i < rules->count; i++) {
    wr_rule *same = &rules->rule[i];
    if (strcmp(same->id, r->id) != 0) continue;
    if (same->file || !r->file) {
      weir_status s =
          weir_fail(WEIR_EINVAL, "%s: its id '%s' is %s's", rule_name(r), r->id, rule_name(same));
      rule_free(r);
      return s;
    }
    rule_free(same);
    *same = *r;
    return WEIR_OK;
  }
  if (!wr_grow(&rules->rule, &rules->capacity, rules->count + 1, sizeof(*rules->rule))) {
    rule_free(r);
    return out_of_memory();
  }
  rules->rule[rules->count++] = *r;
  return WEIR_OK;
}

static weir_status add_text(wr_rules *rules, const char *file, const char *text)
{
  wr_rule r;
  weir_status s = rule_read(&r, file, text);
  return s ? s : add_rule(rules, &r);
}

static weir_status add_file(wr_rules *rules, const char *path)
{
  struct stat st;
  int fd = wr_open_regular(path, WR_RULE_BYTES, &st);
  if (fd < 0)
    return weir_fail_errno(errno == ENOENT ? WEIR_ENOENT : WEIR_EIO, errno,
                           "cannot read the rule %s (a file of 1 byte to 64 KiB)", path);
  char *text = calloc(1, (size_t)st.st_size + 1);
  ssize_t n = text ? pread(fd, text, (size_t)st.st_size, 0) : 0;
  int error = errno;
  close(fd);
  weir_status s = WEIR_OK;
  if (!text)
    s = out_of_memory();
  else if (n < 0)
    s = weir_fail_errno(WEIR_EIO, error, "cannot read the rule %s", path);
  else if (strlen(text) != (size_t)st.st_size)
    s = weir_fail(WEIR_EINVAL, "the rule %s is no text", path);
  if (!s) s = add_text(rules, path, text);
  free(text);
  return s;
}

static int is_rule(const struct dirent *entry)
{
  size_t n = strlen(entry->d_name);
  return n > 4 && entry->d_name[0] != '.' && !strcmp(entry->d_name + n - 4, ".sql");
}

static weir_status add_folder(wr_rules *rules, const char *folder)
{
  struct dirent **names = NULL;
  int count = scandir(folder, &names, is_rule, alphasort);
  if (count < 0)
    return weir_fail_errno(errno == ENOENT ? WEIR_ENOENT : WEIR_EIO, errno,
                           "cannot read the folder of rules %s", folder);
  weir_status s = WEIR_OK;
  if (!count) s = weir_fail(WEIR_EINVAL, "the folder of rules %s has no file NAME.sql", folder);
  if (count > MOST_FILES)
    s = weir_fail(WEIR_EINVAL, "the folder of rules %s has more than %d", folder, MOST_FILES);
  for (int i = 0; i < count; i++) {
    char *path = s ? NULL : wr_format("%s/%s", folder, names[i]->d_name);
    if (!s) s = path ? add_file(rules, path) : out_of_memory();
    free(path);
    free(names[i]);
  }
  free(names);
  return s;
}

static int by_number(const void *left, const void *right)
{
  const wr_rule *a = left, *b = right;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return strcmp(a->id, b->id);
}

uint64_t wr_rules_hash(uint64_t hash)
{
  for (const char *text = wr_rules_text; *text; text += strlen(text) + 1)
    hash = wr_hash_text(hash, text);
  return hash;
}

weir_status wr_rules_load(wr_rules *out, const char *folder)
{
  *out = (wr_rules){0};
  weir_status s = WEIR_OK;
  for (const char *text = wr_rules_text; !s && *text; text += strlen(text) + 1)
    s = add_text(out, NULL, text);
  if (!s && folder) s = add_folder(out, folder);
  if (s) wr_rules_free(out);
  if (out->count) qsort(out->rule, out->count, sizeof(*out->rule), by_number);
  return s;
}

void wr_rules_free(wr_rules *rules)
{
  for (size_t i = 0; i < rules->count; i++)
    rule_free(&rules->rule[i]);
  free(rules->rule);
  *rules = (wr_rules){0};
}

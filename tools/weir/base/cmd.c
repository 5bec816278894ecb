/* cmd.c: options, messages, siblings: what every subcommand needs and none is about. */
#include "tools/weir/base/cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "core/base/image.h"
#include "core/base/status.h"
#include "tools/weir/base/guess.h"
#include "reports/base/escape.h"
#include "reports/base/util.h"

/* ---- messages -------------------------------------------------------------------------------- */

static const char *log_path; /* NULL: stderr */

void cmd_log_to(const char *path)
{
  log_path = path;
}

/* In a folder that others may write in, the log's name may be a link of theirs, or their file: then
 * nothing is logged. */
static FILE *open_log(void)
{
  struct stat st;
  int fd =
      open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
           0600);
  if (fd < 0) return NULL;
  if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1)
    return fdopen(fd, "a");
  (void)close(fd);
  return NULL;
}

static void print_message(const char *format, va_list args)
{
  char text[2048];
  FILE *to = log_path ? open_log() : stderr;
  if (!to) return;
  (void)vsnprintf(text, sizeof text, format, args);
  char *shown = wr_show_unseen(wr_text(text, sizeof text, true));
  (void)fprintf(to, "weir: %s\n",
                shown ? shown : ""); /* one write: lines of several processes stay whole */
  free(shown);
  if (to != stderr) (void)fclose(to);
}

void cmd_say(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  print_message(format, args);
  va_end(args);
}

/* The processor a program is built for where that is why it cannot run, else NULL. */
static const char *foreign_processor(const char *program, const struct utsname *own)
{
  char path[PATH_MAX];
  const char *name = NULL;
  if (image_find(path, sizeof path, program, getenv("PATH"))) name = image_processor(path);
  return name && *name && strcmp(name, own->machine) != 0 ? name : NULL;
}

int cmd_cannot_run(const char *program, int error)
{
  struct utsname own;
  const char *processor = NULL;
  if (error == ENOEXEC && uname(&own) == 0) processor = foreign_processor(program, &own);
  if (processor)
    cmd_say("cannot run '%s': it is built for %s, and this machine is %s.", program, processor,
            own.machine);
  else
    cmd_say("cannot run '%s': %s.", program, strerror(error));
  return error == ENOENT || error == ENOTDIR ? CMD_NOT_FOUND : CMD_CANNOT_RUN;
}

int cmd_exec(char **argv)
{
  char path[PATH_MAX];
  if (image_find(path, sizeof path, argv[0], getenv("PATH")) && image_processor(path))
    (void)execv(path, argv);
  else
    (void)execvp(argv[0], argv);
  return errno;
}

int cmd_usage(const cmd *c, const char *format, ...)
{
  char text[1024];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (c)
    cmd_say("%s (see 'weir help %s').", text, c->name);
  else
    cmd_say("%s (see 'weir help').", text);
  return CMD_USAGE;
}

int cmd_failed(void)
{
  cmd_say("%s.", weir_error_message());
  return CMD_FAILED;
}

bool cmd_chatty(void)
{
  static int chatty = -1;
  if (chatty < 0) chatty = isatty(STDERR_FILENO);
  return chatty && !log_path;
}

/* ---- memory and text ------------------------------------------------------------------------- */

static void *check_memory(void *p)
{
  if (p) return p;
  cmd_say("out of memory.");
  exit(CMD_RUN_FAILED);
}

void *cmd_alloc(size_t bytes)
{
  return check_memory(calloc(1, bytes));
}

void *cmd_grow(void *array, unsigned *room, unsigned count, size_t size)
{
  if (count < *room) return array;
  *room = *room ? *room * 2 : 16;
  return check_memory(reallocarray(array, *room, size));
}

char *cmd_format(const char *format, ...)
{
  va_list args;
  char *text = NULL;
  va_start(args, format);
  if (vasprintf(&text, format, args) < 0) text = NULL;
  va_end(args);
  return check_memory(text);
}

bool cmd_number(const char *text, long low, long high, long *out)
{
  char *end;
  if (*text < '0' || *text > '9') return false;
  errno = 0;
  *out = strtol(text, &end, 10);
  return !errno && !*end && *out >= low && *out <= high;
}

bool cmd_symbols(const cmd *c, const char *given, char **folder)
{
  struct stat file;
  *folder = given ? realpath(given, NULL) : NULL;
  if (!given || (*folder && stat(*folder, &file) == 0 && S_ISDIR(file.st_mode))) return true;
  free(*folder);
  cmd_usage(c, "--symbols takes a folder, not '%s'", given);
  return false;
}

char *cmd_grouped(char *buffer, uint64_t n)
{
  char digits[24];
  int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), at = 0;
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0) buffer[at++] = ',';
    buffer[at++] = digits[i];
  }
  buffer[at] = 0;
  return buffer;
}

char *cmd_sibling(const char *relative)
{
  char exe[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
  if (n <= 0) return NULL;
  exe[n] = 0;
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(exe, '/');
    if (!slash) return NULL;
    *slash = 0;
  }
  return cmd_format("%s/%s", exe, relative);
}

/* ---- help ------------------------------------------------------------------------------------ */

enum { HELP_COLUMNS = 80, OPTION_COLUMN = 29, USAGE_INDENT = 11 };

/* Bytes up to where a line may break: a space, not one within brackets, or the text's end. */
static size_t unbroken(const char *text)
{
  int within = 0;
  size_t bytes = 0;
  for (; text[bytes] && text[bytes] != '\n' && (within > 0 || text[bytes] != ' '); bytes++)
    within += (text[bytes] == '[') - (text[bytes] == ']');
  return bytes;
}

void cmd_print_folded(size_t column, size_t indent, const char *text)
{
  const char *before = "";
  while (*text) {
    size_t bytes = unbroken(text);
    if (column > indent && column + strlen(before) + bytes > HELP_COLUMNS) {
      printf("\n%*s", (int)indent, "");
      column = indent;
      before = "";
    }
    printf("%s%.*s", before, (int)bytes, text);
    column += strlen(before) + bytes;
    text += bytes;
    before = " ";
    if (*text == '\n' && (text[1] == '\n' || text[1] == ' ')) {
      size_t ends = strspn(text, "\n");
      printf("%.*s", (int)ends, text);
      text += ends;
      column = 0;
      before = "";
    } else if (*text)
      text++;
  }
  putchar('\n');
}

static void print_option(const cmd_option *o)
{
  char left[64], letter[6] = "";
  const char *value = o->value ? o->value : "";
  if (o->letter) (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
  (void)snprintf(left, sizeof left, "%s--%s%s%s%s", letter, o->name,
                 o->arg == CMD_ARG_NONE       ? ""
                 : o->arg == CMD_ARG_REQUIRED ? " "
                                              : "[=",
                 o->arg == CMD_ARG_NONE ? "" : value, o->arg == CMD_ARG_OPTIONAL ? "]" : "");
  int columns = printf("  %-26s ", left);
  cmd_print_folded((size_t)columns, OPTION_COLUMN, o->help);
}

void cmd_print_help(const cmd *c)
{
  cmd_print_folded((size_t)printf("usage: weir %s ", c->name), USAGE_INDENT, c->synopsis);
  printf("\n%s.\n", c->summary);
  if (c->details) {
    putchar('\n');
    cmd_print_folded(0, 0, c->details);
  }
  printf("\noptions:\n");
  for (const cmd_option *o = c->options; o && o->name; o++)
    print_option(o);
  printf("  %-26s %s\n", "-h, --help", "print this help");
}

typedef struct parse {
  const cmd *c;
  int argc, at;
  char **argv;
  cmd_on_option on_option;
  void *context;
  bool helped;
} parse;

/* Hands one option over. `given`: value written with it, NULL none; `shown`: as the user wrote it.
 */
static bool take_option(parse *p, const cmd_option *o, const char *given, const char *shown)
{
  if (o->arg == CMD_ARG_NONE && given) {
    cmd_usage(p->c, "option '%s' takes no value", shown);
    return false;
  }
  if (o->arg == CMD_ARG_REQUIRED && !given) {
    if (p->at + 1 >= p->argc) {
      cmd_usage(p->c, "option '%s' needs a value: %s", shown, o->value);
      return false;
    }
    given = p->argv[++p->at];
  }
  char *member = o->sets ? (char *)p->context + o->sets - 1 : NULL;
  if (!member) return p->on_option(p->c, (size_t)(o - p->c->options), given, p->context);
  if (o->arg == CMD_ARG_NONE)
    *(bool *)(void *)member = true;
  else
    *(const char **)(void *)member = given;
  return true;
}

/* `name`: of the option, as far as it can be told from a value. */
static bool refuse_option(const cmd *c, const char *word, const char *name)
{
  guess g = {.word = name};
  for (const cmd_option *o = c->options; o && o->name; o++)
    guess_offer(&g, o->name);
  guess_offer(&g, "help");
  char *hint = guess_hint(&g, "--");
  cmd_usage(c, "weir %s has no option '%s'%s", c->name, word, hint);
  free(hint);
  return false;
}

static bool take_long(parse *p, const char *word)
{
  char name[64];
  size_t n = strcspn(word + 2, "=");
  const char *value = word[2 + n] ? word + 3 + n : NULL;
  if (n < sizeof name) {
    memcpy(name, word + 2, n);
    name[n] = 0;
    if (!strcmp(name, "help")) return p->helped = true;
    for (const cmd_option *o = p->c->options; o && o->name; o++) {
      if (strcmp(o->name, name) != 0) continue;
      char shown[72];
      (void)snprintf(shown, sizeof shown, "--%s", name);
      return take_option(p, o, value, shown);
    }
  }
  return refuse_option(p->c, word, n < sizeof name ? name : word + 2);
}

static bool take_short(parse *p, const char *word)
{
  char shown[] = {'-', word[1], 0};
  if (!strcmp(word, "-h")) return p->helped = true;
  for (const cmd_option *o = p->c->options; o && o->name; o++)
    if (o->letter == word[1]) return take_option(p, o, word[2] ? word + 2 : NULL, shown);
  cmd_usage(p->c, "weir %s has no option '%s'", p->c->name, word);
  return false;
}

bool cmd_take_format(const cmd *c, const char *value, bool *json)
{
  *json = !strcmp(value, "json");
  if (*json || !strcmp(value, "text")) return true;
  cmd_usage(c, "there is no format '%s': text or json", value);
  return false;
}

int cmd_parse(const cmd *c, int argc, char **argv, bool stop_at_word, cmd_on_option on_option,
              void *context)
{
  parse p = {c, argc, 1, argv, on_option, context, false};
  char **operands = cmd_alloc(((size_t)argc + 1) * sizeof *operands);
  int count = 0;
  bool good = true;
  for (; p.at < argc && good && !p.helped; p.at++) {
    char *word = argv[p.at];
    if (!strcmp(word, "--")) {
      p.at++;
      break;
    }
    if (word[0] == '-' && word[1] == '-')
      good = take_long(&p, word);
    else if (word[0] == '-' && word[1])
      good = take_short(&p, word);
    else if (stop_at_word)
      break;
    else
      operands[count++] = word;
  }
  if (p.helped) cmd_print_help(c);
  while (p.at < argc)
    operands[count++] = argv[p.at++];
  for (int i = 0; i < count; i++)
    argv[argc - count + i] = operands[i];
  free(operands);
  return !good ? -1 : p.helped ? 0 : argc - count;
}

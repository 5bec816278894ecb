/* control.c: the answering side of control.h: which handler answers a request, whose words are
 * decoded. How clients are served is peers.c's. */
#include "tools/weir/collect/control.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/weir/base/cmd.h"
#include "tools/weir/collect/peers.h"

enum { BACKLOG = 128, VERBS = 16 };

typedef struct verb {
  const char *name; /* borrowed */
  control_handler handler;
  void *context;
} verb;

struct control {
  const char *dir; /* borrowed */
  bool bound;      /* the socket's name is there */
  peers *peers;
  verb verbs[VERBS];
};

_Static_assert((int)CONTROL_LINE == (int)PEERS_REQUEST, "a request is a line");

/* ---- a request ------------------------------------------------------------------------------- */

/* Returns the value of a hexadecimal digit, -1: it is none. */
static int digit_of(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Decodes a word in place. Returns false when it is not well formed, or has a NUL in it. */
static bool decode_word(char *word)
{
  char *to = word;
  for (const char *at = word; *at; at++) {
    if (*at != '%') {
      *to++ = *at;
      continue;
    }
    int high = digit_of(at[1]), low = high < 0 ? -1 : digit_of(at[2]);
    if (low < 0 || !(high << 4 | low)) return false;
    *to++ = (char)(high << 4 | low);
    at += 2;
  }
  *to = 0;
  return true;
}

/* Cuts a line into words. Returns how many; 0: it is no request. */
static unsigned cut_words(char *line, char *words[CONTROL_WORDS])
{
  unsigned count = 0;
  for (char *at = line; at;) {
    char *blank = strchr(at, ' ');
    if (blank) *blank = 0;
    if (count == CONTROL_WORDS || !*at || !decode_word(at)) return 0;
    words[count++] = at;
    at = blank ? blank + 1 : NULL;
  }
  return count;
}

static const verb *find_verb(const control *c, const char *name)
{
  for (int i = 0; i < VERBS; i++)
    if (c->verbs[i].handler && !strcmp(c->verbs[i].name, name)) return &c->verbs[i];
  return NULL;
}

/* Prints what the request's handler answers. Returns whether it did what was asked. */
static bool answer_words(const control *c, char *line, FILE *out)
{
  char *words[CONTROL_WORDS];
  unsigned count = cut_words(line, words);
  const verb *v = count ? find_verb(c, words[0]) : NULL;
  if (v) return v->handler(v->context, out, count - 1, words + 1);
  (void)fputs(count ? "this collector does not serve that request\n" : "this is no request\n", out);
  return false;
}

static size_t line_length(const char *text, size_t bytes)
{
  const char *newline = memchr(text, '\n', bytes);
  return newline ? (size_t)(newline - text) + 1 : 0;
}

static char *answer_line(void *context, char *line, size_t bytes, size_t *reply_bytes)
{
  char *text = NULL, *reply = NULL;
  size_t text_bytes = 0;
  line[bytes - 1] = 0;
  if (memchr(line, 0, bytes - 1)) return NULL;
  FILE *out = open_memstream(&text, &text_bytes);
  if (!out) return NULL;
  bool good = answer_words(context, line, out);
  bool whole = !ferror(out);
  if (fclose(out) == 0 && whole) reply = cmd_format("%s\n%s", good ? "ok" : "no", text);
  free(text);
  if (reply) *reply_bytes = strlen(reply);
  return reply;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

/* The folder's path may be longer than an address has room for: it is given by a descriptor. */
static bool bind_in(control *c, int listener)
{
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int folder = open(c->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/" CONTROL_SOCKET,
                 folder);
  c->bound = bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
             fchmodat(folder, CONTROL_SOCKET, 0600, 0) == 0;
  (void)close(folder);
  return c->bound;
}

control *control_new(const char *dir)
{
  control *c = cmd_alloc(sizeof *c);
  const peers_rules rules = {peers_is_own, line_length, answer_line, c};
  c->dir = dir;
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener >= 0 && bind_in(c, listener) && listen(listener, BACKLOG) == 0)
    c->peers = peers_new(listener, &rules);
  else if (listener >= 0)
    (void)close(listener);
  if (c->peers) return c;
  control_free(c);
  return NULL;
}

int control_fd(const control *c)
{
  return peers_fd(c->peers);
}

void control_on(control *c, const char *name, control_handler handler, void *context)
{
  verb *free_one = NULL;
  for (int i = VERBS; i-- > 0;) {
    verb *v = &c->verbs[i];
    if (!v->handler) free_one = v;
    if (!v->handler || strcmp(v->name, name) != 0) continue;
    *v = (verb){name, handler, context};
    return;
  }
  if (free_one) *free_one = (verb){name, handler, context};
}

void control_serve(control *c)
{
  peers_serve(c->peers);
}

void control_free(control *c)
{
  if (!c) return;
  peers_free(c->peers);
  if (c->bound) {
    char *name = cmd_format("%s/" CONTROL_SOCKET, c->dir);
    (void)unlink(name);
    free(name);
  }
  free(c);
}

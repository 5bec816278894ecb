/* trace_name.c: a pattern is copied byte by byte; each placeholder appends its text. The number of
 * %n comes last: a name is made with each in turn until nothing is there. */
#include "core/base/trace_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/rank.h"
#include "core/base/require.h"

enum { MOST_NUMBERS = 100000, VARIABLE_BYTES = 256, HOST_BYTES = 256 };

/* A job's number under its scheduler; the first is for those that have none. */
static const char *const job_variables[] = {"WEIR_JOB",  "SLURM_JOB_ID", "PBS_JOBID",
                                            "LSB_JOBID", "JOB_ID",       "FLUX_JOB_ID"};

typedef struct trace_name {
  char *out;
  size_t used, room;
  uint32_t pid;
  unsigned number; /* of %n */
  bool numbered;   /* there was one */
} trace_name;

static weir_status append(trace_name *n, const char *text, size_t bytes)
{
  if (bytes >= n->room - n->used)
    return fail_invalid("the name of the trace would have %zu bytes or more", n->room);
  memcpy(n->out + n->used, text, bytes);
  n->used += bytes;
  n->out[n->used] = 0;
  return WEIR_OK;
}

static weir_status append_text(trace_name *n, const char *text)
{
  return append(n, text, strlen(text));
}

static weir_status append_number(trace_name *n, uint32_t number)
{
  char text[16];
  (void)snprintf(text, sizeof text, "%u", number);
  return append_text(n, text);
}

static weir_status append_host(trace_name *n)
{
  char host[HOST_BYTES] = "";
  if (gethostname(host, sizeof host - 1) || !*host)
    return fail_invalid("%%h in the name of the trace: this host has no name");
  return append_text(n, host);
}

static weir_status append_rank(trace_name *n)
{
  uint32_t rank = launched_rank();
  if (!rank)
    return fail_invalid("%%r in the name of the trace: no launcher has given this process a rank "
                        "(WEIR_RANK may)");
  return append_number(n, rank - 1);
}

static weir_status append_job(trace_name *n)
{
  for (size_t i = 0; i < sizeof job_variables / sizeof *job_variables; i++) {
    const char *text = getenv(job_variables[i]);
    if (text && *text) return append_text(n, text);
  }
  return fail_invalid("%%j in the name of the trace: no scheduler has given this process a job "
                      "(WEIR_JOB may)");
}

/* `*at`: the byte after the q; afterwards the closing brace. */
static weir_status append_variable(trace_name *n, const char **at)
{
  char name[VARIABLE_BYTES];
  const char *end = **at == '{' ? strchr(*at, '}') : NULL;
  size_t bytes = end ? (size_t)(end - *at - 1) : 0;
  if (!bytes || bytes >= sizeof name)
    return fail_invalid("%%q in the name of the trace takes a variable: %%q{VAR}");
  memcpy(name, *at + 1, bytes);
  name[bytes] = 0;
  *at = end;
  const char *value = getenv(name);
  if (!value) return fail_invalid("%%q{%s} in the name of the trace: there is no %s", name, name);
  return append_text(n, value);
}

/* `*at`: the byte after the percent sign; afterwards the last of the placeholder. */
static weir_status append_placeholder(trace_name *n, const char **at)
{
  switch (**at) {
  case '%':
    return append_text(n, "%");
  case 'h':
    return append_host(n);
  case 'p':
    return append_number(n, n->pid);
  case 'r':
    return append_rank(n);
  case 'j':
    return append_job(n);
  case 'n':
    n->numbered = true;
    return append_number(n, n->number);
  case 'q':
    (*at)++;
    return append_variable(n, at);
  default:
    return fail_invalid("'%%%.1s' in the name of the trace is not known: %%h, %%p, %%r, %%j, "
                        "%%q{VAR} and %%n are; a percent sign is %%%%",
                        *at);
  }
}

static weir_status expand_with(trace_name *n, const char *pattern)
{
  n->used = 0;
  n->out[0] = 0;
  for (const char *at = pattern; *at; at++) {
    weir_status st;
    if (*at == '%') {
      at++;
      st = append_placeholder(n, &at);
    } else {
      st = append(n, at, 1);
    }
    if (st) return st;
  }
  return WEIR_OK;
}

weir_status trace_name_expand(char *out, size_t room, const char *pattern, uint32_t pid)
{
  trace_name n = {.out = out, .room = room, .pid = pid};
  for (n.number = 1; n.number < MOST_NUMBERS; n.number++) {
    struct stat info;
    TRY(expand_with(&n, pattern));
    if (!n.numbered || (lstat(out, &info) < 0 && errno == ENOENT)) return WEIR_OK;
  }
  return fail_invalid("%%n in the name of the trace: all numbers below %d are taken", MOST_NUMBERS);
}

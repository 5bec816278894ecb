/* loader_run.c: see loader_run.h. */
#include "tests/interpose/loader_run.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/trace/api.h"
#include "core/trace/spool.h"

enum { KEPT = 16, MOST_ENVIRONMENT = 64, MOST_SPOOLS = 1000 };

static char folder[64];
static char *kept[KEPT]; /* outputs of runs, freed at the end */
static unsigned kept_count;

static const char *path_in_directory(const char *directory, const char *file)
{
  static char paths[8][PATH_MAX + 512];
  static unsigned next;
  char *path = paths[next++ % 8];

  (void)snprintf(path, sizeof paths[0], "%s/%s", directory, file);
  return path;
}

const char *scratch(const char *file)
{
  return path_in_directory(folder, file);
}

const char *built(const char *file)
{
  const char *build = getenv("WEIR_BUILD");

  ck_assert_msg(build != NULL, "WEIR_BUILD is not set: run by tests/run");
  return path_in_directory(build, file);
}

void scratch_begin(void)
{
  const char *place = getenv("TMPDIR");

  (void)snprintf(folder, sizeof folder, "%s/weir-test-XXXXXX",
                 place && strlen(place) < 40 ? place : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ck_assert_int_eq(mkdir(scratch("spools"), 0700), 0);
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
  (void)s, (void)type, (void)at;
  return remove(path);
}

int remove_folder(const char *path)
{
  return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void scratch_end(void)
{
  remove_folder(folder);
  while (kept_count)
    free(kept[--kept_count]);
}

static char *read_file(const char *path, size_t *bytes)
{
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  size_t room = 0, n;

  ck_assert_ptr_nonnull(f);
  *bytes = 0;
  do {
    room = room * 2 + 4096;
    text = realloc(text, room + 1);
    n = fread(text + *bytes, 1, room - *bytes, f);
    *bytes += n;
  } while (n);
  text[*bytes] = 0;
  (void)fclose(f);
  ck_assert_uint_lt(kept_count, KEPT);
  return kept[kept_count++] = text;
}

/* The child: descriptors, environment, program. Descriptors above 2 that the test holds stay. */
static void become(enum preload how, const char *const *argv, const char *const *env)
{
  char preload[PATH_MAX + 16], spools[PATH_MAX + 16];
  const char *all[MOST_ENVIRONMENT] = {"LC_ALL=C", "HOME=/nonexistent"}, *const * e;
  const char *path = getenv("PATH");
  unsigned n = 2;
  char path_setting[4096];
  int in = open("/dev/null", O_RDONLY);
  int out = open(scratch("stdout"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  int err = open(scratch("stderr"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

  (void)snprintf(path_setting, sizeof path_setting, "PATH=%s", path ? path : "/usr/bin:/bin");
  all[n++] = path_setting;
  if (how != WITHOUT) {
    const char *library =
        how == WITH ? built("lib/libweir-preload.so") : scratch("lib/libweir-preload.so");
    (void)snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
    all[n++] = preload;
  }
  if (how == WITH) {
    (void)snprintf(spools, sizeof spools, "WEIR_SPOOL_DIR=%s", scratch("spools"));
    all[n++] = spools;
  }
  for (e = env; e && *e && n < MOST_ENVIRONMENT - 1; e++)
    all[n++] = *e;
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
  close(in);
  close(out);
  close(err);
  execvpe(argv[0], (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)all);
  _exit(126);
}

outcome run(enum preload how, const char *const *argv, const char *const *env)
{
  outcome o = {0};
  int status;

  (void)fflush(NULL);
  o.pid = fork();
  if (o.pid == 0) become(how, argv, env);
  ck_assert_int_gt(o.pid, 0);
  ck_assert_int_eq(waitpid(o.pid, &status, 0), o.pid);
  o.status = WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
  o.out = read_file(scratch("stdout"), &o.out_bytes);
  o.err = read_file(scratch("stderr"), &o.err_bytes);
  return o;
}

/* ---- counting ---- */

typedef struct counting {
  tally *t;
  unsigned spool;
  const char *api;
} counting;

static weir_status on_event(void *context, uint32_t thread, uint32_t tid, const trace_event *e)
{
  counting *c = context;
  const api_info *info = api_row(e->api);

  (void)thread, (void)tid;
  if (info && strcmp(info->name, c->api) == 0) {
    c->t->events++;
    c->t->of[c->spool % 32]++;
  } else {
    c->t->other++;
  }
  return WEIR_OK;
}

static weir_status on_extended(void *context, uint32_t thread, uint32_t tid,
                               const trace_event *head, const void *payload, size_t bytes)
{
  counting *c = context;

  (void)thread, (void)tid, (void)payload, (void)bytes;
  c->t->threads += head->kind == WEIR_EV_THREAD;
  c->t->notes += head->kind == WEIR_EV_NOTE;
  return WEIR_OK;
}

typedef struct found_spool {
  char path[PATH_MAX];
  uint64_t opened; /* CLOCK_MONOTONIC ns */
  uint32_t pid;
} found_spool;

static int by_opening(const void *a, const void *b)
{
  const found_spool *x = a, *y = b;

  return (x->opened > y->opened) - (x->opened < y->opened);
}

static unsigned find_spools(const char *directory, found_spool *out)
{
  char here
      [PATH_MAX]; /* path_in_directory() and its like lend their buffers for a short while only */
  DIR *d;
  unsigned n = 0;

  (void)snprintf(here, sizeof here, "%s", directory);
  d = opendir(here);
  if (!d) return 0;
  for (struct dirent *e; (e = readdir(d)) && n < MOST_SPOOLS;) {
    spool_reader *r;
    if (!strstr(e->d_name, WEIR_SPOOL_SUFFIX)) continue;
    (void)snprintf(out[n].path, sizeof out[n].path, "%s", path_in_directory(here, e->d_name));
    ck_assert_int_eq(spool_reader_open(&r, out[n].path, false), WEIR_OK);
    out[n].opened = spool_reader_header(r)->clock_first.mono_ns;
    out[n].pid = spool_reader_header(r)->pid;
    spool_reader_close(r);
    n++;
  }
  closedir(d);
  qsort(out, n, sizeof *out, by_opening);
  return n;
}

static void count_spool(tally *t, const found_spool *s, unsigned index, const char *api)
{
  counting c = {.t = t, .spool = index, .api = api};
  spool_visitor v = {.context = &c, .event = on_event, .extended = on_extended};
  spool_reader *r;
  const spool_header *h;
  spool_damage damage;

  ck_assert_int_eq(spool_reader_open(&r, s->path, false), WEIR_OK);
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  h = spool_reader_header(r);
  damage = spool_reader_damage(r);
  t->closed += atomic_load(&h->closed) == 1;
  t->dropped += atomic_load(&h->dropped);
  t->forks_begun += atomic_load(&h->forks_begun);
  t->forks_done += atomic_load(&h->forks_done);
  t->damage += damage.chunks + damage.torn + damage.bytes_cut;
  spool_reader_close(r);
}

tally count(const char *directory, const char *api)
{
  found_spool *all = calloc(MOST_SPOOLS, sizeof *all);
  tally t = {0};

  ck_assert_ptr_nonnull(all);
  t.spools = find_spools(directory, all);
  for (unsigned i = 0; i < t.spools; i++) {
    bool seen = false;
    for (unsigned j = 0; j < i; j++)
      seen |= all[j].pid == all[i].pid;
    t.processes += !seen;
    count_spool(&t, &all[i], i, api);
  }
  free(all);
  return t;
}

tally count_spools(const char *api)
{
  return count(scratch("spools"), api);
}

/* nvtx_account.c: see nvtx_account.h. Its stacks are its own: nothing here knows the product's. */
#include "tests/interpose/nvtx_account.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/spool.h"

enum { MOST_LINES = 8192, MOST_NAMES = 8192, MOST_THREADS = 64, MOST_OPEN = 1024, KEY = 1200 };

typedef struct line {
  char *key;
  unsigned count;
} line;

typedef struct thread_account {
  uint32_t serial;
  char *name[MOST_NAMES];
  struct {
    uint64_t number;
    uint64_t name;
  } open[MOST_OPEN];
  unsigned opened;
} thread_account;

static line lines[MOST_LINES];
static unsigned line_count, name_kinds[16], range_names;
static thread_account threads[MOST_THREADS];
static unsigned thread_count;

static uint64_t deep_ranges;

static void add_line(const char *what, const char *key)
{
  char text[KEY + 32];
  (void)snprintf(text, sizeof text, "%s %s", what, key);
  for (unsigned i = 0; i < line_count; i++)
    if (strcmp(lines[i].key, text) == 0) {
      lines[i].count++;
      return;
    }
  ck_assert_uint_lt(line_count, MOST_LINES);
  lines[line_count].key = strdup(text);
  lines[line_count++].count = 1;
}

static thread_account *thread_of(uint32_t serial)
{
  for (unsigned i = 0; i < thread_count; i++)
    if (threads[i].serial == serial) return &threads[i];
  ck_assert_uint_lt(thread_count, MOST_THREADS);
  memset(&threads[thread_count], 0, sizeof threads[0]);
  threads[thread_count].serial = serial;
  return &threads[thread_count++];
}

static const char *name_at(const thread_account *t, uint64_t number)
{
  ck_assert_msg(number > 0 && number < MOST_NAMES && t->name[number], "no name %llu",
                (unsigned long long)number);
  return t->name[number];
}

static void close_range(thread_account *t, uint64_t number)
{
  unsigned i = 0;
  while (i < t->opened && t->open[i].number != number)
    i++;
  ck_assert_msg(i < t->opened, "a pop of range %llu, which is not open",
                (unsigned long long)number);
  memmove(&t->open[i], &t->open[i + 1], (t->opened - i - 1) * sizeof t->open[0]);
  t->opened--;
}

static weir_status on_event(void *context, uint32_t serial, uint32_t tid, const trace_event *e)
{
  thread_account *t = thread_of(serial);
  (void)context, (void)tid;
  if (e->kind != WEIR_EV_RANGE) {
    if (t->opened)
      add_line("call", name_at(t, t->open[t->opened - 1].name));
    else
      add_line("call", "none");
    return WEIR_OK;
  }
  if (e->range_fact == WEIR_RANGE_PUSH) {
    add_line("range", name_at(t, e->a));
    ck_assert_uint_lt(t->opened, MOST_OPEN);
    t->open[t->opened].number = e->bytes;
    t->open[t->opened++].name = e->a;
  } else if (e->range_fact == WEIR_RANGE_POP) {
    close_range(t, e->bytes);
  } else if (e->range_fact == WEIR_RANGE_START) {
    add_line("span", name_at(t, e->a));
  } else if (e->range_fact == WEIR_RANGE_MARK) {
    add_line("mark", name_at(t, e->a));
  }
  return WEIR_OK;
}

static weir_status on_extended(void *context, uint32_t serial, uint32_t tid,
                               const trace_event *head, const void *payload, size_t bytes)
{
  thread_account *t = thread_of(serial);
  range_name name;
  char key[KEY];
  (void)context, (void)tid;
  if (head->kind == WEIR_EV_NAME && head->b < 16) name_kinds[head->b]++;
  if (head->kind == WEIR_EV_NAME && head->b >= WEIR_NAME_OS_THREAD) {
    (void)snprintf(key, sizeof key, "%u:%.*s of %u bytes", (unsigned)head->b, (int)bytes,
                   (const char *)payload, (unsigned)head->stream);
    add_line("name", key);
  }
  if (head->kind != WEIR_EV_RANGE_NAME) return WEIR_OK;
  range_names++;
  ck_assert_uint_ge(bytes, sizeof name);
  memcpy(&name, payload, sizeof name);
  const char *text = (const char *)payload + sizeof name;
  ck_assert_uint_eq(bytes, sizeof name + name.domain_bytes + name.text_bytes);
  (void)snprintf(key, sizeof key, "%.*s:%.*s", name.domain_bytes, text, name.text_bytes,
                 text + name.domain_bytes);
  ck_assert_uint_lt(head->a, MOST_NAMES);
  t->name[head->a] = strdup(key);
  return WEIR_OK;
}

static void read_spool(const char *path)
{
  spool_visitor v = {.event = on_event, .extended = on_extended};
  spool_reader *r;
  thread_count = 0;
  ck_assert_int_eq(spool_reader_open(&r, path, false), WEIR_OK);
  ck_assert_int_eq(spool_drain(r, &v, true), WEIR_OK);
  spool_damage damage = spool_reader_damage(r);
  ck_assert_uint_eq(damage.chunks + damage.torn + damage.bytes_cut, 0);
  ck_assert_uint_eq(atomic_load(&spool_reader_header(r)->dropped), 0);
  deep_ranges += atomic_load(&spool_reader_header(r)->deep_ranges);
  spool_reader_close(r);
  for (unsigned i = 0; i < thread_count; i++) {
    while (threads[i].opened)
      add_line("open", name_at(&threads[i], threads[i].open[--threads[i].opened].name));
    for (unsigned n = 0; n < MOST_NAMES; n++)
      free(threads[i].name[n]);
  }
}

static int by_text(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *sorted_lines(const char *text)
{
  static char out[1 << 20];
  char *copy = strdup(text), *at[MOST_LINES], *save = NULL;
  size_t n = 0, used = 0;
  for (char *l = strtok_r(copy, "\n", &save); l && n < MOST_LINES; l = strtok_r(NULL, "\n", &save))
    at[n++] = l;
  qsort(at, n, sizeof at[0], by_text);
  out[0] = 0;
  for (size_t i = 0; i < n; i++)
    used += (size_t)snprintf(out + used, sizeof out - used, "%s\n", at[i]);
  free(copy);
  return out;
}

const char *nvtx_account(const char *directory)
{
  static char text[1 << 20];
  size_t used = 0;
  struct dirent *e;
  DIR *d = opendir(directory);
  ck_assert_ptr_nonnull(d);
  line_count = range_names = 0;
  deep_ranges = 0;
  memset(name_kinds, 0, sizeof name_kinds);
  while ((e = readdir(d))) {
    char path[600];
    size_t bytes = strlen(e->d_name);
    if (bytes < 6 || strcmp(e->d_name + bytes - 6, ".spool") != 0) continue;
    (void)snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
    read_spool(path);
  }
  closedir(d);
  text[0] = 0;
  for (unsigned i = 0; i < line_count; i++) {
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "%s %u\n", lines[i].key, lines[i].count);
    free(lines[i].key);
  }
  return sorted_lines(text);
}

unsigned nvtx_names(unsigned kind)
{
  return name_kinds[kind];
}

unsigned nvtx_range_names(void)
{
  return range_names;
}

uint64_t nvtx_deep_ranges(void)
{
  return deep_ranges;
}

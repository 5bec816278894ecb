/* live.c: see live.h. */
#include "tools/weir/collect/live.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tools/weir/base/cmd.h"

typedef struct led {
  char *path;           /* ours */
  spool_reader *reader; /* NULL: it cannot be read, and is not tried again */
  wr_tally *tally;
  bool whole;
  uint64_t swept_ns; /* CLOCK_MONOTONIC of its last commit, which drops what is old */
} led;

#define SWEEP_NS UINT64_C(1000000000)

struct live {
  led *spools;
  unsigned count, room;
  void (*ended)(void *context, const live_process *p);
  void *context;
};

live *live_new(void)
{
  return calloc(1, sizeof(live));
}

static void led_clear(led *x)
{
  wr_tally_close(x->tally);
  spool_reader_close(x->reader);
  free(x->path);
}

void live_free(live *l)
{
  if (!l) return;
  for (unsigned i = 0; i < l->count; i++)
    led_clear(&l->spools[i]);
  free(l->spools);
  free(l);
}

static led *find_led(live *l, const char *spool)
{
  for (unsigned i = 0; i < l->count; i++)
    if (!strcmp(l->spools[i].path, spool)) return &l->spools[i];
  return NULL;
}

/* Whether nothing of the spool was handed back that its state lacks. Bytes that went back to the
 * system, or a chunk in its second use, are signs of it. */
static bool is_whole(const led *x)
{
  const wr_tally_facts *facts = wr_table_at(&wr_tally_look(x->tally)->facts, 0);
  return facts->events || !spool_reader_reused(x->reader);
}

/* A reader that may write asks the program for its stacks anew where they were missed, and does
 * nothing else: chunks are handed back by others alone. */
static led *begin_led(live *l, const char *spool)
{
  const wr_tally_options options = {.in_memory = true};
  l->spools = cmd_grow(l->spools, &l->room, l->count, sizeof *l->spools);
  led *x = &l->spools[l->count++];
  *x = (led){.path = cmd_format("%s", spool)};
  if (spool_reader_open(&x->reader, spool, true) != WEIR_OK) {
    x->reader = NULL;
    return x;
  }
  if (wr_tally_open(&x->tally, x->reader, spool, &options) != WEIR_OK) {
    x->tally = NULL;
    spool_reader_close(x->reader);
    x->reader = NULL;
    return x;
  }
  x->whole = is_whole(x);
  if (!x->whole) (void)spool_reader_renew_stacks(x->reader);
  return x;
}

static bool take_led(led *x, bool final)
{
  const uint64_t now = clock_monotonic_ns();
  if (!x->tally || wr_tally_drain(x->tally, final) != WEIR_OK) return false;
  if (now - x->swept_ns < SWEEP_NS) return true;
  x->swept_ns = now;
  return wr_tally_commit(x->tally) == WEIR_OK;
}

bool live_take(live *l, const char *spool)
{
  led *x = find_led(l, spool);
  if (!x) x = begin_led(l, spool);
  return take_led(x, false);
}

static live_process shown(led *x, bool ended)
{
  const spool_header *header = spool_reader_coverage(x->reader);
  return (live_process){.pid = (pid_t)header->pid,
                        .spool = x->path,
                        .header = header,
                        .state = wr_tally_look(x->tally),
                        .clock = spool_reader_clock(x->reader),
                        .whole = x->whole,
                        .ended = ended};
}

void live_end(live *l, const char *spool)
{
  led *x = find_led(l, spool);
  if (!x) x = begin_led(l, spool);
  if (take_led(x, true) && l->ended) {
    const live_process p = shown(x, true);
    l->ended(l->context, &p);
  }
  led_clear(x);
  *x = l->spools[--l->count];
}

void live_on_end(live *l, void (*ended)(void *context, const live_process *p), void *context)
{
  l->ended = ended;
  l->context = context;
}

void live_each(live *l, void (*show)(void *context, const live_process *p), void *context)
{
  for (unsigned i = 0; i < l->count; i++) {
    if (!l->spools[i].tally) continue;
    const live_process p = shown(&l->spools[i], false);
    show(context, &p);
  }
}

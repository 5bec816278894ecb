/* recorder.c: see recorder.h.
 *
 * Room. A ring is left as much room as comes between some looks at it, and a part of it at least: for
 * what a program writes all of a sudden, or while a dump is copied. What is taken at a time is half
 * of that part, so that the state is written some times a second at the most. */
#include "tools/weir/collect/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/options.h"
#include "core/trace/spool.h"
#include "reports/tally/tally.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/collect/dump.h"

#define SECOND_NS UINT64_C(1000000000)
#define MEND_NS   SECOND_NS
#define APART_NS  (60 * SECOND_NS)
#define RETRY_NS  SECOND_NS

enum {
  PARTS = 8,     /* of what is kept: one is room at least */
  LOOKS = 4,     /* between which what comes has room */
  SOON_MS = 5,   /* between two looks while much comes */
  USUAL_MS = 20, /* or something, at a ring of KEEP_USUAL */
  FAILURES = 32, /* threads whose allocations have failed, at a time */
  USUAL_DUMPS = 5,
  MOST_DUMPS = 1000,
  OUT_OF_MEMORY = 2,
  CALM_PERCENT = 80, /* a device below is one that may cross --dump-at again */
  DEVICES = 32,
  BUS_TEXT = 32
};

/* An allocation that a thread was not given. */
typedef struct failure {
  uint64_t bytes, due_ns;
  uint32_t thread; /* 0: none */
} failure;

struct ring {
  char *path;            /* ours */
  spool_reader *reader;  /* takes the oldest */
  wr_tally *tally;       /* of them */
  spool_reader *leading; /* looks at the newest */
  uint64_t events;       /* looked at in this poll */
  uint64_t all_events;   /* and in all */
  uint64_t burst;        /* bytes that came between two looks, the most of late */
  uint64_t committed_ns; /* when it was last */
  uint64_t dumped_ns;    /* for a failed allocation; 0: never */
  failure failed[FAILURES];
  bool ended, stays;
  bool wanted;     /* ended so that it is dumped */
  unsigned dump;   /* that has it, once ended; 0: none so far */
  char reason[96]; /* for which it is wanted */
};

typedef struct watched_device {
  char bus[BUS_TEXT];
  bool crossed; /* and was not calm since */
} watched_device;

struct recorder {
  recorder_options options;
  char *dir;
  dumper *dumper;
  ring **rings;
  unsigned count, room;
  unsigned begun;    /* dumps, by themselves */
  uint64_t begun_ns; /* the latest; 0: none */
  uint64_t retry_ns; /* a dump could not be begun: not before */
  int pause_ms;      /* until the next look is due; 0: that is the caller\'s to choose */
  bool final;        /* no dump waits any longer */
  uint64_t events, dropped;
  int drop_errno;
  unsigned left_out; /* dumps */
  char newest[96];   /* reason of the latest of these */
  char asked[96];    /* reason of the dump that is due in this poll; "": none */
  watched_device device[DEVICES];
};

/* ---- options --------------------------------------------------------------------------------- */

weir_status recorder_read_dump_at(recorder_options *o, const char *name, const char *text)
{
  recorder_options read = *o;
  for (const char *at = text;; at++) {
    const size_t n = strcspn(at, ",");
    unsigned percent = 0;
    int used = 0;
    if (n == 4 && !strncmp(at, "exit", n))
      read.at_exit = true;
    else if (sscanf(at, "%3u%%%n", &percent, &used) == 1 && (size_t)used == n && *at != '-' &&
             *at != '+' && *at != ' ' && percent >= 1 && percent <= 100)
      read.dump_at = percent;
    else
      return weir_fail(WEIR_EINVAL, "%s=%s is not a part of a device's memory, as 90%%, or exit",
                       name, text);
    at += n;
    if (!*at) break;
  }
  *o = read;
  return WEIR_OK;
}

static void complain(weir_status st)
{
  if (st) cmd_message("%s; the default is used.", weir_error_message());
}

bool recorder_asked(recorder_options *o, const char *keep, int dumps, const char *dump_at)
{
  uint64_t number = USUAL_DUMPS;
  const char *text;
  *o = (recorder_options){0};
  if (keep)
    (void)keep_read(&o->keep, "--keep", keep); /* it was read before */
  else if ((text = getenv("WEIR_KEEP")) && *text)
    complain(keep_read(&o->keep, "WEIR_KEEP", text));
  if (dumps < 0 && (text = getenv("WEIR_DUMPS")) && *text)
    complain(option_number(&number, "WEIR_DUMPS", text, 0, MOST_DUMPS));
  o->dumps = dumps < 0 ? (unsigned)number : (unsigned)dumps;
  if (dump_at)
    (void)recorder_read_dump_at(o, "--dump-at", dump_at);
  else if ((text = getenv("WEIR_DUMP_AT")) && *text)
    complain(recorder_read_dump_at(o, "WEIR_DUMP_AT", text));
  return o->keep.bytes > 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* So that whoever finds the folder knows what lies in it. */
static bool make_mark(const char *dir)
{
  char *path = cmd_format("%s/" RECORDER_MARK, dir);
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) cmd_message("cannot make %s: %s.", path, strerror(errno));
  if (fd >= 0) (void)close(fd);
  free(path);
  return fd >= 0;
}

recorder *recorder_new(const char *dir, const char *output, const recorder_options *o,
                       collector_reap reap, void *context)
{
  if (!make_mark(dir)) return NULL;
  recorder *r = cmd_alloc(sizeof *r);
  *r = (recorder){.options = *o, .dir = cmd_format("%s", dir)};
  r->dumper = dumper_new(output, reap, context);
  clock_init();
  return r;
}

static void ring_free(ring *x)
{
  wr_tally_close(x->tally);
  spool_reader_close(x->reader);
  spool_reader_close(x->leading);
  free(x->path);
  free(x);
}

void recorder_free(recorder *r)
{
  if (!r) return;
  for (unsigned i = 0; i < r->count; i++)
    ring_free(r->rings[i]);
  dumper_free(r->dumper);
  free(r->rings);
  free(r->dir);
  free(r);
}

weir_status recorder_add(recorder *r, const char *spool, ring **out)
{
  ring *x = cmd_alloc(sizeof *x);
  *x = (ring){.path = cmd_format("%s", spool)};
  weir_status st = spool_reader_open(&x->reader, spool, true);
  if (!st) st = spool_reader_open(&x->leading, spool, false);
  if (!st) st = wr_tally_open(&x->tally, x->reader, spool, NULL);
  if (!st) st = wr_tally_commit(x->tally); /* so that a dump is known to be one */
  if (st) {
    ring_free(x);
    return st;
  }
  r->rings = cmd_grow(r->rings, &r->room, r->count, sizeof(void *));
  r->rings[r->count++] = *out = x;
  return WEIR_OK;
}

void recorder_drop(recorder *r, ring *x)
{
  char *state = cmd_format("%.*s" WR_TALLY_SUFFIX,
                           (int)(strlen(x->path) - (sizeof WEIR_SPOOL_SUFFIX - 1)), x->path);
  const spool_header *h = spool_reader_header(x->reader);
  r->dropped += atomic_load(&h->dropped);
  if (!r->drop_errno) r->drop_errno = (int)atomic_load(&h->drop_errno);
  if (!x->stays) {
    spool_reader_repay(x->reader, spool_reader_owes(x->reader));
    (void)unlink(state);
  }
  free(state);
  for (unsigned i = 0; i < r->count; i++)
    if (r->rings[i] == x) {
      r->rings[i] = r->rings[--r->count];
      break;
    }
  ring_free(x);
}

/* ---- looking at what comes ------------------------------------------------------------------- */

static void note_failure(ring *x, uint32_t thread, uint64_t bytes)
{
  failure *unused = NULL;
  for (failure *f = x->failed; f < x->failed + FAILURES; f++) {
    if (f->thread == thread) return; /* it asks again; the first counts */
    if (!f->thread && !unused) unused = f;
  }
  if (unused) *unused = (failure){bytes, clock_monotonic_ns() + MEND_NS, thread};
}

static void mend_failure(ring *x, uint32_t thread, uint64_t bytes)
{
  for (failure *f = x->failed; f < x->failed + FAILURES; f++)
    if (f->thread == thread && bytes >= f->bytes) f->thread = 0;
}

static weir_status look_at_event(void *context, uint32_t thread, uint32_t tid, const trace_event *e)
{
  ring *x = context;
  (void)tid;
  x->events++;
  if (e->kind != WEIR_EV_ALLOC || e->flags & WEIR_EVF_CAPTURE) return WEIR_OK;
  if (e->status == OUT_OF_MEMORY) note_failure(x, thread, e->bytes);
  if (!e->status) mend_failure(x, thread, e->bytes);
  return WEIR_OK;
}

static weir_status look_at_ring(ring *x, bool final)
{
  const spool_visitor look = {x, look_at_event, NULL};
  return spool_drain(x->leading, &look, final);
}

/* Whether an allocation has failed for good: not mended in time, or, at the end, not mended. */
static bool has_failed(ring *x, bool at_end, char *reason, size_t room)
{
  const uint64_t now = clock_monotonic_ns();
  for (failure *f = x->failed; f < x->failed + FAILURES; f++) {
    if (!f->thread || (!at_end && now < f->due_ns)) continue;
    (void)snprintf(reason, room, "allocation of %llu bytes failed", (unsigned long long)f->bytes);
    f->thread = 0;
    return true;
  }
  return false;
}

/* ---- taking what is old ---------------------------------------------------------------------- */

/* Ticks of the spool so long ago; 0: its clock is not ours. */
static uint64_t ticks_before(spool_reader *r, uint64_t ns)
{
  const spool_header *h = spool_reader_header(r);
  if (!ns || (int)h->clock_kind != clock_source_in_use) return 0;
  const clock_map map = spool_reader_clock(r);
  const uint64_t now = clock_ticks();
  const double ticks = map.ns_per_tick > 0 ? (double)ns / map.ns_per_tick : 0;
  return ticks < (double)now ? now - (uint64_t)ticks : 0;
}

/* Bytes of a ring that are to be free. */
static uint64_t room_of(const recorder *r, ring *x)
{
  const uint64_t keep = r->options.keep.bytes, came = x->events * sizeof(trace_event);
  x->burst = came > x->burst ? came : x->burst - x->burst / 16;
  const uint64_t room = x->burst * LOOKS > keep / PARTS ? x->burst * LOOKS : keep / PARTS;
  return room < keep / 2 ? room : keep / 2;
}

static void look_within(recorder *r, int ms)
{
  if (!r->pause_ms || r->pause_ms > ms) r->pause_ms = ms;
}

static void pause_for(recorder *r, const ring *x, uint64_t kept)
{
  const uint64_t keep = r->options.keep.bytes;
  const int usual = keep < KEEP_USUAL ? (int)(keep * USUAL_MS / KEEP_USUAL) : USUAL_MS;
  if (x->burst * LOOKS > keep / PARTS)
    look_within(r, SOON_MS);
  else if (x->events || kept > keep / 2)
    look_within(r, usual > SOON_MS ? usual : SOON_MS);
}

static weir_status take_old(recorder *r, ring *x)
{
  const uint64_t keep = r->options.keep.bytes, part = keep / PARTS, room = room_of(r, x);
  wr_tally_window window = {.bytes = UINT64_MAX,
                            .from = ticks_before(x->reader, r->options.keep.ns)};
  weir_status st = wr_tally_take_oldest(x->tally, &window, NULL);
  const uint64_t kept = spool_reader_kept(x->reader);
  pause_for(r, x, kept);
  if (!st && kept > keep - room) {
    window.bytes = keep - room - part / 2;
    st = wr_tally_take_oldest(x->tally, &window, NULL);
  }
  const uint64_t due = spool_reader_due(x->reader), now = clock_monotonic_ns();
  if (st || !due || (due < part / 2 && now - x->committed_ns < SECOND_NS)) return st;
  st = wr_tally_commit(x->tally);
  if (!st) x->committed_ns = now;
  return st;
}

/* ---- dumps ----------------------------------------------------------------------------------- */

/* Whether the next dump by itself may be made now; `end`: of something that waits. */
static bool may_dump(const recorder *r, bool end)
{
  const uint64_t now = clock_monotonic_ns();
  if (r->begun >= r->options.dumps || now < r->retry_ns) return false;
  return !r->begun_ns || now - r->begun_ns >= APART_NS || (end && r->final);
}

static void leave_out(recorder *r, const char *reason)
{
  r->left_out++;
  (void)snprintf(r->newest, sizeof r->newest, "%s", reason);
}

/* What is older than is kept is left out of a dump, too. Where that cannot be written the dump has
 * more. */
static void leave_old_out(const recorder *r, ring *x)
{
  const wr_tally_window window = {.bytes = UINT64_MAX,
                                  .from = ticks_before(x->reader, r->options.keep.ns)};
  if (window.from && wr_tally_take_oldest(x->tally, &window, NULL) == WEIR_OK)
    (void)wr_tally_commit(x->tally);
}

/* Of all spools but those whose end another dump has. Returns its number, 0: it was not made. */
static unsigned dump_rings(recorder *r, const char *reason)
{
  const char **spools = cmd_alloc((r->count + 1) * sizeof *spools);
  dump_request q = {.reason = reason, .requested_ns = clock_monotonic_ns(), .spools = spools};
  bool any_live = false;
  for (unsigned i = 0; i < r->count; i++) {
    ring *x = r->rings[i];
    if (x->ended && (!x->wanted || x->dump)) continue;
    leave_old_out(r, x);
    any_live = any_live || !x->ended;
    spools[q.count++] = x->path;
  }
  q.ended = !any_live;
  const unsigned number = q.count ? dumper_begin(r->dumper, &q) : 0;
  free(spools);
  for (unsigned i = 0; number && i < r->count; i++)
    if (r->rings[i]->wanted && !r->rings[i]->dump) r->rings[i]->dump = number;
  return number;
}

static bool dump_by_itself(recorder *r, const char *reason)
{
  if (!dump_rings(r, reason)) {
    r->retry_ns = clock_monotonic_ns() + RETRY_NS;
    return false;
  }
  r->begun++;
  r->begun_ns = clock_monotonic_ns();
  return true;
}

/* The first ring whose end waits for a dump. */
static ring *waiting_ring(const recorder *r)
{
  for (unsigned i = 0; i < r->count; i++)
    if (r->rings[i]->wanted && !r->rings[i]->dump && !r->rings[i]->stays) return r->rings[i];
  return NULL;
}

static void give_up_waiting(recorder *r)
{
  for (unsigned i = 0; i < r->count; i++) {
    ring *x = r->rings[i];
    if (!x->wanted || x->dump || x->stays) continue;
    leave_out(r, x->reason);
    x->wanted = false;
  }
}

static void dump_what_is_due(recorder *r)
{
  const ring *waits = waiting_ring(r);
  dumper_look(r->dumper, false);
  if (waits && r->begun >= r->options.dumps)
    give_up_waiting(r);
  else if (waits && may_dump(r, true))
    (void)dump_by_itself(r, waits->reason);
  if (!*r->asked) return;
  if (!may_dump(r, false) || !dump_by_itself(r, r->asked)) leave_out(r, r->asked);
  r->asked[0] = 0;
}

weir_status recorder_poll(recorder *r, uint64_t *events)
{
  weir_status first = WEIR_OK;
  r->pause_ms = 0;
  *events = 0;
  for (unsigned i = 0; i < r->count; i++) {
    ring *x = r->rings[i];
    if (x->ended) continue;
    x->events = 0;
    weir_status st = look_at_ring(x, false);
    if (!st) st = take_old(r, x);
    if (st && !first) first = st;
    *events += x->events;
    x->all_events += x->events;
    char reason[sizeof r->asked];
    if (!has_failed(x, false, reason, sizeof reason)) continue;
    memcpy(r->asked, reason, sizeof reason);
    x->dumped_ns = clock_monotonic_ns();
  }
  r->events += *events;
  dump_what_is_due(r);
  return first;
}

uint64_t recorder_events_of(const ring *x)
{
  return x->all_events;
}

int recorder_pause_ms(const recorder *r)
{
  return r->pause_ms;
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Whether it is one to look into; words what it is. */
static bool is_accident(importer_end_reason reason, int detail, char *text, size_t room)
{
  switch (reason) {
  case WEIR_END_SIGNAL:
    (void)snprintf(text, room, "signal %d", detail);
    return true;
  case WEIR_END_GONE:
    (void)snprintf(text, room, "end without exit");
    return true;
  case WEIR_END_EXIT:
    (void)snprintf(text, room, "exit %d", detail > 0 ? detail : 0);
    return detail > 0;
  default:
    (void)snprintf(text, room, "exit");
    return false;
  }
}

void recorder_end(recorder *r, ring *x, importer_end_reason reason, int detail)
{
  if (x->ended) return;
  x->events = 0;
  (void)look_at_ring(x, true);
  r->events += x->events;
  x->ended = true;
  x->wanted = is_accident(reason, detail, x->reason, sizeof x->reason);
  const bool dumped = x->dumped_ns && clock_monotonic_ns() - x->dumped_ns < APART_NS;
  if (reason == WEIR_END_EXIT && dumped) x->wanted = false; /* of that failure it ended */
  if (has_failed(x, true, x->reason, sizeof x->reason)) x->wanted = true;
  if (r->options.at_exit && reason == WEIR_END_EXIT && !dumped) x->wanted = true;
}

ring_end recorder_end_of(recorder *r, const ring *x)
{
  if (x->stays) return RING_STAYS;
  if (!x->wanted) return RING_GOES;
  if (!x->dump) return RING_WAITS;
  switch (dumper_state(r->dumper, x->dump)) {
  case DUMP_RUNS:
    return RING_WAITS;
  case DUMP_MADE:
    return RING_GOES;
  default:
    return RING_STAYS;
  }
}

void recorder_finish(recorder *r)
{
  r->final = true;
  r->retry_ns = 0;
  dump_what_is_due(r);
  dumper_look(r->dumper, true);
  for (unsigned i = 0; i < r->count; i++) {
    ring *x = r->rings[i];
    x->stays = x->wanted && dumper_state(r->dumper, x->dump) != DUMP_MADE;
  }
}

/* ---- what is asked and reported -------------------------------------------------------------- */

const char *recorder_ask(recorder *r)
{
  const unsigned number = dump_rings(r, "asked");
  return number ? dumper_trace(r->dumper, number) : NULL;
}

unsigned recorder_dumps(recorder *r)
{
  dumper_look(r->dumper, false);
  return dumper_made(r->dumper);
}

dump_state recorder_dump_state(recorder *r, const char *trace)
{
  dumper_look(r->dumper, false);
  return dumper_state_of(r->dumper, trace);
}

static watched_device *find_device(recorder *r, const char *bus)
{
  for (watched_device *d = r->device; d < r->device + DEVICES; d++) {
    if (!*d->bus) (void)snprintf(d->bus, sizeof d->bus, "%s", bus);
    if (!strcmp(d->bus, bus)) return d;
  }
  return NULL;
}

weir_status recorder_usage(recorder *r, const importer_usage *u)
{
  watched_device *d = find_device(r, u->bus);
  if (!d || !u->total || !r->options.dump_at) return WEIR_OK;
  const unsigned percent = (unsigned)((double)u->used * 100 / (double)u->total);
  const unsigned calm = r->options.dump_at < CALM_PERCENT ? r->options.dump_at : CALM_PERCENT;
  if (percent >= r->options.dump_at && !d->crossed) {
    d->crossed = true;
    (void)snprintf(r->asked, sizeof r->asked, "device %s in use to %u %%", u->bus, percent);
  } else if (percent < calm) {
    d->crossed = false;
  }
  return WEIR_OK;
}

bool recorder_busy(const recorder *r)
{
  return dumper_running(r->dumper) > 0;
}

void recorder_report(recorder *r)
{
  char text[32];
  if (r->dropped)
    cmd_message("%s events were dropped (%s): dumps have numbers that are lower bounds.",
                cmd_grouped(text, r->dropped),
                r->drop_errno == ENOBUFS ? "the program was faster than what it fills was taken; a "
                                           "larger --keep has more room"
                                         : spool_drop_reason(r->drop_errno));
  for (unsigned i = 0; i < r->count; i++)
    if (r->rings[i]->stays) {
      cmd_message("what was kept stays in %s: once there is room for it, run 'weir recover %s'.",
                  r->dir, r->dir);
      break;
    }
  if (r->left_out)
    cmd_message("%u %s not made, the newest for: %s; at most %u, 60 s apart (--dumps).",
                r->left_out, r->left_out == 1 ? "dump was" : "dumps were", r->newest,
                r->options.dumps);
  if (cmd_chatty() && !dumper_made(r->dumper) && !r->left_out)
    cmd_message("nothing of %s events was kept: the program ended by itself; --dump-at=exit keeps "
                "the last of them then, too.",
                cmd_grouped(text, r->events));
}

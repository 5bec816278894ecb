/* poll.c: see poll.h. */
#include "interpose/record/poll.h"

#include "core/trace/held.h"

/* Words of an event: 0 kind, flags, function; 1 start; 2 duration, status; 3 stack, context; 4 a;
 * 5 b; 6 bytes; 7 stream. */
static bool same_poll(const event_word *held, const event_word *w)
{
  return held[0] >> 32 == w[0] >> 32 && held[2] >> 48 == w[2] >> 48 && held[3] == w[3] &&
         held[4] == w[4] && held[7] == w[7];
}

static void add_poll(const hook_call *c, const event_word *held, event_word *w)
{
  const uint64_t most = (UINT64_C(1) << 48) - 1;
  uint64_t took = (held[2] & most) + (w[2] & most);
  w[1] = held[1];
  w[2] = (w[2] & ~most) | (took > most ? most : took);
  w[5] = c->end - held[1];
  w[6] = held[6] + 1;
}

void poll_commit(const hook_call *c, const event_fields *e)
{
  thread_state *t = c->thread;
  spool_writer *pen = &t->writer;
  event_word w[8];
  if (process_unrecorded || t->depth == CALL_LEFT_OUT) return;
  if (event_is_looked_at(c)) event_look(c, e);
  uint64_t stack = stack_capture_on() ? stack_capture(&t->stacks, pen) : 0;
  event_fill_words(c, e, stack, w);
  if (held_now(pen) && pen->epoch == spool_fork_epoch() && same_poll(held_last(pen), w)) {
    add_poll(c, held_last(pen), w);
    held_change(pen, w);
  } else if (spool_writer_slots(pen, HELD_SLOTS)) {
    held_begin(pen, w);
  }
}

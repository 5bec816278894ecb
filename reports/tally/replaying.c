/* replaying.c: what threads call stacks, and the payloads of records, for all that is delivered.
 *
 * A stack comes under a number that a thread of its events gives it. One that no thread calls
 * anything any more gets a number from the upper end, which a thread's own never reach. */
#include "reports/tally/replaying.h"
#include <string.h>
#include "reports/base/util.h"
#include "reports/tally/probe.h"

enum { MOST_STACK = 0xffffff /* of a thread's numbers of stacks */ };

/* ---- numbers of stacks ----------------------------------------------------------------------- */

static uint64_t id_key(uint32_t thread, uint64_t stack)
{
  return hash_mix(hash_mix(15, thread), stack);
}

bool wr_replay_name_stack(wr_replay *r, uint32_t thread, uint64_t stack, uint32_t id)
{
  return hash_map_put(&r->ids, id_key(thread, stack), id) == WEIR_OK &&
         hash_map_put(&r->any, stack, (uint64_t)thread << 32 | id) == WEIR_OK;
}

/* A number that the thread has not given so far: it counts from below. */
static bool spare_number(wr_replay *r, uint32_t thread, uint32_t *id)
{
  bool added;
  uint64_t *last = hash_map_place(&r->spare, thread, &added);
  if (!last) return false;
  if (added) *last = MOST_STACK + 1;
  while (*last && (--*last, *last && wr_table_find(&r->t->s.local,
                                                   wr_key_of_small(thread, (uint32_t)*last))))
    continue;
  *id = (uint32_t)*last;
  return true;
}

bool wr_replay_stack(wr_replay *r, uint32_t thread, uint64_t stack, uint32_t *id)
{
  *id = 0;
  if (stack <= WR_STACK_FORGOTTEN || !wr_table_find(&r->t->s.stack, stack)) return true;
  const uint64_t *known = hash_map_get(&r->ids, id_key(thread, stack));
  if (known) {
    *id = (uint32_t)*known;
    return true;
  }
  return spare_number(r, thread, id) && (!*id || wr_replay_name_stack(r, thread, stack, *id));
}

/* ---- records --------------------------------------------------------------------------------- */

bool wr_replay_put(wr_replay *r, const void *bytes, size_t count)
{
  if (!wr_grow(&r->text, &r->text_room, r->text_bytes + count + 1, 1)) return false;
  if (count) memcpy(r->text + r->text_bytes, bytes, count);
  r->text_bytes += count;
  return true;
}

weir_status wr_replay_extended(wr_replay *r, uint32_t serial, const trace_event *head)
{
  const spool_visitor *v = &r->v->records;
  const wr_tally_thread *thread =
      wr_table_find(&r->t->s.thread, wr_key_of_one(WR_OF_THREAD, serial));
  const size_t bytes = r->text_bytes;
  r->text_bytes = 0;
  if (!wr_replay_put(r, NULL, 0)) return wr_replay_no_memory(r);
  return v->extended(v->context, thread ? serial : r->home, thread ? thread->tid : r->home_tid,
                     head, r->text, bytes);
}

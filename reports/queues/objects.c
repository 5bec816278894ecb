/* objects.c: processes, contexts, streams and events, which are made when a call first names them.
 * See queues.c. */
#include "reports/queues/private.h"

/* The place of `key` in an array, made where it is new. False: out of memory. */
static bool find_or_add(hash_map *map, uint64_t key, void *array, size_t *count, size_t *capacity,
                        size_t size, uint32_t *place, bool *made)
{
  uint64_t *at = hash_map_place(map, key, made);
  if (!at) return false;
  if (*made) {
    if (*count >= UINT32_MAX - 1 || !wr_grow(array, capacity, *count + 1, size)) {
      hash_map_remove(map, key);
      return false;
    }
    *at = (*count)++;
  }
  *place = (uint32_t)*at;
  return true;
}

caller *wr_queues_new_caller(wr_queues *m, uint32_t number)
{
  if (!wr_grow(&m->callers, &m->caller_capacity, (size_t)number + 1, sizeof(caller))) return NULL;
  memset(m->callers + m->caller_count, 0, (m->caller_capacity - m->caller_count) * sizeof(caller));
  m->caller_count = m->caller_capacity;
  return &m->callers[number];
}

process *wr_queues_find_process(wr_queues *m, int64_t row)
{
  uint32_t place = 0;
  bool made;
  if (!find_or_add(&m->process_of, (uint64_t)row, &m->processes, &m->process_count,
                   &m->process_capacity, sizeof(process *), &place, &made))
    return NULL;
  return made ? m->processes[place] = calloc(1, sizeof(process)) : m->processes[place];
}

bool wr_queues_look_for_process(wr_queues *m, const wr_queue_call *c)
{
  m->calling = wr_queues_find_process(m, c->process);
  if (m->caller) m->caller->process = m->calling;
  return m->calling != NULL;
}

bool wr_queues_look_for_context(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  bool made;
  if (!find_or_add(&m->context_of, key_of_object(0, c->process, c->context, 0), &m->contexts,
                   &m->context_count, &m->context_capacity, sizeof(context *), place, &made))
    return false;
  context *x = made ? malloc(sizeof(*x)) : m->contexts[*place];
  m->contexts[*place] = x;
  if (!x) return false;
  if (made)
    *x = (context){.legacy_changes = 1,
                   .blocking_changes = 1,
                   .device = NO_NUMBER,
                   .rule = {.stale = true},
                   .beside = {.stale = true}};
  return true;
}

static uint64_t queue_key(const wr_queue_call *c)
{
  if (c->stream == WR_QUEUE_LEGACY) return key_of_object(2, c->process, c->context, 0);
  if (c->stream == WR_QUEUE_PER_THREAD)
    return key_of_object(3, c->process, c->context, (uint64_t)c->thread);
  return key_of_object(1, c->process, c->stream, 0);
}

static bool make_queue(wr_queues *m, const wr_queue_call *c, uint32_t place)
{
  uint32_t of = 0;
  queue *q = m->queues[place] = malloc(sizeof(*q));
  if (!q) return false;
  *q = (queue){0};
  if (!find_context(m, c, &of)) return false;
  context *x = m->contexts[of];
  bool legacy = c->stream == WR_QUEUE_LEGACY, created = c->act == WR_ACT_STREAM_CREATE;
  bool blocks = !legacy && !(created && c->how & WR_HOW_NON_BLOCKING);
  *q = (queue){.handle = c->stream,
               .context = of,
               .home = x,
               .tally = legacy || blocks ? &x->rule : &x->beside,
               .legacy = legacy,
               .blocking = blocks && (created || c->stream == WR_QUEUE_PER_THREAD),
               .may_block = blocks};
  if (legacy) x->legacy = place + 1;
  return true;
}

static bool look_for_queue(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  bool made;
  if (!find_or_add(&m->queue_of, queue_key(c), &m->queues, &m->queue_count, &m->queue_capacity,
                   sizeof(queue *), place, &made))
    return false;
  return !made || make_queue(m, c, *place);
}

bool wr_queues_find_queue(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  caller *known = m->caller;
  if (!look_for_queue(m, c, place)) return false;
  if (known) known->queue = *place + 1, known->streams = m->streams;
  return true;
}

event *wr_queues_event_of(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  uint64_t key = key_of_object(4, c->process, c->handle, 0);
  bool made;
  uint64_t *at = hash_map_place(&m->event_of, key, &made);
  if (!at) return NULL;
  if (made && m->unused_count) {
    *at = m->unused[--m->unused_count];
  } else if (made) {
    if (!wr_grow(&m->events, &m->event_capacity, m->event_count + 1, sizeof(event))) {
      hash_map_remove(&m->event_of, key);
      return NULL;
    }
    m->events[m->event_count] = (event){0};
    *at = m->event_count++;
  }
  *place = (uint32_t)*at;
  event *e = &m->events[*place];
  if (made) *e = (event){.unseen = true, .busy_until = INT64_MIN, .askers = e->askers};
  return e;
}

uint32_t wr_queues_context_place(wr_queues *m, const wr_queue_call *c)
{
  caller *known = m->caller;
  if (known && known->context) return known->context;
  const uint64_t *at = hash_map_get(&m->context_of, key_of_object(0, c->process, c->context, 0));
  uint32_t place = at ? (uint32_t)*at + 1 : 0;
  if (known) known->context = place;
  return place;
}

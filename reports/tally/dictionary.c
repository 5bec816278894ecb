/* dictionary.c: the records of more than one slot: what numbers in events stand for, and changes of
 * graphs. These are rare: room is made here. */
#include <string.h>
#include "reports/tally/private.h"

enum { MOST_TEXT = 1u << 28, MOST_DEPTH = 1024 };

/* Puts a text in the place of another. Where it is the same, or shorter, it takes its bytes. False:
 * out of memory. A text beyond what a tally holds is cut to nothing. */
static bool put_text(wr_tally *t, wr_piece_of_text *to, const void *text, size_t bytes)
{
  wr_table *all = &t->s.text;
  if (to->bytes == bytes && bytes && !memcmp(all->entry + to->at, text, bytes)) return true;
  if (bytes > to->bytes) {
    if (bytes > MOST_TEXT - all->count) bytes = 0;
    if (!wr_array_room(all, (uint32_t)bytes)) return false;
    to->at = all->count;
    all->count += (uint32_t)bytes;
  }
  to->bytes = (uint32_t)bytes;
  if (bytes) memcpy(all->entry + to->at, text, bytes);
  return true;
}

static bool same_text(const wr_tally *t, wr_piece_of_text a, const char *text, size_t bytes)
{
  return a.bytes == bytes && (!bytes || !memcmp(t->s.text.entry + a.at, text, bytes));
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static bool add_stack(wr_tally *t, uint64_t key, const void *frames, uint32_t depth, uint64_t time)
{
  bool added;
  wr_table *all = &t->s.frame;
  if (!wr_table_room(&t->s.stack, 1) || !wr_array_room(all, depth)) return false;
  wr_tally_stack *stack = wr_table_place(&t->s.stack, key, &added);
  stack->sweep = wr_facts(t)->sweeps;
  if (!added) return true;
  stack->first = all->count;
  stack->depth = depth;
  stack->unloads = (uint32_t)wr_facts(t)->unloads;
  stack->met = time;
  if (depth) memcpy(wr_table_at(all, all->count), frames, depth * sizeof(uint64_t));
  all->count += depth;
  return true;
}

/* The same addresses are another stack once a module is gone. */
static weir_status take_stack_record(wr_tally *t, const wr_tally_thread *thread,
                                     const trace_event *head, const char *payload, size_t bytes)
{
  const uint32_t id = head->a & 0xffffff;
  size_t depth = bytes / sizeof(uint64_t);
  uint64_t hash = hash_mix(2, wr_facts(t)->unloads), address;
  bool added;
  if (depth > MOST_DEPTH) depth = MOST_DEPTH;
  for (size_t i = 0; i < depth; i++) {
    memcpy(&address, payload + i * sizeof address, sizeof address);
    hash = hash_mix(hash, address);
  }
  if (!add_stack(t, wr_key(hash), payload, (uint32_t)depth, head->start) ||
      !wr_table_room(&t->s.local, 1))
    return wr_tally_no_memory(t);
  wr_local_stack *local = wr_table_place(&t->s.local, wr_key_of_small(thread->serial, id), &added);
  local->stack = wr_key(hash);
  local->thread = thread->serial;
  local->id = id;
  local->sweep = wr_facts(t)->sweeps;
  return WEIR_OK;
}

/* ---- modules --------------------------------------------------------------------------------- */

static weir_status end_module(wr_tally *t, uint64_t key, uint64_t time)
{
  wr_tally_module *m = wr_table_find(&t->s.module, key), was;
  const uint64_t before = wr_facts(t)->unloads++;
  bool added;
  if (!m) return WEIR_OK;
  was = *m;
  wr_table_remove(&t->s.module, m);
  was.key = wr_key_of_one(WR_OF_GONE, before);
  was.unloaded = time ? time : 1;
  was.unloads = (uint32_t)before;
  m = wr_table_place(&t->s.module, was.key, &added); /* the room of the one removed */
  if (m) *m = was;
  return WEIR_OK;
}

/* Every thread may report a module: the first record counts while it stays loaded. Another module
 * in the same place means that the end of the one before was not seen. */
static weir_status take_module_record(wr_tally *t, const trace_event *head, const char *payload,
                                      size_t bytes)
{
  module_info info;
  bool added, good;
  if (bytes < sizeof info) return WEIR_OK;
  memcpy(&info, payload, sizeof info);
  const uint64_t key = wr_key_of_one(WR_OF_MODULE, info.base);
  if (head->a == 0) return end_module(t, key, head->start);
  const size_t left = bytes - sizeof info;
  const char *build_id = payload + sizeof info, *path = build_id + info.build_id_bytes;
  if (info.build_id_bytes > left || info.path_bytes > left - info.build_id_bytes) return WEIR_OK;
  wr_tally_module *m = wr_table_find(&t->s.module, key);
  bool same = m && m->info.start == info.start && m->info.end == info.end &&
              same_text(t, m->build_id, build_id, info.build_id_bytes) &&
              same_text(t, m->path, path, info.path_bytes);
  if (same) return WEIR_OK;
  if (m) (void)end_module(t, key, head->start);
  if (!wr_table_room(&t->s.module, 1)) return wr_tally_no_memory(t);
  m = wr_table_place(&t->s.module, key, &added);
  m->info = info;
  m->loaded = head->start;
  m->unloads_before = (uint32_t)wr_facts(t)->unloads;
  const size_t named = (size_t)info.build_id_bytes + info.path_bytes;
  if (left - named >= sizeof m->stamp) memcpy(&m->stamp, build_id + named, sizeof m->stamp);
  good = put_text(t, &m->build_id, build_id, info.build_id_bytes) &&
         put_text(t, &m->path, path, info.path_bytes);
  return good ? WEIR_OK : wr_tally_no_memory(t);
}

/* ---- names ----------------------------------------------------------------------------------- */

static weir_status put_name(wr_tally *t, uint64_t key, const wr_tally_name *as, const char *texts,
                            size_t domain_bytes, size_t text_bytes)
{
  bool added;
  if (!wr_table_room(&t->s.name, 1)) return wr_tally_no_memory(t);
  wr_tally_name *name = wr_table_place(&t->s.name, key, &added);
  const wr_piece_of_text domain = name->domain, text = name->text;
  *name = *as;
  name->key = key;
  name->domain = domain;
  name->text = text;
  bool good = put_text(t, &name->domain, texts, domain_bytes) &&
              put_text(t, &name->text, texts + domain_bytes, text_bytes);
  return good ? WEIR_OK : wr_tally_no_memory(t);
}

/* The name of a category has its domain before it, and a zero between. */
static weir_status take_name_of(wr_tally *t, const trace_event *head, const char *payload,
                                size_t bytes)
{
  const uint8_t kind = head->b < WR_NAME_RANGE ? (uint8_t)head->b : 0;
  wr_tally_name as = {.handle = head->a,
                      .bytes = head->stream,
                      .said = head->start,
                      .used = head->start,
                      .kind = kind};
  uint64_t key = wr_name_key(kind, head->a);
  if (kind != WEIR_NAME_CATEGORY) return put_name(t, key, &as, payload, 0, bytes);
  const char *zero = bytes ? memchr(payload, 0, bytes) : NULL;
  if (!zero) return WEIR_OK;
  const size_t domain = (size_t)(zero - payload);
  for (size_t i = 0; i < domain; i++)
    key = wr_key(hash_mix(key, (unsigned char)payload[i]));
  weir_status st = put_name(t, key, &as, payload, domain, 0);
  wr_tally_name *name = wr_table_find(&t->s.name, key);
  if (st || !name) return st;
  return put_text(t, &name->text, zero + 1, bytes - domain - 1) ? WEIR_OK : wr_tally_no_memory(t);
}

static weir_status take_range_name_of(wr_tally *t, const wr_tally_thread *thread,
                                      const trace_event *head, const char *payload, size_t bytes)
{
  range_name name;
  if (bytes < sizeof name) return WEIR_OK;
  memcpy(&name, payload, sizeof name);
  if ((size_t)name.domain_bytes + name.text_bytes > bytes - sizeof name) return WEIR_OK;
  const wr_tally_name as = {.handle = (uint32_t)head->a,
                            .bytes = (uint64_t)name.category << 32 | name.color,
                            .said = head->start,
                            .used = head->start,
                            .thread = thread->serial,
                            .kind = WR_NAME_RANGE};
  return put_name(t, wr_key_of(WR_OF_RANGE_NAME, thread->serial, (uint32_t)head->a), &as,
                  payload + sizeof name, name.domain_bytes, name.text_bytes);
}

/* The first of a number stays: a writer gives a number once. */
static weir_status take_python(wr_tally *t, const trace_event *head, const char *payload,
                               size_t bytes)
{
  python_frame_info info;
  bool added;
  if (bytes < sizeof info) return WEIR_OK;
  memcpy(&info, payload, sizeof info);
  if ((size_t)info.function_bytes + info.file_bytes > bytes - sizeof info) return WEIR_OK;
  if (!wr_table_room(&t->s.python, 1)) return wr_tally_no_memory(t);
  wr_python_frame *p = wr_table_place(&t->s.python, wr_key_of_one(WR_OF_PYTHON, head->a), &added);
  if (!added) return WEIR_OK;
  p->number = head->a;
  p->line = info.line;
  p->sweep = wr_facts(t)->sweeps;
  bool good = put_text(t, &p->function, payload + sizeof info, info.function_bytes) &&
              put_text(t, &p->file, payload + sizeof info + info.function_bytes, info.file_bytes);
  return good ? WEIR_OK : wr_tally_no_memory(t);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* More nodes of a change whose first records came. Theirs may lie among another thread's: then they
 * move. */
static bool append_nodes_of(wr_tally *t, wr_pending *p, const void *payload, uint32_t count)
{
  wr_table *all = &t->s.node;
  bool apart = p->first + p->count != all->count;
  if (!wr_array_room(all, count + (apart ? p->count : 0))) return false;
  if (apart) {
    memcpy(wr_table_at(all, all->count), wr_table_at(all, p->first), p->count * sizeof(wr_node));
    p->first = all->count;
    all->count += p->count;
  }
  for (uint32_t i = 0; i < count; i++) {
    wr_node *n = wr_table_at(all, all->count++);
    memcpy(&n->info, (const char *)payload + i * sizeof n->info, sizeof n->info);
    n->disabled = 0;
  }
  p->count += count;
  return true;
}

/* The change of a thread that came last and may have more nodes. */
static wr_pending *open_change(const wr_tally *t, const wr_tally_thread *thread)
{
  uint32_t at = thread->newest;
  while (at) {
    wr_pending *p = wr_table_at(&t->s.pending, at - 1);
    if (p->kind == WEIR_EV_GRAPH) return p->complete ? NULL : p;
    at = p->before;
  }
  return NULL;
}

static wr_pending *begin_change(wr_tally *t, wr_tally_thread *thread, const trace_event *head)
{
  if (!wr_array_room(&t->s.pending, 1)) return NULL;
  wr_pending *p = wr_pending_add(t, thread, head->start);
  p->kind = WEIR_EV_GRAPH;
  p->detail = head->graph_fact;
  p->address = head->a;
  p->about = head->b;
  p->start = head->start;
  p->first = t->s.node.count;
  return p;
}

/* A change whose last record is lost never is complete: what the graph holds is not known then. */
static weir_status take_graph_record(wr_tally *t, wr_tally_thread *thread, const trace_event *head,
                                     const char *payload, size_t bytes)
{
  const uint32_t count = (uint32_t)(bytes / sizeof(graph_node_info));
  const bool more = head->graph_fact == WEIR_GRAPH_MORE;
  if (head->graph_fact < WEIR_GRAPH_MADE || head->graph_fact > WEIR_GRAPH_MORE) return WEIR_OK;
  wr_pending *p = more ? open_change(t, thread) : begin_change(t, thread, head);
  if (more && (!p || p->count != head->b)) return WEIR_OK;
  if (!p || !append_nodes_of(t, p, payload, count)) return wr_tally_no_memory(t);
  p->complete = head->mem != 0;
  return WEIR_OK;
}

weir_status wr_tally_extended(void *context, uint32_t serial, uint32_t tid, const trace_event *head,
                              const void *payload, size_t bytes)
{
  wr_tally *t = context;
  wr_tally_thread *thread = wr_tally_thread_of(t, serial, tid);
  if (!thread) return wr_tally_no_room(t);
  switch (head->kind) {
  case WEIR_EV_STACK:
    return take_stack_record(t, thread, head, payload, bytes);
  case WEIR_EV_MODULE:
    return take_module_record(t, head, payload, bytes);
  case WEIR_EV_NAME:
    return take_name_of(t, head, payload, bytes);
  case WEIR_EV_RANGE_NAME:
    return take_range_name_of(t, thread, head, payload, bytes);
  case WEIR_EV_PYTHON_FRAME:
    return take_python(t, head, payload, bytes);
  case WEIR_EV_GRAPH:
    return take_graph_record(t, thread, head, payload, bytes);
  case WEIR_EV_THREAD:
    return put_text(t, &thread->name, payload, bytes) ? WEIR_OK : wr_tally_no_memory(t);
  default:
    return WEIR_OK;
  }
}

/* event_columns.h: the columns of an event, one row each: record, tables, view and readers are made
 * of these two lists. */
#ifndef WEIR_REPORTS_EVENT_COLUMNS_H
#define WEIR_REPORTS_EVENT_COLUMNS_H

/* In place of these four a launch has the number of its access set, in template_access. */
#define WR_HAS_ACCESS(e) ((e)->kind == WEIR_EV_LAUNCH)

/* Of `template`, its id left out: name, value for a record `e` of a caller `k`, and whether it is
 * there. */
#define WR_TEMPLATE_MAP(X)                                                                         \
  X(process, k->process, true)                                                                     \
  X(thread, k->thread, true)                                                                       \
  X(kind, e->kind, true)                                                                           \
  X(api, e->api, true)                                                                             \
  X(status, e->status, true)                                                                       \
  X(stack, k->stack, k->stack != 0)                                                                \
  X(context, e->stack >> 24, true)                                                                 \
  X(device, e->device, e->device != WEIR_DEVICE_NONE)                                              \
  X(src_device, e->src_device, e->src_device != WEIR_DEVICE_NONE && !WR_HAS_ACCESS(e))             \
  X(copy, WR_HAS_ACCESS(e) ? 0 : e->detail, true)                                                  \
  X(mem, WR_HAS_ACCESS(e) ? 0 : e->mem & 15, true)                                                 \
  X(src_mem, WR_HAS_ACCESS(e) ? 0 : e->mem >> 4, true)                                             \
  X(flags, e->flags, true)                                                                         \
  X(stream, e->stream, true)

/* Of `event_row`, its id and its template left out: name, value for a record `e` taken as `x`. */
#define WR_EVENT_MAP(X)                                                                            \
  X(start, x->start)                                                                               \
  X(duration, x->end - x->start)                                                                   \
  X(a, e->a)                                                                                       \
  X(b, e->kind == WEIR_EV_FREE || e->kind == WEIR_EV_SYNC ? (uint64_t)wr_length(s, e->b) : e->b)   \
  X(bytes, e->bytes)

enum {
  WR_TEMPLATE_ID, /* columns are numbered from 0 */
#define WR_TEMPLATE_NUMBER(name, value, there) WR_TEMPLATE_##name,
  WR_TEMPLATE_MAP(WR_TEMPLATE_NUMBER)
#undef WR_TEMPLATE_NUMBER
      WR_TEMPLATE_COLUMNS
};

enum {
  WR_EVENT_TEMPLATE,
#define WR_EVENT_NUMBER(name, value) WR_EVENT_##name,
  WR_EVENT_MAP(WR_EVENT_NUMBER)
#undef WR_EVENT_NUMBER
      WR_EVENT_COLUMNS
};

#endif

/* once_facts.c: see once_facts.h. A block is followed until a second copy touches it, so that of programs that use their
 * buffers again and again next to nothing is followed. */
#include "reports/findings/once_facts.h"
#include "core/trace/event.h"

enum { MAPPED = 2 /* cudaHostAllocMapped */ };

static void drop_once(wr_process_state *x, wr_once *o)
{
  *o = x->once[--x->once_count];
}

/* Memory that kernels are to reach is not there for copies. */
void wr_once_alloc(wr_process_state *x, const wr_common *t, const wr_fact_call *c)
{
  if (c->bytes < WR_ONCE_BYTES || c->b & MAPPED) return;
  if (x->once_count == WR_ONCE_BLOCKS) drop_once(x, &x->once[0]);
  x->once[x->once_count++] = (wr_once){
      .alloc = c->id, .template = t->id, .ns = c->duration, .address = c->a, .bytes = c->bytes};
}

static bool is_touched(const wr_once *o, const wr_fact_call *c)
{
  return c->a - o->address < o->bytes || o->address - c->a < c->bytes ||
         c->b - o->address < o->bytes || o->address - c->b < c->bytes;
}

/* What is captured may run again and again, and one of less than half of a block leaves it to other uses. */
void wr_once_copy(wr_process_state *x, const wr_common *t, const wr_fact_call *c)
{
  for (size_t i = x->once_count; i; i--) {
    wr_once *o = &x->once[i - 1];
    if (!is_touched(o, c)) continue;
    if (o->copy || t->what & WR_CAPTURED || c->bytes < o->bytes / 2)
      drop_once(x, o);
    else
      o->copy = c->id, o->copied = c->bytes;
  }
}

static weir_status add_once(wr_fact_tables *tables, const wr_once *o, int64_t free, int64_t free_ns)
{
  const int64_t v[] = {o->alloc, free,    o->copy,           o->template,
                       o->ns,    free_ns, (int64_t)o->bytes, (int64_t)o->copied};
  return wr_fact_add_either(tables, WR_FACT_COPIED_ONCE, v, !free);
}

weir_status wr_once_free(wr_fact_tables *tables, wr_process_state *x, const wr_fact_call *c)
{
  for (size_t i = 0; i < x->once_count; i++) {
    const wr_once o = x->once[i];
    if (o.address != c->a) continue;
    drop_once(x, &x->once[i]);
    return o.copy ? add_once(tables, &o, c->id, c->duration) : WEIR_OK;
  }
  return WEIR_OK;
}

weir_status wr_once_end(wr_fact_tables *tables, wr_process_state *x)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < x->once_count; i++)
    if (x->once[i].copy) st = add_once(tables, &x->once[i], 0, 0);
  x->once_count = 0;
  return st;
}

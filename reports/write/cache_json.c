/* cache_json.c: what the caches did, as JSON (SCHEMA.md, "The caches"). */
#include <string.h>
#include "reports/write/report_json.h"

static json_t *json_number(uint64_t n)
{
  return json_integer((json_int_t)n);
}

/* A list of the reasons that occurred. */
static json_t *tallies_json(const wr_tally *list)
{
  json_t *a = json_array();
  for (unsigned i = 0; i < WR_REASONS; i++) {
    const wr_tally *t = &list[i];
    if (!t->calls) continue;
    json_t *o = json_object();
    json_object_set_new(o, "reason", json_string(wr_reason_name(i)));
    json_object_set_new(o, "count", json_number(t->calls));
    json_object_set_new(o, "bytes", json_number(t->bytes));
    json_object_set_new(o, "ns", json_number(t->ns));
    json_object_set_new(o, "first_ns", json_integer(t->first));
    json_object_set_new(o, "last_ns", json_integer(t->last));
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *side_json(const wr_cache_side *s)
{
  json_t *o = json_object();
  json_object_set_new(o, "hits", json_number(s->hits));
  json_object_set_new(o, "hit_bytes", json_number(s->hit_bytes));
  json_object_set_new(o, "misses", json_number(s->misses));
  json_object_set_new(o, "miss_bytes", json_number(s->miss_bytes));
  json_object_set_new(o, "cached_peak_bytes", json_number(s->cached_peak_bytes));
  json_object_set_new(o, "cached_peak_at_ns", json_number(s->cached_peak_at_ns));
  json_object_set_new(o, "cached_end_bytes", json_number(s->cached_end_bytes));
  return o;
}

static json_t *rate_json(uint64_t part, uint64_t whole)
{
  return whole ? json_real((double)part / (double)whole) : json_null();
}

static json_t *speed_json(uint64_t bytes, uint64_t ns)
{
  return ns ? json_real((double)bytes * 1e9 / (double)ns) : json_null();
}

/* A copy between devices is over when its call is not: such calls tell no speed. */
static json_t *staging_json(const wr_staging *s, const char *direction, bool timed)
{
  json_t *o = json_object();
  json_object_set_new(o, "direction", json_string(direction));
  json_object_set_new(o, "copies", json_number(s->copies));
  json_object_set_new(o, "bytes", json_number(s->bytes));
  json_object_set_new(o, "ns", json_number(s->ns));
  json_object_set_new(o, "bytes_per_second", timed ? speed_json(s->bytes, s->ns) : json_null());
  json_object_set_new(o, "left_copies", json_number(s->left_copies));
  json_object_set_new(o, "left_bytes", json_number(s->left_bytes));
  json_object_set_new(o, "left_ns", json_number(s->left_ns));
  json_object_set_new(o, "left_bytes_per_second",
                      timed ? speed_json(s->left_timed_bytes, s->left_timed_ns) : json_null());
  bool known = s->was_measured && s->percent;
  json_object_set_new(o, "gain", known ? json_real((double)s->percent / 100) : json_null());
  json_object_set_new(o, "measured_by",
                      s->was_measured
                          ? json_string(s->earlier ? "an earlier program" : "this program")
                          : json_null());
  return o;
}

static json_t *unwritten_json(const wr_cache *c)
{
  json_t *o = json_object(), *list = json_array();
  json_object_set_new(o, "copies", json_number(c->unwritten_copies));
  json_object_set_new(o, "bytes", json_number(c->unwritten_bytes));
  for (size_t i = 0; i < c->unwritten_count; i++) {
    const wr_unwritten *u = &c->unwritten[i];
    json_t *x = json_object();
    json_object_set_new(x, "copies", json_number(u->copies));
    json_object_set_new(x, "bytes", json_number(u->bytes));
    json_object_set_new(x, "first_ns", json_integer(u->time));
    json_object_set_new(x, "first_block", json_number(u->block));
    json_object_set_new(x, "first_offset", json_number(u->offset));
    json_object_set_new(x, "first_bytes", json_number(u->first));
    json_object_set_new(x, "site", json_string(u->where));
    json_array_append_new(list, x);
  }
  json_object_set_new(o, "sites", list);
  return o;
}

static json_t *pools_json(const wr_cache *c)
{
  json_t *list = json_array();
  for (size_t i = 0; i < c->pool_count; i++) {
    const wr_pool *x = &c->pools[i];
    json_t *o = json_object();
    json_object_set_new(o, "pid", json_integer(x->pid));
    json_object_set_new(o, "pool", json_number(x->handle));
    json_object_set_new(o, "device", x->device < 0 ? json_null() : json_integer(x->device));
    json_object_set_new(o, "default", json_boolean(x->from_start));
    json_object_set_new(o, "destroyed", json_boolean(x->ended));
    json_object_set_new(o, "reserved_bytes", json_number(x->reserved));
    json_object_set_new(o, "reserved_peak_bytes", json_number(x->reserved_peak));
    json_object_set_new(o, "used_bytes", json_number(x->used));
    json_object_set_new(o, "used_peak_bytes", json_number(x->used_peak));
    json_object_set_new(o, "release_threshold_bytes",
                        x->threshold > INT64_MAX ? json_null() : json_number(x->threshold));
    json_object_set_new(o, "keeps_idle_most_bytes", json_number(wr_pool_keeps(x)));
    json_object_set_new(o, "samples", json_number(x->samples));
    json_object_set_new(o, "first_ns", json_integer(x->first_ns));
    json_object_set_new(o, "last_ns", json_integer(x->last_ns));
    json_array_append_new(list, o);
  }
  return list;
}

json_t *wr_cache_json(const wr_cache *c)
{
  const wr_cache_side *d = &c->side[WR_CACHE_DEVICE], *p = &c->side[WR_CACHE_PINNED];
  uint64_t hits = d->hits + p->hits, misses = d->misses + p->misses;
  json_t *o = json_object(), *curve = json_array(), *each = json_array();
  json_object_set_new(o, "mode", json_string(c->mode));
  json_object_set_new(o, "hits", json_number(hits));
  json_object_set_new(o, "misses", json_number(misses));
  json_object_set_new(o, "hit_rate", rate_json(hits, hits + misses));
  json_object_set_new(o, "device", side_json(d));
  json_object_set_new(o, "pinned", side_json(p));
  json_object_set_new(o, "misses_by_reason", tallies_json(c->missed));
  json_object_set_new(o, "allocs_left_to_driver", tallies_json(c->left));
  json_object_set_new(o, "frees_kept", json_number(c->kept_frees));
  json_object_set_new(o, "frees_left_to_driver", tallies_json(c->freed));
  json_object_set_new(o, "waits_kept", json_number(c->waits_kept));
  json_object_set_new(o, "waits_kept_ns", json_number(c->waits_kept_ns));
  json_object_set_new(o, "waits_avoided", json_number(c->waits_avoided));
  json_object_set_new(o, "held_peak_bytes", json_number(c->held_peak_bytes));
  json_object_set_new(o, "given_back", tallies_json(c->given));
  json_object_set_new(o, "tainted", tallies_json(c->tainted));
  json_array_append_new(each, staging_json(&c->staging[0], "h2d", true));
  json_array_append_new(each, staging_json(&c->staging[1], "d2h", true));
  json_array_append_new(each, staging_json(&c->staging[2], "p2p", false));
  json_object_set_new(o, "staging", each);
  json_object_set_new(o, "uninitialised", unwritten_json(c));
  json_object_set_new(o, "pools", pools_json(c));
  json_object_set_new(o, "curve_slice_ns", json_number(c->end_ns / WR_CURVE));
  for (int i = 0; c->rerouted && i < WR_CURVE; i++)
    json_array_append_new(curve, json_number(c->curve[i]));
  if (!json_object_set_new(o, "curve", curve)) return o;
  json_decref(o);
  return NULL;
}

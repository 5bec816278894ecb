/* cache_json.c: what the caches did, as JSON (SCHEMA.md, "The caches"). */
#include <string.h>
#include "reports/write/report_json.h"

/* A list of the reasons that occurred. */
static json_t *tallies_json(const wr_tally *list)
{
  json_t *a = json_array();
  for (unsigned i = 0; i < WR_REASONS; i++) {
    const wr_tally *t = &list[i];
    if (!t->calls) continue;
    json_t *o = json_object();
    json_object_set_new(o, "reason", json_string(wr_reason_name(i)));
    wr_json_put(o, "count", t->calls);
    wr_json_put(o, "bytes", t->bytes);
    wr_json_put(o, "ns", t->ns);
    json_object_set_new(o, "first_ns", json_integer(t->first));
    json_object_set_new(o, "last_ns", json_integer(t->last));
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *side_json(const wr_cache_side *s)
{
  json_t *o = json_object();
  wr_json_put(o, "hits", s->hits);
  wr_json_put(o, "hit_bytes", s->hit_bytes);
  wr_json_put(o, "misses", s->misses);
  wr_json_put(o, "miss_bytes", s->miss_bytes);
  wr_json_put(o, "cached_peak_bytes", s->cached_peak_bytes);
  wr_json_put(o, "cached_peak_at_ns", s->cached_peak_at_ns);
  wr_json_put(o, "cached_end_bytes", s->cached_end_bytes);
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
  wr_json_put(o, "copies", s->copies);
  wr_json_put(o, "bytes", s->bytes);
  wr_json_put(o, "ns", s->ns);
  json_object_set_new(o, "bytes_per_second", timed ? speed_json(s->bytes, s->ns) : json_null());
  wr_json_put(o, "left_copies", s->left_copies);
  wr_json_put(o, "left_bytes", s->left_bytes);
  wr_json_put(o, "left_ns", s->left_ns);
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
  wr_json_put(o, "copies", c->unwritten_copies);
  wr_json_put(o, "bytes", c->unwritten_bytes);
  for (size_t i = 0; i < c->unwritten_count; i++) {
    const wr_unwritten *u = &c->unwritten[i];
    json_t *x = json_object();
    wr_json_put(x, "copies", u->copies);
    wr_json_put(x, "bytes", u->bytes);
    json_object_set_new(x, "first_ns", json_integer(u->time));
    wr_json_put(x, "first_block", u->block);
    wr_json_put(x, "first_offset", u->offset);
    wr_json_put(x, "first_bytes", u->first);
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
    wr_json_put(o, "pool", x->handle);
    json_object_set_new(o, "device", x->device < 0 ? json_null() : json_integer(x->device));
    json_object_set_new(o, "default", json_boolean(x->from_start));
    json_object_set_new(o, "destroyed", json_boolean(x->ended));
    wr_json_put(o, "reserved_bytes", x->reserved);
    wr_json_put(o, "reserved_peak_bytes", x->reserved_peak);
    wr_json_put(o, "used_bytes", x->used);
    wr_json_put(o, "used_peak_bytes", x->used_peak);
    json_object_set_new(o, "release_threshold_bytes",
                        x->threshold > INT64_MAX ? json_null() : wr_json_number(x->threshold));
    wr_json_put(o, "keeps_idle_most_bytes", wr_pool_keeps(x));
    wr_json_put(o, "samples", x->samples);
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
  wr_json_put(o, "hits", hits);
  wr_json_put(o, "misses", misses);
  json_object_set_new(o, "hit_rate", rate_json(hits, hits + misses));
  json_object_set_new(o, "device", side_json(d));
  json_object_set_new(o, "pinned", side_json(p));
  json_object_set_new(o, "misses_by_reason", tallies_json(c->missed));
  json_object_set_new(o, "allocs_left_to_driver", tallies_json(c->left));
  wr_json_put(o, "frees_kept", c->kept_frees);
  json_object_set_new(o, "frees_left_to_driver", tallies_json(c->freed));
  wr_json_put(o, "waits_kept", c->waits_kept);
  wr_json_put(o, "waits_kept_ns", c->waits_kept_ns);
  wr_json_put(o, "waits_avoided", c->waits_avoided);
  wr_json_put(o, "held_peak_bytes", c->held_peak_bytes);
  json_object_set_new(o, "given_back", tallies_json(c->given));
  json_object_set_new(o, "tainted", tallies_json(c->tainted));
  json_array_append_new(each, staging_json(&c->staging[0], "h2d", true));
  json_array_append_new(each, staging_json(&c->staging[1], "d2h", true));
  json_array_append_new(each, staging_json(&c->staging[2], "p2p", false));
  json_object_set_new(o, "staging", each);
  json_object_set_new(o, "uninitialised", unwritten_json(c));
  json_object_set_new(o, "pools", pools_json(c));
  wr_json_put(o, "curve_slice_ns", c->end_ns / WR_CURVE);
  for (int i = 0; c->rerouted && i < WR_CURVE; i++)
    json_array_append_new(curve, wr_json_number(c->curve[i]));
  if (!json_object_set_new(o, "curve", curve)) return o;
  json_decref(o);
  return NULL;
}

/* candidates.c: which fix of Weir's a finding may be removed by, and at which places: those of the
 * calls that the finding is of, or, of a free, those where its blocks are allocated. What the fix
 * changes besides them is watched: the frees of blocks that come out of a cache. */
#include <string.h>

#include "core/base/reroutes.h"
#include "core/trace/event.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/prove/prove.h"

const char *prove_action_word(unsigned action)
{
  static const char *const words[] = {
#define REROUTE(NAME, word, by_default, of) #word,
#include "core/base/reroutes.def"
#undef REROUTE
  };
  if (action == REROUTE_RELAXED) return "relaxed";
  for (unsigned i = 0; i < REROUTES; i++)
    if (action == 1U << i) return words[i];
  return "";
}

static bool same_text(const char *a, const char *b)
{
  return a && b ? !strcmp(a, b) : a == b;
}

static bool is_site(const spot *s, const wr_finding_site *site)
{
  return site && same_text(s->function, site->function) && same_text(s->file, site->file) &&
         s->line == site->line;
}

/* Whether it is another place of the finding: where what was made is ended. */
static bool is_related(const spot *s, const wr_finding *f)
{
  for (size_t i = 0; f && i < f->sites; i++)
    if (!f->site[i].count && !f->site[i].cost_ns && is_site(s, &f->site[i])) return true;
  return false;
}

static const spot *spot_by_stack(const spots *s, int64_t stack)
{
  for (unsigned i = 0; i < s->count; i++)
    if (s->spot[i].stack == stack) return &s->spot[i];
  return NULL;
}

static bool same_place(const spot_place *p, const spot *s)
{
  return p->frames == s->frames && rule_frames_same(p->frame, s->frame, s->frames);
}

static void set_place(spot_place *p, const spot *s)
{
  p->frames = s->frames;
  memcpy(p->frame, s->frame, sizeof p->frame);
}

static void watch_spot(proof *x, const spot *s)
{
  for (unsigned i = 0; i < x->watched_count; i++)
    if (same_place(&x->watched[i], s)) return;
  x->watched = cmd_grow(x->watched, &x->watched_room, x->watched_count, sizeof *x->watched);
  set_place(&x->watched[x->watched_count++], s);
}

static void add_line(proof *x, unsigned action, const spot *s)
{
  for (unsigned i = 0; i < x->lines; i++)
    if (x->line[i].action == action && x->line[i].at->frames == s->frames &&
        rule_frames_same(x->line[i].at->frame, s->frame, s->frames))
      return;
  if (!s->frames)
    x->why_not = "its stack is too deep, or in a file without a build-id";
  else if (x->lines == PROVE_LINES)
    x->why_not = "its memory comes from more places than a fix can have";
  else
    x->line[x->lines++] = (prove_line){.action = action, .at = s};
  watch_spot(x, s);
}

/* Blocks that are allocated at, or (`freed`) freed at, a spot. */
static void add_pairs(const proving *p, proof *x, unsigned action, const spot *s, bool freed)
{
  for (unsigned i = 0; i < p->places.pairs; i++) {
    const spot_pair *pair = &p->places.pair[i];
    if ((freed ? pair->free : pair->alloc) != s->stack) continue;
    const spot *other = spot_by_stack(&p->places, freed ? pair->alloc : pair->free);
    if (other && freed) add_line(x, action, other);
    if (other && !freed) watch_spot(x, other);
  }
}

/* Memory out of caches, or (`relaxed`) frees that do not wait besides. */
static void add_memory(const proving *p, proof *x, unsigned action, const spot *s, bool relaxed)
{
  const unsigned alloc = 1U << WEIR_EV_ALLOC, freed = 1U << WEIR_EV_FREE;
  if (s->kinds & freed) {
    add_pairs(p, x, action, s, true);
    watch_spot(x, s);
    if (relaxed) add_line(x, REROUTE_RELAXED, s);
  } else if (s->kinds & alloc && !relaxed) {
    add_line(x, action, s);
  }
}

static void add_spot(const proving *p, proof *x, unsigned action, const spot *s, bool relaxed)
{
  bool here = is_site(s, x->site);
  switch (action) {
  case REROUTE_DEVICE:
  case REROUTE_PINNED:
    if (here) add_memory(p, x, action, s, relaxed);
    break;
  case REROUTE_STAGING:
  case REROUTE_PEER:
  case REROUTE_ACCESS:
    if (here && s->kinds & 1U << WEIR_EV_COPY) add_line(x, action, s);
    break;
  case REROUTE_POOL:
    if (s->takes_from_pool) add_line(x, action, s);
    if (here) watch_spot(x, s);
    break;
  default:
    if (here) add_line(x, action, s);
    if (is_related(s, x->first)) watch_spot(x, s);
  }
}

unsigned proof_line_places(const proving *p, const prove_line *l, spot_place *out, unsigned room)
{
  unsigned n = 0;
  set_place(&out[n++], l->at);
  for (unsigned i = 0; i < p->places.pairs && n < room; i++) {
    const spot_pair *pair = &p->places.pair[i];
    const spot *s = pair->alloc == l->at->stack ? spot_by_stack(&p->places, pair->free) : NULL;
    if (s) set_place(&out[n++], s);
  }
  return n;
}

void candidate_make(const proving *p, proof *x)
{
  const char *fix = x->rule->prove;
  unsigned actions = 0;
  if (!fix) {
    x->verdict = PROVE_CANNOT;
    return;
  }
  bool relaxed = !strncmp(fix, "relaxed ", 8);
  (void)reroutes_read(&actions, "prove", strchr(fix, ' ') + 1); /* checked when the rule was read */
  for (unsigned i = 0; i < p->places.count; i++)
    for (unsigned bits = actions; bits; bits &= bits - 1)
      add_spot(p, x, bits & -bits, &p->places.spot[i], relaxed);
  for (unsigned i = 0, n = x->lines; i < n && !x->why_not; i++)
    add_pairs(p, x, 0, x->line[i].at, false);
  if (!x->lines && !x->why_not)
    x->why_not = relaxed ? "what waits there is no free of memory"
                         : "no call there that the fix could change";
  x->verdict = x->why_not ? PROVE_CANNOT : PROVE_NO_GAIN;
}

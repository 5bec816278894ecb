/* judge_blocks.c: the judges (judge.h) of the largest blocks of memory, by what the walk has seen of each (big_blocks.h). */
#include <stdio.h>
#include "core/trace/event.h"
#include "reports/findings/judge.h"

/* The first `most` of the blocks within the limit, but for those that others may use. Returns how many. */
static size_t choose(wr_case *c, const wr_big_limit *limit, int64_t most,
                     const wr_big_block *out[WR_BIG_BLOCKS])
{
  size_t count = 0;
  c->declines = !c->big->known;
  hash_map given = {0};
  if (c->big->count) WR_EACH(c, GIVEN_BLOCK, given_block, g)
    {
      if (hash_map_put(&given, (uint64_t)g->alloc, 1)) c->status = WEIR_ENOMEM;
    }
  for (size_t i = 0; i < c->big->count && (int64_t)count < most; i++) {
    const wr_big_block *b = &c->big->block[i];
    if (wr_big_block_within(b, limit, c->duration) && !hash_map_get(&given, (uint64_t)b->alloc))
      out[count++] = b;
  }
  hash_map_free(&given);
  return count;
}

/* ---- 21: held, and not used, for much of the run --------------------------------------------- */

wr_big_limit wr_idle_object_limit(wr_case *c)
{
  return (wr_big_limit){wr_case_limit(c, "min_bytes"), wr_case_limit(c, "percent"),
                        wr_case_limit(c, "share")};
}

/* Of a share of the run. */
static bool is_idle(const wr_case *c, const wr_big_block *b, int64_t share)
{
  const wr_idle_time *i = &b->longest;
  return (double)(i->next - i->since) >= (double)c->duration * 0.01 * (double)share;
}

/* The most bytes of its device that live at the beginning of the time, in its middle or right before its end. */
static int64_t level_of(wr_case *c, const wr_big_block *b)
{
  char sql[640];
  int64_t level = 0, since = b->longest.since, next = b->longest.next;
  int64_t middle = since + (next - since) / 2, last = next - 1;
  (void)snprintf(
      sql, sizeof(sql),
      "SELECT ifnull(max(ifnull(sum(b), 0), ifnull(sum(m), 0), ifnull(sum(l), 0)), 0) FROM"
      " (SELECT CASE WHEN start <= %lld AND until > %lld THEN bytes END AS b,"
      " CASE WHEN start <= %lld AND until > %lld THEN bytes END AS m,"
      " CASE WHEN start <= %lld AND until > %lld THEN bytes END AS l"
      " FROM (SELECT k.bytes, k.start, ifnull(k.\"end\", ifnull(p.\"end\", %lld)) AS until"
      " FROM block k JOIN main.process p ON p.id = k.process"
      " WHERE k.mem = %d AND NOT k.registered AND k.device = %d))",
      (long long)since, (long long)since, (long long)middle, (long long)middle, (long long)last,
      (long long)last, (long long)c->duration, WEIR_MEM_DEVICE, b->device);
  if (!c->status) c->status = wr_db_number(c->db, sql, &level);
  return level;
}

/* Meanwhile the device's memory was at its peak, or near it. */
static bool is_wanted(wr_case *c, const wr_big_block *b, int64_t percent)
{
  const wr_idle_time *i = &b->longest;
  if (b->peak_at >= i->since && b->peak_at <= i->next) return true;
  return (double)level_of(c, b) >= (double)b->peak * 0.01 * (double)percent;
}

enum { HANDED_OVER = 2 /* launches that are handed a block, from which on all that use it are */ };

/* Of all launches meanwhile it is known that they are handed other memory: they may reach the block by
 * a pointer in device memory alone. A launch that is the only one to be handed it may have put its
 * address there: then the block has to be large. */
static bool is_handed_to_none(const wr_big_block *b, int64_t bytes_once)
{
  bool counts = b->handed != 1 || (int64_t)b->bytes >= bytes_once;
  return counts && !b->reached && b->longest.launches == b->longest.strange;
}

/* What an upload filled is to be used, where it ever is. */
static bool is_to_be_used(const wr_big_block *b)
{
  return b->longest.upload && (b->handed || !is_handed_to_none(b, 0));
}

/* One of the launches meanwhile may use it. Those that are known to be handed other memory may only
 * where the program does not hand it over: then it is in no set, or in that of its first launch; or
 * where they are handed a texture or a tensor map of it. */
static bool is_unsure(const wr_big_block *b)
{
  bool seen = b->handed >= HANDED_OVER && !b->reached;
  return b->longest.launches || (b->longest.others && !seen);
}

void wr_judge_idle_object(wr_case *c)
{
  const wr_big_block *big[WR_BIG_BLOCKS];
  const wr_big_limit limit = wr_idle_object_limit(c);
  int64_t bytes_unsure = wr_case_limit(c, "bytes_unsure"),
          percent_unsure = wr_case_limit(c, "percent_unsure"),
          bytes_once = wr_case_limit(c, "bytes_once"), operations = wr_case_limit(c, "operations"),
          level = wr_case_limit(c, "level");
  size_t count = choose(c, &limit, wr_case_limit(c, "most"), big);
  for (size_t i = 0; i < count; i++) {
    const wr_big_block *b = big[i];
    bool unsure = is_unsure(b);
    bool large = ((int64_t)b->bytes >= bytes_unsure || is_handed_to_none(b, bytes_once)) &&
                 (double)b->bytes >= (double)b->peak * 0.01 * (double)percent_unsure;
    if (!is_idle(c, b, limit.share) || (int64_t)b->longest.operations < operations) continue;
    if (unsure && (is_to_be_used(b) || !large)) continue;
    if (!is_wanted(c, b, level)) continue;
    wr_case_find(c, &(wr_found){.event = b->alloc,
                                .bytes = (int64_t)b->bytes,
                                .certainty = unsure              ? WR_POSSIBLE
                                             : b->longest.others ? WR_LIKELY
                                                                 : WR_CERTAIN});
  }
}

/* ---- 22: two blocks of which one would do ---------------------------------------------------- */

wr_big_limit wr_redundant_object_limit(wr_case *c)
{
  return (wr_big_limit){wr_case_limit(c, "min_bytes"), wr_case_limit(c, "percent"), 0};
}

static bool lives_at(const wr_big_block *b, int64_t time)
{
  return time >= b->start && time <= b->until;
}

/* Both live at the peak, of one size, and `a` is used for the last time before `b` is for the first. */
static bool could_be_one(const wr_big_block *a, const wr_big_block *b)
{
  bool alike = a->process == b->process && a->device == b->device && a->bytes == b->bytes;
  bool both = a->alloc != b->alloc && a->start < b->until && b->start < a->until;
  bool used = a->first_use <= a->last_use && b->first_use <= b->last_use;
  return alike && both && used && a->last_use <= b->first_use && lives_at(a, b->peak_at) &&
         lives_at(b, b->peak_at);
}

void wr_judge_redundant_object(wr_case *c)
{
  const wr_big_block *big[WR_BIG_BLOCKS];
  const wr_big_limit limit = wr_redundant_object_limit(c);
  size_t count = choose(c, &limit, wr_case_limit(c, "most"), big);
  for (size_t k = 0; k < count; k++) {
    int64_t one = 0;
    for (size_t i = 0; i < count; i++)
      if (could_be_one(big[i], big[k]) && big[i]->alloc > one) one = big[i]->alloc;
    if (!one) continue;
    wr_case_find(c, &(wr_found){.event = big[k]->alloc,
                                .related = one,
                                .bytes = (int64_t)big[k]->bytes,
                                .certainty = c->rule->certainty});
  }
}

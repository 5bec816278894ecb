-- number: 16
-- id: resized-allocation
-- title: Memory freed, and right after that allocated in another size, again and again
-- severity: medium
-- certainty: likely
-- often: 8
-- threshold: min_times 8 times at one place
-- threshold: most_between 1 allocations while it lives; with no more it is a temporary-allocation
-- threshold: next 4 events from the free to the allocation
-- threshold: free_cost 4 allocations, what the free of a block takes by itself at most
-- threshold: life 20 times what it saves, in which a block that lives longer may well be one of its own
-- rows: resized
-- fix: Allocate it once for the largest size and use a part of it, or in sizes rounded up; only what is larger needs a
--      new block.
WITH place AS MATERIALIZED (
  SELECT process, stack FROM pair_group GROUP BY process, stack HAVING count(*) >= :min_times / 2),
turn AS (
  SELECT r.*, max(r.bytes) OVER own AS most, avg(r.bytes) OVER own AS mean, count(*) OVER own AS times
  FROM resized r CROSS JOIN template t ON t.id = r.template
  WHERE r.next - r.free <= :next AND r.others > :most_between
    AND (t.process, t.stack) IN (SELECT process, stack FROM place)
  WINDOW own AS (PARTITION BY t.thread, t.stack))
-- what a block of its own costs is little next to a long life
SELECT event, template, cost_ns, related, saving_ns, CASE WHEN saving_ns * :life < life THEN 'possible' END AS certainty
FROM (
  SELECT u.alloc AS event, u.template, u.alloc_ns + u.free_ns AS cost_ns, u.free AS related,
         u.alloc_ns + CASE WHEN d.pending IS NOT 1 THEN u.free_ns WHEN w.unknown_ns = 0 THEN u.free_ns - w.working_ns
                      ELSE min(u.free_ns, :free_cost * u.alloc_ns) END AS saving_ns,
         (SELECT start FROM event_row WHERE id = u.free) - (SELECT start FROM event_row WHERE id = u.alloc) AS life
  FROM turn u LEFT JOIN wait_detail d ON d.id = u.free LEFT JOIN wait_time w ON w.id = u.free
  WHERE u.times >= :min_times AND NOT u.again AND u.most <= 2 * u.mean)

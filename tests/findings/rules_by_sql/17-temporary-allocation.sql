-- number: 17
-- id: temporary-allocation
-- title: Memory for a moment, of another size each time
-- severity: medium
-- certainty: likely
-- often: 4
-- threshold: min_pairs 16 times
-- threshold: most_between 1 allocations
-- threshold: free_cost 1 allocations, what the free of a block that had to wait takes by itself at most
-- prove: strict device
-- fix: Keep the largest block and use a part of it, or take it from a pool with cudaMallocAsync().
WITH place AS MATERIALIZED (
  SELECT process, stack, sum(brief) AS pairs, min(first_brief) AS first FROM pair_group
  WHERE brief GROUP BY process, stack)
SELECT p.alloc AS event, p.template AS template, p.alloc_ns + p.free_ns AS cost_ns, p.free AS related,
       p.alloc_ns + CASE WHEN d.pending IS NOT 1 THEN p.free_ns
                         WHEN u.unknown_ns = 0 THEN p.free_ns - u.working_ns
                         ELSE min(p.free_ns, :free_cost * p.alloc_ns) END AS saving_ns,
       CASE WHEN d.pending IS NOT 1 THEN p.free_ns
            WHEN u.unknown_ns = 0 THEN p.free_ns - u.working_ns
            ELSE min(p.free_ns, :free_cost * p.alloc_ns) END AS related_saving_ns,
       t.flags & $CACHED <> 0 AS removed
FROM pair p CROSS JOIN pair_group g ON g.id = p.family
JOIN place w ON w.process = g.process AND w.stack = g.stack
CROSS JOIN template t ON t.id = p.template
LEFT JOIN wait_detail d ON d.id = p.free LEFT JOIN wait_time u ON u.id = p.free
WHERE p.others <= :most_between AND g.brief BETWEEN 1 AND 7 AND w.pairs >= :min_pairs
  AND p.alloc <> w.first AND NOT t.flags & $ASYNC
  AND t.api NOT IN (SELECT id FROM api WHERE layer = 'weir')

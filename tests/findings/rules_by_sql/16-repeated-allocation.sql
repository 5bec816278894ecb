-- number: 16
-- id: repeated-allocation
-- title: The same memory allocated and freed again and again
-- severity: high
-- certainty: certain
-- often: 8
-- threshold: min_pairs 8 times
-- threshold: free_cost 4 allocations
-- prove: strict device
-- fix: Allocate it once before the loop, or take it from a pool with cudaMallocAsync(); 'weir run'
--      keeps such blocks in its cache.
SELECT p.alloc AS event, p.template AS template, p.alloc_ns + p.free_ns AS cost_ns,
       p.alloc_ns + CASE WHEN d.pending IS NOT 1 THEN p.free_ns
                         WHEN w.unknown_ns = 0 THEN p.free_ns - w.working_ns
                         ELSE min(g.least_free_ns, :free_cost * p.alloc_ns) END AS saving_ns,
       CASE WHEN d.pending IS NOT 1 THEN p.free_ns
            WHEN w.unknown_ns = 0 THEN p.free_ns - w.working_ns
            ELSE min(g.least_free_ns, :free_cost * p.alloc_ns) END AS related_saving_ns,
       p.free AS related, t.flags & $CACHED <> 0 AS removed
FROM pair p CROSS JOIN pair_group g ON g.id = p.family CROSS JOIN template t ON t.id = p.template
LEFT JOIN wait_detail d ON d.id = p.free LEFT JOIN wait_time w ON w.id = p.free
WHERE g.again >= :min_pairs - 1 AND p.again AND NOT t.flags & $ASYNC
  AND t.api NOT IN (SELECT id FROM api WHERE layer = 'weir')

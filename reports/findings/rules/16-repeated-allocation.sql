-- number: 16
-- id: repeated-allocation
-- title: The same memory allocated and freed again and again
-- severity: high
-- certainty: certain
-- threshold: min_pairs 8 times
-- prove: strict device
-- fix: Allocate it once before the loop, or take it from a pool with cudaMallocAsync(); 'weir run'
--      keeps such blocks in its cache.
SELECT p.alloc AS event, a.template AS template, a.duration + f.duration AS cost_ns,
       a.duration + CASE WHEN d.pending IS NOT 1 THEN f.duration
                         WHEN w.unknown_ns = 0 THEN f.duration - w.working_ns
                         ELSE min(a.duration, f.duration) END AS saving_ns,
       p.free AS related, t.flags & 64 <> 0 AS removed
FROM pair p CROSS JOIN pair_group g ON g.id = p.family
CROSS JOIN event_row a ON a.id = p.alloc CROSS JOIN template t ON t.id = a.template
CROSS JOIN event_row f ON f.id = p.free
LEFT JOIN wait_detail d ON d.id = p.free LEFT JOIN wait_time w ON w.id = p.free
WHERE g.pairs >= :min_pairs AND p.nth > 1 AND NOT t.flags & 1
  AND t.api NOT IN (SELECT id FROM api WHERE layer = 'weir')

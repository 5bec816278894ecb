-- number: 26
-- id: pinned-churn
-- title: Host memory pinned and unpinned again and again
-- severity: high
-- certainty: certain
-- threshold: min_pairs 8 times
-- prove: strict pinned
-- calls: t.kind = 11 OR (t.kind = 1 AND t.mem = 2)
-- fix: Keep one pinned buffer, or a ring of them, for the whole run; 'weir run' caches what
--      cudaMallocHost() and cudaHostAlloc() give.
WITH pair AS (
  SELECT b.alloc, b.free,
         count(*) OVER (PARTITION BY b.process, b.stack) AS pairs,
         row_number() OVER (PARTITION BY b.process, b.stack ORDER BY b.alloc) AS nth
  FROM block b WHERE b.how = 1 AND (b.mem = 2 OR b.registered) AND b.alloc IS NOT NULL)
SELECT p.alloc AS event, a.template AS template, a.duration + f.duration AS cost_ns, p.free AS related,
       t.flags & 64 <> 0 AS removed
FROM pair p CROSS JOIN event_row a ON a.id = p.alloc CROSS JOIN template t ON t.id = a.template
CROSS JOIN event_row f ON f.id = p.free
WHERE p.pairs >= :min_pairs AND p.nth > 1
  AND t.api NOT IN (SELECT id FROM api WHERE layer = 'weir')

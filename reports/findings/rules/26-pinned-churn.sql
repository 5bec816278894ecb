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
WITH life AS MATERIALIZED (
  SELECT b.process, b.stack, b.alloc, b.free, b.born, b.died, b.how = 1 AS freed
  FROM block b WHERE (b.mem = 2 OR b.registered) AND b.alloc IS NOT NULL),
step AS (
  SELECT *, sum(step) OVER (PARTITION BY process, stack ORDER BY place ROWS UNBOUNDED PRECEDING) AS live
  FROM (SELECT *, 1 AS step, born AS place FROM life
        UNION ALL SELECT *, -1, died FROM life WHERE died IS NOT NULL)),
pair AS (
  SELECT *, sum(freed AND again) OVER (PARTITION BY process, stack) AS times
  FROM (SELECT *, live <= max(live) OVER (PARTITION BY process, stack ORDER BY place
                                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS again FROM step)
  WHERE step = 1)
SELECT p.alloc AS event, a.template AS template, a.duration + f.duration AS cost_ns, p.free AS related,
       t.flags & 64 <> 0 AS removed
FROM pair p CROSS JOIN event_row a ON a.id = p.alloc CROSS JOIN template t ON t.id = a.template
CROSS JOIN event_row f ON f.id = p.free
WHERE p.times >= :min_pairs - 1 AND p.freed AND p.again
  AND t.api NOT IN (SELECT id FROM api WHERE layer = 'weir')

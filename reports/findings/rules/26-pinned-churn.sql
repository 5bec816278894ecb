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
WITH step AS (
  SELECT b.process, b.stack, b.alloc, b.free, b.how = 1 AND b.alloc IS NOT NULL AS freed, x.step,
         sum(x.step) OVER (PARTITION BY b.process, b.stack ORDER BY CASE x.step WHEN 1 THEN b.born ELSE b.died END
                           ROWS UNBOUNDED PRECEDING) AS live,
         CASE x.step WHEN 1 THEN b.born ELSE b.died END AS place
  FROM block b CROSS JOIN (SELECT 1 AS step UNION ALL SELECT -1) x
  WHERE (b.mem = 2 OR b.registered) AND b.alloc IS NOT NULL AND (x.step = 1 OR b.died IS NOT NULL)),
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

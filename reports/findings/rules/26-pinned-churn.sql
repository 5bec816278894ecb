-- number: 26
-- id: pinned-churn
-- title: Host memory pinned and unpinned again and again
-- severity: high
-- certainty: certain
-- often: 4
-- threshold: min_pairs 8 times
-- prove: strict pinned
-- calls: t.kind = $HOSTREG OR (t.kind = $ALLOC AND t.mem = $PINNED)
-- fix: Keep one pinned buffer, or a ring of them, for the whole run; 'weir run' caches what
--      cudaMallocHost() and cudaHostAlloc() give.
WITH life AS MATERIALIZED (
  SELECT b.process, b.stack, b.alloc, b.free, b.born, b.died
  FROM block b WHERE b.how = $FREED AND (b.mem = $PINNED OR b.registered) AND b.alloc IS NOT NULL),
family AS MATERIALIZED (
  SELECT process, stack, min(died) AS first, max(born) AS last FROM life GROUP BY process, stack),
use AS MATERIALIZED (
  SELECT f.process, f.stack, f.first, sum(l.died < f.last) AS freed FROM life l CROSS JOIN family f
  WHERE l.process IS f.process AND l.stack IS f.stack GROUP BY f.process, f.stack),
pair AS (
  SELECT l.alloc, l.free, f.freed, row_number() OVER (PARTITION BY f.process, f.stack ORDER BY l.born) AS nth
  FROM life l CROSS JOIN use f WHERE l.process IS f.process AND l.stack IS f.stack AND l.born > f.first)
SELECT p.alloc AS event, a.template AS template, a.duration + f.duration AS cost_ns, p.free AS related,
       t.flags & $CACHED <> 0 AS removed
FROM pair p CROSS JOIN event_row a ON a.id = p.alloc CROSS JOIN template t ON t.id = a.template
CROSS JOIN event_row f ON f.id = p.free
WHERE p.freed >= :min_pairs - 1 AND p.nth <= p.freed
  AND t.api NOT IN (SELECT id FROM api WHERE layer = 'weir')

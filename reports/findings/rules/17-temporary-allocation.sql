-- number: 17
-- id: temporary-allocation
-- title: Memory for a moment, of another size each time
-- severity: medium
-- certainty: likely
-- threshold: min_pairs 16 times
-- threshold: most_between 1 allocations
-- prove: strict device
-- fix: Keep the largest block and use a part of it, or take it from a pool with cudaMallocAsync().
WITH pair AS MATERIALIZED (
  SELECT b.process, b.stack, b.device, b.alloc, b.free, b.bytes, b.start AS born, b."end" AS died
  FROM block b WHERE b.how = 1 AND NOT b.registered AND b.mem = 3 AND b.alloc IS NOT NULL),
both AS (
  SELECT process, born AS time, 1 AS one, alloc AS id FROM pair
  UNION ALL SELECT process, died, 0, free FROM pair),
counted AS MATERIALIZED (
  SELECT id, one, sum(one) OVER (PARTITION BY process ORDER BY time) AS allocs FROM both),
short AS (
  SELECT p.*, count(*) OVER (PARTITION BY p.process, p.stack) AS pairs,
         count(*) OVER (PARTITION BY p.process, p.stack, p.device, p.bytes) AS alike,
         row_number() OVER (PARTITION BY p.process, p.stack ORDER BY p.born) AS nth
  FROM pair p JOIN counted a ON a.id = p.alloc AND a.one = 1 JOIN counted f ON f.id = p.free AND f.one = 0
  WHERE f.allocs - a.allocs <= :most_between)
SELECT s.alloc AS event, a.duration + min(a.duration, f.duration) AS cost_ns, s.free AS related,
       t.flags & 64 <> 0 AS removed
FROM short s CROSS JOIN event_row a ON a.id = s.alloc CROSS JOIN template t ON t.id = a.template
CROSS JOIN event_row f ON f.id = s.free
WHERE s.pairs >= :min_pairs AND s.alike < 8 AND s.nth > 1 AND NOT t.flags & 1
  AND t.api NOT IN (SELECT id FROM api WHERE layer = 'weir')

-- number: 16
-- id: repeated-import
-- title: Memory of another process opened and closed again and again
-- severity: high
-- certainty: likely
-- often: 4
-- threshold: min_pairs 8 times
-- calls: t.kind = $ALLOC AND t.mem = $IMPORTED
-- fix: Call cudaIpcOpenMemHandle() once for each block of the other process, and keep what it gives
--      until that process frees the block.
WITH life AS MATERIALIZED (
  SELECT b.process, b.stack, b.device, b.bytes, b.alloc, b.free, b.born, b.died
  FROM block b WHERE b.how = $FREED AND NOT b.registered AND b.mem = $IMPORTED AND b.alloc IS NOT NULL),
family AS MATERIALIZED (
  SELECT process, stack, device, bytes, min(died) AS first, max(born) AS last FROM life GROUP BY process, stack, device, bytes),
use AS MATERIALIZED (
  SELECT f.process, f.stack, f.device, f.bytes, f.first, sum(l.died < f.last) AS freed FROM life l CROSS JOIN family f
  WHERE l.process IS f.process AND l.stack IS f.stack AND l.device IS f.device AND l.bytes IS f.bytes GROUP BY f.process, f.stack, f.device, f.bytes),
pair AS (
  SELECT l.alloc, l.free, f.freed, row_number() OVER (PARTITION BY f.process, f.stack, f.device, f.bytes ORDER BY l.born) AS nth
  FROM life l CROSS JOIN use f WHERE l.process IS f.process AND l.stack IS f.stack AND l.device IS f.device AND l.bytes IS f.bytes AND l.born > f.first)
SELECT p.alloc AS event, a.duration + f.duration AS cost_ns, p.free AS related,
       a.duration + CASE WHEN d.pending IS NOT 1 THEN f.duration ELSE 0 END AS saving_ns
FROM pair p CROSS JOIN event_row a ON a.id = p.alloc CROSS JOIN event_row f ON f.id = p.free
LEFT JOIN wait_detail d ON d.id = p.free
WHERE p.freed >= :min_pairs - 1 AND p.nth <= p.freed

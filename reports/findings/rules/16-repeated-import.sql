-- number: 16
-- id: repeated-import
-- title: Memory of another process opened and closed again and again
-- severity: high
-- certainty: likely
-- threshold: min_pairs 8 times
-- calls: t.kind = 1 AND t.mem = 8
-- fix: Call cudaIpcOpenMemHandle() once for each block of the other process, and keep what it gives
--      until that process frees the block.
WITH life AS MATERIALIZED (
  SELECT b.process, b.stack, b.device, b.bytes, b.alloc, b.free, b.born, b.died, b.how = 1 AND NOT b.registered AS freed
  FROM block b WHERE b.mem = 8 AND b.alloc IS NOT NULL),
step AS (
  SELECT *, sum(step) OVER (PARTITION BY process, stack, device, bytes ORDER BY place ROWS UNBOUNDED PRECEDING) AS live
  FROM (SELECT *, 1 AS step, born AS place FROM life
        UNION ALL SELECT *, -1, died FROM life WHERE died IS NOT NULL)),
pair AS (
  SELECT *, sum(freed AND again) OVER (PARTITION BY process, stack, device, bytes) AS times
  FROM (SELECT *, live <= max(live) OVER (PARTITION BY process, stack, device, bytes ORDER BY place
                                          ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS again FROM step)
  WHERE step = 1)
SELECT p.alloc AS event, a.duration + f.duration AS cost_ns, p.free AS related,
       a.duration + CASE WHEN d.pending IS NOT 1 THEN f.duration ELSE 0 END AS saving_ns
FROM pair p CROSS JOIN event_row a ON a.id = p.alloc CROSS JOIN event_row f ON f.id = p.free
LEFT JOIN wait_detail d ON d.id = p.free
WHERE p.times >= :min_pairs - 1 AND p.freed AND p.again

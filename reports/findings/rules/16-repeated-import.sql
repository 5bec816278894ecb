-- number: 16
-- id: repeated-import
-- title: Memory of another process opened and closed again and again
-- severity: high
-- certainty: likely
-- threshold: min_pairs 8 times
-- calls: t.kind = 1 AND t.mem = 8
-- fix: Call cudaIpcOpenMemHandle() once for each block of the other process, and keep what it gives
--      until that process frees the block.
WITH step AS (
  SELECT b.process, b.stack, b.device, b.bytes, b.alloc, b.free, b.how = 1 AND NOT b.registered AS freed, x.step,
         sum(x.step) OVER (PARTITION BY b.process, b.stack, b.device, b.bytes
                           ORDER BY CASE x.step WHEN 1 THEN b.born ELSE b.died END
                           ROWS UNBOUNDED PRECEDING) AS live,
         CASE x.step WHEN 1 THEN b.born ELSE b.died END AS place
  FROM block b CROSS JOIN (SELECT 1 AS step UNION ALL SELECT -1) x
  WHERE b.mem = 8 AND b.alloc IS NOT NULL AND (x.step = 1 OR b.died IS NOT NULL)),
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

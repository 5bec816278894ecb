-- number: 16
-- id: repeated-import
-- title: Memory of another process opened and closed again and again
-- severity: high
-- certainty: likely
-- threshold: min_pairs 8 times
-- calls: t.kind = 1 AND t.mem = 8
-- fix: Call cudaIpcOpenMemHandle() once for each block of the other process, and keep what it gives
--      until that process frees the block.
WITH pair AS (
  SELECT b.alloc, b.free, count(*) OVER same AS pairs,
         row_number() OVER (PARTITION BY b.process, b.stack, b.device, b.bytes ORDER BY b.alloc) AS nth
  FROM block b WHERE b.how = 1 AND NOT b.registered AND b.mem = 8 AND b.alloc IS NOT NULL
  WINDOW same AS (PARTITION BY b.process, b.stack, b.device, b.bytes))
SELECT p.alloc AS event, a.duration + f.duration AS cost_ns, p.free AS related,
       a.duration + CASE WHEN d.pending IS NOT 1 THEN f.duration ELSE 0 END AS saving_ns
FROM pair p CROSS JOIN event_row a ON a.id = p.alloc CROSS JOIN event_row f ON f.id = p.free
LEFT JOIN wait_detail d ON d.id = p.free
WHERE p.pairs >= :min_pairs AND p.nth > 1

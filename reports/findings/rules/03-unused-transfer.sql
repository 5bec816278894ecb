-- number: 3
-- id: unused-transfer
-- title: Copy to the device that nothing can have read before its memory was freed
-- severity: medium
-- certainty: certain
-- fix: Delete the copy, or make it where its data is used: no kernel, graph or copy came between it
--      and the free.
WITH step AS (
  SELECT e.id, t.process, t.kind, t.copy, t.mem, t.flags, e.a, e.bytes, e.duration, e.start,
         sum(t.kind IN (6, 12) OR (t.kind = 3 AND t.src_mem NOT IN (1, 2, 6)) OR t.flags & 16 <> 0)
           OVER (PARTITION BY t.process ORDER BY e.start) AS reads
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind IN (2, 3, 6, 12) AND t.status = 0),
copied AS (
  SELECT id, process, a, bytes, duration, start, reads FROM step
  WHERE kind = 3 AND copy = 1 AND mem = 3 AND bytes > 0 AND NOT flags & 16),
freed AS (SELECT id, process, a, start, reads FROM step WHERE kind = 2 AND NOT flags & 16)
SELECT c.id AS event, c.duration AS cost_ns, c.bytes AS bytes, min(f.id) AS related
FROM copied c JOIN freed f ON f.process = c.process AND f.a = c.a AND f.reads = c.reads 
  AND f.start > c.start
GROUP BY c.id

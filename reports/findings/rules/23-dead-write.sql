-- number: 23
-- id: dead-write
-- title: Device memory written again before anything can have read it
-- severity: medium
-- certainty: certain
-- fix: Drop the first memset or copy: the next one writes the same bytes, and no kernel, graph or copy
--      came between.
WITH step AS (
  SELECT e.id, t.process, t.stream, t.kind, t.mem, t.flags, e.a, e.bytes, e.duration, e.start,
         sum(t.kind IN (2, 6, 12) OR (t.kind = 3 AND t.src_mem NOT IN (1, 2, 6)) OR t.flags & 16 <> 0)
           OVER (PARTITION BY t.process ORDER BY e.start) AS reads
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind IN (2, 3, 4, 6, 12) AND t.status = 0),
pair AS (
  SELECT *, lead(id) OVER own AS next, lead(stream) OVER own AS next_stream
  FROM step WHERE mem = 3 AND bytes > 0 AND (kind = 4 OR kind = 3) AND NOT flags & 16
  WINDOW own AS (PARTITION BY process, a, bytes, reads ORDER BY start))
SELECT id AS event, duration AS cost_ns, bytes AS bytes, next AS related,
       CASE WHEN next_stream = stream THEN 'certain' ELSE 'possible' END AS certainty
FROM pair WHERE next IS NOT NULL

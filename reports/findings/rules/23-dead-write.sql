-- number: 23
-- id: dead-write
-- title: Device memory written again before anything can have read it
-- severity: medium
-- certainty: certain
-- fix: Drop the first memset or copy: the next one writes the same bytes, and no kernel, graph or copy
--      came between.
WITH step AS MATERIALIZED (
  SELECT e.id, t.process, t.stream, t.kind, t.mem, t.flags, e.a, e.bytes, e.duration, e.start,
         sum(t.kind IN (2, 6, 12) OR (t.kind = 3 AND t.src_mem NOT IN (1, 2, 6)) OR t.flags & 16 <> 0)
           OVER (PARTITION BY t.process ORDER BY e.start) AS reads
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind IN (2, 3, 4, 6, 12) AND t.status = 0),
again AS MATERIALIZED (
  SELECT process, a, bytes, reads, max(start) AS last, id AS last_id, stream AS last_stream
  FROM step WHERE mem = 3 AND bytes > 0 AND kind IN (3, 4) AND NOT flags & 16
  GROUP BY process, a, bytes, reads HAVING count(*) > 1)
SELECT s.id AS event, s.duration AS cost_ns, s.bytes AS bytes, g.last_id AS related,
       CASE WHEN s.stream = g.last_stream THEN 'certain' ELSE 'possible' END AS certainty
FROM step s JOIN again g ON g.process = s.process AND g.a = s.a AND g.bytes = s.bytes
  AND g.reads = s.reads
WHERE s.kind IN (3, 4) AND s.mem = 3 AND NOT s.flags & 16 AND s.start < g.last

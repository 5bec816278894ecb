-- number: 20
-- id: late-free
-- title: Memory freed only after other memory was taken, though its last use was before
-- severity: low
-- certainty: likely
-- holds: bytes
-- fix: Free it before the allocation that follows its last use: the peak is lower by as much.
WITH step AS MATERIALIZED (
  SELECT *, sum(kind = 0) OVER (PARTITION BY process ORDER BY start) AS part FROM (
    SELECT t.process, e.start, 0 AS kind, NULL AS alloc, NULL AS bytes, NULL AS free
    FROM event_row e CROSS JOIN template t ON t.id = e.template
    WHERE t.kind IN (3, 4, 6, 12) OR t.flags & 16
    UNION ALL SELECT b.process, b.start, 1, b.alloc, b.bytes, NULL FROM block b
    WHERE b.alloc IS NOT NULL AND NOT b.registered AND b.mem = 3
    UNION ALL SELECT b.process, b."end", 2, b.alloc, b.bytes, b.free FROM block b
    WHERE b.how = 1 AND b.alloc IS NOT NULL AND NOT b.registered AND b.mem = 3)),
gone AS MATERIALIZED (SELECT * FROM step WHERE kind = 2),
old AS MATERIALIZED (
  SELECT g.process, g.alloc, g.free, g.bytes, g.start, g.part FROM gone g
  CROSS JOIN step b ON b.alloc = g.alloc WHERE b.kind = 1 AND b.part < g.part),
taken AS MATERIALIZED (
  SELECT process, part, min(start) AS first FROM step WHERE kind = 1 GROUP BY process, part)
SELECT o.free AS event, o.bytes AS bytes, o.alloc AS related FROM old o
CROSS JOIN taken t ON t.process = o.process AND t.part = o.part WHERE t.first < o.start

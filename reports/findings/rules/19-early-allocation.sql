-- number: 19
-- id: early-allocation
-- title: Memory taken long before its first use, while other memory was still to be freed
-- severity: low
-- certainty: likely
-- holds: bytes
-- fix: Allocate it after the frees that come before its first use: the peak is lower by as much.
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
freed AS MATERIALIZED (
  SELECT process, part, max(start) AS last FROM old GROUP BY process, part),
early AS MATERIALIZED (
  SELECT s.process, s.alloc, s.bytes, s.part FROM step s
  CROSS JOIN freed f ON f.process = s.process AND f.part = s.part
  WHERE s.kind = 1 AND s.start < f.last),
used AS MATERIALIZED (
  SELECT process, max(part) AS last FROM step GROUP BY process)
SELECT a.alloc AS event, a.bytes AS bytes FROM early a JOIN used u ON u.process = a.process
WHERE a.part < u.last
  AND NOT EXISTS (SELECT 1 FROM gone g WHERE g.alloc = a.alloc AND g.part = a.part)

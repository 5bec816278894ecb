-- number: 19
-- id: early-allocation
-- title: Memory taken long before its first use, while other memory was still to be freed
-- severity: low
-- certainty: likely
-- holds: bytes
-- fix: Allocate it after the frees that come before its first use: the peak is lower by as much.
WITH step AS (
  SELECT t.process, e.start, 0 AS kind, NULL AS alloc, NULL AS bytes, NULL AS died
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind IN (3, 4, 6, 12) OR t.flags & 16
  UNION ALL SELECT b.process, b.start, 1, b.alloc, b.bytes, b."end" FROM block b
  WHERE b.alloc IS NOT NULL AND NOT b.registered AND b.mem = 3
  UNION ALL SELECT b.process, b."end", 2, b.free, NULL, NULL FROM block b
  WHERE b.how = 1 AND NOT b.registered AND b.mem = 3),
ahead AS (
  SELECT *, min(CASE kind WHEN 0 THEN start END) OVER later AS use,
         min(CASE kind WHEN 2 THEN start END) OVER later AS freed
  FROM step WINDOW later AS (PARTITION BY process ORDER BY start
                             ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING))
SELECT alloc AS event, bytes AS bytes FROM ahead
WHERE kind = 1 AND freed < use AND (died IS NULL OR died > use)

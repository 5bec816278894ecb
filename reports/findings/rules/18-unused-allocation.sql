-- number: 18
-- id: unused-allocation
-- title: Device memory that nothing can have used
-- severity: medium
-- certainty: certain
-- threshold: min_bytes 4096 bytes
-- holds: bytes
-- fix: Delete the allocation: no copy, memset, kernel or graph came in its life.
WITH own AS (
  SELECT b.process, b.alloc, b.free, b.pointer, b.bytes, b.start,
         ifnull(b."end", 9223372036854775807) AS until
  FROM block b WHERE b.how IN (0, 1) AND NOT b.registered AND b.mem = 3 AND b.alloc IS NOT NULL
    AND b.bytes >= :min_bytes),
both AS (
  SELECT process, start, alloc, free, pointer, bytes, until FROM own
  UNION ALL
  SELECT t.process, e.start, NULL, NULL, NULL, NULL, NULL FROM event_row e
  CROSS JOIN template t ON t.id = e.template WHERE t.kind IN (6, 12) OR t.flags & 16),
ahead AS (
  SELECT *, min(CASE WHEN alloc IS NULL THEN start END) OVER (PARTITION BY process ORDER BY start
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS next FROM both),
idle AS MATERIALIZED (
  SELECT * FROM ahead WHERE alloc IS NOT NULL AND (next IS NULL OR next > until)),
moved AS MATERIALIZED (
  SELECT t.process, e.start, e.a, e.b, e.bytes, t.kind FROM event_row e
  CROSS JOIN template t ON t.id = e.template WHERE t.kind IN (3, 4) AND EXISTS (SELECT 1 FROM idle))
SELECT i.alloc AS event, i.bytes AS bytes, i.free AS related FROM idle i
WHERE NOT EXISTS (
  SELECT 1 FROM moved m WHERE m.process = i.process AND m.start BETWEEN i.start AND i.until
    AND (m.a BETWEEN i.pointer AND i.pointer + i.bytes - 1
         OR i.pointer BETWEEN m.a AND m.a + m.bytes - 1
         OR (m.kind = 3 AND (m.b BETWEEN i.pointer AND i.pointer + i.bytes - 1
                             OR i.pointer BETWEEN m.b AND m.b + m.bytes - 1))))

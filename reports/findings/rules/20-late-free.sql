-- number: 20
-- id: late-free
-- title: Memory freed only after other memory was taken, though its last use was before
-- severity: low
-- certainty: likely
-- holds: bytes
-- fix: Free it before the allocation that follows its last use: the peak is lower by as much.
WITH step AS (
  SELECT t.process, e.start, 0 AS kind, NULL AS alloc, NULL AS bytes, NULL AS free, NULL AS born
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind IN (3, 4, 6, 12) OR t.flags & 16
  UNION ALL SELECT b.process, b.start, 1, b.alloc, NULL, NULL, NULL FROM block b
  WHERE b.alloc IS NOT NULL AND NOT b.registered AND b.mem = 3
  UNION ALL SELECT b.process, b."end", 2, b.alloc, b.bytes, b.free, b.start FROM block b
  WHERE b.how = 1 AND b.alloc IS NOT NULL AND NOT b.registered AND b.mem = 3),
behind AS (
  SELECT *, max(CASE kind WHEN 0 THEN start END) OVER before AS use,
         max(CASE kind WHEN 1 THEN start END) OVER before AS taken,
         max(CASE kind WHEN 1 THEN alloc END) OVER before AS other
  FROM step WINDOW before AS (PARTITION BY process ORDER BY start
                              ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
SELECT free AS event, bytes AS bytes, alloc AS related FROM behind
WHERE kind = 2 AND taken > use AND born < use

-- number: 22
-- id: redundant-object
-- title: Two blocks of one size, of which one is used only when the other is no more
-- severity: low
-- certainty: certain
-- holds: bytes
-- threshold: min_bytes 1048576 bytes
-- threshold: percent 5 percent of the device's peak
-- threshold: most 64 blocks
-- fix: Use one block for both: the last use of the first comes before the first use of the second.
WITH big AS MATERIALIZED (
  SELECT b.alloc, b.process, b.device, b.pointer, b.bytes, b.start, m.peak_at,
         ifnull(b."end", ifnull(p."end", :duration_ns)) AS until
  FROM block b JOIN process p ON p.id = b.process
  JOIN memory m ON m.device = b.device AND m.mem IS NULL AND NOT m.registered
  WHERE b.mem = 3 AND NOT b.registered AND b.alloc IS NOT NULL AND b.how IN (0, 1, 2)
    AND b.bytes >= :min_bytes AND b.bytes >= m.peak * 0.01 * :percent
  ORDER BY b.bytes DESC, b.alloc LIMIT :most),
pair AS MATERIALIZED (
  SELECT a.alloc AS one, b.alloc AS two FROM big a JOIN big b ON b.process = a.process
    AND b.device = a.device AND b.bytes = a.bytes AND b.alloc <> a.alloc
    AND b.start < a.until AND a.start < b.until),
mate AS MATERIALIZED (
  SELECT * FROM big WHERE alloc IN (SELECT one FROM pair UNION SELECT two FROM pair)),
used AS MATERIALIZED (
  SELECT b.alloc, min(e.start) AS first, max(e.start + e.duration) AS last
  FROM event_row e CROSS JOIN template t ON t.id = e.template CROSS JOIN mate b
  WHERE t.kind IN (3, 4, 6, 12) AND b.process = t.process AND e.start BETWEEN b.start AND b.until
    AND (t.kind IN (6, 12) OR t.flags & 16
         OR e.a BETWEEN b.pointer AND b.pointer + b.bytes - 1
         OR b.pointer BETWEEN e.a AND e.a + e.bytes - 1
         OR (t.kind = 3 AND (e.b BETWEEN b.pointer AND b.pointer + b.bytes - 1
                             OR b.pointer BETWEEN e.b AND e.b + e.bytes - 1)))
  GROUP BY b.alloc)
SELECT p.two AS event, max(p.one) AS related, b.bytes AS bytes
FROM pair p JOIN mate a ON a.alloc = p.one JOIN mate b ON b.alloc = p.two
JOIN used u ON u.alloc = p.one JOIN used v ON v.alloc = p.two
WHERE u.last <= v.first
  AND b.peak_at BETWEEN b.start AND b.until AND b.peak_at BETWEEN a.start AND a.until
GROUP BY p.two

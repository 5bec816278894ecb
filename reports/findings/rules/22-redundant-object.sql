-- number: 22
-- id: redundant-object
-- title: Two blocks of one size, of which one is used only when the other is no more
-- severity: low
-- certainty: certain
-- needs: whole_run
-- holds: bytes
-- threshold: min_bytes 1048576 bytes
-- threshold: percent 5 percent of the device's peak
-- threshold: most 24 blocks
-- fix: Use one block for both: the last use of the first comes before the first use of the second.
-- judge: redundant-object
WITH big AS MATERIALIZED (
  SELECT b.alloc, b.process, b.device, b.pointer, b.bytes, b.start, m.peak_at,
         ifnull(b."end", ifnull(p."end", :duration_ns)) AS until
  FROM block b JOIN process p ON p.id = b.process
  JOIN memory m ON m.device = b.device AND m.mem IS NULL AND NOT m.registered
  WHERE b.mem = $DEVICE AND NOT b.registered AND b.alloc IS NOT NULL AND b.how IN ($LIVE, $FREED, $ENDED_BY_RESET)
    AND b.alloc NOT IN (SELECT alloc FROM given_block)
    AND b.bytes >= :min_bytes AND b.bytes >= m.peak * 0.01 * :percent
  ORDER BY b.bytes DESC, b.alloc LIMIT :most),
pair AS MATERIALIZED (
  SELECT a.alloc AS one, b.alloc AS two FROM big a JOIN big b ON b.process = a.process
    AND b.device = a.device AND b.bytes = a.bytes AND b.alloc <> a.alloc
    AND b.start < a.until AND a.start < b.until),
mate AS MATERIALIZED (
  SELECT * FROM big WHERE alloc IN (SELECT one FROM pair UNION SELECT two FROM pair)),
work AS (
  SELECT t.process, e.start AS time, e.start + e.duration AS until, NULL AS alloc
  FROM (SELECT 1 FROM mate LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE (t.kind IN ($LAUNCH, $CALL) OR t.flags & $CAPTURED) AND t.process IN (SELECT process FROM mate)),
next AS MATERIALIZED (
  SELECT alloc, next FROM (
    SELECT alloc, min(CASE WHEN alloc IS NULL THEN time END) OVER (PARTITION BY process ORDER BY time DESC) AS next
    FROM (SELECT process, time, alloc FROM work UNION ALL SELECT process, start, alloc FROM mate))
  WHERE alloc IS NOT NULL),
before AS MATERIALIZED (
  SELECT alloc, before FROM (
    SELECT alloc, max(CASE WHEN alloc IS NULL THEN until END) OVER (PARTITION BY process ORDER BY time) AS before
    FROM (SELECT process, time, until, alloc FROM work UNION ALL SELECT process, until, until, alloc FROM mate))
  WHERE alloc IS NOT NULL),
named AS (
  SELECT b.alloc, e.start, e.start + e.duration AS until
  FROM (SELECT 1 FROM mate LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  CROSS JOIN mate b
  WHERE t.kind IN ($COPY, $MEMSET) AND b.process = t.process AND e.start BETWEEN b.start AND b.until
    AND (e.a BETWEEN b.pointer AND b.pointer + b.bytes - 1
         OR b.pointer BETWEEN e.a AND e.a + e.bytes - 1
         OR (t.kind = $COPY AND (e.b BETWEEN b.pointer AND b.pointer + b.bytes - 1
                             OR b.pointer BETWEEN e.b AND e.b + e.bytes - 1)))
  UNION ALL SELECT b.alloc, n.next, n.next FROM mate b JOIN next n ON n.alloc = b.alloc WHERE n.next <= b.until
  UNION ALL SELECT b.alloc, n.before, n.before FROM mate b JOIN before n ON n.alloc = b.alloc
  WHERE n.before >= b.start),
used AS MATERIALIZED (
  SELECT alloc, min(start) AS first, max(until) AS last FROM named GROUP BY alloc)
SELECT p.two AS event, max(p.one) AS related, b.bytes AS bytes
FROM pair p JOIN mate a ON a.alloc = p.one JOIN mate b ON b.alloc = p.two
JOIN used u ON u.alloc = p.one JOIN used v ON v.alloc = p.two
WHERE u.last <= v.first
  AND b.peak_at BETWEEN b.start AND b.until AND b.peak_at BETWEEN a.start AND a.until
GROUP BY p.two

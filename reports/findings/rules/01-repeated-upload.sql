-- number: 1
-- id: repeated-upload
-- title: The same pageable buffer copied to the same memory of a device again and again
-- severity: medium
-- certainty: possible
-- threshold: min_times 16 times
-- fix: Where its bytes do not change, copy them once before the loop and keep them on the device:
--      'weir run --hash' says whether they do.
WITH upload AS MATERIALIZED (
  SELECT t.process, ifnull(t.stack, 0) AS stack, e.a, e.b, e.bytes, count(*) AS times, min(e.id) AS first
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 3 AND t.copy = 1 AND t.status = 0 AND NOT t.flags & 16 AND t.src_mem IN (1, 6) AND e.bytes > 0
  GROUP BY t.process, ifnull(t.stack, 0), e.a, e.b, e.bytes HAVING count(*) >= :min_times),
filled AS MATERIALIZED (
  SELECT t.process, e.a, max(e.bytes) AS bytes FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 3 AND t.copy IN (2, 9) AND t.status = 0 AND NOT t.flags & 16 AND EXISTS (SELECT 1 FROM upload)
  GROUP BY t.process, e.a),
constant AS MATERIALIZED (
  SELECT process, stack, a, b, bytes, first FROM upload u WHERE NOT EXISTS (
    SELECT 1 FROM filled f WHERE f.process = u.process AND f.a < u.b + u.bytes AND f.a + f.bytes > u.b))
SELECT e.id AS event, e.duration AS cost_ns, e.bytes AS bytes
FROM event_row e CROSS JOIN template t ON t.id = e.template
WHERE t.kind = 3 AND t.copy = 1 AND t.status = 0 AND NOT t.flags & 16 AND t.src_mem IN (1, 6)
  AND (t.process, ifnull(t.stack, 0), e.a, e.b, e.bytes) IN (SELECT process, stack, a, b, bytes FROM constant)
  AND e.id NOT IN (SELECT first FROM constant)
  AND NOT EXISTS (SELECT 1 FROM copy_hash h WHERE h.event = e.id AND h.outcome = 1)

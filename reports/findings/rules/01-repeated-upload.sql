-- number: 1
-- id: repeated-upload
-- title: The same pageable buffer copied to the same memory of a device again and again
-- severity: medium
-- certainty: possible
-- threshold: min_times 16 times
-- fix: Where its bytes do not change, copy them once before the loop and keep them on the device:
--      'weir run --hash' says whether they do.
WITH step AS (
  SELECT e.id, e.start, t.process, t.kind, t.copy, t.flags, t.stack, t.src_mem, e.a, e.b, e.bytes, e.duration, h.id IS NOT NULL AS known
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  LEFT JOIN copy_hash h ON h.event = e.id AND h.event IS NOT NULL AND h.outcome = 1
  WHERE t.kind = 3 AND t.copy IN (1, 2, 9) AND t.status = 0 AND NOT t.flags & 16),
filled AS (
  SELECT process, min(a) AS a, max(bytes) AS bytes FROM step WHERE copy <> 1 GROUP BY process, a),
again AS (
  SELECT *, count(*) OVER same AS times,
         row_number() OVER (PARTITION BY process, a, b, bytes, stack ORDER BY start, id) AS nth,
         first_value(id) OVER (PARTITION BY process, a, b, bytes, stack ORDER BY start, id) AS first
  FROM step WHERE copy = 1 AND NOT known AND src_mem IN (1, 6) AND bytes > 0
  WINDOW same AS (PARTITION BY process, a, b, bytes, stack)),
many AS MATERIALIZED (
  SELECT process, b, bytes FROM again WHERE times >= :min_times AND nth = 1),
constant AS MATERIALIZED (
  SELECT process, b, bytes FROM many m WHERE NOT EXISTS (
    SELECT 1 FROM filled f WHERE f.process = m.process AND f.a < m.b + m.bytes AND f.a + f.bytes > m.b))
SELECT id AS event, duration AS cost_ns, bytes AS bytes
FROM again WHERE times >= :min_times AND nth > 1 AND (process, b, bytes) IN constant

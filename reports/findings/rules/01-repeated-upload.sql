-- number: 1
-- id: repeated-upload
-- title: The same host buffer copied to the same memory of a device again and again
-- severity: medium
-- certainty: possible
-- later: copy
-- threshold: min_times 16 times
-- threshold: min_hashed 16 copies whose bytes were compared, from which on sampled-upload-again has them
-- decides: weir run --hash
-- rows: repeated_copy
-- calls: t.kind = $COPY AND t.copy = $H2D AND t.src_mem IN ($PAGEABLE, $PINNED, $HOST)
-- fix: Run 'weir run --hash', which decides: where the bytes are the same each time, copy them once before
--      the loop and keep them on the device; where they are not, nothing is wasted.
WITH many AS MATERIALIZED (
  SELECT f.id, t.process, e.b, e.bytes FROM copy_family f CROSS JOIN event_row e ON e.id = f.first
  CROSS JOIN template t ON t.id = e.template WHERE f.times >= :min_times),
filled AS MATERIALIZED (
  SELECT t.process, e.a, max(e.bytes) AS bytes FROM (SELECT 1 FROM many LIMIT 1) CROSS JOIN event_row e
  CROSS JOIN template t ON t.id = e.template WHERE t.kind = $COPY AND t.copy IN ($D2H, $H2H)
    AND t.status = $SUCCESS AND NOT t.flags & $CAPTURED
  GROUP BY t.process, e.a),
constant AS MATERIALIZED (
  SELECT id FROM many m WHERE NOT EXISTS (
    SELECT 1 FROM filled f WHERE f.process = m.process AND f.a < m.b + m.bytes AND f.a + f.bytes > m.b)),
differs AS MATERIALIZED ( -- of which some copies were hashed, and not all had the same bytes
  SELECT d.family FROM (SELECT 1 FROM copy_hash LIMIT 1) CROSS JOIN repeated_copy d
  CROSS JOIN copy_hash g ON g.event = d.event AND g.event IS NOT NULL AND g.outcome = $HASHED
  GROUP BY d.family HAVING count(DISTINCT g.hash_low) > 1),
looked AS MATERIALIZED (
  SELECT d.family FROM (SELECT 1 FROM copy_hash LIMIT 1) CROSS JOIN repeated_copy d
  CROSS JOIN copy_hash g ON g.event = d.event AND g.event IS NOT NULL AND g.outcome = $HASHED
  GROUP BY d.family HAVING count(*) >= :min_hashed),
nth AS MATERIALIZED (
  SELECT d.family, d.event, ntile(4) OVER (PARTITION BY d.family ORDER BY d.event) AS quarter
  FROM repeated_copy d WHERE d.family IN (SELECT family FROM looked)),
alike AS MATERIALIZED ( -- those are sampled-upload-again's
  SELECT n.family FROM nth n CROSS JOIN copy_hash g ON g.event = n.event AND g.event IS NOT NULL AND g.outcome = $HASHED
  GROUP BY n.family HAVING min(n.quarter) = 1 AND max(n.quarter) = 4)
SELECT r.event AS event, r.template AS template, r.duration AS cost_ns, 0 AS saving_ns, r.bytes AS bytes
FROM repeated_copy r LEFT JOIN copy_hash h ON h.event = r.event AND h.event IS NOT NULL AND h.outcome = $HASHED
WHERE r.family IN constant AND h.id IS NULL AND r.family NOT IN (SELECT family FROM differs) AND r.family NOT IN (SELECT family FROM alike)

-- number: 1
-- id: sampled-upload-again
-- title: Uploads of a place that carried the same bytes whenever they were looked at
-- severity: high
-- certainty: likely
-- later: copy
-- needs: copy_hash
-- decides: weir run --hash=on
-- threshold: min_hashed 16 copies of the same memory to the same memory at one place whose bytes were compared
-- threshold: own 50000 ns, what a copy takes by itself beyond its bytes at one a ns: the rest is a wait, which stays
-- rows: repeated_copy
-- calls: t.kind = $COPY AND t.copy = $H2D AND t.src_mem IN ($PAGEABLE, $PINNED, $HOST)
-- fix: Copy them once and keep them on the device. Where a kernel writes over them, keep a buffer to copy from with
--      cudaMemcpyAsync(): the device's memory is many times as fast as the link.
WITH looked AS MATERIALIZED ( -- whose copies that were hashed all had the same bytes
  SELECT r.family FROM (SELECT 1 FROM copy_hash LIMIT 1) CROSS JOIN repeated_copy r
  CROSS JOIN copy_hash h ON h.event = r.event AND h.event IS NOT NULL AND h.outcome = $HASHED
  GROUP BY r.family HAVING count(*) >= :min_hashed AND count(DISTINCT h.hash_low) = 1 AND count(DISTINCT h.hash_high) = 1),
nth AS MATERIALIZED (
  SELECT r.family, r.event, ntile(4) OVER (PARTITION BY r.family ORDER BY r.event) AS quarter
  FROM repeated_copy r WHERE r.family IN (SELECT family FROM looked)),
throughout AS MATERIALIZED ( -- some of the first quarter of them, and some of the last
  SELECT n.family FROM nth n CROSS JOIN copy_hash h ON h.event = n.event AND h.event IS NOT NULL AND h.outcome = $HASHED
  GROUP BY n.family HAVING min(n.quarter) = 1 AND max(n.quarter) = 4)
SELECT r.event AS event, r.template AS template, r.duration AS cost_ns, min(r.duration, :own + r.bytes) AS saving_ns,
       r.bytes AS bytes
FROM repeated_copy r LEFT JOIN copy_hash h ON h.event = r.event AND h.event IS NOT NULL AND h.outcome = $HASHED
WHERE r.family IN (SELECT family FROM throughout) AND h.id IS NULL

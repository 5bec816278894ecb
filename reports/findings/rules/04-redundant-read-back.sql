-- number: 4
-- id: redundant-read-back
-- title: Memory of a device read back again, though nothing has written it
-- severity: high
-- certainty: likely
-- threshold: min_bytes 1024 bytes
-- fix: Keep what the first copy brought: no kernel, graph, copy or memset came between.
WITH step AS (
  SELECT e.id, e.start, t.process, t.kind, t.copy, t.src_mem, t.flags, e.b, e.bytes, e.duration,
         sum(t.kind <> 3 OR t.mem NOT IN (1, 2, 6))
           OVER (PARTITION BY t.process ORDER BY e.start, e.id) AS writes
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind IN (1, 2, 3, 4, 6, 10, 12) AND t.status = 0),
again AS (
  SELECT *, lag(id) OVER (PARTITION BY process, b, bytes, writes ORDER BY start, id) AS first
  FROM step
  WHERE kind = 3 AND copy = 2 AND src_mem = 3 AND bytes >= :min_bytes AND NOT flags & 16)
SELECT a.id AS event, a.duration AS cost_ns, a.bytes AS bytes, a.first AS related,
       CASE WHEN h.hash_low = g.hash_low THEN 'certain' ELSE 'likely' END AS certainty
FROM again a
LEFT JOIN copy_hash h ON h.event = a.id AND h.event IS NOT NULL AND h.outcome = 1
LEFT JOIN copy_hash g ON g.event = a.first AND g.event IS NOT NULL AND g.outcome = 1
WHERE a.first IS NOT NULL AND ifnull(h.hash_low = g.hash_low AND h.hash_high = g.hash_high, 1)

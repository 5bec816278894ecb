-- number: 4
-- id: redundant-read-back
-- title: Memory of a device read back again, though nothing has written it
-- severity: high
-- certainty: likely
-- later: copy
-- mostly: 25
-- threshold: min_bytes 1024 bytes
-- threshold: own 50000 ns, what a copy takes by itself beyond its bytes at one a ns: the rest is a wait, which stays
-- calls: t.kind = $COPY AND t.copy = $D2H
-- fix: Keep what the first copy brought: no graph, copy or memset came between, and no kernel that is handed this memory
--      as one that it may write.
WITH again AS (
  SELECT event, earlier, template, duration, bytes, 'certain' AS at_best FROM reread UNION ALL
  SELECT event, earlier, template, duration, bytes, 'likely' FROM read_again
  WHERE event NOT IN (SELECT event FROM reread))
SELECT r.event AS event, r.template AS template, r.duration AS cost_ns,
       min(r.duration, :own + r.bytes) AS saving_ns, r.bytes AS bytes, r.earlier AS related,
       CASE WHEN h.hash_low = g.hash_low THEN r.at_best ELSE 'likely' END AS certainty
FROM again r
LEFT JOIN copy_hash h ON h.event = r.event AND h.event IS NOT NULL AND h.outcome = $HASHED
LEFT JOIN copy_hash g ON g.event = r.earlier AND g.event IS NOT NULL AND g.outcome = $HASHED
WHERE r.bytes >= :min_bytes AND ifnull(h.hash_low = g.hash_low AND h.hash_high = g.hash_high, 1)

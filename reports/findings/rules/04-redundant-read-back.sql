-- number: 4
-- id: redundant-read-back
-- title: Memory of a device read back again, though nothing has written it
-- severity: high
-- certainty: likely
-- mostly: 25
-- threshold: min_bytes 1024 bytes
-- threshold: own 50000 ns, what a copy takes by itself beyond its bytes at one a ns: the rest is a wait, which stays
-- rows: reread
-- fix: Keep what the first copy brought: no kernel, graph, copy or memset came between.
SELECT r.event AS event, r.template AS template, r.duration AS cost_ns,
       min(r.duration, :own + r.bytes) AS saving_ns, r.bytes AS bytes, r.earlier AS related,
       CASE WHEN h.hash_low = g.hash_low THEN 'certain' ELSE 'likely' END AS certainty
FROM reread r
LEFT JOIN copy_hash h ON h.event = r.event AND h.event IS NOT NULL AND h.outcome = $HASHED
LEFT JOIN copy_hash g ON g.event = r.earlier AND g.event IS NOT NULL AND g.outcome = $HASHED
WHERE r.bytes >= :min_bytes AND ifnull(h.hash_low = g.hash_low AND h.hash_high = g.hash_high, 1)

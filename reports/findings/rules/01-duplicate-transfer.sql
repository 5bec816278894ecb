-- number: 1
-- id: duplicate-transfer
-- title: The same bytes copied to a device again
-- severity: high
-- certainty: likely
-- later: copy
-- needs: copy_hash
-- threshold: min_bytes 1024 bytes
-- threshold: own 50000 ns, what a copy takes by itself beyond its bytes at one a ns: the rest is a wait, which stays
-- calls: t.kind = $COPY AND t.copy = $H2D
-- fix: Copy them once and keep them on the device. Where a kernel writes over them, or two buffers need them, keep a
--      buffer to copy from with cudaMemcpyAsync(): the device's memory is many times as fast as the link.
-- judge: duplicate-transfer
WITH step AS (
  SELECT e.id, e.start, t.process, t.device, t.kind, t.copy, e.a, e.bytes, e.duration,
         h.hash_low, h.hash_high, h.uniform,
         t.kind IN ($ALLOC, $FREE, $MEMSET) OR (t.kind = $COPY AND t.mem NOT IN ($PAGEABLE, $PINNED, $HOST)) AS touches,
         sum(t.kind <> $COPY OR t.mem NOT IN ($PAGEABLE, $PINNED, $HOST))
           OVER (PARTITION BY t.process ORDER BY e.start, e.id) AS writes
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  LEFT JOIN copy_hash h ON h.event = e.id AND h.event IS NOT NULL AND h.outcome = $HASHED
  WHERE t.kind IN ($ALLOC, $FREE, $COPY, $MEMSET, $LAUNCH, $RESET, $CALL) AND t.status = $SUCCESS),
written AS (
  SELECT id, start, process, device, copy, bytes, duration, hash_low, hash_high, uniform,
         lag(id) OVER place AS here, writes - lag(writes) OVER place AS between_them,
         hash_low = lag(hash_low) OVER place AND hash_high = lag(hash_high) OVER place
           AND bytes = lag(bytes) OVER place AS same
  FROM step WHERE touches WINDOW place AS (PARTITION BY process, a ORDER BY start, id)),
again AS (
  SELECT *, lag(id) OVER (PARTITION BY hash_low, hash_high, process, device, bytes
                          ORDER BY start, id) AS earlier
  FROM written WHERE copy = $H2D AND hash_low IS NOT NULL AND (same OR bytes >= :min_bytes)
    AND id NOT IN (SELECT event FROM given_copy))
SELECT id AS event, duration AS cost_ns, min(duration, :own + bytes) AS saving_ns, bytes AS bytes, CASE WHEN same THEN here ELSE earlier END AS related,
       CASE WHEN same AND between_them = 1 THEN 'certain' WHEN same THEN 'likely' ELSE 'possible' END
         AS certainty
FROM again WHERE NOT (uniform AND bytes >= 4096) AND (same OR (earlier IS NOT NULL AND NOT uniform)) -- those are rule 28's

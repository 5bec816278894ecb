-- number: 2
-- id: round-trip
-- title: Bytes that went to the other side and came back as they were
-- severity: high
-- certainty: likely
-- later: round
-- needs: copy_hash
-- threshold: min_bytes 1024 bytes
-- threshold: own 50000 ns, what a copy takes by itself beyond its bytes at one a ns: the rest is a wait, which stays
-- calls: t.kind = $COPY AND t.copy = $D2H
-- fix: Keep them where they were: neither copy is needed while the memory they came from still has them.
-- judge: round-trip
WITH step AS (
  SELECT e.id, e.start, t.process, t.kind, t.copy, e.bytes, e.duration, h.hash_low, h.hash_high,
         CASE t.copy WHEN $D2H THEN t.src_device ELSE t.device END AS device,
         CASE WHEN t.kind = $COPY AND t.copy = $D2H THEN e.b ELSE e.a END AS at,
         h.outcome = $HASHED AND NOT h.uniform AS known,
         t.kind IN ($ALLOC, $FREE, $MEMSET) OR (t.kind = $COPY AND t.mem NOT IN ($PAGEABLE, $PINNED, $HOST)) AS touches,
         sum(t.kind <> $COPY OR t.mem NOT IN ($PAGEABLE, $PINNED, $HOST))
           OVER (PARTITION BY t.process ORDER BY e.start, e.id) AS writes
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  LEFT JOIN copy_hash h ON h.event = e.id AND h.event IS NOT NULL
  WHERE t.kind IN ($ALLOC, $FREE, $COPY, $MEMSET, $LAUNCH, $RESET, $CALL) AND t.status = $SUCCESS),
placed AS (
  SELECT *, min(CASE WHEN touches THEN start END) OVER (PARTITION BY process, at
           ORDER BY start DESC, id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS touched
  FROM step WHERE touches OR (kind = $COPY AND copy = $D2H)),
pair AS (
  SELECT *, lag(id) OVER same AS out, lag(copy) OVER same AS out_copy, lag(at) OVER same AS out_at,
         lag(touched) OVER same AS out_touched, lag(writes) OVER same AS out_writes
  FROM placed WHERE kind = $COPY AND copy IN ($H2D, $D2H) AND known AND bytes >= :min_bytes
    AND id NOT IN (SELECT event FROM given_copy)
  WINDOW same AS (PARTITION BY hash_low, hash_high, process, device, bytes ORDER BY start, id))
SELECT id AS event, duration AS cost_ns, min(duration, :own + bytes) AS saving_ns, bytes AS bytes, out AS related,
       CASE WHEN writes - (copy = $H2D) = out_writes THEN 'certain' ELSE 'likely' END AS certainty
FROM pair
WHERE copy <> out_copy AND ifnull(out_touched >= start, 1) AND (copy = $H2D OR at = out_at)

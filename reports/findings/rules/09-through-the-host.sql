-- number: 9
-- id: through-the-host
-- title: Memory of a device copied to the host, and from there to a device again
-- severity: high
-- certainty: possible
-- threshold: min_bytes 1024 bytes
-- threshold: min_times 4 times
-- threshold: max_gap 20000 ns
-- fix: Where the host does not change the bytes, copy from device to device: cudaMemcpyPeerAsync()
--      to another one, nothing at all or cudaMemcpyAsync() on the same.
WITH step AS (
  SELECT e.id, e.start, e.start + e.duration AS until, t.process, t.thread, t.copy, t.stack, e.bytes, e.duration,
         CASE t.copy WHEN 1 THEN e.b ELSE e.a END AS host, h.id IS NOT NULL AS known
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  LEFT JOIN copy_hash h ON h.event = e.id AND h.event IS NOT NULL AND h.outcome = 1
  WHERE t.kind = 3 AND t.copy IN (1, 2) AND t.status = 0 AND NOT t.flags & 16),
pair AS (
  SELECT *, lag(id) OVER own AS out, lag(copy) OVER own AS out_copy, lag(bytes) OVER own AS out_bytes,
         lag(known) OVER own AS out_known, lag(until) OVER own AS out_until
  FROM step WINDOW own AS (PARTITION BY process, host ORDER BY start, id)),
bounce AS (
  SELECT *, count(*) OVER place AS times,
         sum(start - out_until <= :max_gap AND (start - out_until) * 50 < bytes) OVER place AS short
  FROM pair
  WHERE copy = 1 AND out_copy = 2 AND bytes = out_bytes AND bytes >= :min_bytes
    AND NOT (known AND out_known)
  WINDOW place AS (PARTITION BY process, stack))
SELECT id AS event, duration AS cost_ns, bytes AS bytes, out AS related,
       CASE WHEN short * 2 >= times THEN 'likely' ELSE 'possible' END AS certainty
FROM bounce WHERE times >= :min_times

-- number: 9
-- id: through-the-host
-- title: Memory of a device copied to the host, and from there to a device again
-- severity: high
-- certainty: possible
-- threshold: min_bytes 1024 bytes
-- threshold: min_times 4 times
-- threshold: max_gap 20000 ns
-- calls: t.kind = 3 AND t.copy = 2
-- fix: Where the host does not change the bytes, copy from device to device: cudaMemcpyPeerAsync()
--      to another one, nothing at all or cudaMemcpyAsync() on the same.
WITH down AS MATERIALIZED (
  SELECT DISTINCT t.process, e.a AS host FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 3 AND t.copy = 2 AND t.status = 0 AND NOT t.flags & 16 AND e.bytes >= :min_bytes),
step AS (
  SELECT e.id, t.process, t.copy, e.start, e.a AS host FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 3 AND t.copy = 2 AND t.status = 0 AND NOT t.flags & 16 AND EXISTS (SELECT 1 FROM down)
  UNION ALL
  SELECT e.id, t.process, t.copy, e.start, e.b FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 3 AND t.copy = 1 AND t.status = 0 AND NOT t.flags & 16 AND (t.process, e.b) IN down),
pair AS (
  SELECT id, copy, lag(id) OVER own AS out, lag(copy) OVER own AS out_copy
  FROM step WINDOW own AS (PARTITION BY process, host ORDER BY start, id)),
bounce AS (
  SELECT p.id, p.out, e.duration, e.bytes, count(*) OVER place AS times,
         sum(e.start - o.start - o.duration <= :max_gap AND (e.start - o.start - o.duration) * 50 < e.bytes)
           OVER place AS short
  FROM pair p CROSS JOIN event_row e ON e.id = p.id CROSS JOIN template t ON t.id = e.template
  CROSS JOIN event_row o ON o.id = p.out
  WHERE p.copy = 1 AND p.out_copy = 2 AND e.bytes = o.bytes AND e.bytes >= :min_bytes
    AND NOT (EXISTS (SELECT 1 FROM copy_hash h WHERE h.event = p.id AND h.outcome = 1)
             AND EXISTS (SELECT 1 FROM copy_hash h WHERE h.event = p.out AND h.outcome = 1))
  WINDOW place AS (PARTITION BY t.process, t.stack))
SELECT id AS event, duration AS cost_ns, bytes AS bytes, out AS related,
       CASE WHEN short * 2 >= times THEN 'likely' ELSE 'possible' END AS certainty
FROM bounce WHERE times >= :min_times

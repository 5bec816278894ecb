-- number: 32
-- id: launch-queue-full
-- title: Launches that block the host, because the stream has no room for more
-- severity: low
-- certainty: likely
-- threshold: depth 1000 operations
-- threshold: min_ns 20000 ns
-- fix: Make the kernels larger, or launch many of them as one graph; the device is busy meanwhile, so
--      that only a host with other work gains.
WITH deep AS MATERIALIZED (
  SELECT t.process, t.context, t.stream FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE (t.kind IN (3, 4, 6) OR (t.kind = 12 AND t.stream <> 0)) AND t.status = 0 AND NOT t.flags & 16
  GROUP BY 1, 2, 3 HAVING count(*) > :depth),
step AS (
  SELECT e.id, e.start, e.duration, t.process, t.context, t.stream, t.thread, t.kind, t.copy,
         sum(t.kind = 5 AND t.copy <> 2) OVER (PARTITION BY t.process ORDER BY e.start, e.id) AS waits,
         lead(e.start) OVER (PARTITION BY t.thread ORDER BY e.start, e.id) AS next
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind IN (1, 2, 3, 4, 5, 6, 12) AND t.status = 0 AND NOT t.flags & 16
    AND t.process IN (SELECT process FROM deep)),
queued AS (
  SELECT *, lag(id, :depth) OVER own AS ahead, lag(waits, :depth) OVER own AS waits_ahead
  FROM step WHERE (kind IN (3, 4, 6) OR (kind = 12 AND stream <> 0)) AND (process, context, stream) IN deep
  WINDOW own AS (PARTITION BY process, context, stream ORDER BY start, id)),
blocked AS MATERIALIZED (
  SELECT q.*, (SELECT min(d.start) FROM device_work d WHERE d.event = q.ahead) AS begun FROM queued q
  WHERE q.kind = 6 AND q.duration >= :min_ns AND q.ahead IS NOT NULL)
SELECT id AS event, duration AS cost_ns, max(min(duration, ifnull(next - start - duration, 0)), 0) AS saving_ns,
       CASE WHEN begun IS NULL THEN 'likely' ELSE 'certain' END AS certainty
FROM blocked WHERE begun >= start OR (begun IS NULL AND waits = waits_ahead)

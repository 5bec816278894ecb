-- number: 32
-- id: launch-queue-full
-- title: Launches that block the host, because the stream has no room for more
-- severity: low
-- certainty: likely
-- threshold: depth 1000 operations
-- threshold: min_ns 20000 ns
-- threshold: min_times 8 such launches of a stream
-- threshold: min_sum 1000000 ns in them: their number by the median
-- calls: t.kind = 6
-- fix: Make the kernels larger, or launch many of them as one graph; the device is busy meanwhile, so
--      that only a host with other work gains.
WITH long AS MATERIALIZED (
  SELECT t.process, t.context, t.stream, e.duration, row_number() OVER own AS nth,
         count(*) OVER (PARTITION BY t.process, t.context, t.stream) AS times
  FROM (SELECT 1 FROM template_use u CROSS JOIN template l ON l.id = u.template
        WHERE l.kind = 6 AND u.longest >= :min_ns LIMIT 1)
  CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 6 AND t.status = 0 AND NOT t.flags & 16 AND e.duration >= :min_ns
  WINDOW own AS (PARTITION BY t.process, t.context, t.stream ORDER BY e.duration)),
slow AS MATERIALIZED (
  SELECT process, context, stream FROM long
  WHERE nth = (times + 1) / 2 AND times >= :min_times AND times * duration >= :min_sum),
queued AS (
  SELECT e.id, t.kind, e.duration, lag(e.id, :depth) OVER own AS ahead, lag(e.id, 4) OVER own AS back
  FROM (SELECT 1 FROM slow LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE (t.kind IN (3, 4, 6) OR (t.kind = 12 AND t.stream <> 0)) AND t.status = 0 AND NOT t.flags & 16
    AND (t.process, t.context, t.stream) IN slow
  WINDOW own AS (PARTITION BY t.process, t.context, t.stream ORDER BY e.id)),
deep AS MATERIALIZED (
  SELECT q.id, q.ahead, t.process, t.context, t.stream, t.thread, e.start, e.duration,
         (SELECT min(d.start) FROM device_work d WHERE d.event = q.ahead) AS begun,
         lag(q.id, 2) OVER own >= q.back AS again
  FROM queued q CROSS JOIN event_row e ON e.id = q.id CROSS JOIN template t ON t.id = e.template
  WHERE q.kind = 6 AND q.duration >= :min_ns AND q.ahead IS NOT NULL
  WINDOW own AS (PARTITION BY t.process, t.context, t.stream ORDER BY q.id)),
point AS (
  SELECT e.id, t.process, 1 AS wait FROM (SELECT 1 FROM deep LIMIT 1) CROSS JOIN event_row e
  CROSS JOIN template t ON t.id = e.template
  WHERE t.status = 0 AND (t.kind = 5 AND t.copy <> 2 OR t.kind = 3 AND NOT t.flags & 16
                          AND (t.copy = 2 AND t.flags & 2 OR t.copy = 1 AND t.flags & 3 = 2))
  UNION ALL SELECT id, process, 0 FROM deep UNION ALL SELECT ahead, process, 0 FROM deep),
counted AS MATERIALIZED (
  SELECT id, wait, sum(wait) OVER (PARTITION BY process ORDER BY id) AS waits FROM point),
blocked AS (
  SELECT DISTINCT d.*, (SELECT n.start FROM event_row n CROSS JOIN template u ON u.id = n.template
                        WHERE n.id > d.id AND u.thread = d.thread ORDER BY n.id LIMIT 1) AS next
  FROM deep d JOIN counted c ON c.id = d.id AND NOT c.wait JOIN counted a ON a.id = d.ahead AND NOT a.wait
  WHERE d.begun >= d.start OR (d.begun IS NULL AND c.waits = a.waits AND d.again)),
ranked AS (
  SELECT *, row_number() OVER own AS nth, count(*) OVER (PARTITION BY process, context, stream) AS times
  FROM blocked WINDOW own AS (PARTITION BY process, context, stream ORDER BY duration)),
typical AS MATERIALIZED (SELECT process, context, stream, duration AS ns FROM ranked WHERE nth = (times + 1) / 2)
SELECT b.id AS event, min(b.duration, m.ns) AS cost_ns,
       max(min(b.duration, m.ns, ifnull(b.next - b.start - b.duration, 0)), 0) AS saving_ns,
       CASE WHEN b.begun IS NULL THEN 'likely' ELSE 'certain' END AS certainty
FROM ranked b JOIN typical m ON m.process = b.process AND m.context IS b.context AND m.stream = b.stream
WHERE b.times >= :min_times

-- number: 32
-- id: launch-queue-full
-- title: Launches that block the host, because the stream has no room for more
-- severity: low
-- certainty: likely
-- threshold: min_ns 20000 ns
-- threshold: min_times 8 such launches of a stream
-- threshold: min_sum 1000000 ns in them: their number by the median
-- rows: deep_launch
-- calls: t.kind = $LAUNCH
-- names: kernels
-- fix: Make the kernels larger, or launch many of them as one graph; the device is busy meanwhile, so
--      that only a host with other work gains.
WITH deep AS MATERIALIZED (
  SELECT l.event, l.duration, l.quiet, e.start, t.process, t.context, t.stream, t.thread,
         (SELECT min(d.start) FROM device_work d WHERE d.event = l.ahead) AS begun
  FROM deep_launch l CROSS JOIN event_row e ON e.id = l.event CROSS JOIN template t ON t.id = l.template
  WHERE l.duration >= :min_ns),
blocked AS MATERIALIZED (
  SELECT * FROM deep WHERE begun >= start OR (begun IS NULL AND quiet)),
long AS MATERIALIZED (
  SELECT t.process, t.context, t.stream, e.duration, row_number() OVER own AS nth,
         count(*) OVER (PARTITION BY t.process, t.context, t.stream) AS times
  FROM (SELECT 1 FROM blocked LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $LAUNCH AND t.status = $SUCCESS AND NOT t.flags & $CAPTURED AND e.duration >= :min_ns
  WINDOW own AS (PARTITION BY t.process, t.context, t.stream ORDER BY e.duration)),
slow AS MATERIALIZED (
  SELECT process, context, stream FROM long
  WHERE nth = (times + 1) / 2 AND times >= :min_times AND times * duration >= :min_sum),
ranked AS MATERIALIZED (
  SELECT *, row_number() OVER own AS nth, count(*) OVER (PARTITION BY process, context, stream) AS times
  FROM blocked WHERE (process, context, stream) IN slow
  WINDOW own AS (PARTITION BY process, context, stream ORDER BY duration)),
typical AS MATERIALIZED (SELECT process, context, stream, duration AS ns FROM ranked WHERE nth = (times + 1) / 2),
after AS (
  SELECT b.*, m.ns, (SELECT n.start FROM event_row n CROSS JOIN template u ON u.id = n.template
                     WHERE n.id > b.event AND u.thread = b.thread ORDER BY n.id LIMIT 1) AS next
  FROM ranked b JOIN typical m ON m.process = b.process AND m.context IS b.context AND m.stream = b.stream
  WHERE b.times >= :min_times)
SELECT event, min(duration, ns) AS cost_ns,
       max(min(duration, ns, ifnull(next - start - duration, 0)), 0) AS saving_ns,
       CASE WHEN begun IS NULL THEN 'likely' ELSE 'certain' END AS certainty
FROM after

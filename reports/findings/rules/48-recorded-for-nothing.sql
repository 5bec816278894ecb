-- number: 48
-- id: recorded-for-nothing
-- title: Events that are recorded in each step, and that nothing waits for or asks
-- severity: low
-- certainty: possible
-- threshold: min_times 64 records at one place
-- threshold: clock 20 ns a call, what measuring it adds where a read of the clock takes 14 ns
-- calls: t.kind = $EVENT AND t.api IN (SELECT id FROM api WHERE name GLOB 'cu*EventRecord*')
-- fix: Delete the cudaEventRecord(), or make it where the event is used alone, as when times are asked for.
WITH record AS MATERIALIZED (
  SELECT e.id, e.template, e.duration, e.a, t.process FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $EVENT AND t.status = $SUCCESS AND NOT t.flags & $CAPTURED
    AND t.api IN (SELECT id FROM api WHERE name GLOB 'cu*EventRecord*')),
used AS MATERIALIZED ( -- a handle that any other call but those that make and end it was given
  SELECT DISTINCT t.process, e.a AS handle FROM (SELECT 1 FROM record LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  CROSS JOIN api x ON x.id = t.api
  WHERE (t.kind = $WAIT AND t.copy IN ($FOR_EVENT, $STREAM_WAITS, $QUERY)) OR t.flags & $CAPTURED
     OR (t.kind IN ($EVENT, $CALL) AND x.name NOT GLOB 'cu*EventRecord*' AND x.name NOT GLOB 'cu*EventCreate*' AND x.name NOT GLOB 'cu*EventDestroy*')
  UNION
  SELECT DISTINCT t.process, e.b FROM (SELECT 1 FROM record LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind IN ($EVENT, $CALL)),
place AS (
  SELECT r.template FROM record r GROUP BY r.template
  HAVING count(*) >= :min_times AND NOT sum((r.process, r.a) IN (SELECT process, handle FROM used)))
SELECT id AS event, template, duration AS cost_ns, max(duration - (:clock + :clock_more), 1) AS saving_ns FROM record
WHERE template IN (SELECT template FROM place)

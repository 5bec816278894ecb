-- number: 57
-- id: host-and-device-in-turn
-- title: Host and device work in turn: neither does while the other works
-- severity: medium
-- certainty: possible
-- threshold: min_gap 50000 ns that the host takes by itself after the wait
-- threshold: min_times 32 times at a place
-- threshold: near 16 events before the wait, in which it has to be seen that nothing else was queued
-- threshold: min_share 10 percent of the time from the first of them to the last
-- needs: wait_detail
-- names: kernels
-- fix: Queue the next step before the host works on what this one has brought: two buffers, an event each, and the wait is
--      for the older one.
WITH graph AS MATERIALIZED ( -- functions that launch one
  SELECT id FROM api WHERE instr(name, 'GraphLaunch')),
alone AS MATERIALIZED ( -- processes of which one thread queues work
  SELECT process FROM template WHERE kind IN ($LAUNCH, $COPY, $MEMSET) OR (kind = $CALL AND api IN (SELECT id FROM graph))
  GROUP BY process HAVING count(DISTINCT thread) = 1),
result AS ( -- waits, and copies that wait by themselves
  SELECT event, template, duration, gap, 0 AS copies FROM wait_ahead
  UNION ALL SELECT event, template, duration, gap, 1 FROM result_copy),
turn AS MATERIALIZED ( -- what it brings is there, nothing else is under way, and the host works by itself
  SELECT w.event, w.template, w.duration, min(w.duration, w.gap) AS gain, e.start, t.process, t.thread, t.stack
  FROM result w CROSS JOIN wait_detail d ON d.id = w.event CROSS JOIN event_row e ON e.id = w.event
  CROSS JOIN template t ON t.id = w.template
  WHERE d.pending = 1 AND (w.copies OR d.host & $HOST_READS) AND w.gap > :min_gap AND t.process IN (SELECT process FROM alone)
    AND w.event NOT IN (SELECT event FROM timed_wait) AND w.event - d.youngest BETWEEN 1 AND :near
    AND NOT EXISTS (
      SELECT 1 FROM event_row o CROSS JOIN template u ON u.id = o.template
      WHERE o.id BETWEEN d.youngest - :near AND w.event - 1
        AND (u.kind IN ($LAUNCH, $COPY, $MEMSET) OR (u.kind = $CALL AND u.api IN (SELECT id FROM graph)))
        AND u.process = t.process AND NOT u.flags & $CAPTURED AND (o.id > d.youngest OR u.stream <> d.stream))),
place AS (
  SELECT process, thread, stack FROM turn GROUP BY process, thread, stack
  HAVING count(*) >= :min_times AND sum(gain) * 100.0 >= :min_share * (max(start) - min(start)))
SELECT event, template, duration AS cost_ns, gain AS saving_ns FROM turn
WHERE (process, thread, stack) IN (SELECT process, thread, stack FROM place)

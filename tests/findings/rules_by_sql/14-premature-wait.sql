-- number: 14
-- id: premature-wait
-- title: Wait for work whose results the host does not look at before it queues more
-- severity: high
-- certainty: likely
-- often: 8
-- mostly: 50
-- threshold: max_gap 50000 ns
-- threshold: min_far 8 times, where the host works longer than that before it queues more
-- needs: wait_detail
-- fix: Remove the wait, or move it to where the result is used: a stream runs its work in order, and the
--      host can queue ahead meanwhile. Where the host fills or reads memory of its own behind the wait,
--      take two buffers with an event each.
WITH needless AS MATERIALIZED (
  SELECT w.*, d.host, w.gap > :max_gap AS far
  FROM wait_ahead w CROSS JOIN wait_detail d ON d.id = w.event
  WHERE d.pending = 1 AND NOT d.host & $HOST_READS AND NOT (w.gap > :max_gap AND w.shared)
    AND w.event NOT IN (SELECT event FROM timed_wait)),
counted AS (
  SELECT *, sum(far) OVER (PARTITION BY template) AS times FROM needless)
SELECT event, template, duration AS cost_ns, gain AS saving_ns,
       CASE WHEN far OR shared OR host & $HOST_WRITES THEN 'possible' ELSE 'likely' END AS certainty
FROM counted WHERE NOT far OR times >= :min_far

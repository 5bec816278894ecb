-- number: 14
-- id: premature-wait
-- title: Wait for work whose results the host does not look at before it queues more
-- severity: high
-- certainty: likely
-- often: 8
-- mostly: 50
-- threshold: max_gap 50000 ns
-- needs: wait_detail
-- fix: Remove the wait, or move it to where the result is used: a stream runs its work in order, and the
--      host can queue ahead meanwhile. Where the host fills or reads memory of its own behind the wait,
--      take two buffers with an event each.
SELECT w.event AS event, w.template AS template, w.duration AS cost_ns,
       min(w.duration, ifnull(w.next_wait, w.duration)) AS saving_ns,
       CASE WHEN w.shared OR d.host & $HOST_WRITES THEN 'possible' ELSE 'likely' END AS certainty
FROM wait_ahead w CROSS JOIN wait_detail d ON d.id = w.event
WHERE d.pending = 1 AND w.gap <= :max_gap AND NOT d.host & $HOST_READS
  AND w.event NOT IN (SELECT event FROM timed_wait)

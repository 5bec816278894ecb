-- number: 14
-- id: premature-wait
-- title: Wait for work whose results the host does not look at before it queues more
-- severity: high
-- certainty: likely
-- threshold: max_gap 50000 ns
-- needs: wait_detail
-- fix: Remove the wait, or move it to where the result is used: a stream runs its work in order, and the
--      host can queue ahead meanwhile.
WITH shared AS (
  SELECT DISTINCT t.process FROM template t WHERE t.kind = 1 AND t.mem = 4)
SELECT w.event AS event, w.template AS template, w.duration AS cost_ns,
       min(w.duration, ifnull(w.next_wait, w.duration)) AS saving_ns,
       CASE WHEN t.process IN shared THEN 'possible' ELSE 'likely' END AS certainty
FROM wait_ahead w CROSS JOIN wait_detail d ON d.id = w.event
CROSS JOIN template t ON t.id = w.template
WHERE d.pending = 1 AND w.gap <= :max_gap

-- number: 14
-- id: premature-wait
-- title: Wait for work whose results the host does not look at before it queues more
-- severity: high
-- certainty: likely
-- threshold: max_gap 50000 ns
-- needs: wait_detail
-- fix: Remove the wait, or move it to where the result is used: a stream runs its work in order, and the
--      host can queue ahead meanwhile.
WITH step AS (
  SELECT e.id, t.process, t.thread, t.kind, e.start, e.duration,
         sum(t.kind = 3 AND t.copy NOT IN (1, 8, 10) OR t.kind = 12 OR t.flags & 16 <> 0) OVER own AS back,
         lead(t.kind) OVER own AS next_kind, lead(t.copy) OVER own AS next_copy,
         lead(e.start) OVER own AS next
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.status = 0 AND (t.kind IN (3, 4, 6, 12) OR (t.kind = 5 AND t.copy IN (1, 3, 4)))
  WINDOW own AS (PARTITION BY t.thread ORDER BY e.start)),
waits AS (
  SELECT *, back - lag(back, 1, 0) OVER own AS results, lead(start) OVER own AS next_wait
  FROM step WHERE kind = 5 WINDOW own AS (PARTITION BY thread ORDER BY start)),
shared AS (
  SELECT DISTINCT t.process FROM template t WHERE t.kind = 1 AND t.mem = 4)
SELECT w.id AS event, w.duration AS cost_ns,
       min(w.duration, ifnull(w.next_wait - w.start - w.duration, w.duration)) AS saving_ns,
       CASE WHEN w.process IN shared THEN 'possible' ELSE 'likely' END AS certainty
FROM waits w CROSS JOIN wait_detail d ON d.id = w.id
WHERE d.pending = 1 AND w.results = 0 AND w.next - w.start - w.duration <= :max_gap
  AND (w.next_kind IN (4, 6) OR (w.next_kind = 3 AND w.next_copy IN (1, 8, 10)))

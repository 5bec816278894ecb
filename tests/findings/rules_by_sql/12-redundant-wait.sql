-- number: 12
-- id: redundant-wait
-- title: Wait for work that an earlier wait had already waited for
-- severity: medium
-- certainty: certain
-- often: 4
-- mostly: 90
-- needs: wait_detail
-- threshold: clock 20 ns a call, what measuring it adds where a read of the clock takes 14 ns
-- fix: Remove the call: nothing was queued in its scope since the wait that is named with it, which must stay.
WITH covered AS (
  SELECT d.id, d.covered_by, e.template, e.duration, t.process, t.thread, t.context, t.stream, t.copy
  FROM wait_detail d CROSS JOIN event_row e ON e.id = d.id CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $WAIT AND d.pending = 0 AND d.covered_by IS NOT NULL
    AND NOT (t.copy = $FOR_EVENT AND d.id IN (SELECT event FROM timed_wait))),
by_copy AS (
  SELECT w.*, u.process = w.process AND u.thread = w.thread AS own,
         u.context = w.context AND (w.copy = $FOR_CONTEXT OR w.copy = $FOR_STREAM AND u.stream = w.stream) AS whole
  FROM covered w CROSS JOIN event_row c ON c.id = w.covered_by CROSS JOIN template u ON u.id = c.template
  WHERE u.kind = $COPY AND u.flags & $ASYNC),
needed AS (SELECT covered_by, min(id) AS id FROM by_copy WHERE own AND whole GROUP BY covered_by)
SELECT id AS event, template, duration AS cost_ns, max(duration - (:clock + :clock_more), 1) AS saving_ns, covered_by AS related
FROM covered WHERE id NOT IN (SELECT id FROM by_copy)
UNION ALL
SELECT b.id, b.template, b.duration, max(b.duration - (:clock + :clock_more), 1), n.id FROM by_copy b CROSS JOIN needed n ON n.covered_by = b.covered_by
WHERE b.own AND b.id > n.id

-- number: 12
-- id: redundant-wait
-- title: Wait for work that an earlier wait had already waited for
-- severity: medium
-- certainty: certain
-- often: 4
-- mostly: 90
-- needs: wait_detail
-- fix: Remove the call: nothing was queued in its scope since the wait beside it.
SELECT d.id AS event, e.template AS template, e.duration AS cost_ns, d.covered_by AS related
FROM wait_detail d CROSS JOIN event_row e ON e.id = d.id CROSS JOIN template t ON t.id = e.template
WHERE t.kind = $WAIT AND d.pending = 0 AND d.covered_by IS NOT NULL
  AND NOT (t.copy = $FOR_EVENT AND d.id IN (SELECT event FROM timed_wait))
  AND NOT EXISTS (SELECT 1 FROM event_row c CROSS JOIN template u ON u.id = c.template
                  WHERE c.id = d.covered_by AND u.kind = $COPY AND u.flags & $ASYNC)

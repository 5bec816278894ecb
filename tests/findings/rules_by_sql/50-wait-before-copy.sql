-- number: 50
-- id: wait-before-copy
-- title: Wait right before a copy that waits for the same work by itself
-- severity: medium
-- certainty: likely
-- often: 8
-- mostly: 50
-- threshold: max_gap 50000 ns
-- threshold: link 25 bytes a ns
-- needs: wait_detail
-- fix: Delete the wait: the copy is ordered behind all that it waits for, and returns when both are done.
SELECT w.event AS event, w.template AS template, w.duration AS cost_ns,
       max(min(w.duration, w.gap + c.duration - CAST(c.bytes / :link AS INTEGER)), 0) AS saving_ns,
       w.copy AS related, CASE WHEN w.shared OR d.host & $HOST_WRITES THEN 'possible' ELSE 'likely' END AS certainty
FROM wait_copy w CROSS JOIN wait_detail d ON d.id = w.event CROSS JOIN template t ON t.id = w.template
CROSS JOIN event_row c ON c.id = w.copy CROSS JOIN template u ON u.id = c.template
WHERE d.pending = 1 AND w.gap <= :max_gap AND NOT d.host & $HOST_READS
  AND CASE u.stream WHEN $LEGACY THEN d.before_legacy AND u.context = t.context
                    WHEN $PER_THREAD THEN t.copy = $FOR_STREAM AND t.stream = $PER_THREAD AND d.streams = 1
                                          AND d.stream = $PER_THREAD
                    ELSE d.streams = 1 AND d.stream = u.stream END
  AND w.event NOT IN (SELECT event FROM timed_wait)

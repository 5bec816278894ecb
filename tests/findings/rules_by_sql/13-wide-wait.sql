-- number: 13
-- id: wide-wait
-- title: Wait for the whole device where one stream alone has work
-- severity: low
-- certainty: possible
-- needs: wait_detail
-- fix: Wait for that stream with cudaStreamSynchronize(), so that what other threads and streams
--      queue later is not waited for.
SELECT d.id AS event, e.template AS template, e.duration AS cost_ns,
       CASE WHEN w.unknown_ns = 0 THEN w.other_ns ELSE 0 END AS saving_ns
FROM wait_detail d CROSS JOIN event_row e ON e.id = d.id CROSS JOIN template t ON t.id = e.template
LEFT JOIN wait_time w ON w.id = d.id
WHERE t.kind = $WAIT AND d.pending = 1 AND d.narrower = $FOR_STREAM
  AND (t.process, t.device) IN (SELECT process, device FROM several_streams)

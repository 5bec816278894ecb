-- number: 15
-- id: hidden-wait
-- title: Call that waits for the device without being asked to
-- severity: high
-- certainty: likely
-- often: 8
-- threshold: min_ns 20000 ns
-- threshold: own 200000 ns that such a call may take by itself
-- needs: wait_detail
-- prove: relaxed device
-- fix: Use cudaFreeAsync() of memory of cudaMallocAsync(), cudaMemsetAsync(), or free after the loop;
--      'weir run --mode=relaxed' frees without the wait.
SELECT h.event, h.template, h.duration AS cost_ns,
       max(min(h.duration, ifnull(h.gap, h.duration)), 0) AS saving_ns,
       CASE WHEN h.duration < :own AND EXISTS (
         SELECT 1 FROM event_row y CROSS JOIN template a ON a.id = y.template
         WHERE y.id > max(d.youngest, h.event - 64) AND y.id < h.event AND a.kind = $WAIT AND a.process = o.process
           AND a.copy IN ($FOR_EVENT, $FOR_STREAM, $FOR_CONTEXT)) THEN 'possible'
       WHEN (SELECT a.thread FROM event_row y CROSS JOIN template a ON a.id = y.template WHERE y.id = d.youngest) <> o.thread
         AND ifnull((SELECT a.kind = $WAIT OR (a.kind = $COPY AND a.flags & ($ASYNC | $MAY_WAIT) = $MAY_WAIT)
                     FROM event_row y CROSS JOIN template a ON a.id = y.template
                     WHERE y.id > h.event - 64 AND y.id < h.event AND a.thread = o.thread
                       AND (a.kind IN ($COPY, $MEMSET, $LAUNCH)
                            OR (a.kind = $WAIT AND a.copy IN ($FOR_EVENT, $FOR_STREAM, $FOR_CONTEXT)))
                     ORDER BY y.id DESC LIMIT 1), 1) THEN 'possible' ELSE 'likely' END AS certainty
FROM hidden_wait h CROSS JOIN wait_detail d ON d.id = h.event CROSS JOIN template o ON o.id = h.template
WHERE d.pending = 1 AND h.duration >= :min_ns
  AND NOT (d.operations = 1 AND EXISTS (
    SELECT 1 FROM event_row y CROSS JOIN template c ON c.id = y.template
    WHERE y.id = d.youngest AND c.kind = $COPY AND c.copy = $H2D AND c.flags & ($ASYNC | $MAY_WAIT) = $MAY_WAIT))

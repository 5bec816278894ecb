-- number: 9
-- id: through-the-host
-- title: Memory of a device copied to the host, and from there to a device again
-- severity: high
-- certainty: possible
-- decides: weir run --hash
-- needs: wait_detail
-- threshold: min_bytes 1024 bytes
-- threshold: min_times 4 times
-- threshold: max_gap 20000 ns
-- threshold: slowest 5 bytes a ns, of a copy that had to wait for other work as well
-- threshold: link 25 bytes a ns, of an asynchronous copy, which returns before it is made
-- fix: Where the host does not change the bytes, copy from device to device: cudaMemcpyPeerAsync()
--      to another one, nothing at all or cudaMemcpyAsync() on the same.
-- judge: through-the-host
WITH meanwhile AS MATERIALIZED ( -- calls of the thread between the two copies, if these are near
  SELECT p.event, sum(CASE WHEN x.start < e.start THEN x.duration ELSE 0 END) AS ns
  FROM sent_back p CROSS JOIN event_row e ON e.id = p.event CROSS JOIN template t ON t.id = e.template
  CROSS JOIN event_row o ON o.id = p.earlier CROSS JOIN template a ON a.id = o.template AND a.thread = t.thread
  CROSS JOIN event_row x ON x.id > p.earlier AND x.id < p.event
  CROSS JOIN template xt ON xt.id = x.template AND xt.thread = t.thread
  WHERE p.event - p.earlier <= 16 GROUP BY p.event),
bounce AS (
  SELECT p.event, p.earlier, e.template, e.bytes, w.pending, count(*) OVER place AS times,
         CASE WHEN t.flags & $ASYNC THEN max(e.duration, e.bytes / :link) ELSE e.duration END AS duration,
         sum(e.start - o.start - o.duration - ifnull(b.ns, 0) <= :max_gap
             AND (e.start - o.start - o.duration - ifnull(b.ns, 0)) * 50 < e.bytes) OVER place AS short
  FROM sent_back p CROSS JOIN event_row e ON e.id = p.event CROSS JOIN template t ON t.id = e.template
  CROSS JOIN event_row o ON o.id = p.earlier
  LEFT JOIN wait_detail w ON w.id = p.event LEFT JOIN meanwhile b ON b.event = p.event
  WHERE e.bytes >= :min_bytes
    AND NOT (EXISTS (SELECT 1 FROM copy_hash h WHERE h.event = p.event AND h.outcome = $HASHED)
             AND EXISTS (SELECT 1 FROM copy_hash h WHERE h.event = p.earlier AND h.outcome = $HASHED))
  WINDOW place AS (PARTITION BY t.process, t.stack))
SELECT event, template, duration AS cost_ns, bytes AS bytes,
       CASE WHEN pending THEN min(duration, bytes / :slowest) ELSE duration END AS saving_ns, earlier AS related,
       CASE WHEN short * 2 >= times THEN 'likely' ELSE 'possible' END AS certainty
FROM bounce WHERE times >= :min_times

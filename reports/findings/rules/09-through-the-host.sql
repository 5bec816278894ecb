-- number: 9
-- id: through-the-host
-- title: Memory of a device copied to the host, and from there to a device again
-- severity: high
-- certainty: possible
-- later: round
-- decides: weir run --hash
-- needs: wait_detail
-- threshold: min_bytes 64 bytes
-- threshold: min_times 4 times
-- threshold: large 1024 bytes, from which hashed copies are for other rules
-- threshold: small_times 16 times, of fewer bytes
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
pair AS ( -- kept: not known to have been changed, or too small for the rules that go by hashes
  SELECT p.event, p.earlier, e.template, e.bytes, h.event IS NOT NULL AND g.event IS NOT NULL AS known,
         ifnull(h.hash_low <> g.hash_low OR h.hash_high <> g.hash_high, 0) AS changed,
         h.event IS NULL OR g.event IS NULL
         OR (h.hash_low = g.hash_low AND h.hash_high = g.hash_high AND NOT h.uniform AND e.bytes < :large) AS kept
  FROM sent_back p CROSS JOIN event_row e ON e.id = p.event
  LEFT JOIN copy_hash h ON h.event = p.event AND h.event IS NOT NULL AND h.outcome = $HASHED
  LEFT JOIN copy_hash g ON g.event = p.earlier AND g.event IS NOT NULL AND g.outcome = $HASHED
  WHERE e.bytes >= :min_bytes),
bounce AS (
  SELECT p.event, p.earlier, p.template, p.bytes, w.pending, p.known, p.kept, sum(p.kept) OVER place AS times,
         sum(p.changed) OVER place AS changed,
         CASE WHEN t.flags & $ASYNC THEN max(e.duration, e.bytes / :link) ELSE e.duration END AS duration,
         -- the copy that takes its place is asynchronous, too: that call takes as long
         CASE WHEN t.flags & $ASYNC THEN e.bytes / :link ELSE e.duration END AS own_ns,
         -- the copy away may have waited for a kernel first: by itself it takes no longer than the one back
         CASE WHEN v.pending THEN min(o.duration, e.duration) ELSE o.duration END AS away_ns,
         sum(p.kept AND e.start - o.start - o.duration - ifnull(b.ns, 0) <= :max_gap
             AND (e.start - o.start - o.duration - ifnull(b.ns, 0)) * 50 < e.bytes) OVER place AS short
  FROM pair p CROSS JOIN event_row e ON e.id = p.event CROSS JOIN template t ON t.id = e.template
  CROSS JOIN event_row o ON o.id = p.earlier
  LEFT JOIN wait_detail w ON w.id = p.event LEFT JOIN wait_detail v ON v.id = p.earlier
  LEFT JOIN meanwhile b ON b.event = p.event
  WINDOW place AS (PARTITION BY t.process, t.stack))
SELECT event, template, duration + known * away_ns AS cost_ns, bytes AS bytes,
       CASE WHEN pending AND NOT known THEN min(own_ns, bytes / :slowest) ELSE own_ns END + known * away_ns AS saving_ns,
       earlier AS related, known * away_ns AS related_saving_ns,
       CASE WHEN known OR short * 2 >= times THEN 'likely' ELSE 'possible' END AS certainty
FROM bounce
WHERE kept AND (known OR changed < :min_times)
  AND times >= CASE WHEN bytes < :large THEN :small_times ELSE :min_times END

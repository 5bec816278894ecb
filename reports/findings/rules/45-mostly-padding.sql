-- number: 45
-- id: mostly-padding
-- title: Uploads of which the larger part, at the end, is one byte again and again
-- severity: medium
-- certainty: likely
-- later: copy
-- least: untimed
-- needs: copy_hash
-- decides: weir run --hash=on
-- rows: copy_part
-- threshold: min_bytes 16384 bytes
-- threshold: min_times 8 copies of one place that were looked at
-- threshold: own 50000 ns, what a copy takes by itself beyond its bytes at one a ns: the rest is a wait, which stays
-- threshold: latency 5000 ns that a copy of a few bytes takes
-- threshold: link 25 bytes a ns
-- calls: t.kind = $COPY AND t.copy = $H2D
-- fix: Copy the bytes that are used, and set the rest once with cudaMemsetAsync(): it stays as it is while nothing writes it. A
--      kernel that is given the length need not read it at all.
WITH looked AS MATERIALIZED (
  SELECT p.event, e.template, e.bytes, p.tail, p.last, p.tail * 2 >= e.bytes AS padded, p.outcome
  FROM copy_part p CROSS JOIN event_row e ON e.id = p.event CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $COPY AND t.copy = $H2D AND t.status = $SUCCESS AND e.bytes >= :min_bytes AND p.tail < e.bytes),
place AS MATERIALIZED ( -- likely: all of its copies that were looked at
  SELECT template, sum(padded) = count(*) AND sum(padded AND outcome = $HASHED) > 1 AS likely, min(event) AS first, max(event) AS last,
         avg(CASE WHEN padded THEN tail * 1.0 / bytes END) AS share
  FROM looked GROUP BY template
  HAVING sum(padded) >= :min_times AND sum(padded) * 4 >= count(*) * 3
    AND min(CASE WHEN padded THEN last END) = max(CASE WHEN padded THEN last END)),
nth AS MATERIALIZED (
  SELECT e.id AS event, e.template, e.duration, e.bytes, p.likely, p.first, p.last, p.share,
         ntile(4) OVER (PARTITION BY e.template ORDER BY e.id) AS quarter
  FROM (SELECT 1 FROM place LIMIT 1) CROSS JOIN event_row e CROSS JOIN place p ON p.template = e.template
  WHERE e.bytes >= :min_bytes),
throughout AS MATERIALIZED ( -- some of the first quarter of them were looked at, and some of the last
  SELECT n.template FROM nth n CROSS JOIN looked l ON l.event = n.event
  GROUP BY n.template HAVING min(n.quarter) = 1 AND max(n.quarter) = 4),
padding AS (
  SELECT n.event, n.template, n.duration, n.bytes, n.likely, ifnull(l.tail * 1.0 / l.bytes, n.share) AS share
  FROM nth n LEFT JOIN looked l ON l.event = n.event
  WHERE CASE WHEN l.event IS NULL THEN n.likely AND n.template IN throughout ELSE l.padded END
    AND n.event NOT IN (SELECT u.event FROM copy_hash u WHERE u.uniform AND u.event IS NOT NULL))
SELECT p.event, p.template, CAST(p.bytes * p.share AS INTEGER) AS bytes, CASE WHEN NOT p.likely THEN 'possible' END AS certainty,
       CAST(max(p.duration, p.bytes / :link) * p.share AS INTEGER) AS cost_ns,
       CAST(p.share * max(CASE WHEN t.flags & $ASYNC AND t.src_mem <> $PAGEABLE -- the host waits for none of it
                               THEN ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = p.event), 0)
                               ELSE min(p.duration, :own + p.bytes) END - :latency, 0) AS INTEGER) AS saving_ns
FROM padding p CROSS JOIN template t ON t.id = p.template

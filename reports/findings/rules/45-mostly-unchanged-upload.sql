-- number: 45
-- id: mostly-unchanged-upload
-- title: Uploads of which the most is at its place on the device already
-- severity: medium
-- certainty: likely
-- later: copy
-- least: untimed
-- needs: copy_hash
-- decides: weir run --hash=on
-- rows: copy_part
-- threshold: min_bytes 16384 bytes
-- threshold: min_times 8 copies of one place to one destination that were compared with the one before
-- threshold: min_share 75 percent of a copy, which the one before had at the same offsets
-- threshold: own 50000 ns, what a copy takes by itself beyond its bytes at one a ns: the rest is a wait, which stays
-- threshold: latency 5000 ns that a copy of a few bytes takes
-- threshold: link 25 bytes a ns
-- calls: t.kind = $COPY AND t.copy = $H2D
-- fix: Keep it on the device and copy what is new: the rows that were appended, the entries that changed, by their offsets. Where
--      kernels write over it, keep a buffer that they do not write, and copy on the device from there.
WITH looked AS MATERIALIZED ( -- of its bytes that are no padding
  SELECT p.event, e.template, e.a, p.outcome = $HASHED AS hashed, p.same * 1.0 / e.bytes AS share, p.changed,
         p.same - body.tail >= (e.bytes - body.tail) * :min_share / 100 AS known, p.same = e.bytes AND p.before = e.bytes AS equal
  FROM (SELECT event, CASE WHEN c.tail * 2 >= r.bytes THEN c.tail ELSE 0 END AS tail
        FROM copy_part c CROSS JOIN event_row r ON r.id = c.event WHERE c.before > 0 AND c.tail < r.bytes) body
  CROSS JOIN copy_part p ON p.event = body.event CROSS JOIN event_row e ON e.id = p.event
  CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $COPY AND t.copy = $H2D AND t.status = $SUCCESS AND e.bytes >= :min_bytes
    AND p.event NOT IN (SELECT event FROM given_copy)),
place AS MATERIALIZED (
  SELECT template, a, min(event) AS first, max(event) AS last FROM looked GROUP BY template, a
  HAVING sum(known AND NOT (hashed AND equal)) >= :min_times),
other AS MATERIALIZED ( -- whose memory something else than these copies writes, begins or ends
  SELECT DISTINCT p.template, p.a FROM (SELECT 1 FROM place LIMIT 1) CROSS JOIN event_row e
  CROSS JOIN place p ON p.a = e.a AND p.template <> e.template AND e.id BETWEEN p.first AND p.last
  CROSS JOIN template t ON t.id = e.template CROSS JOIN template u ON u.id = p.template AND u.process = t.process
  WHERE t.kind IN ($ALLOC, $FREE, $COPY, $MEMSET, $RESET) AND t.status = $SUCCESS),
nth AS MATERIALIZED (
  SELECT e.id AS event, e.template, e.a, e.duration, e.bytes, row_number() OVER place AS n, ntile(4) OVER place AS quarter,
         l.hashed, l.share, l.changed, l.known, l.equal
  FROM (SELECT 1 FROM place LIMIT 1) CROSS JOIN event_row e CROSS JOIN place p ON p.template = e.template AND p.a = e.a
  LEFT JOIN looked l ON l.event = e.id
  WHERE e.bytes >= :min_bytes AND (p.template, p.a) NOT IN (SELECT template, a FROM other)
  WINDOW place AS (PARTITION BY e.template, e.a ORDER BY e.id)),
apart AS MATERIALIZED ( -- from the copy that it was compared with; from others it differs by what changed in more than one step
  SELECT *, n - CASE WHEN hashed THEN lag(n) OVER (PARTITION BY template, a, hashed ORDER BY n)
                     ELSE lag(n) OVER (PARTITION BY template, a ORDER BY n) END AS steps
  FROM nth WHERE known IS NOT NULL),
judged AS MATERIALIZED ( -- likely: all that were compared with the very one before; equal pieces are not all of a copy
  SELECT template, a, sum(NOT known AND steps = 1) = 0 AS always, sum(known AND hashed AND NOT equal) > 1 AS likely,
         min(quarter) = 1 AND max(quarter) = 4 AS throughout,
         ifnull(avg(CASE WHEN known AND NOT equal AND steps = 1 THEN share END), avg(CASE WHEN known AND NOT equal THEN share END)) AS share,
         ifnull(avg(CASE WHEN known AND NOT equal AND steps = 1 THEN changed END), avg(CASE WHEN known AND NOT equal THEN changed END)) AS changed
  FROM apart WHERE known OR steps = 1 GROUP BY template, a
  HAVING sum(known AND NOT (hashed AND equal)) >= :min_times AND sum(known AND NOT equal) > 0 AND sum(known) * 4 >= count(*) * 3),
resent AS (
  SELECT n.event, n.template, n.duration, n.bytes, j.always AND j.likely AS likely, CASE WHEN n.equal OR ifnull(n.share, 0) < j.share THEN j.share ELSE n.share END AS share,
         CASE WHEN n.equal OR ifnull(n.share, 0) < j.share THEN j.changed ELSE n.changed END AS changed
  FROM nth n CROSS JOIN judged j ON j.template = n.template AND j.a = n.a LEFT JOIN apart s ON s.event = n.event
  WHERE CASE WHEN n.known IS NOT NULL AND (n.known OR s.steps = 1) THEN n.known AND NOT (n.hashed AND n.equal)
             ELSE j.always AND j.throughout AND n.n > 1 END)
SELECT p.event, p.template, CAST(p.bytes * p.share AS INTEGER) AS bytes, CASE WHEN NOT p.likely THEN 'possible' END AS certainty,
       CAST(max(p.duration, p.bytes / :link) * p.share AS INTEGER) AS cost_ns,
       CAST(max(p.share * (CASE WHEN t.flags & $ASYNC AND t.src_mem <> $PAGEABLE -- the host waits for none of it
                                THEN ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = p.event), 0)
                                ELSE min(p.duration, :own + p.bytes) END - :latency) - max(p.changed - 1, 0) * :latency, 0)
            AS INTEGER) AS saving_ns
FROM resent p CROSS JOIN template t ON t.id = p.template

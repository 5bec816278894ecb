-- number: 21
-- id: idle-object
-- title: Memory that is held, and not used, for much of the run
-- severity: medium
-- certainty: possible
-- needs: whole_run
-- holds: bytes
-- threshold: min_bytes 262144 bytes
-- threshold: percent 10 percent of the device's peak
-- threshold: bytes_unsure 67108864 bytes, where kernels ran meanwhile
-- threshold: bytes_once 4194304 bytes, where one launch alone was handed it
-- threshold: percent_unsure 20 percent of the peak, where kernels ran meanwhile
-- threshold: share 50 percent of the run
-- threshold: operations 64 copies, memsets, kernels and graphs of the process meanwhile
-- threshold: most 8 blocks
-- threshold: level 90 percent of the peak, which the device's memory reaches meanwhile
-- fix: Allocate it where it is used first and free it behind the last use, or move it to the host
--      meanwhile; where kernels ran, look whether one of them uses it.
-- judge: idle-object
WITH big AS MATERIALIZED (
  SELECT b.alloc, b.process, b.device, b.pointer, b.bytes, b.start, m.peak, m.peak_at,
         ifnull(b."end", ifnull(p."end", :duration_ns)) AS until
  FROM block b JOIN process p ON p.id = b.process
  JOIN memory m ON m.device = b.device AND m.mem IS NULL AND NOT m.registered
  WHERE b.mem = $DEVICE AND NOT b.registered AND b.alloc IS NOT NULL AND b.how IN ($LIVE, $FREED, $ENDED_BY_RESET)
    AND b.alloc NOT IN (SELECT alloc FROM given_block)
    AND b.bytes >= :min_bytes AND b.bytes >= m.peak * 0.01 * :percent
    AND ifnull(b."end", ifnull(p."end", :duration_ns)) - b.start >= :duration_ns * 0.01 * :share
  ORDER BY b.bytes DESC, b.alloc LIMIT :most),
used AS MATERIALIZED (
  SELECT b.alloc, e.start, e.start + e.duration AS until, t.kind = $COPY AND t.copy = $H2D AS upload
  FROM (SELECT 1 FROM big LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  CROSS JOIN big b WHERE t.kind IN ($COPY, $MEMSET, $CALL) AND b.process = t.process AND e.start BETWEEN b.start AND b.until
    AND (e.a BETWEEN b.pointer AND b.pointer + b.bytes - 1
         OR b.pointer BETWEEN e.a AND e.a + e.bytes - 1
         OR (t.kind = $COPY AND (e.b BETWEEN b.pointer AND b.pointer + b.bytes - 1
                             OR b.pointer BETWEEN e.b AND e.b + e.bytes - 1)))),
point AS (
  SELECT alloc, start AS time, start AS until, 0 AS upload FROM big
  UNION ALL SELECT alloc, until, until, 0 FROM big
  UNION ALL SELECT alloc, start, until, upload FROM used),
gap AS (
  SELECT alloc, until AS since, upload,
         lead(time) OVER (PARTITION BY alloc ORDER BY time, until) AS next FROM point),
longest AS MATERIALIZED (
  SELECT b.*, g.since, g.next, g.upload, max(g.next - g.since) AS idle
  FROM gap g JOIN big b ON b.alloc = g.alloc WHERE g.next IS NOT NULL GROUP BY g.alloc),
idle AS MATERIALIZED (
  SELECT * FROM longest WHERE idle >= :duration_ns * 0.01 * :share),
moment AS (
  SELECT alloc, device, since AS time FROM idle UNION ALL SELECT alloc, device, since + (next - since) / 2 FROM idle
  UNION ALL SELECT alloc, device, next - 1 FROM idle),
level AS (
  SELECT m.alloc, sum(k.bytes) AS bytes FROM moment m JOIN block k ON k.device = m.device AND k.mem = $DEVICE AND NOT k.registered
  JOIN process p ON p.id = k.process
  WHERE k.start <= m.time AND ifnull(k."end", ifnull(p."end", :duration_ns)) > m.time GROUP BY m.alloc, m.time),
worked AS MATERIALIZED (
  SELECT i.alloc, count(*) AS operations,
         sum(t.kind IN ($LAUNCH, $CALL) AND (
           t.device IS NULL OR t.device = i.device
           OR EXISTS (SELECT 1 FROM template n CROSS JOIN api x ON x.id = n.api
                      WHERE n.process = i.process AND n.kind = $CONTEXT AND x.name GLOB '*EnablePeerAccess*'))) AS launches
  FROM (SELECT 1 FROM idle LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  CROSS JOIN idle i WHERE t.kind IN ($COPY, $MEMSET, $LAUNCH, $CALL) AND t.process = i.process AND t.status = $SUCCESS
    AND e.start BETWEEN i.since AND i.next
  GROUP BY i.alloc)
SELECT i.alloc AS event, i.bytes AS bytes,
       CASE WHEN w.launches THEN 'possible' ELSE 'certain' END AS certainty
FROM idle i JOIN worked w ON w.alloc = i.alloc
WHERE w.operations >= :operations
  AND (i.peak_at BETWEEN i.since AND i.next
       OR EXISTS (SELECT 1 FROM level l WHERE l.alloc = i.alloc AND l.bytes >= i.peak * 0.01 * :level))
  AND (NOT w.launches OR (NOT i.upload AND i.bytes >= :bytes_unsure AND i.bytes >= i.peak * 0.01 * :percent_unsure))

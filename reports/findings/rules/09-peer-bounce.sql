-- number: 9
-- id: peer-bounce
-- title: Bytes of one device brought to another through the host
-- severity: high
-- certainty: likely
-- needs: copy_hash
-- threshold: min_bytes 1024 bytes
-- threshold: link 25 bytes a ns
-- fix: Copy from device to device with cudaMemcpyPeerAsync(), with peer access enabled where
--      cudaDeviceCanAccessPeer() says yes.
WITH moved AS (
  SELECT e.id, e.start, t.process, t.copy, t.device, t.src_device, e.a, e.b, e.bytes, e.duration,
         h.hash_low, h.hash_high, h.uniform
  FROM copy_hash h CROSS JOIN event_row e ON e.id = h.event CROSS JOIN template t ON t.id = e.template
  WHERE h.outcome = $HASHED AND t.copy IN ($H2D, $D2H) AND e.bytes >= :min_bytes),
away AS (
  SELECT process, hash_low, hash_high, bytes, src_device, min(start) AS start, min(id) AS id, a
  FROM moved WHERE copy = $D2H AND NOT uniform GROUP BY process, hash_low, hash_high, bytes, src_device),
back AS MATERIALIZED (SELECT event, earlier FROM sent_back),
found AS (
  SELECT m.id, m.duration, m.bytes, o.id AS away, o.a = m.b AS same
  FROM moved m CROSS JOIN away o ON o.process = m.process AND o.hash_low = m.hash_low
    AND o.hash_high = m.hash_high AND o.bytes = m.bytes
  WHERE m.copy = $H2D AND NOT m.uniform AND o.start < m.start AND o.src_device <> m.device
  UNION ALL
  SELECT m.id, m.duration, m.bytes, o.id, 1
  FROM back p JOIN moved m ON m.id = p.event JOIN moved o ON o.id = p.earlier
  WHERE o.hash_low = m.hash_low AND o.hash_high = m.hash_high AND o.src_device <> m.device),
bounced AS (
  SELECT id, duration, bytes, min(away) AS away, max(same) AS same FROM found GROUP BY id),
both AS ( -- the copy away may have waited for a kernel first: by itself it takes no longer than the one back
  SELECT b.id, b.duration, b.bytes, b.away, b.same, min(o.duration, b.duration) AS away_ns
  FROM bounced b CROSS JOIN event_row o ON o.id = b.away)
SELECT id AS event, duration + away_ns AS cost_ns, max(duration + away_ns - bytes / :link, 0) AS saving_ns,
       bytes AS bytes, away AS related, away_ns AS related_saving_ns,
       CASE WHEN same THEN 'certain' ELSE 'likely' END AS certainty
FROM both

-- number: 9
-- id: peer-bounce
-- title: Bytes of one device brought to another through the host
-- severity: high
-- certainty: likely
-- needs: copy_hash
-- threshold: min_bytes 1024 bytes
-- fix: Copy from device to device with cudaMemcpyPeerAsync(), with peer access enabled where
--      cudaDeviceCanAccessPeer() says yes.
WITH moved AS (
  SELECT e.id, e.start, t.process, t.copy, t.device, t.src_device, e.a, e.b, e.bytes, e.duration,
         h.hash_low, h.hash_high
  FROM copy_hash h CROSS JOIN event_row e ON e.id = h.event CROSS JOIN template t ON t.id = e.template
  WHERE h.outcome = 1 AND NOT h.uniform AND t.copy IN (1, 2) AND e.bytes >= :min_bytes),
away AS (
  SELECT process, hash_low, hash_high, bytes, src_device, min(start) AS start, min(id) AS id, a
  FROM moved WHERE copy = 2 GROUP BY process, hash_low, hash_high, bytes, src_device)
SELECT m.id AS event, m.duration AS cost_ns, m.bytes AS bytes, min(o.id) AS related,
       CASE WHEN max(o.a = m.b) THEN 'certain' ELSE 'likely' END AS certainty
FROM moved m CROSS JOIN away o ON o.process = m.process AND o.hash_low = m.hash_low
  AND o.hash_high = m.hash_high AND o.bytes = m.bytes
WHERE m.copy = 1 AND o.start < m.start AND o.src_device <> m.device
GROUP BY m.id

-- number: 30
-- id: slow-link
-- title: Copies at less than half the speed of others of their kind in this run
-- severity: medium
-- certainty: possible
-- queued: device
-- needs: wait_detail
-- threshold: min_bytes 1048576 bytes
-- threshold: min_copies 2 times
-- threshold: rank 3 place from the fastest, that others are held against
-- fix: Put the host buffer on the NUMA node of the device (numactl, or touch it first from a thread
--      there), copy whole blocks rather than narrow rows, and not in two directions over one link.
-- judge: slow-link
WITH sized AS (
  SELECT l.event AS id, t.process, t.stack, t.copy, t.mem, t.src_mem, t.device, t.src_device, l.bytes, t.flags,
         l.duration, (SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = l.event) AS ns
  FROM large_copy l CROSS JOIN template t ON t.id = l.template WHERE l.bytes >= :min_bytes),
timed AS MATERIALIZED (
  SELECT s.*, s.ns IS NOT NULL AS by_device, 1.0 * s.bytes / max(ifnull(s.ns, s.duration), 1) AS rate,
         max(ifnull(s.ns, s.duration), 1) AS took
  FROM sized s LEFT JOIN wait_detail w ON w.id = s.id
  WHERE s.ns > 0 OR (s.ns IS NULL AND NOT s.flags & $ASYNC AND s.copy <> $P2P AND w.pending = 0)),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY process, copy, mem, src_mem, device, src_device, by_device
                               ORDER BY rate DESC) AS nth FROM timed),
reached AS MATERIALIZED (SELECT * FROM ranked WHERE nth = :rank),
place AS MATERIALIZED (
  SELECT process, stack, copy, mem, src_mem, device, src_device, by_device, max(rate) AS best
  FROM timed GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 HAVING count(*) >= :min_copies)
SELECT c.id AS event, c.took AS cost_ns, CAST(c.took - c.bytes / r.rate AS INTEGER) AS saving_ns,
       c.bytes AS bytes, CASE WHEN c.by_device THEN 'likely' ELSE 'possible' END AS certainty
FROM place p JOIN reached r ON r.process = p.process AND r.copy = p.copy AND r.mem IS p.mem
  AND r.src_mem IS p.src_mem AND r.device IS p.device AND r.src_device IS p.src_device
  AND r.by_device = p.by_device
JOIN timed c ON c.process = p.process AND c.stack IS p.stack AND c.copy = p.copy AND c.mem IS p.mem
  AND c.src_mem IS p.src_mem AND c.device IS p.device AND c.src_device IS p.src_device
  AND c.by_device = p.by_device
WHERE p.best * 2 < r.rate

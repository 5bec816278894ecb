-- number: 6
-- id: blocking-copy
-- title: Copy to the device that the host waits for, with work of its own to do
-- severity: medium
-- certainty: possible
-- threshold: min_bytes 65536 bytes
-- threshold: min_ns 20000 ns
-- calls: t.kind = 3 AND t.copy = 1 AND NOT t.flags & 1 AND t.src_mem = 2
-- fix: Copy with cudaMemcpyAsync() from pinned memory, and record an event that is waited for before the
--      host buffer is written again.
WITH slow AS (
  SELECT DISTINCT t.thread FROM template_use u CROSS JOIN template t ON t.id = u.template
  WHERE t.kind = 3 AND t.copy = 1 AND NOT t.flags & 1 AND t.src_mem = 2 AND u.longest >= :min_ns
    AND u.most > :min_bytes),
step AS (
  SELECT e.id, e.template, t.kind, t.copy, t.mem, t.src_mem, t.flags, e.start, e.duration, e.bytes,
         lead(e.start) OVER (PARTITION BY t.thread ORDER BY e.start) AS next
  FROM (SELECT 1 FROM slow LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.thread IN slow AND t.kind IN (2, 3, 5) AND t.status = 0 AND NOT t.flags & 48)
SELECT id AS event, template, duration AS cost_ns, min(duration, next - start - duration) AS saving_ns,
       bytes AS bytes
FROM step WHERE kind = 3 AND copy = 1 AND NOT flags & 1 AND src_mem = 2 AND bytes > :min_bytes
  AND next - start - duration >= :min_ns AND duration >= :min_ns

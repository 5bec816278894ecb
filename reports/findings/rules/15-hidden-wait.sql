-- number: 15
-- id: hidden-wait
-- title: Call that waits for the device without being asked to
-- severity: high
-- certainty: likely
-- threshold: min_ns 20000 ns
-- needs: wait_detail
-- prove: relaxed device
-- fix: Use cudaFreeAsync() of memory of cudaMallocAsync(), cudaMemsetAsync(), or free after the loop;
--      'weir run --mode=relaxed' frees without the wait.
WITH slow AS (
  SELECT DISTINCT t.thread FROM template_use u CROSS JOIN template t ON t.id = u.template
  WHERE t.kind IN (2, 4) AND u.longest >= :min_ns),
every AS (
  SELECT d.id, e.template, d.pending, d.operations, d.youngest, e.start, e.duration, t.kind, t.flags, w.working_ns, w.unknown_ns,
         lead(e.start) OVER (PARTITION BY t.thread ORDER BY e.start) AS next
  FROM (SELECT 1 FROM slow LIMIT 1) CROSS JOIN wait_detail d CROSS JOIN event_row e ON e.id = d.id
  CROSS JOIN template t ON t.id = e.template LEFT JOIN wait_time w ON w.id = d.id
  WHERE t.thread IN slow)
SELECT id AS event, template, duration AS cost_ns,
       max(min(duration, ifnull(next - start - duration, duration)), 0) AS saving_ns
FROM every v WHERE pending = 1 AND kind IN (2, 4) AND duration >= :min_ns
  AND NOT (operations = 1 AND EXISTS (
    SELECT 1 FROM event_row y CROSS JOIN template c ON c.id = y.template
    WHERE y.id = v.youngest AND c.kind = 3 AND c.copy = 1 AND c.flags & 3 = 2))

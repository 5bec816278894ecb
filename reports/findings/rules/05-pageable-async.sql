-- number: 5
-- id: pageable-async
-- title: Asynchronous copy of pageable memory, which the host waits in
-- severity: high
-- certainty: certain
-- threshold: min_bytes 65536 bytes
-- threshold: link 25 bytes a ns
-- threshold: pageable 10 bytes a ns, where no copy of the run had nothing to wait for
-- prove: strict staging
-- needs: wait_detail
-- calls: t.kind = 3 AND t.flags & 1 AND 1 IN (t.mem, t.src_mem) AND t.copy IN (1, 2)
-- fix: Allocate the host buffer with cudaMallocHost(), or pin it once with cudaHostRegister(), so that
--      the copy runs while the host goes on; 'weir run' stages such copies of 1 MiB and more.
WITH step AS (
  SELECT e.id, e.template, t.flags, t.process, t.copy, e.duration, e.bytes,
         t.kind = 3 AND t.flags & 1 AND 1 IN (t.mem, t.src_mem) AND t.copy IN (1, 2) AS pageable,
         lead(e.start) OVER (PARTITION BY t.thread ORDER BY e.start) - e.start - e.duration AS gap
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.status = 0 AND NOT t.flags & 16
    AND (t.kind IN (2, 3, 4) AND t.flags & 2 OR t.kind = 5 AND t.copy IN (1, 3, 4)
         OR t.kind = 3 AND t.flags & 1 AND 1 IN (t.mem, t.src_mem) AND t.copy IN (1, 2))),
alone AS (
  SELECT s.*, CASE WHEN w.pending = 0 THEN s.duration * 1.0 / s.bytes
                   WHEN w.operations = 1 AND (SELECT t.kind FROM event_row y CROSS JOIN template t ON t.id = y.template
                                              WHERE y.id = w.youngest) = 3
                   THEN max(s.duration - w.bytes * 1.0 / :link, 0) / s.bytes END AS pace
  FROM step s LEFT JOIN wait_detail w ON w.id = s.id WHERE s.pageable AND s.bytes > :min_bytes),
found AS (
  SELECT *, coalesce(min(pace) OVER (PARTITION BY process, copy), min(pace) OVER (PARTITION BY process),
                     1.0 / :pageable) AS best FROM alone)
SELECT id AS event, template, duration AS cost_ns, bytes AS bytes, flags & 128 <> 0 AS removed,
       CAST(max(min(duration, bytes * best)
                - max(bytes * 1.0 / :link - max(ifnull(gap, duration), 0), 0), 0) AS INTEGER) AS saving_ns
FROM found

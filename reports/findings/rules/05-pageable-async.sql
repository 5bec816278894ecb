-- number: 5
-- id: pageable-async
-- title: Asynchronous copy of pageable memory, which the host waits in
-- severity: high
-- certainty: certain
-- threshold: min_bytes 65536 bytes
-- threshold: least 4096 bytes of a copy to the host, which is possible only up to min_bytes
-- threshold: min_times 32 of such copies at one place
-- threshold: link 25 bytes a ns
-- threshold: pageable 10 bytes a ns, where no copy of the run had nothing to wait for
-- prove: strict staging
-- needs: wait_detail
-- rows: pageable_copy
-- calls: t.kind = $COPY AND t.flags & $ASYNC AND $PAGEABLE IN (t.mem, t.src_mem) AND t.copy IN ($H2D, $D2H)
-- fix: Allocate the host buffer with cudaMallocHost(), or pin it once with cudaHostRegister(), so that
--      the copy runs while the host goes on; 'weir run' stages such copies of 1 MiB and more.
WITH alone AS MATERIALIZED (
  SELECT p.event, p.gap, p.template, p.duration, p.bytes, t.process, t.copy, t.flags,
         CASE WHEN p.bytes <= :min_bytes THEN NULL -- the call itself takes longer
              WHEN w.pending = 0 THEN p.duration * 1.0 / p.bytes
              WHEN w.operations = 1 AND (SELECT y.kind FROM event_row e CROSS JOIN template y ON y.id = e.template
                                         WHERE e.id = w.youngest) = $COPY
              THEN max(p.duration - w.bytes * 1.0 / :link, 0) / p.bytes END AS pace
  FROM pageable_copy p CROSS JOIN template t ON t.id = p.template LEFT JOIN wait_detail w ON w.id = p.event
  WHERE p.bytes > :min_bytes
     OR p.bytes >= :least AND w.pending AND (SELECT u.calls FROM template_use u WHERE u.template = p.template) >= :min_times),
way AS MATERIALIZED (
  SELECT process, copy, min(pace) AS pace FROM alone GROUP BY process, copy),
best AS MATERIALIZED (
  SELECT w.process, w.copy,
         coalesce(w.pace, (SELECT min(o.pace) FROM way o WHERE o.process = w.process), 1.0 / :pageable) AS pace
  FROM way w)
SELECT a.event, a.template, a.duration AS cost_ns, a.bytes, CASE WHEN a.bytes <= :min_bytes THEN 'possible' END AS certainty,
       a.flags & $STAGED <> 0 AS removed,
       CAST(max(min(a.duration, a.bytes * b.pace)
                - max(a.bytes * 1.0 / :link - max(ifnull(a.gap, a.duration), 0), 0), 0) AS INTEGER) AS saving_ns
FROM alone a JOIN best b ON b.process = a.process AND b.copy = a.copy

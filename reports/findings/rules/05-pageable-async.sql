-- number: 5
-- id: pageable-async
-- title: Asynchronous copy of pageable memory, which the host waits in
-- severity: high
-- certainty: certain
-- threshold: min_bytes 65536 bytes
-- prove: strict staging
-- calls: t.kind = 3 AND t.flags & 1 AND 1 IN (t.mem, t.src_mem) AND t.copy IN (1, 2)
-- fix: Allocate the host buffer with cudaMallocHost(), or pin it once with cudaHostRegister(), so that
--      the copy runs while the host goes on; 'weir run' stages such copies of 1 MiB and more.
SELECT e.id AS event, e.template AS template, e.duration AS cost_ns, e.bytes AS bytes, t.flags & 128 <> 0 AS removed
FROM event_row e CROSS JOIN template t ON t.id = e.template
WHERE t.kind = 3 AND t.status = 0 AND t.flags & 1 AND NOT t.flags & 16
  AND 1 IN (t.mem, t.src_mem) AND t.copy IN (1, 2) AND e.bytes > :min_bytes

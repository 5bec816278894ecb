-- number: 6
-- id: blocking-copy
-- title: Copy to the device that the host waits for, with work of its own to do
-- severity: medium
-- certainty: possible
-- threshold: min_bytes 65536 bytes
-- threshold: min_ns 20000 ns
-- calls: t.kind = $COPY AND t.copy = $H2D AND NOT t.flags & $ASYNC AND t.src_mem = $PINNED
-- fix: Copy with cudaMemcpyAsync() from pinned memory, and record an event that is waited for before the
--      host buffer is written again.
SELECT event, template, duration AS cost_ns, min(duration, gap) AS saving_ns, bytes
FROM blocking_copy WHERE bytes > :min_bytes AND gap >= :min_ns AND duration >= :min_ns

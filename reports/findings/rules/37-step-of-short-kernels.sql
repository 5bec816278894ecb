-- number: 37
-- id: step-of-short-kernels
-- title: The same short kernels launched one by one in each step
-- severity: medium
-- certainty: possible
-- decides: weir run --device-times=all
-- threshold: min_launches 8 launches between two other calls of the thread
-- threshold: min_times 32 steps that begin at one place
-- threshold: min_same 75 of a hundred of them, with as many launches as the most of them
-- threshold: short 10000 ns a launch, what a launch may cost by itself
-- threshold: long 50000 ns a launch, of kernels of few threads
-- threshold: few 16384 threads
-- threshold: node 2000 ns a launch, what it takes of the device within a graph
-- rows: mixed_storm
-- calls: t.kind = $LAUNCH
-- names: kernels
-- fix: Capture the step once as a graph, and launch that: each launch takes some microseconds of the host and of the device,
--      whatever the kernel does. Parameters that change are set with cudaGraphExecKernelNodeSetParams(), or lie in memory.
WITH brief AS MATERIALIZED (
  SELECT s.*, t.thread, t.stack, count(*) OVER (PARTITION BY t.thread, t.stack, s.launches) AS same,
         count(*) OVER (PARTITION BY t.thread, t.stack) AS times,
         (SELECT sum(d."end" - d.start) FROM device_work d CROSS JOIN event_row e ON e.id = d.event
          CROSS JOIN template u ON u.id = e.template
          WHERE d.event BETWEEN s.event AND s.last AND u.kind = t.kind AND u.thread = t.thread) AS worked
  FROM mixed_storm s CROSS JOIN template t ON t.id = s.template
  WHERE s.launches >= :min_launches AND s.span <= s.launches * CASE WHEN s.threads <= :few THEN :long ELSE :short END),
place AS (
  SELECT thread, stack FROM brief GROUP BY thread, stack
  HAVING count(*) >= :min_times AND max(same) * 100 >= max(times) * :min_same)
SELECT event, template, launches - 1 AS count, max(span, launch_ns) AS cost_ns, last AS related, 0 AS related_saving_ns,
       (CASE WHEN waited <> 1 THEN launch_ns WHEN worked THEN max(span - max(worked, launches * :node), 0)
             WHEN span <= launches * :short THEN max(span - launches * :node, 0) ELSE launch_ns END) * (launches - 1) / launches AS saving_ns
FROM brief WHERE (thread, stack) IN (SELECT thread, stack FROM place)

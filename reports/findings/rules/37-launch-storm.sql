-- number: 37
-- id: launch-storm
-- title: Many launches of a short kernel, one after the other
-- severity: high
-- certainty: likely
-- decides: weir run --device-times=all
-- threshold: min_launches 8 launches between two other calls of the thread
-- threshold: min_storms 8 times
-- threshold: short 10000 ns a launch, what a launch may cost by itself
-- threshold: node 2000 ns a launch, what it takes of the device within a graph
-- threshold: long 50000 ns a launch, of a kernel of few threads
-- threshold: few 16384 threads
-- threshold: block 1024 threads, of a kernel that a block has room for: launches of it are a storm however long they take
-- threshold: idle 25 percent of the time, in which the device did none of it
-- rows: storm
-- calls: t.kind = $LAUNCH
-- names: kernels
-- fix: Put the loop into the kernel, or capture the launches once as a graph and launch that: each launch takes
--      some microseconds of the host and of the device, whatever the kernel does.
WITH brief AS MATERIALIZED (
  SELECT s.*, t.process, t.thread, t.stack,
         (SELECT sum(d."end" - d.start) FROM device_work d CROSS JOIN event_row e ON e.id = d.event
          CROSS JOIN template u ON u.id = e.template WHERE d.event BETWEEN s.event AND s.last AND u.kind = t.kind
          AND u.thread = t.thread AND u.stack = t.stack AND u.stream = t.stream) AS worked
  FROM storm s CROSS JOIN template t ON t.id = s.template
  WHERE s.launches >= :min_launches
    AND (s.threads <= :block OR s.span <= s.total * CASE WHEN s.threads <= :few THEN :long ELSE :short END)),
shared AS MATERIALIZED ( -- what kernels write, the host may read without a copy
  SELECT DISTINCT process FROM block WHERE mem IN ($MANAGED, $PINNED)),
often AS (
  SELECT *, count(*) OVER (PARTITION BY thread, stack) AS storms, span > total * :long AS slow,
         sum(span > total * :long) OVER (PARTITION BY thread, stack) * 2 > count(*) OVER (PARTITION BY thread, stack) AS slow_place,
         CASE WHEN span > total * :long THEN launch_ns ELSE span * launches / total END AS ns FROM brief),
run AS ( -- the launches of one kernel in one storm
  SELECT whole, event, template, stack, launches - 1 AS count, max(ns, launch_ns) AS cost_ns,
         (CASE WHEN slow OR waited <> 1 THEN launch_ns WHEN worked THEN max(ns - max(worked, launches * :node), 0)
               WHEN span <= total * :short THEN max(ns - launches * :node, 0) ELSE launch_ns END)
           * (launches - 1) / launches AS saving_ns,
         CASE WHEN slow_place THEN 'possible' WHEN slow THEN 'likely'
              WHEN span > total * :short AND worked > launches * :short AND (ns - worked) * 100 < ns * :idle
              THEN 'possible'
              WHEN waited = 2 AND process IN (SELECT process FROM shared) THEN 'possible' ELSE 'likely' END AS certainty
  FROM often WHERE storms >= :min_storms),
ranked AS ( -- a loop over several kernels is one storm: its place is that of the kernel that is launched most
  SELECT *, row_number() OVER by_most AS place, lead(event) OVER by_most AS other,
         sum(count) OVER (PARTITION BY whole) AS all_launches, sum(cost_ns) OVER (PARTITION BY whole) AS all_cost,
         sum(saving_ns) OVER (PARTITION BY whole) AS all_saving
  FROM run WINDOW by_most AS (PARTITION BY whole ORDER BY count DESC, stack))
SELECT event, template, all_launches AS count, all_cost AS cost_ns, all_saving AS saving_ns, other AS related,
       0 AS related_saving_ns, certainty
FROM ranked WHERE place = 1

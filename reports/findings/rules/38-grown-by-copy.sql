-- number: 38
-- id: grown-by-copy
-- title: Memory that grows by a new block, a copy of the old one, and its free
-- severity: high
-- certainty: likely
-- threshold: min_times 8 times at one place
-- threshold: growth 40 percent by which the block grows: by more, as by doubling, it is copied seldom
-- threshold: free_cost 4 allocations, what the free of a block takes by itself at most
-- rows: grown
-- calls: t.kind = $COPY AND t.copy = $D2D
-- fix: Allocate for the most at once, or double the block each time, so that few copies are made; cuMemAddressReserve()
--      with cuMemMap() lets a block grow where it is.
WITH chain AS MATERIALIZED (
  SELECT g.* FROM grown g CROSS JOIN block b ON b.free = g.free
  WHERE b.alloc IN (SELECT alloc FROM grown) OR g.alloc IN (SELECT o.alloc FROM grown n CROSS JOIN block o ON o.free = n.free)),
step AS (
  SELECT g.event, g.alloc, g.free, g.bytes, e.template, e.duration AS copy_ns, a.duration AS alloc_ns,
         CASE WHEN d.pending IS NOT 1 THEN f.duration WHEN w.unknown_ns = 0 THEN f.duration - w.working_ns
              ELSE min(f.duration, :free_cost * a.duration) END AS free_ns,
         f.duration AS freed_ns,
         sum(a.bytes * 100 < g.bytes * (100 + :growth)) OVER (PARTITION BY t.process, t.stack) AS times
  FROM chain g CROSS JOIN event_row e ON e.id = g.event CROSS JOIN template t ON t.id = e.template
  CROSS JOIN event_row a ON a.id = g.alloc CROSS JOIN event_row f ON f.id = g.free
  LEFT JOIN wait_detail d ON d.id = g.free LEFT JOIN wait_time w ON w.id = g.free)
SELECT event, template, copy_ns + alloc_ns + freed_ns AS cost_ns, copy_ns + alloc_ns + free_ns AS saving_ns,
       free AS related, free_ns AS related_saving_ns, bytes
FROM step WHERE times >= :min_times

-- number: 27
-- id: prefetched-in-each-step
-- title: Managed memory that is prefetched, or advised about, again in each step
-- severity: low
-- certainty: possible
-- threshold: min_times 32 times at one place
-- calls: t.kind = $CALL AND t.api IN (SELECT id FROM api WHERE name GLOB '*MemPrefetchAsync*' OR name GLOB '*MemAdvise*')
-- fix: Prefetch once, before the loop, what kernels alone touch in it, and give advice once: it holds until it is changed. What
--      the host reads in each step copy to page-locked memory, so that the rest stays on the device.
WITH place AS (
  SELECT e.id, e.template, e.duration, e.bytes, count(*) OVER again AS times,
         row_number() OVER (PARTITION BY e.template, e.a, e.bytes ORDER BY e.id) AS nth
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $CALL AND t.status = $SUCCESS AND NOT t.flags & $CAPTURED
    AND t.api IN (SELECT id FROM api WHERE name GLOB '*MemPrefetchAsync*' OR name GLOB '*MemAdvise*')
  WINDOW again AS (PARTITION BY e.template, e.a, e.bytes))
SELECT id AS event, template, duration AS cost_ns, duration AS saving_ns FROM place WHERE times >= :min_times AND nth > 1

-- number: 34
-- id: pool-trimmed
-- title: Memory pool that is trimmed again and again, and grows after that
-- severity: medium
-- certainty: likely
-- least: always
-- threshold: min_times 16 times at one place
-- calls: t.kind = $CALL AND t.api IN (SELECT id FROM api WHERE name GLOB '*MemPoolTrimTo*')
-- fix: Trim it once, after the largest phase or where an allocation has failed; in a loop leave the pool what it has.
WITH trim AS (
  SELECT e.id, e.template, e.duration, t.process, count(*) OVER (PARTITION BY e.template) AS times
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $CALL AND t.status = $SUCCESS AND t.api IN (SELECT id FROM api WHERE name GLOB '*MemPoolTrimTo*')),
taken AS MATERIALIZED ( -- allocations of a stream's order come after it
  SELECT t.process, max(e.id) AS last FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $ALLOC AND t.flags & $ASYNC AND t.status = $SUCCESS GROUP BY t.process)
SELECT r.id AS event, r.template, r.duration AS cost_ns, r.duration AS saving_ns FROM trim r
CROSS JOIN taken k ON k.process = r.process AND k.last > r.id
WHERE r.times >= :min_times

-- number: 39
-- id: copied-instead-of-swapped
-- title: A block copied to another of its size at each step
-- severity: medium
-- certainty: possible
-- least: untimed
-- decides: weir run --device-times=all
-- threshold: min_times 16 times, of the same two blocks at one place
-- threshold: launches 16 launches of the process a copy, at most
-- rows: whole_copy
-- calls: t.kind = $COPY AND t.copy = $D2D
-- fix: Where the copy only makes the new state the old one, exchange the two pointers: both blocks stay where they are.
WITH queued AS MATERIALIZED (
  SELECT t.process, sum(u.calls) AS launches FROM template_use u CROSS JOIN template t ON t.id = u.template
  WHERE t.kind = $LAUNCH GROUP BY t.process),
handed AS MATERIALIZED ( -- blocks that kernels are handed
  SELECT DISTINCT b.alloc FROM (SELECT DISTINCT to_alloc FROM whole_copy) w CROSS JOIN block b ON b.alloc = w.to_alloc
  WHERE EXISTS (SELECT 1 FROM access_word x WHERE x.process = b.process
                AND x.address BETWEEN b.pointer AND b.pointer + b.bytes - 1)),
step AS (
  SELECT w.event, t.process, w.template, w.duration, w.bytes, w.to_alloc,
         ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = w.event), 0) AS worked,
         count(*) OVER same AS times, max(w.copied_out) OVER same - min(w.copied_out) OVER same AS copied_out
  FROM whole_copy w CROSS JOIN template t ON t.id = w.template
  WINDOW same AS (PARTITION BY t.process, t.stack, w.to_alloc, w.from_alloc))
SELECT event, template, max(duration, worked) AS cost_ns, ifnull(nullif(worked, 0), duration) AS saving_ns, bytes, to_alloc AS related, 0 AS related_saving_ns
FROM step s WHERE times >= :min_times AND (copied_out * 2 < times OR to_alloc IN (SELECT alloc FROM handed))
  AND EXISTS (SELECT 1 FROM queued q WHERE q.process = s.process AND q.launches <= s.times * :launches)

-- number: 58
-- id: repeated-launch
-- title: A kernel launched again on what it was given the last time
-- severity: medium
-- certainty: likely
-- needs: whole_run
-- queued: device
-- least: untimed
-- names: kernels
-- threshold: min_times 8 times
-- rows: repeated_launch
-- calls: t.kind = $LAUNCH
-- fix: Launch it once, before the loop, and keep what it writes: by its parameters and their types it reads what nothing
--      has written since its last launch, and writes over what that one wrote.
WITH timed AS MATERIALIZED ( -- a program that measures does the same again
  SELECT DISTINCT t.process FROM (SELECT 1 FROM timed_wait LIMIT 1) CROSS JOIN timed_wait w
  CROSS JOIN event_row e ON e.id = w.event CROSS JOIN template t ON t.id = e.template),
often AS MATERIALIZED (
  SELECT family, sum(others = 0) * 2 > count(*) AS alone FROM repeated_launch
  GROUP BY family HAVING count(*) >= :min_times),
work AS (
  SELECT r.event, r.template, r.earlier, r.duration, o.alone,
         (SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = r.event) AS worked
  FROM often o CROSS JOIN repeated_launch r ON r.family = o.family)
SELECT w.event, w.template, w.earlier AS related, max(w.duration, ifnull(w.worked, 0)) AS cost_ns,
       CASE WHEN w.alone OR t.process IN (SELECT process FROM timed) THEN 'possible' ELSE 'likely' END AS certainty
FROM work w CROSS JOIN template t ON t.id = w.template

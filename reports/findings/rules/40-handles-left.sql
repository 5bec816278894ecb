-- number: 40
-- id: handles-left
-- title: Events, streams or contexts made throughout the run, and never destroyed
-- severity: medium
-- certainty: likely
-- needs: whole_run
-- threshold: min_left 64 objects of one place
-- threshold: min_epochs 5 eighths of the run, in which some were made
-- rows: handle_left
-- fix: Destroy each when it is last used, or make a few and use them again: what is never destroyed keeps memory of the host and of
--      the device, and making it takes time at each step.
WITH extent AS (SELECT max(id) AS last FROM event_row),
place AS (
  SELECT h.family FROM handle_left h CROSS JOIN template t ON t.id = h.template CROSS JOIN process p ON p.id = t.process
  WHERE p.end_reason = 'exit'
  GROUP BY h.family
  HAVING count(*) >= :min_left AND count(DISTINCT h.event * 8 / (SELECT last + 1 FROM extent)) >= :min_epochs)
SELECT h.event, h.template, h.made_ns AS cost_ns, h.made_ns AS saving_ns FROM handle_left h WHERE h.family IN (SELECT family FROM place)

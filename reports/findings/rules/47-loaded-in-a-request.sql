-- number: 47
-- id: loaded-in-a-request
-- title: Code loaded within a step that is repeated, of which the first takes longer
-- severity: low
-- certainty: likely
-- threshold: min_steps 8 times
-- threshold: most 16 loads
-- threshold: events 4096 events after the load, in which the steps are looked for
-- rows: code_loaded
-- calls: t.kind = $CALL AND t.api IN (SELECT id FROM api WHERE name GLOB 'cuModuleLoad*' OR name GLOB 'cuLibraryLoad*')
-- fix: Load it before the first step, or run one step ahead of those that somebody waits for: the run takes as
--      long as before, its first answer does not.
WITH load AS MATERIALIZED (
  SELECT l.event, l.template, l.duration, t.thread, t.stack FROM code_loaded l CROSS JOIN template t ON t.id = l.template
  WHERE l.event NOT IN (SELECT made FROM handle_pair WHERE again) ORDER BY l.duration DESC, l.event LIMIT :most),
-- a call is within a step, if its stack has a frame of the load's
within AS MATERIALIZED (
  SELECT DISTINCT l.event, f.depth, t.id AS template FROM load l CROSS JOIN stack_frame f ON f.stack = l.stack
  CROSS JOIN template t ON t.thread = l.thread CROSS JOIN stack_frame o ON o.stack = t.stack AND o.frame = f.frame),
call AS (
  SELECT l.event, e.id, e.template FROM load l CROSS JOIN event_row e ON e.id > l.event AND e.id <= l.event + :events
  CROSS JOIN template t ON t.id = e.template WHERE t.thread = l.thread),
place AS (
  SELECT c.event, d.depth, c.id, c.template, w.template IS NOT NULL AS inside
  FROM (SELECT DISTINCT event, depth FROM within) d CROSS JOIN call c ON c.event = d.event
  LEFT JOIN within w ON w.event = d.event AND w.depth = d.depth AND w.template = c.template),
turn AS (
  SELECT *, inside AND NOT lag(inside, 1, 1) OVER (PARTITION BY event, depth ORDER BY id) AS enters FROM place),
step AS (
  SELECT event, depth, sum(enters) AS steps, min(CASE WHEN enters THEN id END) AS next FROM turn GROUP BY event, depth)
SELECT l.event, l.template, l.duration AS cost_ns, 0 AS saving_ns, min(s.next) AS related
FROM load l CROSS JOIN step s ON s.event = l.event WHERE s.steps >= :min_steps GROUP BY l.event

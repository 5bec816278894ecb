-- number: 33
-- id: graph-made-anew
-- title: The same graph instantiated again and again
-- severity: high
-- certainty: certain
-- threshold: min_times 4 times
-- fix: Keep the executable graph and launch it again; where only parameters change, change them with
--      cudaGraphExecUpdate().
WITH made AS (
  SELECT DISTINCT c.id, c.process, c.event, l.content
  FROM graph_change c JOIN graph_launch l ON l.change = c.id
  WHERE c.fact = 1 AND c.event IS NOT NULL AND l.content IS NOT NULL),
placed AS (
  SELECT m.event, e.duration,
         count(*) OVER (PARTITION BY m.process, t.stack, m.content) AS times,
         row_number() OVER (PARTITION BY m.process, t.stack, m.content ORDER BY m.event) AS nth
  FROM made m CROSS JOIN event_row e ON e.id = m.event CROSS JOIN template t ON t.id = e.template)
SELECT event, duration AS cost_ns FROM placed WHERE times >= :min_times AND nth > 1

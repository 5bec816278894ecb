-- number: 33
-- id: graph-made-anew
-- title: The same graph instantiated again and again
-- severity: high
-- certainty: certain
-- threshold: min_times 4 times
-- fix: Keep the executable graph and launch it again; where only parameters change, change them with
--      cudaGraphExecUpdate().
WITH made AS (
  SELECT DISTINCT c.id, c.process, c.event, c.exec, l.content
  FROM graph_change c JOIN graph_launch l ON l.change = c.id
  WHERE c.fact = $GRAPH_MADE AND c.event IS NOT NULL AND l.content IS NOT NULL),
ended AS (
  SELECT e.id AS event, t.process, e.a AS exec, e.duration
  FROM (SELECT 1 FROM made LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.status = $SUCCESS AND t.api IN (SELECT id FROM api WHERE name IN ('cuGraphExecDestroy', 'cudaGraphExecDestroy'))),
life AS (
  SELECT event, process, content, lead(ended) OVER same AS ended, lead(event) OVER same AS related
  FROM (SELECT event, process, exec, content, NULL AS ended FROM made
        UNION ALL SELECT event, process, exec, NULL, duration FROM ended)
  WINDOW same AS (PARTITION BY process, exec ORDER BY event)),
placed AS (
  SELECT m.event, e.template, e.duration + ifnull(m.ended, 0) AS ns, CASE WHEN m.ended THEN related END AS related,
         count(*) OVER (PARTITION BY m.process, t.stack, m.content) AS times,
         row_number() OVER (PARTITION BY m.process, t.stack, m.content ORDER BY m.event) AS nth
  FROM life m CROSS JOIN event_row e ON e.id = m.event CROSS JOIN template t ON t.id = e.template
  WHERE m.content IS NOT NULL)
SELECT event, template, ns AS cost_ns, related FROM placed WHERE times >= :min_times AND nth > 1

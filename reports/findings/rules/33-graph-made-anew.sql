-- number: 33
-- id: graph-made-anew
-- title: The same graph instantiated again and again
-- severity: high
-- certainty: certain
-- often: 4
-- threshold: min_times 4 times
-- threshold: update 50 percent of the time of cudaGraphInstantiate(), which cudaGraphExecUpdate() takes at most
-- rows: graph_change
-- names: kernels
-- fix: Keep the executable graph and launch it again; where only parameters change, change them with
--      cudaGraphExecUpdate().
WITH made AS (
  SELECT DISTINCT c.id, c.process, c.thread, c.event, c.exec, c.nodes, l.content
  FROM graph_change c JOIN graph_launch l ON l.change = c.id
  WHERE c.fact = $GRAPH_MADE AND c.event IS NOT NULL AND l.content IS NOT NULL),
ended AS (
  SELECT e.id AS event, t.process, e.a AS exec, e.duration
  FROM (SELECT 1 FROM made LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.status = $SUCCESS AND t.api IN (SELECT id FROM api WHERE name IN ('cuGraphExecDestroy', 'cudaGraphExecDestroy'))),
bound AS ( -- begins and ends of captures
  SELECT e.id, t.process, t.thread, e.a AS graph, b.name LIKE '%BeginCapture%' AS begins,
         lag(e.id) OVER (PARTITION BY t.process, t.thread ORDER BY e.id) AS begin
  FROM (SELECT 1 FROM made LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  CROSS JOIN api b ON b.id = t.api
  WHERE t.status = $SUCCESS AND t.api IN (SELECT id FROM api WHERE name LIKE 'cu%StreamBeginCapture%' OR name LIKE 'cu%StreamEndCapture%')),
source AS ( -- of what is made, the capture that its graph is of, if nothing was made of that before
  SELECT event, thread, lag(begin) OVER same AS begin, lag("end") OVER same AS "end", lag(thread) OVER same AS capturing
  FROM (SELECT process, graph, id AS event, thread, begin, id AS "end" FROM bound WHERE NOT begins AND begin IS NOT NULL
        UNION ALL SELECT m.process, e.a, m.event, NULL, NULL, NULL FROM made m CROSS JOIN event_row e ON e.id = m.event)
  WINDOW same AS (PARTITION BY process, graph ORDER BY event)),
captured AS MATERIALIZED (
  SELECT s.event, (SELECT sum(e.duration) FROM event_row e CROSS JOIN template t ON t.id = e.template
                   WHERE e.id BETWEEN s.begin AND s."end" AND t.thread = s.capturing) AS ns
  FROM source s WHERE s.thread IS NULL AND s.begin IS NOT NULL),
life AS (
  SELECT id, event, process, thread, nodes, content, lead(ended) OVER same AS ended, lead(event) OVER same AS related
  FROM (SELECT id, event, process, thread, exec, nodes, content, NULL AS ended FROM made
        UNION ALL SELECT NULL, event, process, NULL, exec, NULL, NULL, duration FROM ended)
  WINDOW same AS (PARTITION BY process, exec ORDER BY event)),
placed AS (
  SELECT m.event, e.template, e.duration + ifnull(m.ended, 0) + ifnull(c.ns, 0) AS ns, CASE WHEN m.ended THEN related END AS related,
         count(*) OVER (PARTITION BY m.process, t.stack, m.content) AS times,
         row_number() OVER (PARTITION BY m.process, t.stack, m.content ORDER BY m.event) AS nth
  FROM life m CROSS JOIN event_row e ON e.id = m.event CROSS JOIN template t ON t.id = e.template
  LEFT JOIN captured c ON c.event = m.event
  WHERE m.content IS NOT NULL),
turned AS ( -- of what a thread makes at one place, what it made there before
  SELECT m.id, m.event, m.nodes, m.content, e.template, e.duration, m.ended, m.process, m.thread, t.stack, m.related,
         lag(m.id) OVER here AS before, lag(m.nodes) OVER here AS nodes_before, lag(m.content) OVER here AS content_before,
         lag(m.related) OVER here AS ended_before
  FROM life m CROSS JOIN event_row e ON e.id = m.event CROSS JOIN template t ON t.id = e.template
  WHERE m.content IS NOT NULL AND m.ended IS NOT NULL
  WINDOW here AS (PARTITION BY m.process, m.thread, t.stack ORDER BY m.event)),
alike AS ( -- the one before had ended, and each node is what the same node was, with other parameters
  SELECT u.*, count(*) OVER (PARTITION BY u.process, u.thread, u.stack) + 1 AS times
  FROM turned u
  WHERE u.content <> u.content_before AND u.ended_before < u.event AND u.nodes = u.nodes_before AND u.nodes
    AND NOT EXISTS (
      SELECT 1 FROM graph_node n CROSS JOIN graph_node_type y ON y.id = n.type
      LEFT JOIN graph_node o ON o.change = u.before AND o.position = n.position AND o.type IS n.type
        AND (y.name <> 'kernel' OR o.a IS n.a) AND o.copy IS n.copy AND o.mem IS n.mem AND o.src_mem IS n.src_mem
        AND o.device IS n.device AND o.src_device IS n.src_device AND (o.parent = 0) = (n.parent = 0)
      WHERE n.change = u.id
        AND (o.change IS NULL OR n.conditional OR y.name NOT IN ('kernel', 'copy', 'memset', 'host_function', 'graph',
                                                                        'empty', 'event_wait', 'event_record'))))
SELECT event, template, ns AS cost_ns, ns AS saving_ns, related, 'certain' AS certainty
FROM placed WHERE times >= :min_times AND nth > 1
UNION ALL
SELECT event, template, duration + ended, ended + duration * (100 - :update) / 100, related, 'likely'
FROM alike WHERE times >= :min_times AND event NOT IN (SELECT event FROM placed WHERE times >= :min_times)

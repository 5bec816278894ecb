-- number: 44
-- id: graph-updated-with-itself
-- title: An executable graph updated to what it was
-- severity: medium
-- certainty: possible
-- threshold: min_times 8 times
-- rows: graph_change
-- names: kernels
-- fix: Launch the executable graph again as it is: without new arguments it needs neither a new capture nor
--      cudaGraphExecUpdate().
WITH change AS MATERIALIZED (
  SELECT c.id, c.process, c.thread, c.event, c.exec, c.fact, c.nodes FROM graph_change c WHERE c.nodes IS NOT NULL),
turned AS (
  SELECT *, lag(id) OVER same AS before, lag(event) OVER same AS since, lag(nodes) OVER same AS nodes_before
  FROM change WINDOW same AS (PARTITION BY process, exec ORDER BY id)),
equal AS MATERIALIZED (
  -- handles of nodes are of another graph each time; a kernel's arguments are not known
  SELECT u.*, NOT EXISTS (SELECT 1 FROM graph_node n CROSS JOIN graph_node_type y ON y.id = n.type
                          WHERE n.change = u.id AND y.name <> 'copy') AS copies
  FROM turned u WHERE u.fact = $GRAPH_UPDATED AND u.event IS NOT NULL AND u.since IS NOT NULL AND u.nodes = u.nodes_before
    AND NOT EXISTS (
      SELECT 1 FROM graph_node n LEFT JOIN graph_node o ON o.change = u.before AND o.position = n.position
        AND o.type IS n.type AND o.a IS n.a AND o.b IS n.b AND o.bytes IS n.bytes AND o.copy IS n.copy AND o.mem IS n.mem
        AND o.src_mem IS n.src_mem AND o.device IS n.device AND o.src_device IS n.src_device
      WHERE n.change = u.id AND o.change IS NULL)),
placed AS (
  SELECT q.event, e.template, e.duration, q.copies, count(*) OVER (PARTITION BY t.process, t.stack) AS times,
         (SELECT ifnull(sum(c.duration), 0) FROM event_row c CROSS JOIN template y ON y.id = c.template
          CROSS JOIN api a ON a.id = y.api WHERE c.id > q.since AND c.id < q.event AND y.thread = q.thread
            AND (y.flags & $CAPTURED OR a.name GLOB '*StreamBeginCapture*' OR a.name GLOB '*StreamEndCapture*')) AS capture_ns
  FROM equal q CROSS JOIN event_row e ON e.id = q.event CROSS JOIN template t ON t.id = e.template)
SELECT event, template, duration + capture_ns AS cost_ns, CASE WHEN copies THEN 'likely' ELSE 'possible' END AS certainty
FROM placed WHERE times >= :min_times

-- number: 23
-- id: dead-write
-- title: Device memory written again before anything can have read it
-- severity: medium
-- certainty: certain
-- later: copy
-- mostly: 25
-- fix: Drop the first memset or copy: the next one writes the same bytes, and no graph, copy or kernel that
--      is handed this memory came between.
SELECT event, template, duration AS cost_ns, bytes, next AS related,
       CASE WHEN same_stream THEN 'certain' ELSE 'possible' END AS certainty
FROM overwritten
UNION ALL
SELECT event, template, duration, bytes, next, CASE WHEN same_stream THEN 'likely' ELSE 'possible' END
FROM written_over

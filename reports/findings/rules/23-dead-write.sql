-- number: 23
-- id: dead-write
-- title: Device memory written again before anything can have read it
-- severity: medium
-- certainty: certain
-- fix: Drop the first memset or copy: the next one writes the same bytes, and no kernel, graph or copy
--      came between.
SELECT o.event AS event, e.template AS template, e.duration AS cost_ns, e.bytes AS bytes, o.next AS related,
       CASE WHEN o.same_stream THEN 'certain' ELSE 'possible' END AS certainty
FROM overwritten o CROSS JOIN event_row e ON e.id = o.event

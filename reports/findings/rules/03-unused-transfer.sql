-- number: 3
-- id: unused-transfer
-- title: Copy to the device that nothing can have read before its memory was freed
-- severity: medium
-- certainty: certain
-- fix: Delete the copy, or make it where its data is used: no kernel, graph or copy came between it
--      and the free.
SELECT u.event AS event, e.template AS template, e.duration AS cost_ns, e.bytes AS bytes, u.free AS related
FROM unread u CROSS JOIN event_row e ON e.id = u.event

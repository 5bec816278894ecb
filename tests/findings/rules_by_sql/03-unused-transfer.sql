-- number: 3
-- id: unused-transfer
-- title: Copy to the device that nothing can have read before its memory was freed
-- severity: medium
-- certainty: certain
-- mostly: 25
-- fix: Delete the copy, or make it where its data is used: no kernel, graph or copy came between it
--      and the free.
SELECT event, template, duration AS cost_ns, bytes, free AS related FROM unread

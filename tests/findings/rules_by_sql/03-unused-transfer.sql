-- number: 3
-- id: unused-transfer
-- title: Copy to the device that nothing can have read before its memory was freed
-- severity: medium
-- certainty: certain
-- later: copy
-- mostly: 25
-- fix: Delete the copy, or make it where its data is used: no graph, copy or kernel that is handed
--      its memory came between it and the free.
SELECT event, template, duration AS cost_ns, bytes, free AS related, 'certain' AS certainty FROM unread
UNION ALL SELECT event, template, duration, bytes, free, 'likely' FROM uploaded_for_none

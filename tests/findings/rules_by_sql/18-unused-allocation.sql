-- number: 18
-- id: unused-allocation
-- title: Device memory that nothing can have used
-- severity: medium
-- certainty: certain
-- mostly: 100
-- threshold: min_bytes 4096 bytes
-- holds: bytes
-- fix: Delete the allocation: no copy, memset, kernel or graph came in its life.
SELECT u.event AS event, e.template AS template, e.bytes AS bytes, u.free AS related
FROM untouched u CROSS JOIN event_row e ON e.id = u.event WHERE e.bytes >= :min_bytes

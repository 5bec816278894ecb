-- number: 19
-- id: early-allocation
-- title: Memory taken long before its first use, while other memory was still to be freed
-- severity: low
-- certainty: likely
-- holds: bytes
-- fix: Allocate it after the frees that come before its first use: the peak is lower by as much.
SELECT b.event AS event, e.template AS template, e.bytes AS bytes
FROM early_block b CROSS JOIN event_row e ON e.id = b.event

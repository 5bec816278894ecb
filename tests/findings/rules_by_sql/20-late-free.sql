-- number: 20
-- id: late-free
-- title: Memory freed only after other memory was taken, though its last use was before
-- severity: low
-- certainty: likely
-- holds: bytes
-- fix: Free it before the allocation that follows its last use: the peak is lower by as much.
SELECT event, template, bytes, alloc AS related FROM late_free

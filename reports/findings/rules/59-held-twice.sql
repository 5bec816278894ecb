-- number: 59
-- id: held-twice
-- title: Two blocks of a device that hold the same bytes, which kernels only read
-- severity: medium
-- certainty: likely
-- holds: bytes
-- threshold: min_bytes 1048576 bytes
-- rows: held_twice
-- needs: copy_hash
-- fix: Keep one of them, and hand it to both kernels: both were filled with the same bytes, and kernels are handed them as
--      pointers to constants from then on, while both live.
SELECT alloc AS event, template, twin AS related, bytes
FROM held_twice WHERE bytes >= :min_bytes

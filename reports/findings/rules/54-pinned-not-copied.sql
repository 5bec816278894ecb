-- number: 54
-- id: pinned-not-copied
-- title: Page-locked memory that nothing copies
-- severity: low
-- certainty: possible
-- needs: whole_run
-- holds: bytes
-- threshold: min_bytes 1048576 bytes
-- threshold: most 64 blocks
-- calls: t.kind = $ALLOC AND t.mem = $PINNED
-- fix: Allocate it with malloc(), or not at all: page-locked memory is taken from all programs of the machine, and takes long
--      to make.
WITH own AS MATERIALIZED (
  SELECT b.alloc, b.process, b.pointer, b.bytes, b.start, ifnull(b."end", 9223372036854775807) AS until
  FROM block b CROSS JOIN event_row e ON e.id = b.alloc CROSS JOIN template t ON t.id = e.template JOIN process p ON p.id = b.process
  WHERE b.mem = $PINNED AND NOT b.registered AND b.alloc IS NOT NULL AND b.bytes >= :min_bytes
    AND b.alloc NOT IN (SELECT alloc FROM given_block) AND NOT t.flags & $CACHED AND p.end_reason = 'exit'
    AND t.api NOT IN (SELECT id FROM api WHERE layer = 'weir')
  ORDER BY b.bytes DESC, b.alloc LIMIT :most),
strange AS MATERIALIZED ( -- whose graphs copy, or whose kernels are handed what is not known
  SELECT DISTINCT t.process FROM template t LEFT JOIN api i ON i.id = t.api
  WHERE t.flags & $CAPTURED OR (t.kind = $LAUNCH AND t.id NOT IN (SELECT template FROM template_access))
     OR i.name GLOB 'cu*GraphAdd*'),
moved AS MATERIALIZED (
  SELECT DISTINCT o.alloc FROM (SELECT 1 FROM own LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  JOIN own o ON o.process = t.process AND e.start BETWEEN o.start AND o.until
  WHERE t.kind IN ($COPY, $MEMSET, $CALL) AND (
    e.a BETWEEN o.pointer AND o.pointer + o.bytes - 1 OR e.b BETWEEN o.pointer AND o.pointer + o.bytes - 1
    OR o.pointer BETWEEN e.a AND e.a + e.bytes - 1 OR o.pointer BETWEEN e.b AND e.b + e.bytes - 1)),
handed AS (
  SELECT o.alloc FROM own o CROSS JOIN access_word w ON w.process = o.process AND w.address BETWEEN o.pointer AND o.pointer + o.bytes - 1)
SELECT alloc AS event, bytes FROM own
WHERE process NOT IN (SELECT process FROM strange) AND alloc NOT IN (SELECT alloc FROM moved) AND alloc NOT IN (SELECT alloc FROM handed)
  AND EXISTS (SELECT 1 FROM template t WHERE t.process = own.process AND t.kind = $COPY)

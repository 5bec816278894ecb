-- number: 27
-- id: managed-thrash
-- title: Managed memory that host and device may take from each other at each turn
-- severity: medium
-- certainty: possible
-- holds: bytes
-- threshold: min_turns 16 times
-- threshold: most 64 blocks
-- calls: t.kind = $ALLOC AND t.mem = $MANAGED
-- fix: Say where it belongs with cudaMemAdvise(), or bring it there with cudaMemPrefetchAsync() ahead of
--      the kernel and of the host's look; page faults are not recorded, so whether it moves is not known.
WITH own AS MATERIALIZED (
  SELECT b.alloc, b.process, b.pointer, b.bytes, b.start, ifnull(b."end", 9223372036854775807) AS until
  FROM block b WHERE b.mem = $MANAGED AND b.alloc IS NOT NULL AND NOT b.registered AND b.bytes > 0
  ORDER BY b.bytes DESC, b.alloc LIMIT :most),
placed AS MATERIALIZED (
  SELECT o.alloc FROM event_row e CROSS JOIN template t ON t.id = e.template
  CROSS JOIN api x ON x.id = t.api CROSS JOIN own o ON o.process = t.process
  WHERE t.kind = $CALL AND (x.name GLOB '*MemPrefetch*' OR x.name GLOB '*MemAdvise*' OR x.name GLOB '*StreamAttachMem*')
    AND e.a BETWEEN o.pointer AND o.pointer + o.bytes - 1),
step AS (
  SELECT t.process, e.start, t.kind, lag(t.kind) OVER (PARTITION BY t.process ORDER BY e.start, e.id) AS before
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.status = $SUCCESS AND NOT t.flags & $CAPTURED AND EXISTS (SELECT 1 FROM own)
    AND (t.kind = $LAUNCH OR (t.kind = $WAIT AND t.copy IN ($FOR_EVENT, $FOR_STREAM, $FOR_CONTEXT)))),
turn AS MATERIALIZED (SELECT process, start FROM step WHERE kind = $LAUNCH AND before = $WAIT)
SELECT o.alloc AS event, o.bytes AS bytes, count(*) AS count
FROM own o JOIN turn n ON n.process = o.process AND n.start BETWEEN o.start AND o.until
WHERE o.alloc NOT IN (SELECT alloc FROM placed)
GROUP BY o.alloc HAVING count(*) >= :min_turns

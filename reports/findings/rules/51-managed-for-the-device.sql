-- number: 51
-- id: managed-for-the-device
-- title: Managed memory that only copies fill or read
-- severity: low
-- certainty: possible
-- needs: whole_run
-- holds: bytes
-- threshold: most 64 blocks
-- calls: t.kind = $ALLOC AND t.mem = $MANAGED
-- fix: Where no line of the host reads or writes it by its pointer, allocate it with cudaMalloc(): it then is where
--      kernels need it, and no page of it can move.
WITH own AS MATERIALIZED (
  SELECT b.alloc, b.process, b.pointer, b.bytes, b.start, ifnull(b."end", 9223372036854775807) AS until
  FROM block b WHERE b.mem = $MANAGED AND b.alloc IS NOT NULL AND NOT b.registered AND b.bytes > 0
    AND b.alloc NOT IN (SELECT alloc FROM given_block)
  ORDER BY b.bytes DESC, b.alloc LIMIT :most),
placed AS MATERIALIZED (
  SELECT o.alloc FROM event_row e CROSS JOIN template t ON t.id = e.template
  CROSS JOIN api x ON x.id = t.api CROSS JOIN own o ON o.process = t.process
  WHERE t.kind = $CALL AND (x.name GLOB '*MemPrefetch*' OR x.name GLOB '*MemAdvise*' OR x.name GLOB '*StreamAttachMem*')
    AND e.a BETWEEN o.pointer AND o.pointer + o.bytes - 1),
crossed AS MATERIALIZED (
  SELECT t.process, e.start, e.a, e.b, t.mem IN ($PAGEABLE, $PINNED, $HOST) AS back
  FROM (SELECT 1 FROM own LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $COPY AND t.status = $SUCCESS
    AND (t.mem IN ($PAGEABLE, $PINNED, $HOST)) <> (t.src_mem IN ($PAGEABLE, $PINNED, $HOST)))
-- whoever copies between it and memory of the host's has another place for the host's data
SELECT o.alloc AS event, o.bytes AS bytes FROM own o
WHERE o.alloc NOT IN (SELECT alloc FROM placed)
  AND EXISTS (SELECT 1 FROM crossed c WHERE c.process = o.process AND c.start BETWEEN o.start AND o.until
              AND CASE WHEN c.back THEN c.b ELSE c.a END BETWEEN o.pointer AND o.pointer + o.bytes - 1)
  AND EXISTS (SELECT 1 FROM crossed c WHERE c.process = o.process AND c.back)

-- number: 25
-- id: fragmentation
-- title: Out of memory, though as much was free: in pieces, or in a cache
-- severity: high
-- certainty: likely
-- holds: bytes
-- calls: t.kind = $ALLOC AND t.status = $OUT_OF_MEMORY AND t.mem = $DEVICE
-- fix: Let freed memory serve other sizes: round sizes up to few classes, or allocate with
--      cudaMallocAsync(); in PyTorch PYTORCH_ALLOC_CONF=expandable_segments:True.
WITH busy AS MATERIALIZED (
  SELECT DISTINCT thread FROM template WHERE kind = $ALLOC AND status = $OUT_OF_MEMORY AND mem = $DEVICE),
step AS MATERIALIZED (
  SELECT e.id, e.start, e.duration, e.bytes, t.process, t.thread, t.device, t.kind,
         t.kind = $ALLOC AND t.status = $OUT_OF_MEMORY AS failed,
         lead(e.start) OVER own AS next,
         sum(t.kind <> $FREE AND t.status = $SUCCESS) OVER own AS part
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.thread IN busy AND (t.kind IN ($FREE, $COPY, $MEMSET, $LAUNCH, $CALL) AND t.status = $SUCCESS
                              OR t.kind = $ALLOC AND t.mem = $DEVICE AND t.status IN ($SUCCESS, $OUT_OF_MEMORY))
  WINDOW own AS (PARTITION BY t.thread ORDER BY e.id)),
failed AS MATERIALIZED (SELECT * FROM step WHERE failed AND bytes > 0),
said AS MATERIALIZED (
  SELECT t.process, t.device, t.copy, e.start, e.a AS pool, e.b, e.bytes
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = $CACHE AND t.copy IN ($POOL_HAS, $DEVICE_HAS) AND EXISTS (SELECT 1 FROM failed)),
gave AS MATERIALIZED (
  SELECT f.id, sum(b.bytes) AS bytes, sum(s.duration) AS ns
  FROM failed f JOIN step s ON s.thread = f.thread AND s.part = f.part AND s.id > f.id
  JOIN block b ON b.free = s.id WHERE s.kind = $FREE AND b.mem = $DEVICE GROUP BY f.id),
again AS MATERIALIZED (
  SELECT f.id, min(s.id) AS retry FROM failed f JOIN step s ON s.thread = f.thread AND s.part = f.part + 1
  WHERE s.kind = $ALLOC AND NOT s.failed AND s.bytes = f.bytes GROUP BY f.id),
driver AS (
  SELECT f.id, s.b AS free, max(s.start) FROM failed f
  JOIN said s ON s.process = f.process AND s.copy = $DEVICE_HAS AND s.device IS f.device
    AND s.start <= ifnull(f.next, 9223372036854775807) GROUP BY f.id),
-- Without a block that was freed before, nothing is in pieces or in a cache: a quota may have refused it.
pieces AS (
  SELECT f.id FROM failed f WHERE EXISTS (
    SELECT 1 FROM block b WHERE b.process = f.process AND b.device IS f.device AND b.mem = $DEVICE
      AND b.free IS NOT NULL AND b.free < f.id)),
pooled AS (
  SELECT id, sum(idle) AS idle FROM (
    SELECT f.id, s.pool, s.bytes - s.b AS idle, max(s.start) FROM failed f
    JOIN said s ON s.process = f.process AND s.copy = $POOL_HAS AND s.device IS f.device AND s.start <= f.start
    GROUP BY f.id, s.pool) GROUP BY id)
SELECT f.id AS event, f.duration + CASE WHEN a.retry THEN g.ns ELSE 0 END AS cost_ns, f.bytes AS bytes,
       CASE WHEN (a.retry AND g.bytes >= f.bytes) OR (d.free >= f.bytes AND f.id IN pieces) THEN 'likely'
            ELSE 'possible' END AS certainty, a.retry AS related
FROM failed f LEFT JOIN gave g ON g.id = f.id LEFT JOIN again a ON a.id = f.id
LEFT JOIN driver d ON d.id = f.id LEFT JOIN pooled p ON p.id = f.id
WHERE (a.retry AND g.bytes >= f.bytes) OR d.free >= f.bytes OR p.idle >= f.bytes

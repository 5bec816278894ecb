-- number: 25
-- id: fragmentation
-- title: Out of memory, though as much was free: in pieces, or in a cache
-- severity: high
-- certainty: likely
-- holds: bytes
-- calls: t.kind = 1 AND t.status = 2 AND t.mem = 3
-- fix: Let freed memory serve other sizes: round sizes up to few classes, or allocate with
--      cudaMallocAsync(); in PyTorch PYTORCH_ALLOC_CONF=expandable_segments:True.
WITH busy AS MATERIALIZED (
  SELECT DISTINCT thread FROM template WHERE kind = 1 AND status = 2 AND mem = 3),
step AS MATERIALIZED (
  SELECT e.id, e.start, e.duration, e.bytes, t.process, t.thread, t.device, t.kind,
         t.kind = 1 AND t.status = 2 AS failed,
         lead(e.start) OVER own AS next,
         sum(t.kind <> 2 AND t.status = 0) OVER own AS part
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.thread IN busy AND (t.kind IN (2, 3, 4, 6, 12) AND t.status = 0
                              OR t.kind = 1 AND t.mem = 3 AND t.status IN (0, 2))
  WINDOW own AS (PARTITION BY t.thread ORDER BY e.id)),
failed AS MATERIALIZED (SELECT * FROM step WHERE failed AND bytes > 0),
said AS MATERIALIZED (
  SELECT t.process, t.device, t.copy, e.start, e.a AS pool, e.b, e.bytes
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 13 AND t.copy IN (6, 9) AND EXISTS (SELECT 1 FROM failed)),
gave AS MATERIALIZED (
  SELECT f.id, sum(b.bytes) AS bytes, sum(s.duration) AS ns
  FROM failed f JOIN step s ON s.thread = f.thread AND s.part = f.part AND s.id > f.id
  JOIN block b ON b.free = s.id WHERE s.kind = 2 AND b.mem = 3 GROUP BY f.id),
again AS MATERIALIZED (
  SELECT f.id, min(s.id) AS retry FROM failed f JOIN step s ON s.thread = f.thread AND s.part = f.part + 1
  WHERE s.kind = 1 AND NOT s.failed AND s.bytes = f.bytes GROUP BY f.id),
driver AS (
  SELECT f.id, s.b AS free, max(s.start) FROM failed f
  JOIN said s ON s.process = f.process AND s.copy = 9 AND s.device IS f.device
    AND s.start <= ifnull(f.next, 9223372036854775807) GROUP BY f.id),
-- Without a block that was freed before, nothing is in pieces or in a cache: a quota may have refused it.
pieces AS (
  SELECT f.id FROM failed f WHERE EXISTS (
    SELECT 1 FROM block b WHERE b.process = f.process AND b.device IS f.device AND b.mem = 3
      AND b.free IS NOT NULL AND b.free < f.id)),
pooled AS (
  SELECT id, sum(idle) AS idle FROM (
    SELECT f.id, s.pool, s.bytes - s.b AS idle, max(s.start) FROM failed f
    JOIN said s ON s.process = f.process AND s.copy = 6 AND s.device IS f.device AND s.start <= f.start
    GROUP BY f.id, s.pool) GROUP BY id)
SELECT f.id AS event, f.duration + CASE WHEN a.retry THEN g.ns ELSE 0 END AS cost_ns, f.bytes AS bytes,
       CASE WHEN (a.retry AND g.bytes >= f.bytes) OR (d.free >= f.bytes AND f.id IN pieces) THEN 'likely'
            ELSE 'possible' END AS certainty, a.retry AS related
FROM failed f LEFT JOIN gave g ON g.id = f.id LEFT JOIN again a ON a.id = f.id
LEFT JOIN driver d ON d.id = f.id LEFT JOIN pooled p ON p.id = f.id
WHERE (a.retry AND g.bytes >= f.bytes) OR d.free >= f.bytes OR p.idle >= f.bytes

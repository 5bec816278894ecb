-- number: 34
-- id: pool-gives-back
-- title: Memory pool that gives all back at each wait, and takes it again
-- severity: medium
-- certainty: likely
-- least: always
-- threshold: min_times 8 times
-- prove: strict pool
-- calls: t.kind = $CACHE AND t.copy = $POOL_HAS
-- fix: Let the pool keep what it has: cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold,
--      &bytes), with UINT64_MAX for all of it.
WITH pool AS (
  SELECT t.process, t.device FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = $CACHE AND t.copy = $POOL_HAS GROUP BY t.process, t.device
  HAVING max(t.stream <> 0) = 0),
step AS (
  SELECT e.id, t.process, t.device, t.kind, e.start, e.duration,
         sum(CASE t.kind WHEN $ALLOC THEN 1 WHEN $FREE THEN -1 ELSE 0 END)
           OVER (PARTITION BY t.process ORDER BY e.start) AS live
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.process IN (SELECT process FROM pool) AND t.status = $SUCCESS AND NOT t.flags & $CAPTURED
    AND (t.kind IN ($ALLOC, $FREE) AND t.flags & $ASYNC
         OR t.kind = $WAIT AND t.copy IN ($FOR_EVENT, $FOR_STREAM, $FOR_CONTEXT))),
numbered AS (
  SELECT *, sum(kind = $WAIT AND live = 0) OVER (PARTITION BY process ORDER BY start, id) AS emptied FROM step),
marked AS (
  SELECT *, max(live) OVER (PARTITION BY process, emptied ORDER BY start, id
                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS had
  FROM numbered WHERE emptied > 0),
anew AS (
  SELECT m.*, count(*) FILTER (WHERE m.had = 0) OVER (PARTITION BY m.process) AS times FROM marked m
  JOIN pool p ON p.process = m.process AND p.device IS m.device
  WHERE m.kind = $ALLOC AND m.live > ifnull(m.had, 0))
SELECT id AS event, duration AS cost_ns FROM anew WHERE times >= :min_times

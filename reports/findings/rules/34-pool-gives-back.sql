-- number: 34
-- id: pool-gives-back
-- title: Memory pool that gives all back at each wait, and takes it again
-- severity: medium
-- certainty: likely
-- threshold: min_times 8 times
-- prove: strict pool
-- calls: t.kind = 13 AND t.copy = 6
-- fix: Let the pool keep what it has: cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold,
--      &bytes), with UINT64_MAX for all of it.
WITH pool AS (
  SELECT t.process, t.device FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 13 AND t.copy = 6 GROUP BY t.process, t.device
  HAVING max(t.stream <> 0) = 0),
step AS (
  SELECT e.id, t.process, t.device, t.kind, e.start, e.duration,
         sum(CASE t.kind WHEN 1 THEN 1 WHEN 2 THEN -1 ELSE 0 END)
           OVER (PARTITION BY t.process ORDER BY e.start) AS live
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.process IN (SELECT process FROM pool) AND t.status = 0 AND NOT t.flags & 16
    AND (t.kind IN (1, 2) AND t.flags & 1 OR t.kind = 5 AND t.copy IN (1, 3, 4))),
numbered AS (
  SELECT *, sum(kind = 5 AND live = 0) OVER (PARTITION BY process ORDER BY start, id) AS emptied FROM step),
marked AS (
  SELECT *, max(live) OVER (PARTITION BY process, emptied ORDER BY start, id
                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS had
  FROM numbered WHERE emptied > 0),
anew AS (
  SELECT m.*, count(*) FILTER (WHERE m.had = 0) OVER (PARTITION BY m.process) AS times FROM marked m
  JOIN pool p ON p.process = m.process AND p.device IS m.device
  WHERE m.kind = 1 AND m.live > ifnull(m.had, 0))
SELECT id AS event, duration AS cost_ns FROM anew WHERE times >= :min_times

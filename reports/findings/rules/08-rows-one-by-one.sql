-- number: 8
-- id: rows-one-by-one
-- title: Rows of a matrix copied one by one
-- severity: medium
-- certainty: certain
-- threshold: min_rows 8 times
-- threshold: link 10 bytes a ns
-- fix: Copy all rows by one cudaMemcpy2DAsync(), or where they lie one behind the other by one
--      cudaMemcpyAsync().
WITH busy AS (
  SELECT t.thread FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 3 GROUP BY t.thread HAVING count(*) >= :min_rows),
one AS (
  SELECT e.id, t.thread, t.copy, t.stream, e.a, e.b, e.bytes, e.duration, e.template,
         lag(e.a) OVER own AS a1, lag(e.b) OVER own AS b1, lag(e.bytes) OVER own AS n1,
         lag(t.copy) OVER own AS copy1, lag(t.stream) OVER own AS stream1
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.thread IN busy AND t.kind IN (3, 4, 6, 12) AND t.status = 0 AND NOT t.flags & 48
  WINDOW own AS (PARTITION BY t.thread ORDER BY e.id)),
stride AS (
  SELECT *, a - a1 AS da, b - b1 AS db,
         copy1 = copy AND n1 = bytes AND stream1 = stream AND copy IN (1, 2, 8) AS alike
  FROM one WHERE bytes > 0),
marked AS (
  SELECT *, NOT coalesce(alike AND abs(da) >= bytes AND abs(db) >= bytes, 0) AS alone,
         NOT coalesce(alike AND da = lag(da) OVER own AND db = lag(db) OVER own, 0) AS begins
  FROM stride WINDOW own AS (PARTITION BY thread ORDER BY id)),
numbered AS (
  SELECT *, sum(begins) OVER (PARTITION BY thread ORDER BY id) AS matrix FROM marked WHERE NOT alone),
counted AS (
  SELECT *, count(*) OVER (PARTITION BY thread, matrix) AS rows FROM numbered)
SELECT id AS event, duration AS cost_ns, max(duration - bytes / :link, 0) AS saving_ns,
       bytes AS bytes
FROM counted WHERE rows >= :min_rows - 1

-- number: 7
-- id: tiny-copies
-- title: Many small copies, one behind the other
-- severity: medium
-- certainty: likely
-- threshold: max_bytes 65535 bytes
-- threshold: max_gap 50000 ns
-- threshold: min_copies 32 times
-- threshold: link 25 bytes a ns
-- fix: Put the pieces together in one buffer and copy it once, or give them all to cudaMemcpyBatchAsync().
WITH busy AS (
  SELECT t.thread FROM template_use u CROSS JOIN template t ON t.id = u.template
  WHERE t.kind = 3 AND t.status = 0 GROUP BY t.thread HAVING sum(u.small) >= :min_copies),
step AS (
  SELECT e.id, e.template, t.thread, e.start, e.duration, e.bytes, t.copy,
         t.kind = 3 AND e.bytes BETWEEN 1 AND :max_bytes AS small,
         lag(e.start + e.duration) OVER own AS before, lag(t.kind) OVER own AS before_kind,
         lag(t.copy) OVER own AS before_copy, lag(e.bytes) OVER own AS before_bytes
  FROM (SELECT 1 FROM busy LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.thread IN busy AND t.kind IN (3, 4, 5, 6, 12)
    AND t.status = 0 AND NOT t.flags & 48
  WINDOW own AS (PARTITION BY t.thread ORDER BY e.id)),
marked AS (
  SELECT *, before_kind IS NOT 3 OR before_copy <> copy OR before_bytes > :max_bytes
            OR start - before >= :max_gap AS begins
  FROM step WHERE small),
numbered AS (
  SELECT *, sum(begins) OVER (PARTITION BY thread ORDER BY id) AS storm FROM marked),
counted AS (
  SELECT *, count(*) OVER (PARTITION BY thread, storm) AS copies FROM numbered)
SELECT id AS event, template, duration AS cost_ns, max(duration - bytes / :link, 0) AS saving_ns,
       bytes AS bytes
FROM counted WHERE copies >= :min_copies AND NOT begins

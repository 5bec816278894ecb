-- number: 13
-- id: waits-for-other-threads
-- title: Threads that wait for each other's work: the device, or a stream that they share
-- severity: medium
-- certainty: possible
-- threshold: min_times 32 times at one place
-- needs: wait_detail
-- names: kernels
-- fix: Give each thread a stream of its own, made with cudaStreamNonBlocking, or compile with --default-stream per-thread, and
--      wait for that stream alone.
WITH busy AS MATERIALIZED ( -- processes of which several threads queue work and wait
  SELECT process FROM (
    SELECT t.process, t.thread FROM template_use u CROSS JOIN template t ON t.id = u.template
    WHERE t.kind IN ($LAUNCH, $COPY, $MEMSET, $CALL) AND t.status = $SUCCESS GROUP BY t.process, t.thread HAVING sum(u.calls) >= :min_times)
  GROUP BY process HAVING count(*) > 1),
step AS (
  SELECT e.id, e.template, e.start, e.duration, t.process, t.thread, t.kind = $WAIT AS waits
  FROM (SELECT 1 FROM busy LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.process IN (SELECT process FROM busy) AND t.status = $SUCCESS AND NOT t.flags & $CAPTURED
    AND (t.kind IN ($LAUNCH, $COPY, $MEMSET, $CALL) OR (t.kind = $WAIT AND t.copy IN ($FOR_STREAM, $FOR_CONTEXT)))),
counted AS (
  SELECT *, sum(NOT waits) OVER (PARTITION BY process, thread ORDER BY start, id ROWS UNBOUNDED PRECEDING) AS queued FROM step),
own AS MATERIALIZED ( -- what the thread has queued since it last waited
  SELECT *, queued - lag(queued, 1, 0) OVER (PARTITION BY process, thread ORDER BY start, id) AS since FROM counted WHERE waits),
more AS (
  SELECT w.*, count(*) OVER (PARTITION BY w.template) AS times FROM own w CROSS JOIN wait_detail d ON d.id = w.id
  WHERE d.pending = 1 AND w.since > 0 AND d.operations > w.since)
SELECT id AS event, template, duration AS cost_ns, 0 AS saving_ns FROM more WHERE times >= :min_times

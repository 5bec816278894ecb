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
more AS (
  SELECT w.*, count(*) OVER (PARTITION BY w.template) AS times
  FROM (SELECT 1 FROM busy LIMIT 1) CROSS JOIN own_work w CROSS JOIN template t ON t.id = w.template
    CROSS JOIN wait_detail d ON d.id = w.event
  WHERE t.process IN (SELECT process FROM busy) AND d.pending = 1 AND d.operations > w.queued)
SELECT event, template, duration AS cost_ns, 0 AS saving_ns FROM more WHERE times >= :min_times

-- number: 41
-- id: fails-again
-- title: A call that fails in each step
-- severity: low
-- certainty: likely
-- threshold: min_times 64 times at one place, with one error
-- threshold: clock 20 ns a call, what measuring it adds where a read of the clock takes 14 ns
-- calls: t.status NOT IN ($SUCCESS, $OUT_OF_MEMORY, 600) AND t.kind IN ($CONTEXT, $HOSTREG, $CALL, $EVENT, $STREAM, $FREE)
-- fix: Make the call once, before the loop, and remember what came of it: as that peer access is enabled, or memory registered,
--      already.
WITH failed AS (
  SELECT e.id, e.template, e.duration, count(*) OVER (PARTITION BY e.template) AS times
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.status NOT IN ($SUCCESS, $OUT_OF_MEMORY, 600) AND t.kind IN ($CONTEXT, $HOSTREG, $CALL, $EVENT, $STREAM, $FREE))
SELECT id AS event, template, duration AS cost_ns, max(duration - (:clock + :clock_more), 1) AS saving_ns FROM failed WHERE times >= :min_times

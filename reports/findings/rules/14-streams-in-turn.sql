-- number: 14
-- id: streams-in-turn
-- title: Streams or devices that work in turn: the host waits for one before it queues work in the next
-- severity: high
-- certainty: possible
-- threshold: min_times 16 times at one place
-- threshold: link 25 bytes a ns
-- rows: turn
-- names: kernels
-- fix: Queue the work of all of them first, and wait after that, once for each. Where the next one needs what this one has
--      made, let its stream wait with cudaStreamWaitEvent(), and the host go on.
WITH often AS MATERIALIZED (
  SELECT *, count(*) OVER (PARTITION BY template) AS times FROM turn WHERE event NOT IN (SELECT event FROM timed_wait))
SELECT event, template, duration AS cost_ns,
       CASE WHEN devices THEN min(duration, next_ns) -- else copies there, copies back and kernels each take their time
            ELSE CAST(max(duration - max(up / :link, back / :link, duration - (up + back) / :link), 0) AS INTEGER) END AS saving_ns
FROM often WHERE times >= :min_times

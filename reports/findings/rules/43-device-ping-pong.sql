-- number: 43
-- id: device-ping-pong
-- title: A device made current, and another one with nothing done between
-- severity: low
-- certainty: likely
-- threshold: min_times 64 times by one thread
-- threshold: clock 15 ns a call, what measuring it adds where a read of the clock takes 14 ns
-- rows: device_turn
-- fix: Group the work by device: make each current once a step, then launch, copy and record all that is for it.
WITH turn AS MATERIALIZED (
  SELECT d.event, d.next, d.template, d.duration, t.thread, count(*) OVER (PARTITION BY t.thread) AS times
  FROM device_turn d CROSS JOIN template t ON t.id = d.template),
asks AS MATERIALIZED (
  -- what is asked of a device is no event, and reason enough to make it current
  SELECT s.thread, sum(s.calls) AS calls FROM asked s CROSS JOIN api a ON a.id = s.api
  WHERE a.name <> 'cudaGetDevice' AND s.thread IN (SELECT thread FROM turn) GROUP BY s.thread)
SELECT u.event, u.template, u.duration AS cost_ns, max(u.duration - (:clock + :clock_more), 1) AS saving_ns, u.next AS related
FROM turn u LEFT JOIN asks a ON a.thread = u.thread
WHERE u.times >= :min_times AND ifnull(a.calls, 0) * 2 < u.times

-- number: 35
-- id: rank-skew
-- title: One process of several alike copies far more than the others
-- severity: medium
-- certainty: likely
-- threshold: percent 20 percent
-- fix: Divide the data evenly: the others wait for this one.
WITH moved AS (
  SELECT t.process, sum(e.bytes) AS bytes, sum(e.duration) AS ns, max(e.bytes) AS most,
         min(CASE WHEN e.bytes > 0 THEN e.id END) AS first
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 3 AND t.copy IN (1, 2) AND t.status = 0 AND NOT t.flags & 16 GROUP BY t.process),
rank AS (
  SELECT m.*, count(*) OVER same AS ranks, sum(m.bytes) OVER same - m.bytes AS others,
         sum(m.ns) OVER same - m.ns AS others_ns
  FROM moved m JOIN process p ON p.id = m.process
  WINDOW same AS (PARTITION BY p.ppid, p.exe, p.command))
SELECT first AS event, bytes - others / (ranks - 1) AS bytes,
       max(ns - others_ns / (ranks - 1), 0) AS cost_ns
FROM rank WHERE ranks > 1 AND bytes * (ranks - 1) * 100 > others * (100 + :percent)

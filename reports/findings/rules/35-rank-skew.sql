-- number: 35
-- id: rank-skew
-- title: One process of several alike copies far more than the others
-- severity: medium
-- certainty: likely
-- needs: whole_run
-- threshold: percent 20 percent
-- calls: t.kind = $COPY AND t.copy IN ($H2D, $D2H) AND EXISTS (SELECT 1 FROM process LIMIT 1 OFFSET 1)
-- fix: Divide the data evenly: the others wait for this one.
WITH moved AS (
  SELECT t.process, sum(u.bytes) AS bytes, sum(u.ns) AS ns, max(u.most) AS most,
         min(nullif(u.first, 0)) AS first
  FROM (SELECT 1 FROM process LIMIT 1 OFFSET 1) CROSS JOIN template_use u CROSS JOIN template t ON t.id = u.template
  WHERE t.kind = $COPY AND t.copy IN ($H2D, $D2H) AND t.status = $SUCCESS AND NOT t.flags & $CAPTURED GROUP BY t.process),
rank AS (
  SELECT m.*, count(*) OVER same AS ranks, sum(m.bytes) OVER same - m.bytes AS others,
         sum(m.ns) OVER same - m.ns AS others_ns
  FROM moved m JOIN process p ON p.id = m.process
  WINDOW same AS (PARTITION BY p.ppid, p.exe, p.command))
SELECT first AS event, bytes - others / (ranks - 1) AS bytes,
       max(ns - others_ns / (ranks - 1), 0) AS cost_ns
FROM rank WHERE ranks > 1 AND bytes * (ranks - 1) * 100 > others * (100 + :percent)

-- number: 46
-- id: array-for-a-scalar
-- title: Much copied to the host, which has no time to read it all
-- severity: medium
-- certainty: possible
-- threshold: min_times 16 times at one place
-- threshold: min_share 10 percent of the copies of that place
-- threshold: link 25 bytes a ns
-- threshold: pageable 10 bytes a ns
-- threshold: latency 5000 ns that a copy of a few bytes takes of the device
-- rows: brief_result
-- calls: t.kind = $COPY AND t.copy = $D2H
-- fix: Copy what the host looks at alone: the element, or the sum that a kernel makes of the others; and where it looks in
--      some steps only, copy in these.
WITH brief AS MATERIALIZED (
  SELECT b.event, b.template, b.duration, b.bytes, b.wait, b.duration + b.wait_ns AS waited, t.mem, count(*) OVER (PARTITION BY b.template) AS times
  FROM brief_result b CROSS JOIN template t ON t.id = b.template),
gain AS (
  SELECT b.*, min(b.waited, ifnull((SELECT max(sum(d."end" - d.start) - :latency, 0) FROM device_work d WHERE d.event = b.event),
                              b.bytes / CASE b.mem WHEN $PAGEABLE THEN :pageable ELSE :link END)) AS saving
  FROM brief b)
SELECT g.event, g.template, max(g.duration, g.saving) AS cost_ns, g.bytes, g.saving AS saving_ns, nullif(g.wait, 0) AS related,
       max(g.saving - g.duration, 0) AS related_saving_ns
FROM gain g CROSS JOIN template_use u ON u.template = g.template
WHERE g.times >= :min_times AND g.times * 100 >= u.calls * :min_share

-- number: 7
-- id: small-copies-in-a-step
-- title: Several small copies or memsets, one after the other, again and again
-- severity: medium
-- certainty: possible
-- least: untimed
-- threshold: min_moves 4 of them with nothing between
-- threshold: min_times 32 times at one place
-- threshold: link 25 bytes a ns
-- rows: short_run
-- fix: Keep what is copied together in one block of host memory and one of the device, and copy it at once; memory that is
--      cleared together is one block, and one cudaMemsetAsync().
WITH often AS MATERIALIZED (
  SELECT *, count(*) OVER (PARTITION BY template) AS times FROM short_run WHERE moves >= :min_moves),
took AS ( -- by the host, or by the device where that is longer and known
  SELECT o.*, max(o.ns, ifnull((
      SELECT sum(d."end" - d.start) FROM device_work d CROSS JOIN event_row e ON e.id = d.event CROSS JOIN template u ON u.id = e.template
      WHERE d.event > o.event AND d.event <= o.last AND u.thread = t.thread AND u.kind = t.kind AND u.stream = t.stream), 0)) AS took_ns
  FROM often o CROSS JOIN template t ON t.id = o.template WHERE o.times >= :min_times)
SELECT event, template, moves - 1 AS count, took_ns AS cost_ns, max(took_ns - bytes / :link, 0) AS saving_ns, bytes, last AS related
FROM took

-- number: 8
-- id: rows-one-by-one
-- title: Rows of a matrix copied one by one
-- severity: medium
-- certainty: certain
-- queued: device
-- least: untimed
-- threshold: min_rows 8 times
-- threshold: link 25 bytes a ns
-- fix: Copy all rows by one cudaMemcpy2DAsync(), or where they lie one after the other by one
--      cudaMemcpyAsync().
-- judge: rows-one-by-one
WITH took AS (
  SELECT r.event, r.template, r.bytes,
         max(r.duration, ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = r.event), 0)) AS ns
  FROM row_copy r CROSS JOIN row_matrix m ON m.id = r.matrix WHERE m.rows >= :min_rows - 1)
SELECT event, template, ns AS cost_ns, max(ns - bytes / :link, 0) AS saving_ns, bytes FROM took

-- number: 7
-- id: tiny-copies
-- title: Many small copies, one after the other
-- severity: medium
-- certainty: likely
-- queued: device
-- least: untimed
-- threshold: link 25 bytes a ns
-- fix: Put the pieces together in one buffer and copy it once, or give them all to cudaMemcpyBatchAsync().
-- judge: tiny-copies
WITH took AS (
  SELECT s.event, s.template, s.bytes,
         max(s.duration, ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = s.event), 0)) AS ns
  FROM small_copy s)
SELECT event, template, ns AS cost_ns, max(ns - bytes / :link, 0) AS saving_ns, bytes FROM took

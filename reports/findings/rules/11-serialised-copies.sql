-- number: 11
-- id: serialised-copies
-- title: Copies to the device and back in one stream, one after the other
-- severity: low
-- certainty: possible
-- threshold: min_bytes 65536 bytes
-- threshold: link 25 bytes a ns
-- calls: t.kind = 3 AND t.copy IN (1, 2) AND t.flags & 49 = 1 AND 2 IN (t.mem, t.src_mem)
-- fix: Put one direction into a second stream: the copies are of different memory, and a device copies
--      both ways at one time.
WITH both AS (
  SELECT process, context, stream FROM template
  WHERE kind = 3 AND copy IN (1, 2) AND status = 0 AND flags & 49 = 1 AND 2 IN (mem, src_mem)
  GROUP BY 1, 2, 3 HAVING count(DISTINCT copy) = 2),
step AS (
  SELECT e.id, t.process, t.kind, t.copy, t.flags, t.mem, t.src_mem, e.start, e.a, e.b, e.bytes,
         lag(e.id) OVER own AS id1, lag(t.kind) OVER own AS kind1, lag(t.copy) OVER own AS copy1,
         lag(t.flags) OVER own AS flags1, lag(t.mem) OVER own AS mem1, lag(t.src_mem) OVER own AS src1,
         lag(e.a) OVER own AS a1, lag(e.b) OVER own AS b1, lag(e.bytes) OVER own AS bytes1
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE (t.process, t.context, t.stream) IN both AND t.kind IN (3, 4, 6, 12) AND t.status = 0
    AND NOT t.flags & 48
  WINDOW own AS (PARTITION BY t.process, t.context, t.stream ORDER BY e.start)),
pair AS (
  SELECT *, CASE copy WHEN 1 THEN a ELSE b END AS here, CASE copy1 WHEN 1 THEN a1 ELSE b1 END AS there,
         CASE copy WHEN 1 THEN b ELSE a END AS host, CASE copy1 WHEN 1 THEN b1 ELSE a1 END AS host1
  FROM step WHERE kind = 3 AND kind1 = 3 AND copy + copy1 = 3 AND copy IN (1, 2)
    AND flags & flags1 & 1 AND bytes > :min_bytes AND bytes1 > :min_bytes
    AND 2 IN (mem, src_mem) AND 2 IN (mem1, src1))
SELECT id AS event, id1 AS related, bytes AS bytes,
       min(ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = p.id), bytes / :link),
           ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = p.id1),
                  bytes1 / :link)) AS cost_ns
FROM pair p WHERE (here >= there + bytes1 OR there >= here + bytes)
  AND (host >= host1 + bytes1 OR host1 >= host + bytes)

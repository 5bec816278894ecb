-- number: 54
-- id: mapped-memory-again
-- title: Memory of the host that several kernels read over the link, one after the other
-- severity: medium
-- certainty: possible
-- threshold: min_bytes 65536 bytes of the block
-- threshold: min_times 16 launches, besides the first one after each wait
-- threshold: most 64 blocks
-- threshold: link 25 bytes a ns
-- rows: access_set
-- calls: t.kind IN ($ALLOC, $HOSTREG) AND t.mem = $PINNED OR t.kind = $HOSTREG
-- names: kernels
-- fix: Copy it to memory of the device once, with cudaMemcpyAsync(), and hand that to the kernels: what is mapped crosses the
--      link each time that a kernel reads it.
WITH own AS MATERIALIZED (
  SELECT b.alloc, b.process, b.pointer, b.bytes FROM block b
  WHERE (b.mem = $PINNED OR b.registered) AND b.alloc IS NOT NULL AND b.bytes >= :min_bytes
  ORDER BY b.bytes DESC, b.alloc LIMIT :most),
handed AS MATERIALIZED (
  SELECT DISTINCT a.template, o.alloc, o.bytes, w.address FROM own o
  CROSS JOIN access_word w ON w.process = o.process AND w.address BETWEEN o.pointer AND o.pointer + o.bytes - 1
  JOIN template_access a ON a.number = w.number JOIN template t ON t.id = a.template AND t.process = o.process
  WHERE t.kind = $LAUNCH AND t.status = $SUCCESS),
step AS ( -- launches that are handed it, and what the host waits in
  SELECT e.id, e.start, e.template, t.process, h.alloc, h.bytes, h.address
  FROM (SELECT 1 FROM handed LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  LEFT JOIN handed h ON h.template = e.template
  WHERE t.process IN (SELECT process FROM own) AND t.status = $SUCCESS
    AND (h.template IS NOT NULL OR (t.kind = $WAIT AND t.copy IN ($FOR_EVENT, $FOR_STREAM, $FOR_CONTEXT, $QUERY))
         OR (t.kind = $COPY AND t.flags & $MAY_WAIT))),
turn AS MATERIALIZED (
  SELECT *, sum(alloc IS NULL) OVER (PARTITION BY process ORDER BY start, id ROWS UNBOUNDED PRECEDING) AS waits FROM step),
again AS (
  SELECT id, template, alloc, bytes - (address - (SELECT pointer FROM own o WHERE o.alloc = n.alloc)) AS bytes,
         row_number() OVER (PARTITION BY alloc, address, waits ORDER BY start, id) AS nth
  FROM turn n WHERE alloc IS NOT NULL),
counted AS (SELECT *, count(*) OVER (PARTITION BY alloc) AS times FROM again WHERE nth > 1)
SELECT id AS event, template, bytes, alloc AS related, bytes / :link AS cost_ns, 0 AS related_saving_ns,
       min(bytes / :link, ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = c.id), 0)) AS saving_ns
FROM counted c WHERE times >= :min_times

-- number: 56
-- id: pinned-piece-by-piece
-- title: Many small blocks of page-locked memory, each pinned by itself
-- severity: medium
-- certainty: possible
-- threshold: min_times 128 blocks at one place that are there at one time
-- threshold: bytes 65536 bytes of a block, at most
-- rows: template_use
-- calls: t.kind = $ALLOC AND t.mem = $PINNED
-- fix: Pin one large block and divide it: each call enters the driver and pins whole pages, whatever it asks for.
WITH many AS MATERIALIZED (
  SELECT u.template FROM template_use u CROSS JOIN template t ON t.id = u.template
  WHERE t.kind = $ALLOC AND t.mem = $PINNED AND NOT t.flags & ($CACHED | $CAPTURED) AND t.status = $SUCCESS
    AND u.calls >= :min_times AND u.most <= :bytes AND t.api NOT IN (SELECT id FROM api WHERE layer = 'weir')),
piece AS MATERIALIZED (
  SELECT e.id, e.template, e.start, e.duration, b."end"
  FROM (SELECT 1 FROM many LIMIT 1) CROSS JOIN event_row e CROSS JOIN block b ON b.alloc = e.id
  WHERE e.template IN (SELECT template FROM many)),
turn AS ( -- each begins and ends
  SELECT template, start AS time, 1 AS more FROM piece UNION ALL SELECT template, "end", -1 FROM piece WHERE "end" IS NOT NULL),
alive AS (
  SELECT template, sum(more) OVER (PARTITION BY template ORDER BY time, more ROWS UNBOUNDED PRECEDING) AS blocks FROM turn),
most AS MATERIALIZED (SELECT template FROM alive GROUP BY template HAVING max(blocks) >= :min_times)
SELECT id AS event, template, duration AS cost_ns, duration AS saving_ns FROM piece
WHERE template IN (SELECT template FROM most)

-- number: 20
-- id: late-free
-- title: Memory freed only after other memory was taken, though its last use was before
-- severity: low
-- certainty: likely
-- holds: bytes
-- fix: Free it before the allocation that follows its last use: the peak is lower by as much.
WITH often AS MATERIALIZED (
  SELECT f.template FROM late_free f JOIN template_use u ON u.template = f.template GROUP BY f.template, u.calls
  HAVING u.calls < 8 OR count(*) * 4 >= u.calls)
SELECT f.event, f.template, f.bytes, f.alloc AS related
FROM late_free f LEFT JOIN template t ON t.id = f.template
LEFT JOIN event_row e ON e.id = f.alloc LEFT JOIN template a ON a.id = e.template
WHERE f.template IN (SELECT template FROM often) AND ifnull(a.thread = t.thread, 1)

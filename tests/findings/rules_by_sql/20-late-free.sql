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
SELECT event, template, bytes, alloc AS related FROM late_free WHERE template IN (SELECT template FROM often)

-- number: 19
-- id: early-allocation
-- title: Memory taken long before its first use, while other memory was still to be freed
-- severity: low
-- certainty: likely
-- holds: bytes
-- fix: Allocate it after the frees that come before its first use: the peak is lower by as much.
WITH often AS MATERIALIZED (
  SELECT b.template FROM early_block b JOIN template_use u ON u.template = b.template GROUP BY b.template, u.calls
  HAVING u.calls < 8 OR count(*) * 4 >= u.calls)
SELECT b.event AS event, b.template AS template, b.bytes AS bytes FROM early_block b
WHERE b.template IN (SELECT template FROM often)

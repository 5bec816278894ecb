-- number: 40
-- id: context-made-anew
-- title: Device reset, or context destroyed, again and again while the program goes on
-- severity: high
-- certainty: likely
-- least: always
-- threshold: min_times 4 times at one place
-- calls: t.kind = $RESET
-- fix: Keep the context for the whole run: retain it once, and leave cudaDeviceReset() to the end. Making one takes a tenth of a
--      second and more, and all memory, code and streams with it.
WITH ended AS (
  SELECT e.id, e.template, e.duration, t.process FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $RESET AND t.status = $SUCCESS),
work AS MATERIALIZED (
  SELECT t.process, max(e.id) AS last FROM (SELECT 1 FROM ended LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind IN ($COPY, $MEMSET, $LAUNCH) GROUP BY t.process),
anew AS (
  SELECT r.*, count(*) OVER (PARTITION BY r.template) AS times FROM ended r CROSS JOIN work k ON k.process = r.process AND k.last > r.id)
SELECT id AS event, template, duration AS cost_ns, duration AS saving_ns FROM anew WHERE times >= :min_times

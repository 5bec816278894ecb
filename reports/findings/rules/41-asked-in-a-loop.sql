-- number: 41
-- id: asked-in-a-loop
-- title: The same asked again and again
-- severity: medium
-- certainty: likely
-- threshold: min_calls 64 times by one thread
-- calls: t.kind = $CALL OR EXISTS (SELECT 1 FROM asked)
-- threshold: clock 20 ns a call, what measuring it adds where a read of the clock takes 14 ns
-- fix: Ask once, before the loop, and keep the answer: what a device, a pointer and a kernel are stays as it is. Of free memory
--      keep a count of your own, or ask when an allocation fails.
WITH named AS MATERIALIZED ( -- what looks up by a name, so often
  SELECT u.template FROM template_use u CROSS JOIN template t ON t.id = u.template
  WHERE u.calls >= :min_calls AND t.kind = $CALL AND t.status = $SUCCESS
    AND t.api IN (SELECT id FROM api WHERE name IN ('cuModuleGetFunction', 'cuLibraryGetKernel', 'cudaLibraryGetKernel',
                  'cuKernelGetFunction', 'cuModuleGetGlobal', 'cuModuleGetGlobal_v2', 'cuLibraryGetGlobal')))
SELECT a.event, a.template, 1 AS count, a.duration AS cost_ns, max(a.duration - (:clock + :clock_more), 1) AS saving_ns, 1 AS removed
-- what Weir has answered from memory are events of their own
FROM (SELECT e.id AS event, e.template, e.duration, count(*) OVER (PARTITION BY t.thread, t.stack) AS calls
      FROM (SELECT 1 FROM template WHERE kind = $CALL AND flags & $CACHED LIMIT 1) CROSS JOIN event_row e
      CROSS JOIN template t ON t.id = e.template
      WHERE t.kind = $CALL AND t.flags & $CACHED
        AND t.api IN (SELECT id FROM api WHERE name IN ('cudaGetDeviceProperties', 'cudaGetDeviceProperties_v2'))) a
WHERE a.calls >= :min_calls - 2
UNION ALL
-- what a recorder needs of an answer is an event of its own: the place asks for what it was given before
SELECT g.event, g.template, 1, g.duration, max(g.duration - (:clock + :clock_more), 1), 0
FROM (SELECT e.id AS event, e.template, e.duration,
             count(*) OVER answer AS calls, row_number() OVER (answer ORDER BY e.id) AS nth
      FROM (SELECT 1 FROM named LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
      WHERE e.template IN (SELECT template FROM named)
      WINDOW answer AS (PARTITION BY t.thread, t.stack, e.a, e.b)) g
WHERE g.calls >= :min_calls AND g.nth > 1
UNION ALL
SELECT s.event, e.template, s.calls - 1 AS count,
       CAST(1.0 * s.about_ns / s.calls * (s.calls - 1) AS INTEGER) AS cost_ns,
       max(CAST((1.0 * s.about_ns / s.calls - (:clock + :clock_more)) * (s.calls - 1) AS INTEGER), 1) AS saving_ns, 0 AS removed
FROM asked s CROSS JOIN event_row e ON e.id = s.event CROSS JOIN api a ON a.id = s.api
WHERE s.calls >= :min_calls
  AND a.name NOT IN ('cudaGetDevice', 'cudaHostGetDevicePointer', 'cudaHostGetFlags',
                     'cuMemHostGetDevicePointer_v2', 'cuMemHostGetFlags')
  -- a place that goes through all attributes, or all pointers, at the beginning asks for something else each time
  AND (2 * s.followed >= s.timed
       OR a.name IN ('cudaMemGetInfo', 'cuMemGetInfo_v2', 'cudaGetDeviceProperties', 'cudaGetDeviceProperties_v2',
                     'cuDeviceGetName', 'cuDeviceTotalMem', 'cuDeviceTotalMem_v2', 'cudaGetDeviceCount',
                     'cudaDriverGetVersion', 'cudaRuntimeGetVersion'))

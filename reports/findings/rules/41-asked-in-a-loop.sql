-- number: 41
-- id: asked-in-a-loop
-- title: The same asked again and again
-- severity: medium
-- certainty: likely
-- threshold: min_calls 64 times by one thread
-- fix: Ask once, before the loop, and keep the answer: what a device and a pointer are stays as it is. Of free memory
--      keep a count of your own, or ask when an allocation fails.
SELECT s.event, e.template, s.calls - 1 AS count,
       CAST(1.0 * s.about_ns / s.calls * (s.calls - 1) AS INTEGER) AS cost_ns
FROM asked s CROSS JOIN event_row e ON e.id = s.event CROSS JOIN api a ON a.id = s.api
WHERE s.calls >= :min_calls
  AND a.name NOT IN ('cudaGetDevice', 'cudaHostGetDevicePointer', 'cudaHostGetFlags',
                     'cuMemHostGetDevicePointer_v2', 'cuMemHostGetFlags')
  -- a place that goes through all attributes, or all pointers, at the beginning asks for something else each time
  AND (2 * s.followed >= s.timed
       OR a.name IN ('cudaMemGetInfo', 'cuMemGetInfo_v2', 'cudaGetDeviceProperties', 'cudaGetDeviceProperties_v2',
                     'cuDeviceGetName', 'cuDeviceTotalMem', 'cuDeviceTotalMem_v2', 'cudaGetDeviceCount',
                     'cudaDriverGetVersion', 'cudaRuntimeGetVersion'))

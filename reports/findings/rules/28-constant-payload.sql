-- number: 28
-- id: constant-payload
-- title: A copy to the device of bytes that are all the same
-- severity: medium
-- certainty: likely
-- later: copy
-- often: 4
-- needs: copy_hash
-- threshold: min_bytes 4096 bytes
-- threshold: own 50000 ns, what a copy takes by itself beyond its bytes at one a ns: the rest is a wait, which stays
-- threshold: memset 5000 ns, what a memset in its place takes
-- fix: Set the memory with cudaMemsetAsync(): the device writes it by itself.
WITH hashed AS (
  SELECT h.event, h.uniform, t.process, ifnull(t.stack, 0) AS stack, e.template, e.duration, e.bytes
  FROM copy_hash h CROSS JOIN event_row e ON e.id = h.event CROSS JOIN template t ON t.id = e.template
  WHERE h.outcome = $HASHED AND t.copy = $H2D AND e.bytes >= :min_bytes),
differs AS MATERIALIZED ( -- places that other bytes come from, too: what is equal now follows from the data
  SELECT DISTINCT process, stack FROM hashed WHERE NOT uniform)
SELECT event, template, duration AS cost_ns, max(min(duration, :own + bytes) - :memset, 0) AS saving_ns, bytes,
       CASE WHEN (process, stack) IN differs THEN 'possible' ELSE 'likely' END AS certainty
FROM hashed WHERE uniform

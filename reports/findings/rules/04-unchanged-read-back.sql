-- number: 4
-- id: unchanged-read-back
-- title: Memory of a device copied to the host again and again, with the same bytes each time
-- severity: medium
-- certainty: possible
-- later: copy
-- needs: copy_hash
-- decides: weir run --hash=1G
-- threshold: min_bytes 65536 bytes
-- threshold: min_times 8 copies of the same memory whose bytes were compared
-- threshold: own 50000 ns, what a copy takes by itself beyond its bytes at one a ns: the rest is a wait, which stays
-- calls: t.kind = $COPY AND t.copy = $D2H
-- fix: Keep on the host what the first copy brought, where nothing that the device does is to change it.
WITH compared AS MATERIALIZED (
  SELECT h.event, t.process, e.template, e.b AS source, e.duration, e.bytes, h.outcome, h.hash_low, h.hash_high, h.uniform
  FROM copy_hash h CROSS JOIN event_row e ON e.id = h.event CROSS JOIN template t ON t.id = e.template
  WHERE h.outcome IN ($HASHED, $ALIKE) AND h.event IS NOT NULL AND t.copy = $D2H AND e.bytes >= :min_bytes
    AND e.id NOT IN (SELECT event FROM given_copy)),
same AS MATERIALIZED (
  SELECT process, source, bytes, min(event) AS first, sum(outcome = $HASHED) AS hashed FROM compared
  GROUP BY process, source, bytes
  HAVING count(*) >= :min_times AND count(DISTINCT hash_low) <= 1 AND count(DISTINCT hash_high) <= 1
    AND max(ifnull(uniform, 0)) = 0)
SELECT c.event, c.template, c.duration AS cost_ns,
       CASE WHEN s.hashed >= :min_times THEN min(c.duration, :own + c.bytes) ELSE 0 END AS saving_ns, c.bytes, s.first AS related
FROM same s CROSS JOIN compared c ON c.process = s.process AND c.source = s.source AND c.bytes = s.bytes
WHERE c.event <> s.first

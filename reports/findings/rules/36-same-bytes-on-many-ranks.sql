-- number: 36
-- id: same-bytes-on-many-ranks
-- title: The same bytes copied to devices by several processes
-- severity: medium
-- certainty: likely
-- needs: copy_hash
-- threshold: min_bytes 65536 bytes
-- fix: Let one process copy them and the others take them from the device: by cudaIpcGetMemHandle() on
--      the same device, by a broadcast (NCCL) on others.
WITH upload AS (
  SELECT e.id, e.start, t.process, e.bytes, e.duration,
         first_value(t.process) OVER same AS first_process, first_value(e.id) OVER same AS first,
         row_number() OVER (PARTITION BY h.hash_low, h.hash_high, e.bytes, t.process
                            ORDER BY e.start, e.id) AS nth
  FROM copy_hash h CROSS JOIN event_row e ON e.id = h.event CROSS JOIN template t ON t.id = e.template
  WHERE h.outcome = $HASHED AND NOT h.uniform AND t.copy = $H2D AND e.bytes >= :min_bytes
  WINDOW same AS (PARTITION BY h.hash_low, h.hash_high, e.bytes ORDER BY e.start, e.id))
SELECT id AS event, duration AS cost_ns, bytes AS bytes, first AS related
FROM upload WHERE process <> first_process AND nth = 1

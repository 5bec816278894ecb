-- number: 28
-- id: constant-payload
-- title: A copy to the device of bytes that are all the same
-- severity: medium
-- certainty: certain
-- needs: copy_hash
-- threshold: min_bytes 4096 bytes
-- fix: Set the memory with cudaMemsetAsync(): the device writes it by itself.
SELECT e.id AS event, e.template AS template, e.duration AS cost_ns, e.bytes AS bytes
FROM copy_hash h CROSS JOIN event_row e ON e.id = h.event CROSS JOIN template t ON t.id = e.template
WHERE h.outcome = $HASHED AND h.uniform AND t.copy = $H2D AND e.bytes >= :min_bytes

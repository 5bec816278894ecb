-- number: 1
-- id: large-upload-again
-- title: A large copy to a device that is like an earlier one wherever it was looked at
-- severity: medium
-- certainty: possible
-- needs: copy_hash
-- decides: weir run --hash=1G
-- calls: t.kind = $COPY AND t.copy = $H2D
-- fix: Run 'weir run --hash=1G', which decides: where the bytes are the same, copy them once, and let all that need them
--      use the one copy.
SELECT h.event AS event, e.template, e.duration AS cost_ns, 0 AS saving_ns, e.bytes AS bytes
FROM copy_hash h CROSS JOIN event_row e ON e.id = h.event CROSS JOIN template t ON t.id = e.template
WHERE h.outcome = $ALIKE AND h.event IS NOT NULL AND t.copy = $H2D

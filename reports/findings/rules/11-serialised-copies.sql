-- number: 11
-- id: serialised-copies
-- title: Copies to the device and back in one stream, one after the other
-- severity: low
-- certainty: possible
-- threshold: min_bytes 65536 bytes
-- threshold: link 25 bytes a ns
-- rows: turned_copy
-- calls: t.kind = $COPY AND t.copy IN ($H2D, $D2H) AND t.flags & ($ASYNC | $CAPTURED | $BATCH) = $ASYNC
--        AND $PINNED IN (t.mem, t.src_mem)
-- fix: Put one direction into a second stream: the copies are of different memory, and a device copies
--      both ways at one time.
SELECT p.event, p.earlier AS related, p.template, p.bytes,
       min(ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = p.event), p.bytes / :link),
           ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = p.earlier),
                  p.earlier_bytes / :link)) AS cost_ns
FROM turned_copy p WHERE p.bytes > :min_bytes AND p.earlier_bytes > :min_bytes

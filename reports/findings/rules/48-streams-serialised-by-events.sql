-- number: 48
-- id: streams-serialised-by-events
-- title: Wait of a stream for an event of another, of which it needs nothing
-- severity: medium
-- certainty: likely
-- needs: whole_run
-- often: 8
-- queued: device
-- rows: order_unneeded
-- fix: Leave the cudaStreamWaitEvent() away: what comes after it touches no memory that the work before the event
--      touches.
SELECT o.event, o.template, o.saving AS cost_ns, o.saving AS saving_ns, o.related,
       CASE WHEN NOT o.timed THEN 'possible' END AS certainty
FROM order_unneeded o WHERE NOT o.legacy

-- number: 29
-- id: device-idle
-- title: The device had nothing to do, while the host was elsewhere
-- severity: medium
-- certainty: possible
-- threshold: min_ns 1000000 ns
-- needs: device_gap
-- rows: device_gap
-- fix: Queue the work before the host turns to other things: launch ahead, copy with
--      cudaMemcpyAsync(), and wait with an event for what is needed alone.
SELECT w.event AS event, g."end" - g.start AS cost_ns, g.device AS device,
       g.host_waiting_ns + g.host_elsewhere_ns + g.no_call_ns AS saving_ns
FROM device_gap g CROSS JOIN device_work w ON w.id = g.work
WHERE w.event IS NOT NULL AND g.host_waiting_ns + g.host_elsewhere_ns + g.no_call_ns >= :min_ns

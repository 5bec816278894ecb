-- number: 10
-- id: staged-peer
-- title: Copies between devices that go through the host
-- severity: high
-- certainty: likely
-- queued: device
-- threshold: link 10 bytes a ns
-- prove: strict access
-- calls: t.kind = $COPY AND t.copy = $P2P
-- fix: Where cudaDeviceCanAccessPeer() says that it can be, call cudaDeviceEnablePeerAccess() once at
--      the start, in each device for the other.
WITH enabled AS (
  SELECT t.process, e.start, t.device AS one, e.a AS other
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  CROSS JOIN api x ON x.id = t.api AND x.name GLOB '*EnablePeerAccess*'
  WHERE t.kind = $CONTEXT AND t.status = $SUCCESS),
crossing AS (
  SELECT e.id, t.process, e.start, e.duration, e.bytes, t.device, t.src_device, t.flags
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $COPY AND t.copy = $P2P AND t.status = $SUCCESS AND NOT t.flags & $CAPTURED
    AND t.device <> t.src_device)
SELECT c.id AS event, c.bytes AS bytes, c.flags & $STAGED <> 0 AS removed,
       ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = c.id),
              max(c.duration, c.bytes / :link)) AS cost_ns,
       ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = c.id),
              max(c.duration, c.bytes / :link)) / 2 AS saving_ns
FROM crossing c WHERE NOT EXISTS (
  SELECT 1 FROM enabled n WHERE n.process = c.process AND n.start < c.start
    AND (n.one IN (c.device, c.src_device) OR n.other > 4096))

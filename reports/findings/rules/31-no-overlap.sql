-- number: 31
-- id: no-overlap
-- title: Copies and kernels of different streams that never run at one time
-- severity: medium
-- certainty: possible
-- needs: device_work
-- threshold: min_times 4 times
-- fix: Where they do not need each other, make the streams with cudaStreamNonBlocking and keep work off
--      the default stream, which waits for all others; order what must be by events.
WITH op AS (
  SELECT d.event, d.device, t.process, t.context, t.stream, e.start AS called, d.start, d."end" AS until,
         d.kind = $DEVICE_COPY AS copies,
         max(CASE WHEN d.kind = $DEVICE_COPY THEN d."end" END) OVER own AS copied,
         max(CASE WHEN d.kind <> $DEVICE_COPY THEN d."end" END) OVER own AS ran,
         lag(d.event) OVER own AS event1, lag(d.kind = $DEVICE_COPY) OVER own AS copies1, lag(t.stream) OVER own AS stream1,
         lag(d."end" - d.start) OVER own AS took1, lag(d."end") OVER own AS until1
  FROM device_work d CROSS JOIN event_row e ON e.id = d.event CROSS JOIN template t ON t.id = e.template
  WHERE (SELECT count(DISTINCT stream) FROM template WHERE kind IN ($COPY, $LAUNCH)) > 1
    AND d.start IS NOT NULL AND d."end" > d.start
    AND (d.kind IN ($DEVICE_KERNEL, $DEVICE_GRAPH) OR (d.kind = $DEVICE_COPY AND d.copy IN ($H2D, $D2H, $P2P)))
  WINDOW own AS (PARTITION BY d.device, t.process ORDER BY d.start, d.id
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)),
met AS (
  SELECT *, min(stream, stream1) AS one, max(stream, stream1) AS two, start < until1 AS at_once,
         start >= until1 AND called < until1
           AND start >= ifnull(CASE WHEN copies THEN ran ELSE copied END, start) AS behind
  FROM op WHERE copies <> copies1 AND stream <> stream1),
counted AS (
  SELECT *, sum(behind) OVER same AS times, max(at_once) OVER same AS ever
  FROM met WINDOW same AS (PARTITION BY process, context, one, two))
SELECT event, min(until - start, took1) AS cost_ns, event1 AS related
FROM counted c WHERE behind AND NOT ever AND times >= :min_times
  AND NOT EXISTS (SELECT 1 FROM template w WHERE w.process = c.process AND w.kind = $WAIT AND w.copy = $STREAM_WAITS
                    AND w.status = $SUCCESS AND w.stream IN (c.one, c.two))

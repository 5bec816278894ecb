-- number: 49
-- id: default-stream-between
-- title: Work in the default stream that waits for streams which it has nothing to do with
-- severity: medium
-- certainty: likely
-- needs: whole_run
-- often: 8
-- threshold: min_times 8 times at one place, where it shares memory with one of the streams
-- threshold: most 1000000 pairs of a place that is named and a block
-- rows: legacy_work
-- names: kernels
-- fix: Launch it in the stream whose memory it works on, or in one of its own, or make the streams with
--      cudaStreamNonBlocking: all work in the legacy default stream waits for what other streams have, and they wait for it.
WITH blocking AS MATERIALIZED (
  SELECT t.process, t.stream FROM stream_made m JOIN template t ON t.id = m.template
  GROUP BY t.process, t.stream HAVING NOT max(m.non_blocking)),
work AS MATERIALIZED (
  SELECT id, process, context, kind, stream, stack, stream = $LEGACY AS legacy FROM template t
  WHERE EXISTS (SELECT 1 FROM blocking) AND kind IN ($COPY, $MEMSET, $LAUNCH) AND status = $SUCCESS AND NOT flags & $CAPTURED
    AND (stream = $LEGACY OR (process, stream) IN (SELECT process, stream FROM blocking))),
place AS MATERIALIZED ( -- what is named; NULL: not known
  SELECT w.*, x.address, a.number IS NULL AS unknown FROM work w LEFT JOIN template_access a ON a.template = w.id
  LEFT JOIN access_word x ON x.process = w.process AND x.number = a.number WHERE w.kind = $LAUNCH
  UNION ALL SELECT w.*, n.address, n.address = 0 FROM work w JOIN place_named n ON n.template = w.id),
known AS MATERIALIZED (
  SELECT process, context FROM place GROUP BY process, context
  HAVING NOT max(unknown AND (NOT legacy OR kind <> $LAUNCH)) AND count(*) * (SELECT count(*) FROM block) <= :most
  EXCEPT SELECT t.process, t.context FROM place_named n JOIN template t ON t.id = n.template WHERE n.address = 0),
held AS MATERIALIZED (
  SELECT p.id, p.process, p.legacy, p.stream,
         ifnull((SELECT min(b.alloc) FROM block b WHERE b.process = p.process
                   AND p.address BETWEEN b.pointer AND b.pointer + b.bytes - 1), -p.address) AS block
  FROM place p JOIN known k ON k.process = p.process AND k.context = p.context WHERE p.address IS NOT NULL),
common AS MATERIALIZED ( -- work in the default stream, a stream of which some work shares its memory
  SELECT DISTINCT h.id, o.stream FROM held h JOIN held o ON o.process = h.process AND o.block = h.block
  WHERE h.legacy AND NOT o.legacy),
shared AS MATERIALIZED (
  SELECT id FROM place WHERE unknown
  UNION SELECT id FROM common),
late AS MATERIALIZED ( -- it needs the work of one of two streams, and waits for both
  SELECT l.event, w.process, w.stack FROM legacy_work l JOIN work w ON w.id = l.template
  JOIN work b ON b.id = (SELECT e.template FROM event_row e WHERE e.id = l.before)
  JOIN work o ON o.id = (SELECT e.template FROM event_row e WHERE e.id = l.other)
  WHERE l.template NOT IN (SELECT id FROM place WHERE unknown)
    AND EXISTS (SELECT 1 FROM common c WHERE c.id = w.id AND c.stream = b.stream)
      + EXISTS (SELECT 1 FROM common c WHERE c.id = w.id AND c.stream = o.stream) = 1),
often_late AS MATERIALIZED (
  SELECT event FROM (SELECT event, count(*) OVER (PARTITION BY process, stack) AS times FROM late) WHERE times >= :min_times),
gained AS MATERIALIZED ( -- what a span gains where only common memory orders its work
  SELECT o.event, o.template, o.related, o.saving, count(*) OVER (PARTITION BY w.process, w.stack) AS times
  FROM order_unneeded o JOIN work w ON w.id = o.template WHERE o.legacy),
found AS MATERIALIZED (
  SELECT l.event, l.template, l.duration, l.before, l.event IN (SELECT event FROM often_late) AS late
  FROM (SELECT 1 FROM work LIMIT 1) CROSS JOIN legacy_work l JOIN work w ON w.id = l.template
  JOIN known k ON k.process = w.process AND k.context = w.context
  WHERE (l.template NOT IN (SELECT id FROM shared) OR l.event IN (SELECT event FROM often_late))
    AND (SELECT e.template FROM event_row e WHERE e.id = l.before) IN (SELECT id FROM work))
SELECT f.event, f.template, max(f.duration, ifnull(g.saving, 0)) AS cost_ns, ifnull(g.saving, 0) AS saving_ns,
       f.before AS related, CASE WHEN f.late THEN 'possible' END AS certainty
FROM found f LEFT JOIN gained g ON g.event = f.event
UNION ALL
SELECT event, template, saving, saving, related, 'possible' FROM gained
WHERE times >= :min_times AND event NOT IN (SELECT event FROM found)

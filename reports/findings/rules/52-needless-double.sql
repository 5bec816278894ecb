-- number: 52
-- id: needless-double
-- title: Doubles copied to the device, where a kernel makes floats of them at once
-- severity: low
-- certainty: possible
-- threshold: min_times 8 times at one place
-- threshold: min_bytes 4194304 bytes in all, which do as well
-- threshold: most 16 blocks
-- rows: access_set
-- calls: t.kind = $COPY AND t.copy = $H2D
-- fix: Where the host may keep floats, or make them of its doubles in less time than it copies these, copy floats: half of the
--      bytes, and no kernel that converts them.
WITH two AS MATERIALIZED (
  SELECT s.process, s.number, x.address AS one, y.address AS other FROM access_set s
  JOIN access_word x ON x.process = s.process AND x.number = s.number
  JOIN access_word y ON y.process = s.process AND y.number = s.number AND y.address <> x.address WHERE s.words = 2),
held AS MATERIALIZED (
  SELECT process, pointer, bytes FROM block WHERE (SELECT 1 FROM two LIMIT 1) AND mem = $DEVICE AND bytes > 0
    AND alloc NOT IN (SELECT alloc FROM given_block) GROUP BY 1, 2, 3),
-- sets of a block and of one of half its size; "+": not by an index of what few blocks differ in
first AS MATERIALIZED (
  SELECT w.process, w.number, w.one AS wide, w.other AS slim, u.bytes FROM two w
  JOIN held u ON u.pointer = w.one AND +u.process = w.process),
half AS MATERIALIZED (
  SELECT f.process, f.number, f.wide, f.bytes, f.slim FROM first f
  JOIN held h ON h.pointer = f.slim AND +h.process = f.process AND +h.bytes * 2 = +f.bytes),
filled AS MATERIALIZED (
  SELECT DISTINCT t.process, e.a AS wide, e.bytes
  FROM (SELECT 1 FROM half LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = $COPY AND t.copy = $H2D AND t.status = $SUCCESS),
pair AS MATERIALIZED (
  SELECT a.template, h.process, h.wide, h.bytes, h.slim FROM half h
  JOIN filled f ON f.process = h.process AND f.wide = h.wide AND f.bytes = h.bytes
  JOIN template_access a ON a.number = h.number
  JOIN template t ON t.id = a.template AND t.process = h.process AND t.kind = $LAUNCH AND t.status = $SUCCESS LIMIT :most),
-- what may touch any memory
strange AS MATERIALIZED (
  SELECT DISTINCT t.process FROM (SELECT 1 FROM pair LIMIT 1) CROSS JOIN template t LEFT JOIN api i ON i.id = t.api
  WHERE t.flags & $CAPTURED OR (t.kind = $LAUNCH AND t.id NOT IN (SELECT template FROM template_access))
     OR (t.kind = $CALL AND i.name GLOB '*GraphLaunch*')),
-- launches that are handed one of the two blocks
near AS MATERIALIZED (
  SELECT p.process, x.number, p.template AS converts, p.wide, max(x.address BETWEEN p.wide AND p.wide + p.bytes - 1) AS whole
  FROM pair p CROSS JOIN access_word x ON x.process = p.process
  WHERE x.address BETWEEN p.wide AND p.wide + p.bytes - 1 OR x.address BETWEEN p.slim AND p.slim + p.bytes / 2 - 1
  GROUP BY 1, 2, 3, 4),
handed AS MATERIALIZED (
  SELECT a.template, n.process, n.wide, CASE WHEN n.converts = a.template THEN 2 WHEN n.whole THEN 0 ELSE 3 END AS what
  FROM (SELECT 1 FROM near LIMIT 1) CROSS JOIN template_access a CROSS JOIN template t ON t.id = a.template
  JOIN near n ON n.process = t.process AND n.number = a.number),
-- 1 upload, 2 conversion, 3 the floats are used, 4 they are written otherwise, 0 the doubles are touched
touch AS MATERIALIZED (
  SELECT e.id, e.template, e.duration, e.bytes, w.process, w.wide, e.a AS handle, w.what
  FROM (SELECT 1 FROM handed LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template
  JOIN handed w ON w.template = t.id WHERE t.kind = $LAUNCH AND t.status = $SUCCESS
  UNION ALL
  SELECT e.id, e.template, e.duration, e.bytes, p.process, p.wide, 0, CASE
      WHEN t.kind = $COPY AND t.copy = $H2D AND e.a = p.wide AND e.bytes = p.bytes THEN 1
      WHEN t.kind = $COPY AND e.b BETWEEN p.slim AND p.slim + p.bytes / 2 - 1 THEN 3
      WHEN e.a BETWEEN p.slim AND p.slim + p.bytes / 2 - 1 THEN 4 ELSE 0 END
  FROM (SELECT 1 FROM pair LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id = e.template CROSS JOIN pair p
  WHERE t.kind IN ($COPY, $MEMSET, $CALL) AND t.status = $SUCCESS AND p.process = t.process AND (
    e.a BETWEEN p.wide AND p.wide + p.bytes - 1 OR p.wide BETWEEN e.a AND e.a + e.bytes - 1
    OR e.a BETWEEN p.slim AND p.slim + p.bytes / 2 - 1
    OR (t.kind = $COPY AND (e.b BETWEEN p.wide AND p.wide + p.bytes - 1 OR p.wide BETWEEN e.b AND e.b + e.bytes - 1
                         OR e.b BETWEEN p.slim AND p.slim + p.bytes / 2 - 1)))),
turn AS MATERIALIZED (
  SELECT id, template, duration, bytes, process, wide, handle, what,
         lead(what) OVER (PARTITION BY process, wide, what IN (1, 2) ORDER BY id) AS next
  FROM touch WHERE process NOT IN (SELECT process FROM strange)),
good AS MATERIALIZED (
  SELECT process, wide FROM turn GROUP BY 1, 2
  HAVING NOT sum(what IN (0, 4)) AND sum(what = 3) AND sum(what = 1) = sum(what = 2)
     AND NOT sum(what = 1 AND next IS NOT 2) AND NOT sum(what = 2 AND next IS 2)
     AND (sum(what = 1) >= :min_times OR sum(CASE WHEN what = 1 THEN bytes END) >= :min_bytes)),
-- by its name the kernel has both types
converts AS (
  SELECT u.process, u.wide FROM turn u CROSS JOIN name n ON n.process = u.process AND n.kind = 'kernel' AND n.handle = u.handle
  WHERE u.what = 2 AND (n.name GLOB '*double*' OR n.name GLOB '*[fF]loat64*' OR n.name GLOB '*f64*' OR n.name GLOB '*PKd*'
     OR n.name GLOB '*Pd*' OR n.name GLOB '*Idf*' OR n.name GLOB '*Ifd*')
    AND (replace(lower(n.name), 'float64', '') GLOB '*float*' OR n.name GLOB '*f32*' OR n.name GLOB '*Pf*'
     OR n.name GLOB '*Idf*' OR n.name GLOB '*Ifd*'))
SELECT u.id AS event, u.template, u.duration AS cost_ns, u.bytes / 2 AS bytes,
       CAST(ifnull((SELECT sum(d."end" - d.start) FROM device_work d WHERE d.event = u.id),
                   CASE WHEN t.flags & $MAY_WAIT THEN u.bytes * (min(u.duration * 1.0 / u.bytes) OVER (PARTITION BY u.template)) ELSE 0 END) / 2
            AS INTEGER) AS saving_ns
FROM turn u CROSS JOIN template t ON t.id = u.template
WHERE u.what = 1 AND (u.process, u.wide) IN (SELECT process, wide FROM good) AND (u.process, u.wide) IN (SELECT process, wide FROM converts)

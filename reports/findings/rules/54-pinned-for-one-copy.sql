-- number: 54
-- id: pinned-for-one-copy
-- title: Host memory pinned for one single copy
-- severity: medium
-- certainty: likely
-- threshold: min_bytes 8388608 bytes
-- threshold: slowest 1 byte a ns, at which memory is pinned; what takes longer has begun a context, or waited
-- threshold: pageable 4 bytes a ns, of a copy of memory that is not pinned
-- threshold: pinned 12 bytes a ns, of a copy of memory that is; what takes longer has waited for a processor
-- needs: whole_run wait_detail
-- rows: copied_once
-- calls: t.kind = $ALLOC AND t.mem = $PINNED
-- fix: Use malloc() for what is copied once, or copy it by parts through a small pinned buffer that is kept.
SELECT o.alloc AS event, o.template, o.alloc_ns + ifnull(o.free_ns, 0) AS cost_ns, o.saving AS saving_ns,
       ifnull(o.free, o.copy) AS related,
       CASE WHEN o.free IS NULL THEN 0 ELSE o.own_free END AS related_saving_ns,
       CASE WHEN EXISTS (SELECT 1 FROM template g CROSS JOIN api a ON a.id = g.api WHERE g.process = t.process
                           AND (a.name GLOB 'c*GraphAdd*Memcpy*' OR a.name GLOB 'c*GraphAddNode*')) THEN 'possible' ELSE 'likely' END AS certainty
FROM (SELECT p.*, p.own + p.own_free - max(p.copied / :pageable - p.copy_ns, 0) AS saving
      FROM (SELECT c.*, min(c.alloc_ns, c.bytes / :slowest) AS own,
                   -- what had nothing to wait for takes its own time
                   CASE WHEN f.pending = 0 THEN min(c.free_ns, c.alloc_ns, c.bytes / :slowest) ELSE min(c.free_ns, min(c.alloc_ns, c.bytes / :slowest) / 2) END AS own_free,
                   CASE WHEN y.pending = 0 AND NOT yt.flags & $ASYNC THEN min(y_e.duration, c.copied / :pinned) ELSE 0 END AS copy_ns
            FROM copied_once c LEFT JOIN wait_detail f ON f.id = c.free LEFT JOIN wait_detail y ON y.id = c.copy
            CROSS JOIN event_row y_e ON y_e.id = c.copy CROSS JOIN template yt ON yt.id = y_e.template
            WHERE c.bytes >= :min_bytes) p) o
CROSS JOIN template t ON t.id = o.template
CROSS JOIN event_row e ON e.id = o.alloc
WHERE o.saving > 0 AND NOT t.flags & $CACHED
  -- a kernel that is handed it, at any time, reads it where it is
  AND NOT EXISTS (SELECT 1 FROM access_word w WHERE w.process = t.process AND w.address BETWEEN e.a AND e.a + o.bytes - 1)
  AND t.api NOT IN (SELECT id FROM api WHERE layer = 'weir')

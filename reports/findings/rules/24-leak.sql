-- number: 24
-- id: leak
-- title: Device memory that is never freed
-- severity: medium
-- certainty: possible
-- needs: whole_run
-- threshold: min_blocks 5 blocks
-- threshold: min_epochs 5 eighths of the run
-- holds: bytes
-- judge: leak
-- fix: Free it with cudaFree() when it is last used; what grows with the run ends in out of memory.
WITH live AS (
  SELECT b.process, b.stack, b.alloc, b.bytes FROM block b JOIN process p ON p.id = b.process
  WHERE b.how = $LIVE AND NOT b.registered AND b.mem IN ($DEVICE, $MANAGED, $ARRAY) AND b.alloc IS NOT NULL
    AND p.end_reason = 'exit'),
extent AS (SELECT max(id) AS last FROM event_row),
grown AS (
  SELECT process, stack, count(*) AS blocks,
         count(DISTINCT alloc * 8 / (SELECT last + 1 FROM extent)) AS epochs
  FROM live GROUP BY process, stack)
SELECT l.alloc AS event, l.bytes AS bytes,
       CASE WHEN g.blocks >= :min_blocks AND g.epochs >= :min_epochs THEN 'certain'
            WHEN g.blocks >= :min_blocks THEN 'likely' ELSE 'possible' END AS certainty
FROM live l JOIN grown g ON g.process = l.process AND g.stack IS l.stack

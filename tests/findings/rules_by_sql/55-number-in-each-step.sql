-- number: 55
-- id: number-in-each-step
-- title: A number copied to the host in each step, which waits for it
-- severity: medium
-- certainty: possible
-- needs: wait_detail
-- threshold: min_times 32 times at one place
-- threshold: latency 5000 ns that a copy of a few bytes takes by itself
-- threshold: every 10 steps, in which it would do once
-- calls: t.kind = $COPY AND t.copy = $D2H
-- fix: Ask each tenth step, or later by an event and a second number, and let kernels read it where it is: the host then
--      queues ahead, and the device does not stand idle between.
SELECT s.event, s.template, s.duration AS cost_ns, nullif(s.wait, 0) AS related,
       CAST(min(s.duration, s.gap + :latency) * (1 - 1.0 / :every) AS INTEGER) AS saving_ns,
       CASE WHEN s.wait THEN CAST(min(max(s.duration - e.duration, 0), s.gap + :latency) * (1 - 1.0 / :every) AS INTEGER)
       ELSE 0 END AS related_saving_ns
FROM (SELECT p.*, count(*) OVER (PARTITION BY p.template) AS times FROM scalar_step p) s
CROSS JOIN event_row e ON e.id = s.event
CROSS JOIN wait_detail w ON w.id = CASE s.wait WHEN 0 THEN s.event ELSE s.wait END
WHERE s.times >= :min_times AND w.pending

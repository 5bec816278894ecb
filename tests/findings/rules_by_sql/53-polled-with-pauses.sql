-- number: 53
-- id: polled-with-pauses
-- title: A thread sleeps between questions whether work is complete, and learns late that it is
-- severity: medium
-- certainty: possible
-- threshold: min_times 16 waits at one place
-- threshold: min_gap 5000 ns between the last two questions, in the quickest wait of the place
-- threshold: max_gap 5000000 ns, there: who sleeps for longer does not wait for the work alone
-- threshold: min_total 2000000 ns in all at a place
-- rows: late_wait
-- calls: t.kind = $WAIT AND t.copy = $QUERY
-- fix: Wait with cudaEventSynchronize() where the loop does nothing else: it returns as the work is complete. Where the processor
--      matters, make the event with cudaEventBlockingSync: the thread sleeps until then.
SELECT event, template, gap AS cost_ns, gap / 2 AS saving_ns
FROM (SELECT l.event, l.template, l.gap, count(*) OVER place AS times, min(l.gap) OVER place AS least, sum(l.gap) OVER place AS total
      FROM late_wait l WINDOW place AS (PARTITION BY l.template))
WHERE times >= :min_times AND least >= :min_gap AND least <= :max_gap AND total >= :min_total

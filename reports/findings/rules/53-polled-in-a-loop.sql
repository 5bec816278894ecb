-- number: 53
-- id: polled-in-a-loop
-- title: A thread asks whether work is complete until it is, and does nothing else
-- severity: medium
-- certainty: likely
-- threshold: min_polls 1000 times in a row
-- threshold: max_gap 400 ns between two of them, in the quickest wait of the place
-- threshold: min_share 60 percent of the time in the questions, where other threads make the gaps longer
-- threshold: min_ns 1000000 ns of one wait
-- threshold: min_total 50000000 ns of all at a place
-- rows: polled
-- calls: t.kind = $WAIT AND t.copy = $QUERY
-- fix: Wait with cudaEventSynchronize() for an event made with cudaEventBlockingSync: the thread sleeps, and its processor is
--      free for others. The run takes no longer, or less where threads compete.
SELECT event, template, polls AS count, span_ns AS cost_ns, 0 AS saving_ns
FROM (SELECT p.event, p.template, p.polls, p.span_ns,
             min(CASE WHEN p.polls >= :min_polls THEN (p.span_ns - p.asked_ns) / p.polls END) OVER place AS gap,
             sum(p.asked_ns) OVER place AS asked, sum(p.span_ns >= :min_ns) OVER place AS long, sum(p.span_ns) OVER place AS total, count(*) OVER place AS waits
      FROM polled p WINDOW place AS (PARTITION BY p.template))
WHERE (gap <= :max_gap OR asked * 100 >= total * :min_share) AND span_ns >= :min_ns AND long * 2 >= waits AND total >= :min_total

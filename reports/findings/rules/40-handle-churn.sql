-- number: 40
-- id: handle-churn
-- title: Streams, events, pools, graphs or modules made and ended again and again
-- severity: medium
-- certainty: likely
-- often: 4
-- threshold: min_pairs 16 times
-- threshold: clock 20 ns a call, what measuring it adds where a read of the clock takes 14 ns
-- prove: strict events,streams
-- rows: handle_pair
-- fix: Make them once and keep them: each can serve any number of times.
SELECT p.made AS event, p.template, p.made_ns + p.ended_ns AS cost_ns,
       max(p.made_ns + p.ended_ns - 2 * (:clock + :clock_more), 1) AS saving_ns, p.ended AS related,
       t.flags & $CACHED <> 0 AS removed
FROM handle_pair p CROSS JOIN handle_family f ON f.id = p.family CROSS JOIN template t ON t.id = p.template
WHERE f.again >= :min_pairs - 1 AND p.again

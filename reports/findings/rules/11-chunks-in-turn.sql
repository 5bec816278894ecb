-- number: 11
-- id: chunks-in-turn
-- title: Chunks that are uploaded, worked on and fetched one after the other
-- severity: high
-- certainty: possible
-- threshold: min_times 8 rounds of one place
-- threshold: min_quick 50 of a hundred of them, of which the host cannot have written the chunk since the last results
-- threshold: link 25 bytes a ns
-- rows: chunk
-- fix: Use three buffers, each with a stream of its own, page-locked memory and cudaMemcpyAsync(), so that one chunk is
--      uploaded while another is worked on, and a third fetched.
WITH round AS (
  SELECT c.*, up_ns + back_ns AS took, count(*) OVER own AS times, 100 * avg(quick) OVER own AS quick_ones,
         (SELECT sum(d."end" - d.start) * c.up_bytes / e.bytes FROM device_work d CROSS JOIN event_row e ON e.id = d.event
          WHERE d.event = c.event AND e.bytes > 0) AS timed
  FROM chunk c WINDOW own AS (PARTITION BY c.template)),
upload AS (
  SELECT r.*, min(ifnull(r.timed, max(r.up_ns, r.up_bytes / :link)), r.took) AS up FROM round r
  WHERE r.times >= :min_times AND r.quick_ones >= :min_quick),
part AS ( -- results come back as quickly as chunks go there, and what is left is the kernels'
  SELECT u.*, min(u.took - u.up, CAST(1.0 * u.up * u.back_bytes / u.up_bytes AS INTEGER)) AS down FROM upload u)
SELECT event, template, back AS related, up_bytes + back_bytes AS bytes, took AS cost_ns,
       CASE WHEN locked THEN took - max(up, down, took - up - down) ELSE min(took - up - down, up + down) END AS saving_ns
FROM part

-- number: 7
-- id: tiny-copies
-- title: Many small copies, one behind the other
-- severity: medium
-- certainty: likely
-- threshold: link 25 bytes a ns
-- fix: Put the pieces together in one buffer and copy it once, or give them all to cudaMemcpyBatchAsync().
SELECT event, template, duration AS cost_ns, max(duration - bytes / :link, 0) AS saving_ns, bytes
FROM small_copy

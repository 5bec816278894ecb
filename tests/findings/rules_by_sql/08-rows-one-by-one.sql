-- number: 8
-- id: rows-one-by-one
-- title: Rows of a matrix copied one by one
-- severity: medium
-- certainty: certain
-- threshold: min_rows 8 times
-- threshold: link 25 bytes a ns
-- fix: Copy all rows by one cudaMemcpy2DAsync(), or where they lie one behind the other by one
--      cudaMemcpyAsync().
SELECT r.event AS event, r.template AS template, r.duration AS cost_ns, max(r.duration - r.bytes / :link, 0) AS saving_ns,
       r.bytes AS bytes
FROM row_copy r CROSS JOIN row_matrix m ON m.id = r.matrix
WHERE m.rows >= :min_rows - 1

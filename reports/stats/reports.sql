-- reports.sql: the reports of `nsys stats` and the rules of `nsys analyze`, over the tables of a trace
-- (SCHEMA.md): each a temporary view of the report's name, after the views that several of them read.
-- Names of columns are headings, Nsight Systems' own.
--
-- A list's view has its columns. A sum's has labels, then the measures v0, v1, … (NULL: the row is not of
-- this one), then w, for how many alike the row stands: each has v / w. Moments are ns since the trace
-- began. A size "(MB)" and a speed are in millions.
--
-- Two depend on the trace and on what is asked for, and stats.c makes them before these:
--   timed_work   the rows of device_work whose times can be true
--   call_range   the innermost range by NVTX of a call: (event, text); empty unless kernels' names have it

-- ---- what several reports read --------------------------------------------------------------------

CREATE TEMP TABLE direction(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO temp.direction VALUES
  (1, 'Host-to-Device'), (2, 'Device-to-Host'), (3, 'Host-to-Array'), (4, 'Array-to-Host'),
  (5, 'Array-to-Array'), (6, 'Array-to-Device'), (7, 'Device-to-Array'), (8, 'Device-to-Device'),
  (9, 'Host-to-Host'), (10, 'Peer-to-Peer');

CREATE TEMP VIEW memory_kind AS
SELECT id, CASE nsys WHEN 0 THEN 'Pageable' WHEN 1 THEN 'Pinned' WHEN 2 THEN 'Device' WHEN 3 THEN 'Array'
                     WHEN 4 THEN 'Managed' WHEN 5 THEN 'Device Static' WHEN 6 THEN 'Managed Static'
                     ELSE 'Unknown' END AS name
FROM main.mem_kind;

-- An event with the name of its function and the kernel's numbers of its process and thread.
CREATE TEMP VIEW named_event AS
SELECT e.id, e.kind, e.status, e.flags, e.copy, e.mem, e.src_mem, e.thread, e.start, e."end", e.bytes,
       max(e."end" - e.start, 0) AS host_ns,
       ifnull((SELECT CASE WHEN x.name GLOB '__cuda*' THEN substr(x.name, 3) ELSE x.name END
               FROM main.api x WHERE x.id = e.api), '(no function)') AS function,
       (SELECT x.pid FROM main.process x WHERE x.id = e.process) AS pid,
       (SELECT x.tid FROM main.thread x WHERE x.id = e.thread) AS tid
FROM event e;

-- The calls of a program: neither what a cache did of its own accord nor a call within another.
CREATE TEMP VIEW program_call AS SELECT * FROM named_event WHERE kind <> 13 AND NOT (flags & 32);

-- An operation of a device: a copy (kind 1), a memset (2), a kernel (3), a graph (4). A graph's kernels
-- have a name where all of them have the same.
CREATE TEMP VIEW operation AS
SELECT d.*, d."end" - d.start AS ns,
       (SELECT x.pid FROM main.process x WHERE x.id = d.process) AS pid,
       CASE d.kind WHEN 1 THEN '[CUDA memcpy ' || ifnull((SELECT x.name FROM temp.direction x WHERE x.id = d.copy),
                                                         'Unknown') || ']'
                   ELSE '[CUDA memset]' END AS memory,
       ifnull((SELECT r.text || char(31) FROM temp.call_range r WHERE r.event = d.event), '')
       || ifnull((SELECT n.name FROM main.name n
                  WHERE n.process = d.process AND n.kind = 'kernel' AND n.handle =
                        (SELECT CASE e.kind WHEN 6 THEN e.a
                                ELSE (SELECT CASE WHEN min(w.kernel) = max(w.kernel) THEN min(w.kernel) END
                                      FROM graph_launch l CROSS JOIN graph_work w
                                           ON w.content = l.content AND w.type = 0
                                      WHERE l.event = e.id) END
                         FROM event e WHERE e.id = d.event)),
                 CASE WHEN d.graph_node IS NULL THEN '(kernel not known)'
                                                ELSE '(kernel of a graph)' END) AS kernel
FROM temp.timed_work d;

-- A range; one that never ended lasts as long as its process.
CREATE TEMP VIEW lasting_range AS
SELECT r.kind, ifnull(n.domain, '') || ':' || ifnull(n.text, '') AS name,
       max(coalesce(r."end", (SELECT p."end" FROM main.process p WHERE p.id = r.process),
                    (SELECT m.value FROM main.meta m WHERE m.key = 'duration_ns'), r.start) - r.start, 0) AS ns
FROM main.range_row r LEFT JOIN main.range_name n ON n.id = r.name
WHERE r.start IS NOT NULL;

-- ---- sums -----------------------------------------------------------------------------------------

-- Queries that came one after the other are one row.
CREATE TEMP VIEW cuda_api_sum("Name", v0, w) AS
SELECT function, host_ns, CASE WHEN kind = 5 AND status = 600 THEN bytes + 1 ELSE 1 END FROM program_call;

CREATE TEMP VIEW cuda_gpu_kern_sum("Name", v0, w) AS SELECT kernel, ns, 1 FROM operation WHERE kind = 3;

CREATE TEMP VIEW cuda_gpu_mem_time_sum("Operation", v0, w) AS
SELECT memory, ns, 1 FROM operation WHERE kind IN (1, 2);

-- What calls and launches of graphs moved and set, whether or not the device was seen doing it.
CREATE TEMP VIEW cuda_gpu_mem_size_sum("Operation", v0, w) AS
SELECT CASE kind WHEN 1 THEN '[CUDA memcpy ' || ifnull((SELECT x.name FROM temp.direction x WHERE x.id = copy),
                                                       'Unknown') || ']'
                 ELSE '[CUDA memset]' END, bytes, count
FROM (SELECT kind - 2 AS kind, copy, bytes, 1 AS count
      FROM event WHERE kind IN (3, 4) AND status = 0 AND NOT (flags & 16)
      UNION ALL
      SELECT g.type, g.copy, g.bytes * g.count, g.count
      FROM graph_launch l CROSS JOIN event e ON e.id = l.event AND e.status = 0
           CROSS JOIN graph_work g ON g.content = l.content AND g.type IN (1, 2) AND NOT g.conditional);

CREATE TEMP VIEW cuda_gpu_sum("Category", "Operation", v0, w) AS
SELECT CASE kind WHEN 3 THEN 'CUDA_KERNEL' ELSE 'MEMORY_OPER' END, CASE kind WHEN 3 THEN kernel ELSE memory END,
       ns, 1
FROM operation WHERE kind BETWEEN 1 AND 3;

CREATE TEMP VIEW cuda_api_gpu_sum("Category", "Operation", v0, w) AS
SELECT 'CUDA_API', * FROM cuda_api_sum UNION ALL SELECT * FROM cuda_gpu_sum;

-- From the call to the kernel's end, the call, from its end to the kernel's beginning, the kernel.
CREATE TEMP VIEW cuda_kern_exec_sum("PID", "TID", "DevId", "API Name", "Kernel Name", v0, v1, v2, v3, w) AS
SELECT e.pid, e.tid, d.device, e.function, d.kernel, max(e."end", d."end") - e.start, e.host_ns,
       CASE WHEN d.start > e."end" THEN d.start - e."end" END, d.ns, 1
FROM operation d CROSS JOIN named_event e ON e.id = d.event
WHERE d.kind = 3;

CREATE TEMP VIEW nvtx_sum("Style", "Range", v0, w) AS
SELECT CASE kind WHEN 1 THEN 'PushPop' ELSE 'StartEnd' END, name, ns, 1 FROM lasting_range
WHERE kind IN (1, 2);

CREATE TEMP VIEW nvtx_pushpop_sum("Range", v0, w) AS SELECT name, ns, 1 FROM lasting_range WHERE kind = 1;

CREATE TEMP VIEW nvtx_startend_sum("Range", v0, w) AS SELECT name, ns, 1 FROM lasting_range WHERE kind = 2;

-- ---- lists ----------------------------------------------------------------------------------------

CREATE TEMP VIEW cuda_api_trace(
  "Start (ns)", "Duration (ns)", "Name", "Result", "CorrID", "Pid", "Tid", "T-Pri", "Thread Name") AS
SELECT start, host_ns, function, status, id, pid, tid, NULL,
       (SELECT x.name FROM main.thread x WHERE x.id = program_call.thread)
FROM program_call ORDER BY start, id;

CREATE TEMP VIEW cuda_gpu_trace(
  "Start (ns)", "Duration (ns)", "CorrId", "GrdX", "GrdY", "GrdZ", "BlkX", "BlkY", "BlkZ", "Reg/Trd",
  "StcSMem (MB)", "DymSMem (MB)", "Bytes (MB)", "Throughput (MB/s)", "SrcMemKd", "DstMemKd", "Device", "Ctx",
  "GreenCtx", "Strm", "Name") AS
SELECT d.start, d.ns, d.event,
       CASE WHEN d.kind = 3 AND e.kind = 6 THEN e.b & 4294967295 END,
       CASE WHEN d.kind = 3 AND e.kind = 6 THEN e.b >> 32 & 65535 END,
       CASE WHEN d.kind = 3 AND e.kind = 6 THEN e.b >> 48 & 65535 END,
       NULL, NULL, NULL, NULL, NULL, NULL,
       CASE WHEN d.kind < 3 THEN d.bytes / 1e6 END,
       CASE WHEN d.kind < 3 AND d."end" > d.start THEN d.bytes * 1000.0 / d.ns END,
       CASE WHEN d.kind = 1 AND e.kind = 3 THEN (SELECT x.name FROM temp.memory_kind x WHERE x.id = e.src_mem)
            WHEN d.kind = 2 AND e.kind = 4 THEN (SELECT x.name FROM temp.memory_kind x WHERE x.id = e.mem) END,
       CASE WHEN d.kind = 1 AND e.kind = 3 THEN (SELECT x.name FROM temp.memory_kind x WHERE x.id = e.mem) END,
       ifnull((SELECT n.name FROM main.name n WHERE n.process = d.process AND n.kind = 'device'
               AND n.handle = d.device), 'Device') || ' (' || d.device || ')',
       d.context, NULL, d.stream,
       CASE d.kind WHEN 3 THEN d.kernel WHEN 4 THEN '[CUDA graph]' ELSE d.memory END
FROM operation d LEFT JOIN event e ON e.id = d.event
WHERE d.kind BETWEEN 1 AND 4 ORDER BY d.start, d.id;

-- ---- rules: the longest first ---------------------------------------------------------------------

-- Copies, and which of the next two rules each is of. The last column is not shown.
CREATE TEMP VIEW called_copy(
  "Duration (ns)", "Start (ns)", "Src Kind", "Dst Kind", "Bytes (MB)", "PID", "Device ID", "Context ID",
  "Green Context ID", "Stream ID", "API Name", rule) AS
SELECT d.ns, d.start, (SELECT x.name FROM temp.memory_kind x WHERE x.id = e.src_mem),
       (SELECT x.name FROM temp.memory_kind x WHERE x.id = e.mem), d.bytes / 1e6, d.pid, d.device, d.context,
       NULL, d.stream, e.function,
       CASE WHEN e.flags & 1 AND 1 IN (e.mem, e.src_mem) THEN 'async'
            WHEN NOT (e.flags & 1) AND e.copy <> 8 AND NOT (e.copy = 1 AND d.bytes <= 65536) THEN 'sync' END
FROM operation d CROSS JOIN named_event e ON e.id = d.event AND e.kind = 3
WHERE d.kind = 1;

CREATE TEMP VIEW cuda_memcpy_async AS SELECT * FROM called_copy WHERE rule = 'async' ORDER BY 1 DESC, 2;

CREATE TEMP VIEW cuda_memcpy_sync AS SELECT * FROM called_copy WHERE rule = 'sync' ORDER BY 1 DESC, 2;

CREATE TEMP VIEW cuda_memset_sync(
  "Duration (ns)", "Start (ns)", "Memory Kind", "Bytes (MB)", "PID", "Device ID", "Context ID",
  "Green Context ID", "Stream ID", "API Name") AS
SELECT d.ns, d.start, (SELECT x.name FROM temp.memory_kind x WHERE x.id = e.mem), d.bytes / 1e6, d.pid, d.device,
       d.context, NULL, d.stream, e.function
FROM operation d CROSS JOIN named_event e
     ON e.id = d.event AND e.kind = 4 AND NOT (e.flags & 1) AND e.mem IN (2, 4)
WHERE d.kind = 2 ORDER BY 1 DESC, 2;

CREATE TEMP VIEW cuda_api_sync("Duration (ns)", "Start (ns)", "PID", "TID", "API Name") AS
SELECT host_ns, start, pid, tid, function
FROM program_call WHERE kind = 5 AND copy IN (3, 4) ORDER BY 1 DESC, 2;

-- Between operations of one process on one device.
CREATE TEMP VIEW gpu_gaps("Row#", "Duration (ns)", "Start (ns)", "PID", "Device ID", "Context ID") AS
SELECT row_number() OVER (ORDER BY start - before DESC, before), start - before, before,
       (SELECT x.pid FROM main.process x WHERE x.id = process), device, context
FROM (SELECT process, device, context, start,
             max("end") OVER (PARTITION BY process, device ORDER BY start, id
                              ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
      FROM temp.timed_work WHERE kind BETWEEN 1 AND 4)
WHERE start - before > 500000000 ORDER BY 1;

-- The thirtieths of a process's time on a device of which less than half is used; neighbours are one.
CREATE TEMP VIEW gpu_time_util(
  "Row#", "In-Use (%)", "Duration (ns)", "Start (ns)", "PID", "Device ID", "Context ID") AS
WITH RECURSIVE
chunk(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM chunk WHERE i < 29),
work AS (SELECT process, device, context, start, "end" FROM temp.timed_work WHERE kind BETWEEN 1 AND 4),
span AS MATERIALIZED (
  SELECT process, device, min(context) AS context, min(start) AS first, (max("end") - min(start)) / 30.0 AS part
  FROM work GROUP BY process, device HAVING max("end") > min(start)),
used AS (
  SELECT s.process, s.device, i,
         sum(min(w."end", first + (i + 1) * part) - max(w.start, first + i * part)) AS ns
  FROM work w CROSS JOIN span s ON s.process = w.process AND s.device IS w.device
       CROSS JOIN chunk ON i >= CAST((w.start - first) / part AS INTEGER) AND i * part < w."end" - first
  GROUP BY s.process, s.device, i),
low AS (
  SELECT s.process, s.device, s.context, s.first, s.part, c.i, ifnull(u.ns, 0) AS ns,
         c.i - row_number() OVER (PARTITION BY s.process, s.device ORDER BY c.i) AS island
  FROM span s CROSS JOIN chunk c
       LEFT JOIN used u ON u.process = s.process AND u.device IS s.device AND u.i = c.i
  WHERE ifnull(u.ns, 0) < s.part / 2),
little AS (
  SELECT 100.0 * sum(ns) / (part * count(*)) AS share, CAST(part * count(*) AS INTEGER) AS ns,
         CAST(first + part * min(i) AS INTEGER) AS start, process, device, context
  FROM low GROUP BY process, device, island)
SELECT row_number() OVER (ORDER BY share, start), share, ns, start,
       (SELECT x.pid FROM main.process x WHERE x.id = process), device, context
FROM little ORDER BY 1;

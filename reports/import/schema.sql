-- The schema of a trace, version 2. What it means is in SCHEMA.md; a test compares the two.
-- Native tables first, then what Nsight Systems' SQLite export calls the same facts.

CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE process(
  id INTEGER PRIMARY KEY, pid INTEGER, ppid INTEGER, exe TEXT, command TEXT,
  start INTEGER, "end" INTEGER, end_reason TEXT, end_detail INTEGER, mode TEXT,
  events INTEGER, dropped INTEGER, drop_errno INTEGER, dropped_extended INTEGER,
  damaged_chunks INTEGER, torn INTEGER, bytes_cut INTEGER,
  unknown_lookups INTEGER, unknown_name TEXT, spool TEXT, uid INTEGER, nested_calls INTEGER,
  rank INTEGER, deep_ranges INTEGER, preempted INTEGER, starved_ns INTEGER,
  unrecorded_calls INTEGER, unrecorded_spans INTEGER);

CREATE TABLE thread(
  id INTEGER PRIMARY KEY, process INTEGER, serial INTEGER, tid INTEGER, name TEXT);

CREATE TABLE module(
  id INTEGER PRIMARY KEY, process INTEGER, path TEXT, string INTEGER, build_id TEXT,
  base INTEGER, start INTEGER, "end" INTEGER, loaded INTEGER, unloaded INTEGER,
  embeds_cuda INTEGER, needs_cudart INTEGER, bytes INTEGER, mtime INTEGER);

CREATE TABLE stack(id INTEGER PRIMARY KEY, process INTEGER, depth INTEGER, first INTEGER);
CREATE TABLE stack_frame(stack INTEGER, depth INTEGER, frame INTEGER, PRIMARY KEY(stack, depth))
  WITHOUT ROWID;
CREATE TABLE frame(id INTEGER PRIMARY KEY, process INTEGER, address INTEGER, first INTEGER,
                   module INTEGER);

CREATE TABLE python_frame(process INTEGER, address INTEGER, function TEXT, file TEXT, line INTEGER,
                          PRIMARY KEY(process, address)) WITHOUT ROWID;

CREATE TABLE name(process INTEGER, kind TEXT, handle INTEGER, name TEXT, bytes INTEGER,
  time INTEGER, string INTEGER);
CREATE INDEX name_by_handle ON name(process, kind, handle);
CREATE TABLE note(id INTEGER PRIMARY KEY, process INTEGER, thread INTEGER, time INTEGER, text TEXT);
CREATE TABLE api(id INTEGER PRIMARY KEY, name TEXT, layer TEXT, category TEXT, hooked INTEGER,
                 unrecorded TEXT);
CREATE TABLE coverage(process INTEGER, api INTEGER, looked_up INTEGER, passed INTEGER,
                      called INTEGER, PRIMARY KEY(process, api)) WITHOUT ROWID;

-- From when on a process recorded what.
CREATE TABLE recording(
  id INTEGER PRIMARY KEY, process INTEGER, time INTEGER, recorded TEXT, unrecorded_calls INTEGER);

CREATE TABLE unseen(id INTEGER PRIMARY KEY, process INTEGER, path TEXT, why TEXT, count INTEGER);

CREATE TABLE resume(process INTEGER, what INTEGER, key INTEGER, value INTEGER,
                    PRIMARY KEY(process, what, key)) WITHOUT ROWID;

CREATE TABLE event_kind(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE cache_reason(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE mem_kind(id INTEGER PRIMARY KEY, name TEXT, nsys INTEGER);
CREATE TABLE copy_direction(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO copy_direction VALUES
  (0, 'unknown'), (1, 'host_to_device'), (2, 'device_to_host'), (8, 'device_to_device'),
  (9, 'host_to_host'), (10, 'peer_to_peer');
CREATE TABLE wait_kind(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO wait_kind VALUES
  (0, 'unknown'), (1, 'event'), (2, 'stream_waits_for_event'), (3, 'stream'),
  (4, 'context'), (5, 'query');
CREATE TABLE cache_fact(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO cache_fact VALUES
  (1, 'given_back'), (2, 'tainted'), (3, 'staging_measured'), (4, 'uninitialised_copy'),
  (5, 'engine_reserved'), (6, 'pool'), (7, 'pool_peak'), (8, 'pool_ended'),
  (9, 'device_memory'), (10, 'graph_memory'), (11, 'taken');
CREATE TABLE block_end(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO block_end VALUES
  (0, 'live'), (1, 'freed'), (2, 'reset'), (3, 'replaced'), (4, 'unknown'),
  (5, 'freed_by_graph');

-- What repeats stands once (template.h): the tables template and event_row, and the view `event` of
-- both, are made by schema.c of the lists in event_columns.h.

-- Ranges by NVTX (range.c); the view `range` has names for the numbers.
CREATE TABLE range_row(
  id INTEGER PRIMARY KEY, process INTEGER, thread INTEGER, kind INTEGER, name INTEGER,
  parent INTEGER, start INTEGER, "end" INTEGER, number INTEGER, payload_type INTEGER, payload);
CREATE TABLE range_name(
  id INTEGER PRIMARY KEY, domain_id INTEGER, domain TEXT, text TEXT, category INTEGER,
  color INTEGER);
CREATE TABLE range_category(
  process INTEGER, domain_id INTEGER, category INTEGER, name TEXT,
  PRIMARY KEY(process, domain_id, category)) WITHOUT ROWID;
CREATE TABLE range_kind(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO range_kind VALUES (1, 'push_pop'), (2, 'start_end'), (3, 'mark');
CREATE TABLE event_range(event INTEGER PRIMARY KEY, range INTEGER);

-- Of the events with flag 32: the first of their call.
CREATE TABLE batch_item(id INTEGER PRIMARY KEY, call INTEGER);

-- The few that are looked for by kind: resets and what happened to caches. All other readers go
-- through the whole table once.
CREATE INDEX event_rare ON event_row(template) WHERE template < 0;

-- Of an allocation's event row and what ended it; the view `block`, of all that, is in schema.c.
CREATE TABLE block_row(
  id INTEGER PRIMARY KEY, event INTEGER, how INTEGER, free_after INTEGER, life INTEGER,
  born INTEGER, died_after INTEGER, work INTEGER);

CREATE TABLE tensor(
  id INTEGER PRIMARY KEY, process INTEGER, thread INTEGER, time INTEGER, fact INTEGER,
  storage INTEGER, address INTEGER, bytes INTEGER, mem INTEGER, device INTEGER,
  dtype TEXT, shape TEXT, name TEXT, module TEXT);

CREATE TABLE device_operation(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO device_operation VALUES
  (1, 'copy'), (2, 'memset'), (3, 'kernel'), (4, 'graph'), (5, 'overhead');
CREATE TABLE device_work(
  id INTEGER PRIMARY KEY, process INTEGER, event INTEGER, correlation INTEGER, kind INTEGER,
  copy INTEGER, device INTEGER, context INTEGER, stream INTEGER, start INTEGER, "end" INTEGER,
  queued INTEGER, bytes INTEGER, graph_node INTEGER);
CREATE INDEX device_work_by_event ON device_work(event) WHERE event IS NOT NULL;
CREATE TABLE device_call(process INTEGER, correlation INTEGER, event INTEGER);
CREATE TABLE device_fact(
  id INTEGER PRIMARY KEY, process INTEGER, time INTEGER, fact TEXT, count INTEGER, text TEXT);

CREATE TABLE memory(
  device INTEGER, mem INTEGER, registered INTEGER, allocs INTEGER, bytes INTEGER,
  peak INTEGER, peak_at INTEGER, peak_place INTEGER, live INTEGER, live_blocks INTEGER);

-- What launches of graphs ran (graph.h): the tables graph_change, graph_node, graph_work and
-- graph_launch are made by schema.c.
CREATE TABLE graph_fact(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO graph_fact VALUES
  (1, 'made'), (2, 'updated'), (3, 'node_set'), (4, 'node_enabled'), (5, 'node_disabled');
CREATE TABLE graph_node_type(id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO graph_node_type VALUES
  (0, 'kernel'), (1, 'copy'), (2, 'memset'), (3, 'host_function'), (4, 'graph'), (5, 'empty'),
  (6, 'event_wait'), (7, 'event_record'), (8, 'semaphore_signal'), (9, 'semaphore_wait'),
  (10, 'allocation'), (11, 'free'), (12, 'memory_operation'), (13, 'conditional');

-- ---- one view a kind, columns with names and units --------------------------------------------
-- {place}: caller, file and line, of which a trace knows nothing before `weir resolve` (schema.c).

CREATE VIEW call(id, process, thread, function, layer, category, kind, start_ns, duration_ns,
  status, stream, context, stack, captured, caller, file, line,
  count) AS
  SELECT e.id, t.process, t.thread, (SELECT name FROM api x WHERE x.id = t.api),
         (SELECT layer FROM api x WHERE x.id = t.api),
         (SELECT category FROM api x WHERE x.id = t.api),
         (SELECT name FROM event_kind x WHERE x.id = t.kind), e.start, e.duration, t.status,
         t.stream, t.context, t.stack, t.flags & 16 <> 0, {place},
         CASE WHEN t.kind = 5 AND t.status = 600 THEN e.bytes + 1 ELSE 1 END
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind <> 13 AND NOT (t.flags & 32);

CREATE VIEW allocation(id, process, thread, function, start_ns, duration_ns, status, pointer,
  bytes, pitch_bytes, memory, device, from_cache, reason, stream, context, stack,
  captured, caller, file, line) AS
  SELECT e.id, t.process, t.thread, (SELECT name FROM api x WHERE x.id = t.api), e.start,
         e.duration, t.status, e.a, e.bytes, nullif(e.b, 0),
         (SELECT name FROM mem_kind x WHERE x.id = t.mem), t.device, t.flags & 64 <> 0,
         (SELECT name FROM cache_reason x WHERE x.id = nullif(t.copy, 0)), t.stream, t.context,
         t.stack, t.flags & 16 <> 0, {place}
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 1;

CREATE VIEW release(id, process, thread, function, start_ns, duration_ns, status, pointer, memory,
  device, waited_ns, into_cache, cached_bytes, reason, stream, context, stack,
  captured, caller, file, line) AS
  SELECT e.id, t.process, t.thread, (SELECT name FROM api x WHERE x.id = t.api), e.start,
         e.duration, t.status, e.a, (SELECT name FROM mem_kind x WHERE x.id = t.mem), t.device,
         e.b, t.flags & 64 <> 0, CASE WHEN t.flags & 64 THEN e.bytes END,
         (SELECT name FROM cache_reason x WHERE x.id = nullif(t.copy, 0)), t.stream, t.context,
         t.stack, t.flags & 16 <> 0, {place}
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 2;

CREATE VIEW copy(id, process, thread, function, start_ns, duration_ns, status, direction, bytes,
  destination, source, destination_memory, source_memory, destination_device, source_device,
  asynchronous, may_wait, staged, call, stream, context, stack, captured,
  device_start_ns, device_ns, caller, file, line, count,
  by_graph, conditional) AS
  SELECT e.id, t.process, t.thread, (SELECT name FROM api x WHERE x.id = t.api), e.start,
         e.duration, t.status, (SELECT name FROM copy_direction x WHERE x.id = ifnull(w.copy, t.copy)),
         ifnull(w.bytes * w.count, e.bytes), CASE WHEN w.count IS NULL THEN e.a END,
         CASE WHEN w.count IS NULL THEN e.b END, (SELECT name FROM mem_kind x WHERE x.id = ifnull(w.mem, t.mem)),
         (SELECT name FROM mem_kind x WHERE x.id = ifnull(w.src_mem, t.src_mem)),
         CASE WHEN w.count IS NULL THEN t.device ELSE w.device END,
         CASE WHEN w.count IS NULL THEN t.src_device ELSE w.src_device END,
         w.count IS NOT NULL OR t.flags & 1 <> 0, t.flags & 2 <> 0, t.flags & 128 <> 0,
         CASE WHEN t.flags & 32 THEN (SELECT call FROM batch_item x WHERE x.id = e.id) END,
         t.stream, t.context, t.stack, t.flags & 16 <> 0, CASE WHEN w.count IS NULL THEN
         (SELECT min(d.start) FROM device_work d WHERE d.event = e.id AND d.kind IN (1)) END,
         CASE WHEN w.count IS NULL THEN (SELECT sum(d."end" - d.start) FROM device_work d
         WHERE d.event = e.id AND d.kind IN (1)) END, {place},
         ifnull(w.count, 1), w.count IS NOT NULL, ifnull(w.conditional, 0)
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  LEFT JOIN graph_launch l ON l.event = CASE WHEN t.kind = 12 THEN e.id END
  LEFT JOIN graph_work w ON w.content = l.content AND w.type = 1
  WHERE t.kind = 3 OR w.type = 1;

CREATE VIEW memset(id, process, thread, function, start_ns, duration_ns, status, pointer, bytes,
  value, memory, device, asynchronous, stream, context, stack, captured,
  device_start_ns, device_ns, caller, file, line, count,
  by_graph, conditional) AS
  SELECT e.id, t.process, t.thread, (SELECT name FROM api x WHERE x.id = t.api), e.start,
         e.duration, t.status, CASE WHEN w.count IS NULL THEN e.a END,
         ifnull(w.bytes * w.count, e.bytes), CASE WHEN w.count IS NULL THEN e.b END,
         (SELECT name FROM mem_kind x WHERE x.id = ifnull(w.mem, t.mem)),
         CASE WHEN w.count IS NULL THEN t.device ELSE w.device END,
         w.count IS NOT NULL OR t.flags & 1 <> 0, t.stream,
         t.context, t.stack, t.flags & 16 <> 0, CASE WHEN w.count IS NULL THEN
         (SELECT min(d.start) FROM device_work d WHERE d.event = e.id AND d.kind IN (2)) END,
         CASE WHEN w.count IS NULL THEN (SELECT sum(d."end" - d.start) FROM device_work d
         WHERE d.event = e.id AND d.kind IN (2)) END, {place},
         ifnull(w.count, 1), w.count IS NOT NULL, ifnull(w.conditional, 0)
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  LEFT JOIN graph_launch l ON l.event = CASE WHEN t.kind = 12 THEN e.id END
  LEFT JOIN graph_work w ON w.content = l.content AND w.type = 2
  WHERE t.kind = 4 OR w.type = 2;

CREATE VIEW wait(id, process, thread, function, start_ns, duration_ns, status, waits_for,
  event_handle, device, stream, context, stack, captured, caller, file, line,
  count, last_end_ns) AS
  SELECT e.id, t.process, t.thread, (SELECT name FROM api x WHERE x.id = t.api), e.start,
         e.duration, t.status, (SELECT name FROM wait_kind x WHERE x.id = t.copy), nullif(e.a, 0),
         t.device, t.stream, t.context, t.stack, t.flags & 16 <> 0, {place},
         CASE t.status WHEN 600 THEN e.bytes + 1 ELSE 1 END,
         e.start + CASE t.status WHEN 600 THEN max(e.duration, e.b) ELSE e.duration END
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 5;

CREATE VIEW launch(id, process, thread, function, start_ns, duration_ns, status, kernel,
  kernel_handle, grid_x, grid_y, grid_z, threads, device, stream, context, stack,
  captured,
  device_start_ns, device_ns, caller, file, line, count,
  by_graph, conditional) AS
  SELECT e.id, t.process, t.thread, (SELECT name FROM api x WHERE x.id = t.api), e.start,
         e.duration, t.status,
         (SELECT n.name FROM name n WHERE n.process = t.process AND n.kind = 'kernel'
          AND n.handle = ifnull(w.kernel, e.a)),
         ifnull(w.kernel, e.a), CASE WHEN w.count IS NULL THEN e.b & 4294967295 END,
         CASE WHEN w.count IS NULL THEN e.b >> 32 & 65535 END,
         CASE WHEN w.count IS NULL THEN e.b >> 48 & 65535 END,
         CASE WHEN w.count IS NULL THEN e.bytes END,
         CASE WHEN w.count IS NULL THEN t.device ELSE w.device END, t.stream,
         t.context, t.stack, t.flags & 16 <> 0, CASE WHEN w.count IS NULL THEN
         (SELECT min(d.start) FROM device_work d WHERE d.event = e.id AND d.kind IN (3, 4)) END,
         CASE WHEN w.count IS NULL THEN (SELECT sum(d."end" - d.start) FROM device_work d
         WHERE d.event = e.id AND d.kind IN (3, 4)) END, {place},
         ifnull(w.count, 1), w.count IS NOT NULL, ifnull(w.conditional, 0)
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  LEFT JOIN graph_launch l ON l.event = CASE WHEN t.kind = 12 THEN e.id END
  LEFT JOIN graph_work w ON w.content = l.content AND w.type = 0
  WHERE t.kind = 6 OR w.type = 0;

CREATE VIEW registration(id, process, thread, function, start_ns, duration_ns, status, pointer,
  bytes, context, stack, caller, file, line) AS
  SELECT e.id, t.process, t.thread, (SELECT name FROM api x WHERE x.id = t.api), e.start,
         e.duration, t.status, e.a, nullif(e.bytes, 0), t.context, t.stack, {place}
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE t.kind = 11;

CREATE VIEW reset(id, process, thread, function, start_ns, duration_ns, status, device, scope,
  context, stack, caller, file, line) AS
  SELECT e.id, t.process, t.thread, (SELECT name FROM api x WHERE x.id = t.api), e.start,
         e.duration, t.status, t.device, CASE e.bytes WHEN 1 THEN 'context' ELSE 'device' END,
         t.context, t.stack, {place}
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 10;

CREATE VIEW cache_action(id, process, thread, time_ns, action, pointer, bytes, reason, memory,
  device) AS
  SELECT e.id, t.process, t.thread, e.start + e.duration,
         (SELECT name FROM cache_fact x WHERE x.id = t.copy), nullif(e.a, 0), e.bytes,
         (SELECT name FROM cache_reason x WHERE x.id = e.b),
         (SELECT name FROM mem_kind x WHERE x.id = t.mem), t.device
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 13 AND t.copy IN (1, 2);

CREATE VIEW staging_measurement(id, process, thread, time_ns, direction, driver_percent, bytes) AS
  SELECT e.id, t.process, t.thread, e.start + e.duration,
         (SELECT name FROM copy_direction x WHERE x.id = e.a), nullif(e.b, 0), nullif(e.bytes, 0)
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 13 AND t.copy = 3;

CREATE VIEW uninitialised_copy(id, process, thread, time_ns, block_pointer, offset_bytes, bytes,
  stack, caller, file, line) AS
  SELECT e.id, t.process, t.thread, e.start + e.duration, e.a, e.b, e.bytes, t.stack, {place}
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 13 AND t.copy = 4;

CREATE VIEW engine_reserve(id, process, thread, time_ns, memory, device, reserved_bytes) AS
  SELECT e.id, t.process, t.thread, e.start + e.duration,
         (SELECT name FROM mem_kind x WHERE x.id = t.mem), t.device, e.bytes
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 13 AND t.copy = 5;

CREATE VIEW pool_sample(id, process, thread, time_ns, fact, pool, device, default_pool,
  used_bytes, reserved_bytes, release_threshold_bytes) AS
  SELECT e.id, t.process, t.thread, e.start + e.duration,
         (SELECT name FROM cache_fact x WHERE x.id = t.copy), e.a, t.device,
         t.src_device IS NOT NULL, CASE WHEN t.copy < 8 THEN e.b END,
         CASE WHEN t.copy < 8 THEN e.bytes END, CASE t.copy WHEN 6 THEN t.stream END
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 13 AND t.copy IN (6, 7, 8);

CREATE VIEW device_memory_sample(id, process, thread, time_ns, device, total_bytes, free_bytes) AS
  SELECT e.id, t.process, t.thread, e.start + e.duration, t.device, e.bytes, e.b
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 13 AND t.copy = 9;

CREATE VIEW graph_memory_sample(id, process, thread, time_ns, device, used_bytes,
  reserved_bytes) AS
  SELECT e.id, t.process, t.thread, e.start + e.duration, t.device, e.b, e.bytes
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 13 AND t.copy = 10;

CREATE VIEW memory_taken(id, process, thread, start_ns, duration_ns, taken_by, handle, device,
  bytes, context, stack, caller, file, line, certainty) AS
  SELECT e.id, t.process, t.thread, e.start, e.duration,
         CASE e.b WHEN 1 THEN 'code' WHEN 2 THEN 'context' END, e.a, t.device, e.bytes, t.context,
         t.stack, {place}, CASE WHEN e.bytes > 0 THEN CASE WHEN e.id IN (SELECT event FROM block_row)
         THEN 'certain' ELSE 'possible' END END
  FROM event_row e CROSS JOIN template t ON t.id = e.template
  WHERE e.template < 0 AND t.kind = 13 AND t.copy = 11;

CREATE VIEW range(id, process, thread, kind, domain, text, category, category_name, color, payload,
  parent, start_ns, end_ns) AS
  SELECT r.id, r.process, r.thread, (SELECT name FROM range_kind x WHERE x.id = r.kind), n.domain,
         n.text, n.category,
         (SELECT name FROM range_category x WHERE x.process = r.process
          AND x.domain_id = n.domain_id AND x.category = n.category),
         n.color, r.payload, r.parent, r.start, r."end"
  FROM range_row r LEFT JOIN range_name n ON n.id = r.name;

-- ---- Nsight Systems' names -------------------------------------------------------------------

CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE ENUM_CUDA_MEMCPY_OPER(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES
  (0, 'CUDA_MEMCPY_KIND_UNKNOWN', 'Unknown'),
  (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'),
  (2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'),
  (3, 'CUDA_MEMCPY_KIND_HTOA', 'Host-to-Array'),
  (4, 'CUDA_MEMCPY_KIND_ATOH', 'Array-to-Host'),
  (5, 'CUDA_MEMCPY_KIND_ATOA', 'Array-to-Array'),
  (6, 'CUDA_MEMCPY_KIND_ATOD', 'Array-to-Device'),
  (7, 'CUDA_MEMCPY_KIND_DTOA', 'Device-to-Array'),
  (8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'),
  (9, 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'),
  (10, 'CUDA_MEMCPY_KIND_PTOP', 'Peer-to-Peer'),
  (11, 'CUDA_MEMCPY_KIND_UVM_HTOD', 'Unified Host-to-Device'),
  (12, 'CUDA_MEMCPY_KIND_UVM_DTOH', 'Unified Device-to-Host'),
  (13, 'CUDA_MEMCPY_KIND_UVM_DTOD', 'Unified Device-to-Device');

CREATE TABLE ENUM_CUDA_MEM_KIND(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_MEM_KIND VALUES
  (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),
  (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'),
  (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'),
  (3, 'CUDA_MEMOPR_MEMORY_KIND_ARRAY', 'Array'),
  (4, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed'),
  (5, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC', 'Device Static'),
  (6, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC', 'Managed Static'),
  (7, 'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN', 'Unknown');

CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES
  (0, 'CUDA_DEV_MEM_EVENT_OPR_ALLOCATION', 'Allocation'),
  (1, 'CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION', 'Deallocation');

CREATE TABLE ENUM_CUPTI_SYNC_TYPE(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_CUPTI_SYNC_TYPE VALUES
  (0, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN', 'Unknown'),
  (1, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE', 'Event sync'),
  (2, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT', 'Stream wait sync'),
  (3, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE', 'Stream sync'),
  (4, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE', 'Context sync');

CREATE TABLE ENUM_NSYS_EVENT_CLASS(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_NSYS_EVENT_CLASS VALUES
  (0, 'TRACE_PROCESS_EVENT_CUDA_RUNTIME', 'CUDA runtime'),
  (1, 'TRACE_PROCESS_EVENT_CUDA_DRIVER', 'CUDA driver');

CREATE TABLE ENUM_NSYS_EVENT_TYPE(id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES
  (33, 'NvtxCategory', 'NvtxCategory'),
  (34, 'NvtxMark', 'NvtxMark'),
  (59, 'NvtxPushPopRange', 'NvtxPushPopRange'),
  (60, 'NvtxStartEndRange', 'NvtxStartEndRange'),
  (75, 'NvtxDomainCreate', 'NvtxDomainCreate');

CREATE VIEW META_DATA_EXPORT(name, value) AS VALUES
  ('EXPORT_PRODUCT_VERSION', 'Weir'),
  ('EXPORT_SCHEMA_VERSION', '3.28.0'),
  ('EXPORT_SCHEMA_VERSION_MAJOR', '3'),
  ('EXPORT_SCHEMA_VERSION_MINOR', '28'),
  ('EXPORT_SCHEMA_VERSION_MICRO', '0');

CREATE VIEW META_DATA_CAPTURE(name, value) AS
  SELECT upper(key), CAST(value AS TEXT) FROM meta;

CREATE VIEW PROCESSES(globalPid, pid, name) AS
  SELECT (pid & 0xFFFFFF) << 24, pid, exe FROM process;

CREATE VIEW ThreadNames(nameId, priority, globalTid) AS
  SELECT (SELECT min(s.id) FROM StringIds s WHERE s.value = t.name), 0,
         (p.pid & 0xFFFFFF) << 24 | (t.tid & 0xFFFFFF)
  FROM thread t JOIN process p ON p.id = t.process WHERE t.name IS NOT NULL;

CREATE VIEW ANALYSIS_DETAILS(globalVid, duration, startTime, stopTime) AS
  SELECT 0, m.value, 0, m.value FROM meta m WHERE m.key = 'duration_ns';

CREATE VIEW TARGET_INFO_SESSION_START_TIME(utcEpochNs, utcTime, localTime) AS
  SELECT value, datetime(value / 1000000000, 'unixepoch'),
         datetime(value / 1000000000, 'unixepoch', 'localtime')
  FROM meta WHERE key = 'start_realtime_ns';

CREATE VIEW TARGET_INFO_GPU(vmId, id, name, busLocation, isDiscrete, l2CacheSize, totalMemory,
  memoryBandwidth, clockRate, smCount, pwGpuId, uuid, luid, chipName, cuDevice, ctxswDevPath,
  ctrlDevPath, revision, nodeMask, constantMemory, maxIPC, maxRegistersPerBlock, maxShmemPerBlock,
  maxShmemPerBlockOptin, maxShmemPerSm, maxRegistersPerSm, threadsPerWarp, asyncEngines,
  maxWarpsPerSm, maxBlocksPerSm, maxThreadsPerBlock, maxBlockDimX, maxBlockDimY, maxBlockDimZ,
  maxGridDimX, maxGridDimY, maxGridDimZ, computeMajor, computeMinor, smMajor, smMinor) AS
  SELECT 0, handle, name, NULL, NULL, NULL, nullif(bytes, 0),
         NULL, NULL, NULL, NULL, NULL, NULL, NULL, handle, NULL,
         NULL, NULL, NULL, NULL, NULL, NULL, NULL,
         NULL, NULL, NULL, NULL, NULL,
         NULL, NULL, NULL, NULL, NULL, NULL,
         NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM name WHERE kind = 'device' GROUP BY handle;

CREATE VIEW CUPTI_ACTIVITY_KIND_RUNTIME(start, "end", eventClass, globalTid, correlationId, nameId,
  returnValue, callchainId) AS
  SELECT e.start, e."end", NOT (e.flags & 8), (p.pid & 0xFFFFFF) << 24 | (t.tid & 0xFFFFFF), e.id,
         e.api, e.status, e.stack
  FROM event e JOIN thread t ON t.id = e.thread JOIN process p ON p.id = e.process
  WHERE e.call IS NULL AND e.kind <> 13;

-- What a launch of a graph ran is a row each where the device was seen doing it; else a row for all
-- nodes that are alike (graph_work), with how many they are, at the time of the launch.

CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY(start, "end", deviceId, contextId, greenContextId, streamId,
  correlationId, globalPid, bytes, copyKind, deprecatedSrcId, srcKind, dstKind, srcDeviceId,
  srcContextId, dstDeviceId, dstContextId, migrationCause, graphNodeId, virtualAddress, copyCount) AS
  SELECT COALESCE((SELECT min(d.start) FROM device_work d WHERE d.event = e.id AND d.kind = 1), e.start),
         COALESCE((SELECT max(d."end") FROM device_work d WHERE d.event = e.id AND d.kind = 1), e."end"),
         COALESCE(e.device, e.src_device, 0), e.context, NULL, e.stream,
         COALESCE(e.call, e.id), (p.pid & 0xFFFFFF) << 24, e.bytes, e.copy, NULL,
         (SELECT nsys FROM mem_kind k WHERE k.id = e.src_mem),
         (SELECT nsys FROM mem_kind k WHERE k.id = e.mem),
         e.src_device, NULL, e.device, NULL, NULL, NULL, e.a, 1
  FROM event e JOIN process p ON p.id = e.process
  WHERE e.kind = 3 AND e.status = 0 AND NOT (e.flags & 16)
  UNION ALL
  SELECT COALESCE(d.start, e.start), COALESCE(d."end", e."end"), COALESCE(d.device, 0), e.context,
         NULL, e.stream, e.id, (p.pid & 0xFFFFFF) << 24, d.bytes, d.copy, NULL,
         (SELECT nsys FROM mem_kind k WHERE k.id = (SELECT CASE WHEN min(w.src_mem) = max(w.src_mem) THEN min(w.src_mem) END
          FROM graph_launch l JOIN graph_work w ON w.content = l.content AND w.type = 1 AND w.copy = d.copy
          WHERE l.event = e.id)),
         (SELECT nsys FROM mem_kind k WHERE k.id = (SELECT CASE WHEN min(w.mem) = max(w.mem) THEN min(w.mem) END
          FROM graph_launch l JOIN graph_work w ON w.content = l.content AND w.type = 1 AND w.copy = d.copy
          WHERE l.event = e.id)),
         NULL, NULL, NULL, NULL, NULL, d.graph_node, NULL, 1
  FROM device_work d CROSS JOIN event e ON e.id = d.event JOIN process p ON p.id = e.process
  WHERE d.kind = 1 AND d.graph_node IS NOT NULL AND e.kind = 12
  UNION ALL
  SELECT e.start, e."end", COALESCE(w.device, w.src_device, 0), e.context, NULL, e.stream, e.id,
         (p.pid & 0xFFFFFF) << 24, w.bytes * w.count, w.copy, NULL,
         (SELECT nsys FROM mem_kind k WHERE k.id = w.src_mem),
         (SELECT nsys FROM mem_kind k WHERE k.id = w.mem),
         w.src_device, NULL, w.device, NULL, NULL, NULL, NULL, w.count
  FROM graph_launch l CROSS JOIN graph_work w ON w.content = l.content
  CROSS JOIN event e ON e.id = l.event JOIN process p ON p.id = e.process
  WHERE w.type = 1 AND NOT w.conditional AND NOT EXISTS (SELECT 1 FROM device_work d
    WHERE d.event = l.event AND d.kind = 1 AND d.graph_node IS NOT NULL);

CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET(start, "end", deviceId, contextId, greenContextId, streamId,
  correlationId, globalPid, value, bytes, graphNodeId, memKind) AS
  SELECT COALESCE((SELECT min(d.start) FROM device_work d WHERE d.event = e.id AND d.kind = 2), e.start),
         COALESCE((SELECT max(d."end") FROM device_work d WHERE d.event = e.id AND d.kind = 2), e."end"),
         COALESCE(e.device, 0), e.context, NULL, e.stream, COALESCE(e.call, e.id),
         (p.pid & 0xFFFFFF) << 24, e.b, e.bytes, NULL,
         (SELECT nsys FROM mem_kind k WHERE k.id = e.mem)
  FROM event e JOIN process p ON p.id = e.process
  WHERE e.kind = 4 AND e.status = 0 AND NOT (e.flags & 16)
  UNION ALL
  SELECT COALESCE(d.start, e.start), COALESCE(d."end", e."end"), COALESCE(d.device, 0), e.context,
         NULL, e.stream, e.id, (p.pid & 0xFFFFFF) << 24, 0, d.bytes, d.graph_node,
         (SELECT nsys FROM mem_kind k WHERE k.id = (SELECT CASE WHEN min(w.mem) = max(w.mem) THEN min(w.mem) END
          FROM graph_launch l JOIN graph_work w ON w.content = l.content AND w.type = 2
          WHERE l.event = e.id))
  FROM device_work d CROSS JOIN event e ON e.id = d.event JOIN process p ON p.id = e.process
  WHERE d.kind = 2 AND d.graph_node IS NOT NULL AND e.kind = 12
  UNION ALL
  SELECT e.start, e."end", COALESCE(w.device, 0), e.context, NULL, e.stream, e.id,
         (p.pid & 0xFFFFFF) << 24, 0, w.bytes * w.count, NULL,
         (SELECT nsys FROM mem_kind k WHERE k.id = w.mem)
  FROM graph_launch l CROSS JOIN graph_work w ON w.content = l.content
  CROSS JOIN event e ON e.id = l.event JOIN process p ON p.id = e.process
  WHERE w.type = 2 AND NOT w.conditional AND NOT EXISTS (SELECT 1 FROM device_work d
    WHERE d.event = l.event AND d.kind = 2 AND d.graph_node IS NOT NULL);

-- Kernels that the device was seen running. The name of one that a graph ran is known where all
-- kernels of the graph are the same; else it is the launch's.
CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL(start, "end", deviceId, contextId, greenContextId, streamId,
  correlationId, globalPid, demangledName, shortName, mangledName, launchType, cacheConfig,
  registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory,
  dynamicSharedMemory, localMemoryPerThread, localMemoryTotal, gridId, sharedMemoryExecuted,
  graphNodeId, sharedMemoryLimitConfig) AS
  SELECT k.start, k."end", k.device, k.context, NULL, k.stream, k.event, (p.pid & 0xFFFFFF) << 24,
         k.name, k.name, k.name, NULL, NULL, 0, k.x, k.y, k.z, 0, 0, 0, 0, 0, 0, 0, NULL, NULL,
         k.node, NULL
  FROM (SELECT d.start AS start, d."end" AS "end", COALESCE(d.device, 0) AS device,
               e.context AS context, e.stream AS stream, e.id AS event, e.process AS process,
               d.graph_node AS node,
               CASE e.kind WHEN 6 THEN e.b & 4294967295 ELSE 0 END AS x,
               CASE e.kind WHEN 6 THEN e.b >> 32 & 65535 ELSE 0 END AS y,
               CASE e.kind WHEN 6 THEN e.b >> 48 & 65535 ELSE 0 END AS z,
               COALESCE((SELECT n.string FROM name n WHERE n.process = e.process
                 AND n.kind = 'kernel' AND n.handle = CASE e.kind WHEN 6 THEN e.a ELSE
                 (SELECT CASE WHEN min(w.kernel) = max(w.kernel) THEN min(w.kernel) END
                  FROM graph_launch l JOIN graph_work w ON w.content = l.content AND w.type = 0
                  WHERE l.event = e.id) END), e.api) AS name
        FROM device_work d CROSS JOIN event e ON e.id = d.event
        WHERE d.kind = 3 AND d.start IS NOT NULL AND d."end" IS NOT NULL AND e.kind IN (6, 12)) k
  JOIN process p ON p.id = k.process;

CREATE VIEW CUPTI_ACTIVITY_KIND_SYNCHRONIZATION(start, "end", deviceId, contextId, greenContextId,
  streamId, correlationId, globalPid, syncType, eventId, eventSyncId) AS
  SELECT e.start, e."end", COALESCE(e.device, 0), e.context, NULL, e.stream, COALESCE(e.call, e.id),
         (p.pid & 0xFFFFFF) << 24, e.copy, e.a, NULL
  FROM event e JOIN process p ON p.id = e.process
  WHERE e.kind = 5 AND e.status = 0 AND e.copy BETWEEN 1 AND 4 AND NOT (e.flags & 16);

CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS(start, globalPid, deviceId, contextId, address, pc, bytes,
  memKind, memoryOperationType, name, correlationId, streamId, localMemoryPoolAddress,
  localMemoryPoolReleaseThreshold, localMemoryPoolSize, localMemoryPoolUtilizedSize,
  importedMemoryPoolAddress, importedMemoryPoolProcessId) AS
  SELECT b.start, (p.pid & 0xFFFFFF) << 24, COALESCE(b.device, 0), b.context, b.pointer,
         COALESCE((SELECT f.address FROM stack_frame s JOIN frame f ON f.id = s.frame
                   WHERE s.stack = b.stack AND s.depth = 0), 0), b.bytes,
         (SELECT nsys FROM mem_kind k WHERE k.id = b.mem), 0, NULL, b.alloc,
         (SELECT e.stream FROM event e WHERE e.id = b.alloc), NULL, NULL, NULL, NULL, NULL, NULL
  FROM block b JOIN process p ON p.id = b.process WHERE b.alloc IS NOT NULL AND NOT b.registered
    AND b.mem < 9
  UNION ALL
  SELECT b."end", (p.pid & 0xFFFFFF) << 24, COALESCE(b.device, 0), b.context, b.pointer, 0,
         COALESCE(b.bytes, 0), (SELECT nsys FROM mem_kind k WHERE k.id = b.mem), 1, NULL, b.free,
         (SELECT e.stream FROM event e WHERE e.id = b.free), NULL, NULL, NULL, NULL, NULL, NULL
  FROM block b JOIN process p ON p.id = b.process WHERE b.free IS NOT NULL AND NOT b.registered
    AND b.mem < 9;

CREATE VIEW CUDA_CALLCHAINS(id, symbol, module, unresolved, originalIP, stackDepth) AS
  SELECT s.stack, 0, COALESCE(m.string, 0), 1, f.address, s.depth
  FROM stack_frame s JOIN frame f ON f.id = s.frame LEFT JOIN module m ON m.id = f.module;

CREATE VIEW NVTX_EVENTS(start, "end", eventType, rangeId, category, color, text, globalTid,
  endGlobalTid, textId, domainId, uint64Value, int64Value, doubleValue, uint32Value, int32Value,
  floatValue, jsonTextId, jsonText, binaryData) AS
  SELECT r.start, CASE WHEN r.kind <> 3 THEN r."end" END,
         CASE r.kind WHEN 1 THEN 59 WHEN 2 THEN 60 ELSE 34 END,
         CASE WHEN r.kind = 2 THEN r.number END, n.category, n.color, n.text,
         (p.pid & 0xFFFFFF) << 24 | (t.tid & 0xFFFFFF), NULL, NULL, ifnull(n.domain_id, 0),
         CASE WHEN r.payload_type = 1 THEN r.payload END,
         CASE WHEN r.payload_type = 2 THEN r.payload END,
         CASE WHEN r.payload_type = 3 THEN r.payload END,
         CASE WHEN r.payload_type = 4 THEN r.payload END,
         CASE WHEN r.payload_type = 5 THEN r.payload END,
         CASE WHEN r.payload_type = 6 THEN r.payload END, NULL, NULL, NULL
  FROM range_row r JOIN thread t ON t.id = r.thread JOIN process p ON p.id = r.process
  LEFT JOIN range_name n ON n.id = r.name
  UNION ALL
  SELECT 0, NULL, 75, NULL, NULL, NULL, n.domain, NULL, NULL, NULL, n.domain_id, NULL, NULL, NULL,
         NULL, NULL, NULL, NULL, NULL, NULL
  FROM range_name n WHERE n.domain_id > 0 GROUP BY n.domain_id
  UNION ALL
  SELECT 0, NULL, 33, NULL, c.category, NULL, c.name, (p.pid & 0xFFFFFF) << 24, NULL, NULL,
         c.domain_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM range_category c JOIN process p ON p.id = c.process;

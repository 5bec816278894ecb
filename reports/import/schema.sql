-- The schema of a trace, version 1. What it means is said in SCHEMA.md; a test compares the two.
-- Native tables first, then what Nsight Systems' SQLite export calls the same facts.

CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE process(
  id INTEGER PRIMARY KEY, pid INTEGER, ppid INTEGER, exe TEXT, command TEXT,
  start INTEGER, "end" INTEGER, end_reason TEXT, end_detail INTEGER, mode TEXT,
  events INTEGER, dropped INTEGER, drop_errno INTEGER, dropped_extended INTEGER,
  damaged_chunks INTEGER, torn INTEGER, bytes_cut INTEGER,
  unknown_lookups INTEGER, unknown_name TEXT, spool TEXT, uid INTEGER, nested_calls INTEGER);

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

CREATE TABLE name(process INTEGER, kind TEXT, handle INTEGER, name TEXT, bytes INTEGER);
CREATE TABLE note(id INTEGER PRIMARY KEY, process INTEGER, thread INTEGER, time INTEGER, text TEXT);
CREATE TABLE api(id INTEGER PRIMARY KEY, name TEXT, layer TEXT, category TEXT, hooked INTEGER);
CREATE TABLE coverage(process INTEGER, api INTEGER, looked_up INTEGER, passed INTEGER,
                      called INTEGER, PRIMARY KEY(process, api)) WITHOUT ROWID;

CREATE TABLE unseen(id INTEGER PRIMARY KEY, process INTEGER, path TEXT, why TEXT, count INTEGER);

CREATE TABLE resume(process INTEGER, what INTEGER, key INTEGER, value INTEGER,
                    PRIMARY KEY(process, what, key)) WITHOUT ROWID;

CREATE TABLE event_kind(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE cache_reason(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE mem_kind(id INTEGER PRIMARY KEY, name TEXT, nsys INTEGER);

CREATE TABLE event(
  id INTEGER PRIMARY KEY, process INTEGER, thread INTEGER, kind INTEGER, api INTEGER,
  start INTEGER, "end" INTEGER, status INTEGER, stack INTEGER, context INTEGER,
  device INTEGER, src_device INTEGER, copy INTEGER, mem INTEGER, src_mem INTEGER,
  flags INTEGER, a INTEGER, b INTEGER, bytes INTEGER, stream INTEGER, call INTEGER);

-- The few that are looked for by kind: resets and what happened to caches. All other readers go
-- through the whole table once.
CREATE INDEX event_rare ON event(kind, start) WHERE kind = 10 OR kind = 13;

CREATE TABLE block(
  id INTEGER PRIMARY KEY, process INTEGER, pointer INTEGER, bytes INTEGER, device INTEGER,
  mem INTEGER, registered INTEGER, how INTEGER, alloc INTEGER, free INTEGER,
  start INTEGER, "end" INTEGER, born INTEGER, died INTEGER, stack INTEGER, context INTEGER);

CREATE TABLE tensor(
  id INTEGER PRIMARY KEY, process INTEGER, thread INTEGER, time INTEGER, fact INTEGER,
  storage INTEGER, address INTEGER, bytes INTEGER, mem INTEGER, device INTEGER,
  dtype TEXT, shape TEXT, name TEXT, module TEXT);

CREATE TABLE memory(
  device INTEGER, mem INTEGER, registered INTEGER, allocs INTEGER, bytes INTEGER,
  peak INTEGER, peak_at INTEGER, peak_place INTEGER, live INTEGER, live_blocks INTEGER);

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
  (34, 'NvtxMark', 'NvtxMark'),
  (59, 'NvtxPushPopRange', 'NvtxPushPopRange'),
  (60, 'NvtxStartEndRange', 'NvtxStartEndRange');

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

CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY(start, "end", deviceId, contextId, greenContextId, streamId,
  correlationId, globalPid, bytes, copyKind, deprecatedSrcId, srcKind, dstKind, srcDeviceId,
  srcContextId, dstDeviceId, dstContextId, migrationCause, graphNodeId, virtualAddress, copyCount) AS
  SELECT e.start, e."end", COALESCE(e.device, e.src_device, 0), e.context, NULL, e.stream,
         COALESCE(e.call, e.id), (p.pid & 0xFFFFFF) << 24, e.bytes, e.copy, NULL,
         (SELECT nsys FROM mem_kind k WHERE k.id = e.src_mem),
         (SELECT nsys FROM mem_kind k WHERE k.id = e.mem),
         e.src_device, NULL, e.device, NULL, NULL, NULL, e.a, 1
  FROM event e JOIN process p ON p.id = e.process
  WHERE e.kind = 3 AND e.status = 0 AND NOT (e.flags & 16);

CREATE VIEW CUPTI_ACTIVITY_KIND_MEMSET(start, "end", deviceId, contextId, greenContextId, streamId,
  correlationId, globalPid, value, bytes, graphNodeId, memKind) AS
  SELECT e.start, e."end", COALESCE(e.device, 0), e.context, NULL, e.stream, COALESCE(e.call, e.id),
         (p.pid & 0xFFFFFF) << 24, e.b, e.bytes, NULL,
         (SELECT nsys FROM mem_kind k WHERE k.id = e.mem)
  FROM event e JOIN process p ON p.id = e.process
  WHERE e.kind = 4 AND e.status = 0 AND NOT (e.flags & 16);

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
  UNION ALL
  SELECT b."end", (p.pid & 0xFFFFFF) << 24, COALESCE(b.device, 0), b.context, b.pointer, 0,
         COALESCE(b.bytes, 0), (SELECT nsys FROM mem_kind k WHERE k.id = b.mem), 1, NULL, b.free,
         (SELECT e.stream FROM event e WHERE e.id = b.free), NULL, NULL, NULL, NULL, NULL, NULL
  FROM block b JOIN process p ON p.id = b.process WHERE b.free IS NOT NULL AND NOT b.registered;

CREATE VIEW CUDA_CALLCHAINS(id, symbol, module, unresolved, originalIP, stackDepth) AS
  SELECT s.stack, 0, COALESCE(m.string, 0), 1, f.address, s.depth
  FROM stack_frame s JOIN frame f ON f.id = s.frame LEFT JOIN module m ON m.id = f.module;

CREATE VIEW NVTX_EVENTS(start, "end", eventType, rangeId, category, color, text, globalTid,
  endGlobalTid, textId, domainId, uint64Value, int64Value, doubleValue, uint32Value, int32Value,
  floatValue, jsonTextId, jsonText, binaryData) AS
  SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
         NULL, NULL, NULL, NULL, NULL
  WHERE 0;

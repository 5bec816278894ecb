/* reports.c: see reports.h. Headings and units are Nsight Systems'. */
#include "reports/stats/reports.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/import/schema.h"

/* ---- headings -------------------------------------------------------------------------------- */

#define TIMES(count)                                                                               \
  "1p0 Time (%)|it0 Total Time (ns)|in0 " count "|1a0 Avg (ns)|1m0 Med (ns)|il0 Min (ns)|"         \
  "ih0 Max (ns)|1s0 StdDev (ns)|"
#define SIZES                                                                                      \
  "3t0 Total (MB)|in0 Count|3a0 Avg (MB)|3m0 Med (MB)|3l0 Min (MB)|3h0 Max (MB)|3s0 StdDev (MB)|"
#define PHASE(m, letter)                                                                           \
  "1a" m " " letter "Avg (ns)|1m" m " " letter "Med (ns)|il" m " " letter "Min (ns)|ih" m          \
  " " letter "Max (ns)|1s" m " " letter "StdDev (ns)|"
#define COPY_HEADINGS                                                                              \
  "i   Duration (ns)|i   Start (ns)|t   Src Kind|t   Dst Kind|3   Bytes (MB)|i   PID|"             \
  "i   Device ID|i   Context ID|i   Green Context ID|i   Stream ID|t   API Name"

/* ---- pieces of SQL: e a call, d an operation of a device ------------------------------------------ */

#define FUNCTION                                                                                   \
  "ifnull((SELECT CASE WHEN x.name GLOB '__cuda*' THEN substr(x.name, 3) ELSE x.name END"          \
  " FROM main.api x WHERE x.id = e.api), '(no function)')"
#define CALLS   " FROM event e WHERE e.kind <> 13 AND NOT (e.flags & 32)"
#define HOST_NS "max(e.\"end\" - e.start, 0)"
/* Queries one behind the other are one row. */
#define ALIKE   "CASE WHEN e.kind = 5 AND e.status = 600 THEN e.bytes + 1 ELSE 1 END"
#define PID(of) "(SELECT x.pid FROM main.process x WHERE x.id = " of ".process)"
#define TID     "(SELECT x.tid FROM main.thread x WHERE x.id = e.thread)"

#define WORK(kinds) "(SELECT * FROM main.device_work WHERE kind " kinds " AND " WR_DEVICE_TIME ") d"
#define DEVICE_NS   "d.\"end\" - d.start"
#define DIRECTION(of)                                                                              \
  "'[CUDA memcpy ' || CASE " of " WHEN 1 THEN 'Host-to-Device' WHEN 2 THEN 'Device-to-Host'"       \
  " WHEN 3 THEN 'Host-to-Array' WHEN 4 THEN 'Array-to-Host' WHEN 5 THEN 'Array-to-Array'"          \
  " WHEN 6 THEN 'Array-to-Device' WHEN 7 THEN 'Device-to-Array' WHEN 8 THEN 'Device-to-Device'"    \
  " WHEN 9 THEN 'Host-to-Host' WHEN 10 THEN 'Peer-to-Peer' ELSE 'Unknown' END || ']'"
#define MEMORY "CASE d.kind WHEN 1 THEN " DIRECTION("d.copy") " ELSE '[CUDA memset]' END"
#define MEMORY_KIND(of)                                                                            \
  "(SELECT CASE x.nsys WHEN 0 THEN 'Pageable' WHEN 1 THEN 'Pinned' WHEN 2 THEN 'Device' WHEN 3"    \
  " THEN 'Array' WHEN 4 THEN 'Managed' WHEN 5 THEN 'Device Static' WHEN 6 THEN 'Managed Static'"   \
  " ELSE 'Unknown' END FROM main.mem_kind x WHERE x.id = " of ")"
/* A graph's kernels have a name where all of them have the same. */
#define KERNEL                                                                                     \
  "ifnull((SELECT n.name FROM main.name n WHERE n.process = d.process AND n.kind = 'kernel' AND"   \
  " n.handle = (SELECT CASE e.kind WHEN 6 THEN e.a ELSE (SELECT CASE WHEN min(w.kernel) ="         \
  " max(w.kernel) THEN min(w.kernel) END FROM graph_launch l CROSS JOIN graph_work w"              \
  " ON w.content = l.content AND w.type = 0 WHERE l.event = e.id) END FROM event e"                \
  " WHERE e.id = d.event)), CASE WHEN d.graph_node IS NULL THEN '(kernel not known)'"              \
  " ELSE '(kernel of a graph)' END)"

/* What is ahead of a kernel's name: the range that its call was made in. */
#define RANGE_OF_CALL                                                                              \
  "ifnull((SELECT n.text || char(31) FROM main.event_range r CROSS JOIN main.range_row x"          \
  " ON x.id = r.range CROSS JOIN main.range_name n ON n.id = x.name WHERE r.event = d.event), '')" \
  " || "

#define API_ROWS    "SELECT " FUNCTION ", " HOST_NS " AS v0, " ALIKE " AS w" CALLS
#define KERNEL_ROWS "SELECT " KERNEL ", " DEVICE_NS " AS v0, 1 AS w FROM " WORK("= 3")
#define MEMORY_ROWS "SELECT " MEMORY ", " DEVICE_NS " AS v0, 1 AS w FROM " WORK("IN (1, 2)")
#define DEVICE_ROWS                                                                                \
  "SELECT CASE d.kind WHEN 3 THEN 'CUDA_KERNEL' ELSE 'MEMORY_OPER' END, CASE d.kind WHEN 3 "       \
  "THEN " KERNEL " ELSE " MEMORY " END, " DEVICE_NS " AS v0, 1 AS w FROM " WORK("BETWEEN 1 AND 3")
/* What calls and launches of graphs moved and set, whether or not the device was seen doing it. */
#define SIZE_ROWS                                                                                  \
  "SELECT CASE e.kind WHEN 3 THEN " DIRECTION(                                                     \
      "e.copy") " ELSE '[CUDA memset]' END, e.bytes AS v0,"                                        \
                " 1 AS w FROM event e WHERE e.kind IN (3, 4) AND e.status = 0 AND NOT (e.flags & " \
                "16) UNION ALL"                                                                    \
                " SELECT CASE g.type WHEN 1 THEN " DIRECTION(                                      \
                    "g.copy") " ELSE '[CUDA memset]' END,"                                         \
                              " g.bytes * g.count, g.count FROM graph_launch l CROSS JOIN event "  \
                              "e ON e.id = l.event AND"                                            \
                              " e.status = 0 CROSS JOIN graph_work g ON g.content = l.content "    \
                              "AND g.type IN (1, 2)"                                               \
                              " AND NOT g.conditional"
#define LAUNCH_ROWS                                                                                \
  "SELECT " PID(                                                                                   \
      "e") ", " TID ", d.device, " FUNCTION ", " KERNEL ","                                        \
           " max(e.\"end\", d.\"end\") - e.start AS v0, " HOST_NS " AS v1,"                        \
           " CASE WHEN d.start > e.\"end\" THEN d.start - e.\"end\" END AS v2, " DEVICE_NS         \
           " AS v3, 1 AS w"                                                                        \
           " FROM " WORK("= 3") " CROSS JOIN event e ON e.id = d.event"

/* One that never ended lasts as long as its process. */
#define RANGE_ROWS(style, kinds)                                                                   \
  "SELECT " style "ifnull(n.domain, '') || ':' || ifnull(n.text, ''), max(coalesce(r.\"end\","     \
  " (SELECT p.\"end\" FROM main.process p WHERE p.id = r.process), (SELECT m.value FROM main.meta" \
  " m WHERE m.key = 'duration_ns'), r.start) - r.start, 0) AS v0, 1 AS w FROM main.range_row r"    \
  " LEFT JOIN main.range_name n ON n.id = r.name WHERE r.kind " kinds " AND r.start IS NOT NULL"
#define STYLE "CASE r.kind WHEN 1 THEN 'PushPop' ELSE 'StartEnd' END, "

#define API_TRACE                                                                                  \
  "SELECT e.start, " HOST_NS ", " FUNCTION                                                         \
  ", e.status, e.id, " PID("e") ", " TID ", NULL,"                                                 \
                                " (SELECT x.name FROM main.thread x WHERE x.id = e.thread)" CALLS  \
                                " ORDER BY e.start, e.id"
#define GRID(bits, mask) "CASE WHEN d.kind = 3 AND e.kind = 6 THEN e.b >> " bits " & " mask " END, "
#define DEVICE_TRACE                                                                               \
  "SELECT d.start, " DEVICE_NS ", d.event, " GRID("0", "4294967295") GRID("32", "65535") GRID(     \
      "48",                                                                                        \
      "65535") "NULL, NULL, NULL, NULL, NULL, NULL, CASE WHEN d.kind < 3 THEN d.bytes END,"        \
               " CASE WHEN d.kind < 3 AND d.\"end\" > d.start THEN d.bytes * 1000.0 / (" DEVICE_NS \
               ") END,"                                                                            \
               " CASE d.kind WHEN 1 THEN CASE e.kind WHEN 3 THEN " MEMORY_KIND(                    \
                   "e.src_mem") " END WHEN 2 THEN"                                                 \
                                " CASE e.kind WHEN 4 THEN " MEMORY_KIND(                           \
                                    "e.mem") " END END, CASE WHEN d.kind = 1 AND e.kind = 3"       \
                                             " THEN " MEMORY_KIND(                                 \
                                                 "e.mem") " END, ifnull((SELECT n.name FROM "      \
                                                          "main.name n WHERE n.process ="          \
                                                          " d.process AND n.kind = 'device' AND "  \
                                                          "n.handle = d.device), 'Device') || ' "  \
                                                          "(' || d.device ||"                      \
                                                          " ')', d.context, NULL, d.stream, CASE " \
                                                          "d.kind WHEN 3 THEN " KERNEL             \
                                                          " WHEN 4 THEN '[CUDA graph]'"            \
                                                          " ELSE " MEMORY " END FROM " WORK(       \
                                                              "BETWEEN 1 AND 4") " LEFT JOIN "     \
                                                                                 "event e ON "     \
                                                                                 "e.id = d.event"  \
                                                                                 " ORDER BY "      \
                                                                                 "d.start, d.id"

/* ---- rules: longest first ------------------------------------------------------------------------ */

#define COPY_RULE(which)                                                                           \
  "SELECT " DEVICE_NS ", d.start, " MEMORY_KIND("e.src_mem") ", " MEMORY_KIND(                     \
      "e.mem") ", d.bytes,"                                                                        \
               " " PID("d") ", d.device, d.context, NULL, d.stream, " FUNCTION " FROM " WORK(      \
                   "= 1") " CROSS JOIN event e ON e.id = d.event AND e.kind = 3 AND " which        \
                          " ORDER BY 1 DESC, 2"
#define SET_RULE                                                                                   \
  "SELECT " DEVICE_NS ", d.start, " MEMORY_KIND("e.mem") ", d.bytes, " PID(                        \
      "d") ", d.device,"                                                                           \
           " d.context, NULL, d.stream, " FUNCTION                                                 \
           " FROM " WORK("= 2") " CROSS JOIN event e"                                              \
                                " ON e.id = d.event AND e.kind = 4 AND NOT (e.flags & 1) AND "     \
                                "e.mem IN (2, 4) ORDER BY 1 DESC, 2"
#define WAIT_RULE                                                                                  \
  "SELECT " HOST_NS                                                                                \
  ", e.start, " PID("e") ", " TID ", " FUNCTION " FROM event e WHERE e.kind = 5"                   \
                         " AND e.copy IN (3, 4) AND NOT (e.flags & 32) ORDER BY 1 DESC, 2"
/* Between operations of one process on one device. */
#define GAP_RULE                                                                                   \
  "SELECT NULL, start - before, before, " PID(                                                     \
      "g") ", device, context FROM (SELECT process,"                                               \
           " device, context, start, max(\"end\") OVER (PARTITION BY process, device ORDER BY "    \
           "start, id"                                                                             \
           " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM main.device_work"    \
           " WHERE kind BETWEEN 1 AND 4 AND " WR_DEVICE_TIME                                       \
           ") g WHERE start - before > 500000000"                                                  \
           " ORDER BY 2 DESC, 3"
/* The thirtieths of a process's time on a device of which less than half is used; neighbours are one. */
#define USE_RULE                                                                                   \
  "WITH RECURSIVE chunk(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM chunk WHERE i < 29),"          \
  " work AS (SELECT process, device, context, start, \"end\" FROM main.device_work WHERE kind"     \
  " BETWEEN 1 AND 4 AND " WR_DEVICE_TIME "),"                                                      \
  " span AS MATERIALIZED (SELECT process, device, min(context) AS context, min(start) AS first,"   \
  " (max(\"end\") - min(start)) / 30.0 AS part FROM work GROUP BY process, device"                 \
  " HAVING max(\"end\") > min(start)),"                                                            \
  " used AS (SELECT s.process, s.device, i, sum(min(w.\"end\", first + (i + 1) * part) -"          \
  " max(w.start, first + i * part)) AS ns FROM work w CROSS JOIN span s ON s.process = w.process"  \
  " AND s.device IS w.device CROSS JOIN chunk ON i >= CAST((w.start - first) / part AS INTEGER)"   \
  " AND i * part < w.\"end\" - first GROUP BY s.process, s.device, i),"                            \
  " low AS (SELECT s.process, s.device, s.context, s.first, s.part, c.i, ifnull(u.ns, 0) AS ns,"   \
  " c.i - row_number() OVER (PARTITION BY s.process, s.device ORDER BY c.i) AS island"             \
  " FROM span s CROSS JOIN chunk c LEFT JOIN used u ON u.process = s.process AND u.device IS"      \
  " s.device AND u.i = c.i WHERE ifnull(u.ns, 0) < s.part / 2)"                                    \
  " SELECT NULL, 100.0 * sum(ns) / (part * count(*)), CAST(part * count(*) AS INTEGER),"           \
  " CAST(first + part * min(i) AS INTEGER), " PID(                                                 \
      "low") ", device, context FROM low"                                                          \
             " GROUP BY process, device, island ORDER BY 2, 4"

#define LIST(name, title, rows, needs, columns, sql)                                               \
  {                                                                                                \
    name, title, columns, sql, 0, 0, rows, needs                                                   \
  }
#define SUM(name, title, needs, labels, columns, sql)                                              \
  {                                                                                                \
    name, title, columns, sql, labels, 1, 0, needs                                                 \
  }
#define NEVER(name, why)                                                                           \
  {                                                                                                \
    name, NULL, NULL, why, 0, 0, 0, STATS_NEVER                                                    \
  }

#define SKIPPED(name)                                                                              \
  {                                                                                                \
    name, NULL, NULL, "CUDA Unified Memory CPU page faults data", 0, 0, 0, STATS_SKIPPED           \
  }

#define NO_SYSTEM  "calls of the operating system's library"
#define NO_THREADS "blocks of a launch by dimension"

const stats_report stats_reports[] = {
    SUM("cuda_api_sum", "CUDA API Summary", STATS_CALLS, 1, TIMES("Num Calls") "tL0 Name",
        API_ROWS),
    LIST(
        "cuda_api_trace", "CUDA API Trace", 0, STATS_CALLS,
        "i   Start (ns)|i   Duration (ns)|t   Name|i   Result|i   CorrID|i   Pid|i   Tid|i   T-Pri|"
        "t   Thread Name",
        API_TRACE),
    SUM("cuda_gpu_kern_sum", "CUDA GPU Kernel Summary", STATS_DEVICE, 1,
        TIMES("Instances") "kL0 Name", KERNEL_ROWS),
    SUM("cuda_gpu_mem_time_sum", "CUDA GPU MemOps Summary (by Time)", STATS_DEVICE, 1,
        TIMES("Count") "tL0 Operation", MEMORY_ROWS),
    SUM("cuda_gpu_mem_size_sum", "CUDA GPU MemOps Summary (by Size)", STATS_CALLS, 1,
        SIZES "tL0 Operation", SIZE_ROWS),
    SUM("cuda_gpu_sum", "CUDA GPU Summary (Kernels/MemOps)", STATS_DEVICE, 2,
        TIMES("Instances") "tL0 Category|kL1 Operation", DEVICE_ROWS),
    SUM("cuda_api_gpu_sum", "CUDA Summary (API/Kernels/MemOps)", STATS_DEVICE, 2,
        TIMES("Instances") "tL0 Category|kL1 Operation",
        "SELECT 'CUDA_API', " FUNCTION ", " HOST_NS " AS v0, " ALIKE " AS w" CALLS
        " UNION ALL " DEVICE_ROWS),
    LIST("cuda_gpu_trace", "CUDA GPU Trace", 0, STATS_DEVICE,
         "i   Start (ns)|i   Duration (ns)|i   CorrId|i   GrdX|i   GrdY|i   GrdZ|i   BlkX|i   BlkY|"
         "i   BlkZ|i   Reg/Trd|3   StcSMem (MB)|3   DymSMem (MB)|3   Bytes (MB)|f   Throughput "
         "(MB/s)|"
         "t   SrcMemKd|t   DstMemKd|t   Device|i   Ctx|i   GreenCtx|i   Strm|k   Name",
         DEVICE_TRACE),
    {"cuda_kern_exec_sum", "CUDA Kernel Launch & Exec Time Summary",
     "iL0 PID|iL1 TID|iL2 DevId|in0 Count|in2 QCount|" PHASE("0", "T") PHASE("1", "A")
         PHASE("2", "Q") PHASE("3", "K") "tL3 API Name|kL4 Kernel Name",
     LAUNCH_ROWS, 5, 4, 0, STATS_DEVICE},
    SUM("nvtx_sum", "NVTX Range Summary", STATS_RANGES, 2, TIMES("Instances") "tL0 Style|tL1 Range",
        RANGE_ROWS(STYLE, "IN (1, 2)")),
    SUM("nvtx_pushpop_sum", "NVTX Push/Pop Range Summary", STATS_RANGES, 1,
        TIMES("Instances") "tL0 Range", RANGE_ROWS("", "= 1")),
    SUM("nvtx_startend_sum", "NVTX Start/End Range Summary", STATS_RANGES, 1,
        TIMES("Instances") "tL0 Range", RANGE_ROWS("", "= 2")),
    LIST("cuda_memcpy_async", "CUDA Async Memcpy with Pageable Memory", 50, STATS_DEVICE,
         COPY_HEADINGS, COPY_RULE("e.flags & 1 AND 1 IN (e.mem, e.src_mem)")),
    LIST("cuda_memcpy_sync", "CUDA Synchronous Memcpy", 50, STATS_DEVICE, COPY_HEADINGS,
         COPY_RULE("NOT (e.flags & 1) AND e.copy <> 8 AND NOT (e.copy = 1 AND d.bytes <= 65536)")),
    LIST("cuda_memset_sync", "CUDA Synchronous Memset", 50, STATS_DEVICE,
         "i   Duration (ns)|i   Start (ns)|t   Memory Kind|3   Bytes (MB)|i   PID|i   Device ID|"
         "i   Context ID|i   Green Context ID|i   Stream ID|t   API Name",
         SET_RULE),
    LIST("cuda_api_sync", "CUDA Synchronization APIs", 50, STATS_CALLS,
         "i   Duration (ns)|i   Start (ns)|i   PID|i   TID|t   API Name", WAIT_RULE),
    LIST("gpu_gaps", "GPU Gaps", 50, STATS_DEVICE,
         "i#  Row#|i   Duration (ns)|i   Start (ns)|i   PID|i   Device ID|i   Context ID",
         GAP_RULE),
    LIST("gpu_time_util", "GPU Time Utilization", 50, STATS_DEVICE,
         "i#  Row#|1   In-Use (%)|i   Duration (ns)|i   Start (ns)|i   PID|i   Device ID|"
         "i   Context ID",
         USE_RULE),
    SKIPPED("um_sum"),
    SKIPPED("um_total_sum"),
    SKIPPED("um_cpu_page_faults_sum"),
    NEVER("osrt_sum", NO_SYSTEM),
    NEVER("syscall_sum", "system calls"),
    NEVER("cuda_gpu_kern_gb_sum", NO_THREADS),
    {0}};

const stats_report *stats_report_named(const char *name)
{
  for (const stats_report *r = stats_reports; r->name; r++)
    if (!strcmp(r->name, name)) return r;
  return NULL;
}

char *stats_sql_by_range(const char *sql)
{
  static const char kernel[] = KERNEL;
  char *named = wr_format("%s", "");
  for (const char *at = sql; named && at;) {
    const char *next = strstr(at, kernel);
    size_t bytes = next ? (size_t)(next - at) : strlen(at);
    char *more = next ? wr_format("%s%.*s" RANGE_OF_CALL "%s", named, (int)bytes, at, kernel)
                      : wr_format("%s%s", named, at);
    free(named);
    named = more;
    at = next ? next + sizeof kernel - 1 : NULL;
  }
  return named;
}

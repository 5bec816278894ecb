/* reports.c: see reports.h. Names and titles are Nsight Systems'. */
#include "reports/stats/reports.h"
#include <stddef.h>
#include <string.h>

__asm__(".pushsection .rodata\n"
        ".global stats_sql\n"
        ".hidden stats_sql\n"
        "stats_sql: .incbin \"reports/stats/reports.sql\"\n"
        ".byte 0\n"
        ".popsection\n");

/* clang-format off */
const stats_report stats_reports[] = {
    {"cuda_api_sum", "CUDA API Summary", STATS_CALLS, STATS_TIMES, "Num Calls", 1, 0, 0},
    {"cuda_api_trace", "CUDA API Trace", STATS_CALLS, STATS_LIST, NULL, 0, 0, 0},
    {"cuda_gpu_kern_sum", "CUDA GPU Kernel Summary", STATS_DEVICE, STATS_TIMES, "Instances", 1, 1, 0},
    {"cuda_gpu_mem_time_sum", "CUDA GPU MemOps Summary (by Time)", STATS_DEVICE, STATS_TIMES, "Count", 1, 0, 0},
    {"cuda_gpu_mem_size_sum", "CUDA GPU MemOps Summary (by Size)", STATS_CALLS, STATS_SIZES, NULL, 1, 0, 0},
    {"cuda_gpu_sum", "CUDA GPU Summary (Kernels/MemOps)", STATS_DEVICE, STATS_TIMES, "Instances", 2, 2, 0},
    {"cuda_api_gpu_sum", "CUDA Summary (API/Kernels/MemOps)", STATS_DEVICE, STATS_TIMES, "Instances", 2, 2, 0},
    {"cuda_gpu_trace", "CUDA GPU Trace", STATS_DEVICE, STATS_LIST, NULL, 0, 21, 0},
    {"cuda_kern_exec_sum", "CUDA Kernel Launch & Exec Time Summary", STATS_DEVICE, STATS_PHASES, NULL, 5, 5, 0},
    {"nvtx_sum", "NVTX Range Summary", STATS_RANGES, STATS_TIMES, "Instances", 2, 0, 0},
    {"nvtx_pushpop_sum", "NVTX Push/Pop Range Summary", STATS_RANGES, STATS_TIMES, "Instances", 1, 0, 0},
    {"nvtx_startend_sum", "NVTX Start/End Range Summary", STATS_RANGES, STATS_TIMES, "Instances", 1, 0, 0},
    {"cuda_memcpy_async", "CUDA Async Memcpy with Pageable Memory", STATS_DEVICE, STATS_LIST, NULL, 0, 0, 50},
    {"cuda_memcpy_sync", "CUDA Synchronous Memcpy", STATS_DEVICE, STATS_LIST, NULL, 0, 0, 50},
    {"cuda_memset_sync", "CUDA Synchronous Memset", STATS_DEVICE, STATS_LIST, NULL, 0, 0, 50},
    {"cuda_api_sync", "CUDA Synchronization APIs", STATS_CALLS, STATS_LIST, NULL, 0, 0, 50},
    {"gpu_gaps", "GPU Gaps", STATS_DEVICE, STATS_LIST, NULL, 0, 0, 50},
    {"gpu_time_util", "GPU Time Utilization", STATS_DEVICE, STATS_LIST, NULL, 0, 0, 50},
    {.name = "um_sum", .title = "CUDA Unified Memory CPU page faults data", .needs = STATS_SKIPPED},
    {.name = "um_total_sum", .title = "CUDA Unified Memory CPU page faults data", .needs = STATS_SKIPPED},
    {.name = "um_cpu_page_faults_sum", .title = "CUDA Unified Memory CPU page faults data", .needs = STATS_SKIPPED},
    {.name = "osrt_sum", .title = "calls of the operating system's library", .needs = STATS_NEVER},
    {.name = "syscall_sum", .title = "system calls", .needs = STATS_NEVER},
    {.name = "cuda_gpu_kern_gb_sum", .title = "blocks of a launch by dimension", .needs = STATS_NEVER},
    {0}};
/* clang-format on */

const stats_report *stats_report_named(const char *name)
{
  for (const stats_report *r = stats_reports; r->name; r++)
    if (!strcmp(r->name, name)) return r;
  return NULL;
}

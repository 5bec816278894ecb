/* json_1_members.c: of which table and column each member of the former reports is. See
 * json_1.h. */
#include "reports/write/json_1.h"

/* clang-format off */
#define CELLS(words) {"", OLD_CELL, words, NULL, NULL, NULL}
#define EACH(how, table, words) {"", OLD_##how, words, table, NULL, NULL}
#define ORDINAL(name, column) {name, OLD_ORDINAL, column, NULL, NULL, NULL}
#define SPOT {"function", OLD_FUNCTION, "place", NULL, NULL, NULL}, \
             {"file", OLD_FILE, "place", NULL, NULL, NULL}, {"line", OLD_LINE, "place", NULL, NULL, NULL}
#define PLACE SPOT, {"module", OLD_MODULE, "place", NULL, NULL, NULL}
#define SAME(name, of) {name, OLD_SAME, NULL, NULL, NULL, of}
#define ROWS(name, column, of) {name, OLD_ROWS, column, NULL, NULL, of}
#define LIST(name, table, with, of) {name, OLD_LIST, table, with, NULL, of}
#define IF(name, table, with, of) {name, OLD_IF, table, with, NULL, of}
#define FIRST(name, table, with, of) {name, OLD_FIRST, table, with, NULL, of}
#define VALUES(name, table, with, of) {name, OLD_VALUES, table, with, NULL, of}
#define LAST {NULL, OLD_CELL, NULL, NULL, NULL, NULL}

/* ---- places ---------------------------------------------------------------------------------- */

static const old_member stack[] = {CELLS("calls bytes ns=host_ns implicit frames=callers"), LAST};

static const old_member more_stacks[] = {
    CELLS("stacks=more_stacks calls=more_calls bytes=more_bytes ns=more_host_ns"), LAST};

static const old_member site[] = {
    EACH(PRESENT, NULL, "api=function direction src_memory=source_memory "
                        "dst_memory=destination_memory"),
    PLACE,
    CELLS("calls bytes ns=host_ns implicit frames=callers"),
    ROWS("stacks", "stacks", stack),
    SAME("more_stacks", more_stacks), LAST};

static const old_member left_out[] = {CELLS("sites=places calls bytes ns=host_ns"), LAST};

static const old_member more_sites[] = {
    FIRST("alloc", "more_places", "list=alloc_places", left_out),
    FIRST("copy", "more_places", "list=copy_places", left_out),
    FIRST("sync", "more_places", "list=wait_places", left_out),
    FIRST("redundant_waits", "more_places", "list=redundant_waits", left_out),
    FIRST("wider_waits", "more_places", "list=wider_waits", left_out),
    FIRST("live_at_exit", "more_places", "list=live_at_exit", left_out),
    FIRST("taken_at_exit", "more_places", "list=taken_at_exit", left_out),
    FIRST("asked", "more_places", "list=asked_places", left_out), LAST};

static const old_member sites[] = {
    LIST("alloc", "alloc_places", NULL, site),
    LIST("copy", "copy_places", NULL, site),
    LIST("sync", "wait_places", NULL, site),
    LIST("redundant_waits", "redundant_waits", NULL, site),
    LIST("wider_waits", "wider_waits", NULL, site),
    LIST("live_at_exit", "live_at_exit", NULL, site),
    LIST("taken_at_exit", "taken_at_exit", NULL, site),
    LIST("asked", "asked_places", NULL, site),
    SAME("more", more_sites), LAST};

/* ---- memory ---------------------------------------------------------------------------------- */

static const old_member owner[] = {CELLS("module bytes"), LAST};

static const old_member moment[] = {
    CELLS("at_ns used_bytes live_bytes"),
    ROWS("owners", "owners", owner),
    CELLS("modules_bytes"),
    ROWS("modules", "modules", owner),
    CELLS("contexts_bytes cached_bytes pools_idle_bytes weir_idle_bytes graphs_idle_bytes "
          "unexplained_bytes managed_bytes others_more_bytes"), LAST};

static const old_member usage[] = {
    CELLS("samples total_bytes before_bytes ahead_bytes after_bytes"),
    LIST("moments", "in_use", "device|by", moment), LAST};

static const old_member device[] = {
    ORDINAL("device", "device"),
    CELLS("name=product label alloc_calls alloc_bytes free_calls peak_bytes peak_at_ns "
          "live_at_exit_bytes"),
    EACH(NEXT, "device_copies", "h2d_calls h2d_bytes d2h_calls d2h_bytes d2d_calls d2d_bytes "
                                "p2p_out_calls p2p_out_bytes p2p_in_calls p2p_in_bytes"),
    EACH(NEXT, "device_work", "memset_calls memset_bytes sync_explicit_calls "
                              "sync_explicit_ns=sync_explicit_host_ns launches"),
    CELLS("weir_reserved_peak_bytes"),
    EACH(NEXT, "device_taken", "code_blocks code_bytes code_frees code_peak_bytes "
                               "code_live_at_exit_bytes context_blocks context_bytes "
                               "context_frees context_peak_bytes context_live_at_exit_bytes"),
    LIST("peak_owners", "peak_owners", "device", site),
    FIRST("in_use", "usage", "device|by=driver", usage),
    FIRST("in_use_nvml", "usage", "device|by=NVML", usage), LAST};

static const old_member named[] = {
    CELLS("name memory"),
    ORDINAL("device", "device"),
    CELLS("blocks bytes peak_bytes live_at_exit_bytes"), LAST};

static const old_member tensor_module[] = {CELLS("module tensors bytes"), LAST};

static const old_member tensor[] = {CELLS("module name dtype shape tensors bytes"), LAST};

static const old_member tensor_place[] = {
    ORDINAL("device", "where"),
    CELLS("pinned made made_bytes peak_bytes peak_tensors peak_at_ns live_at_exit_bytes "
          "live_at_exit_tensors"),
    LIST("modules", "tensor_modules", "where", tensor_module),
    LIST("by_tensor", "tensors", "where", tensor), LAST};

/* ---- calls ----------------------------------------------------------------------------------- */

static const old_member function_place[] = {
    PLACE,
    CELLS("calls=place_calls ns=place_host_ns"), LAST};

static const old_member function[] = {
    CELLS("name=function layer category calls errors bytes ns=host_ns max_ns=longest_host_ns "
          "sync_calls=explicit_calls sync_ns=explicit_host_ns implicit_calls "
          "implicit_ns=implicit_host_ns init_calls init_ns=init_host_ns"),
    {"place", OLD_KNOWN, "place", NULL, NULL, function_place},
    CELLS("places"), LAST};

static const old_member route[] = {
    ORDINAL("src", "source"),
    ORDINAL("dst", "destination"),
    CELLS("calls bytes timed_bytes=waited_bytes timed_ns=waited_host_ns "
          "bytes_per_second=waited_bytes_per_second"), LAST};

static const old_member host_memory[] = {CELLS("direction memory calls bytes async_calls"), LAST};

static const old_member wait_part[] = {
    CELLS("calls working_ns=working_host_ns other_ns=other_host_ns idle_ns=idle_host_ns "
          "unknown_ns=unknown_host_ns function"), LAST};

static const old_member divided[] = {
    CELLS("calls working_ns=working_host_ns other_ns=other_host_ns idle_ns=idle_host_ns "
          "unknown_ns=unknown_host_ns"),
    LIST("functions", "wait_parts", NULL, wait_part), LAST};

static const old_member waits[] = {
    CELLS("judged_calls unknown_calls redundant_calls redundant_ns=redundant_host_ns "
          "wider_calls wider_ns=wider_host_ns"),
    FIRST("divided", "divided", NULL, divided), LAST};

static const old_member range[] = {
    CELLS("domain text ranges open ns=host_ns calls copies copy_bytes waits "
          "wait_ns=wait_host_ns launches device_ns allocs=allocations alloc_bytes peak_bytes"), LAST};

static const old_member graph[] = {
    CELLS("launches unknown graphs updates kernels copies copy_bytes memsets may_have_run "
          "launched_in captured_in made_in"), LAST};

/* ---- device times ---------------------------------------------------------------------------- */

static const old_member work[] = {
    CELLS("operations timed_operations bytes timed_bytes busy_ns=busy_device_ns"), LAST};

static const old_member idle[] = {CELLS("cause function ns=idle_device_ns"), LAST};

static const old_member cause[] = {CELLS("ns=idle_device_ns"), LAST};

static const old_member gap[] = {
    CELLS("start_ns end_ns function"),
    {"causes", OLD_PAIRS, "causes", NULL, "cause", cause}, LAST};

static const old_member device_time[] = {
    ORDINAL("device", "device"),
    CELLS("span_ns=span_device_ns busy_ns=busy_device_ns copy_ns=copy_device_ns "
          "kernel_ns=kernel_device_ns overlap_ns=overlap_device_ns"),
    {"work", OLD_KEYED, "operations", "device", "work", work},
    CELLS("queue_full_ns=queue_full_host_ns"),
    IF("idle", "idle", "device", idle),
    IF("longest_idle", "longest_idle", "device", gap), LAST};

static const old_member observation[] = {
    CELLS("observed unavailable yields yielded_ns dropped untimed unmatched "
          "incomplete_processes lost_calls kernels_unobserved undivided"), LAST};

/* ---- caches ---------------------------------------------------------------------------------- */

static const old_member side[] = {
    CELLS("hits hit_bytes misses miss_bytes cached_peak_bytes cached_peak_at_ns "
          "cached_end_bytes"), LAST};

static const old_member reason[] = {CELLS("reason count bytes ns=host_ns first_ns last_ns"), LAST};

static const old_member staging[] = {
    CELLS("direction copies bytes ns=host_ns bytes_per_second left_copies left_bytes "
          "left_ns=left_host_ns left_bytes_per_second gain=share_of_driver measured_by"), LAST};

static const old_member unwritten[] = {
    CELLS("copies bytes first_ns first_block first_offset=first_offset_bytes first_bytes site"), LAST};

static const old_member uninitialised[] = {
    CELLS("copies=uninitialised_copies bytes=uninitialised_bytes"),
    LIST("sites", "uninitialised", NULL, unwritten), LAST};

static const old_member pool[] = {
    CELLS("pid pool=handle"),
    ORDINAL("device", "device"),
    CELLS("default destroyed reserved_bytes reserved_peak_bytes used_bytes used_peak_bytes "
          "release_threshold_bytes keeps_idle_most_bytes samples first_ns last_ns"), LAST};

static const old_member cached[] = {CELLS("cached=cached_peak_bytes"), LAST};

static const old_member cache[] = {
    CELLS("mode hits misses hit_rate=share_of_hits"),
    FIRST("device", "caches", "memory=device", side),
    FIRST("pinned", "caches", "memory=pinned", side),
    LIST("misses_by_reason", "reasons", "what=allocation missed", reason),
    LIST("allocs_left_to_driver", "reasons", "what=allocation left to the driver", reason),
    CELLS("frees_kept"),
    LIST("frees_left_to_driver", "reasons", "what=free left to the driver", reason),
    CELLS("waits_kept waits_kept_ns=waits_kept_host_ns waits_avoided held_peak_bytes"),
    LIST("given_back", "reasons", "what=given back", reason),
    LIST("tainted", "reasons", "what=never cached", reason),
    LIST("staging", "staging", NULL, staging),
    SAME("uninitialised", uninitialised),
    LIST("pools", "pools", NULL, pool),
    CELLS("curve_slice_ns"),
    VALUES("curve", "cache_curve", NULL, cached), LAST};

/* ---- what was seen --------------------------------------------------------------------------- */

static const old_member process[] = {
    CELLS("pid exe command mode start_ns end_ns end_reason end_detail events dropped"), LAST};

static const old_member function_name[] = {CELLS("function"), LAST};

static const old_member path[] = {CELLS("path"), LAST};

static const old_member lacking[] = {CELLS("path why"), LAST};

static const old_member unseen[] = {
    {"path", OLD_OTHERS, "path", NULL, NULL, NULL},
    CELLS("why count"), LAST};

static const old_member unrecorded[] = {
    VALUES("asks", "passed_through", "why=only asks", function_name),
    VALUES("sets", "passed_through", "why=only sets", function_name),
    VALUES("below", "passed_through", "why=what it calls is recorded", function_name), LAST};

static const old_member coverage[] = {
    EACH(MEMBER, "coverage", "functions_wrapped functions_passed_through functions_called"),
    VALUES("passed_through", "passed_through", "why=not recorded", function_name),
    SAME("unrecorded", unrecorded),
    EACH(MEMBER, "coverage", "unknown_lookups"),
    EACH(ONE, "run", "unknown_name=unknown_function"),
    VALUES("modules_embedding_cudart", "modules_embedding_cudart", NULL, path),
    LIST("modules_without_names", "modules_without_names", NULL, lacking),
    LIST("unseen_programs", "unseen_programs", NULL, unseen),
    EACH(MEMBER, "coverage", "events_without_stack nested_calls deep_ranges dropped_events "
                             "dropped_names_and_stacks damaged_chunks torn_records bytes_cut "
                             "unrecorded_calls unrecorded_spans"), LAST};

static const old_member note[] = {CELLS("note"), LAST};

/* ---- findings -------------------------------------------------------------------------------- */

static const old_member finding_caller[] = {SPOT, CELLS("share=share_of_place count"), LAST};

static const old_member finding_site[] = {
    SPOT,
    CELLS("source cost_ns=cost_host_ns count"),
    ROWS("called_from", "called_from", finding_caller),
    CELLS("more_callers"), LAST};

static const old_member finding[] = {
    CELLS("rule id title severity certainty cost_ns=cost_host_ns saving_ns=saving_host_ns "
          "added_ns=added_host_ns low_ns=low_host_ns high_ns=high_host_ns at_most_ns=at_most_host_ns "
          "saving_share=share_of_run saving_bytes bytes_are count"),
    ROWS("sites", "sites", finding_site),
    CELLS("more_sites range"),
    ORDINAL("device", "device"),
    CELLS("fix under kernel_names more_kernels"), LAST};

static const old_member removed[] = {CELLS("id count bytes"), LAST};

static const old_member unjudged[] = {CELLS("id why"), LAST};

/* ---- a diff ---------------------------------------------------------------------------------- */

static const old_member both[] = {CELLS("a b"), LAST};
static const old_member line[] = {{"line", OLD_CELL, "line", NULL, NULL, NULL}, LAST};
#define METRICS {"metrics", OLD_INNER, "metrics", NULL, "metric", both}
#define WITHIN(name, with) {name, OLD_WITHIN, "lines", with, NULL, line}
#define IN(side, of) {side, OLD_KNOWN, "in_" side, NULL, NULL, of}

static const old_member compared[] = {CELLS("trace command complete findings_judged"), LAST};
static const old_member compared_device[] = {CELLS("device in_a in_b"), METRICS, LAST};
static const old_member compared_range[] = {CELLS("domain text in_a in_b"), METRICS, LAST};

#define SITE_LINES(side) \
    WITHIN("peak", "trace=" side "|of=peak"), WITHIN("leaks", "trace=" side "|of=leaks"), \
    WITHIN("transfers", "trace=" side "|of=transfers"), WITHIN("waits", "trace=" side "|of=waits"), \
    WITHIN("allocations", "trace=" side "|of=allocations"), LAST
static const old_member lines_a[] = {SITE_LINES("a")};
static const old_member lines_b[] = {SITE_LINES("b")};
static const old_member site_a[] = {CELLS("file=file_a"), SAME("lines", lines_a), LAST};
static const old_member site_b[] = {CELLS("file=file_b"), SAME("lines", lines_b), LAST};
static const old_member compared_site[] = {
    CELLS("function module"), IN("a", site_a), IN("b", site_b), METRICS, LAST};

#define WASTED(side) \
    CELLS("certainty=certainty_" side " findings=findings_" side " count=count_" side \
          " saving_ns=saving_host_ns_" side " saving_bytes=saving_bytes_" side " file=file_" side), \
    WITHIN("lines", "trace=" side), LAST
static const old_member wasted_a[] = {WASTED("a")};
static const old_member wasted_b[] = {WASTED("b")};
static const old_member change[] = {
    CELLS("state rule id title function"), IN("a", wasted_a), IN("b", wasted_b), LAST};

static const old_member condition[] = {CELLS("condition metric met value limit note"), LAST};

/* ---- reports --------------------------------------------------------------------------------- */

const old_member old_findings[] = {
    {"schema", OLD_CONSTANT, "weir-findings/1", NULL, NULL, NULL},
    LIST("findings", "findings", NULL, finding),
    EACH(ONE, "savings", "duration_ns saving_ns=saving_host_ns "
                         "sure_saving_ns=sure_saving_host_ns moved_bytes"),
    LIST("removed", "removed", NULL, removed),
    EACH(ONE, "savings", "unavailable"),
    LIST("unjudged", "unjudged", NULL, unjudged), LAST};

const old_member old_diff[] = {
    {"schema", OLD_CONSTANT, "weir-diff/1", NULL, NULL, NULL},
    FIRST("a", "traces", "side=a", compared),
    FIRST("b", "traces", "side=b", compared),
    {"run", OLD_KEYED, "metrics", NULL, "metric", both},
    LIST("devices", "device_metrics", NULL, compared_device),
    LIST("sites", "site_metrics", NULL, compared_site),
    LIST("ranges", "range_metrics", NULL, compared_range),
    LIST("findings", "finding_changes", NULL, change),
    LIST("conditions", "conditions", NULL, condition), LAST};

const old_member old_cache[] = {FIRST("cache", "cache", NULL, cache), LAST};

const old_member old_summary[] = {
    {"schema", OLD_CONSTANT, "weir-report/1", NULL, NULL, NULL},
    {"trace", OLD_TRACE, NULL, NULL, NULL, NULL},
    EACH(ONE, "run", "complete command weir_version start_realtime_ns duration_ns no_gpu"),
    {"totals", OLD_MEMBERS, "totals", NULL, NULL, NULL},
    LIST("devices", "devices", NULL, device),
    LIST("apis", "functions", NULL, function),
    LIST("matrix", "routes", NULL, route),
    LIST("host_memory", "host_memory", NULL, host_memory),
    FIRST("waits", "judged", NULL, waits),
    SAME("sites", sites),
    LIST("ranges", "ranges", NULL, range),
    LIST("graphs", "graphs", NULL, graph),
    LIST("named_memory", "named_memory", NULL, named),
    LIST("tensors", "tensor_places", NULL, tensor_place),
    LIST("device_times", "busy", NULL, device_time),
    FIRST("device_observation", "device_observation", NULL, observation),
    FIRST("cache", "cache", NULL, cache),
    LIST("processes", "processes", NULL, process),
    VALUES("notes", "trace_notes", NULL, note),
    SAME("coverage", coverage), LAST};
/* clang-format on */

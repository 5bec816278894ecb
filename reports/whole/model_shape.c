/* model_shape.c: the members of a model, struct by struct, as shape.h describes them. A member of a
 * struct that is in no row here makes tests/reports/test_whole.c fail. */
#include "core/trace/api.h"
#include "reports/import/schema.h"
#include "reports/model/model.h"
#include "reports/whole/shapes.h"

#define ANY_DEVICE 256 /* ordinals, WR_HOST and what stands for none */

/* ---- words ----------------------------------------------------------------------------------- */

#define WORDS(name, ...)                                                                           \
  static const char *name(size_t i)                                                                \
  {                                                                                                \
    static const char *const words[] = {__VA_ARGS__};                                              \
    return i < sizeof(words) / sizeof(words[0]) ? words[i] : NULL;                                 \
  }

WORDS(layer_word, "driver", "runtime")
WORDS(direction_word, "h2d", "d2h")
WORDS(memory_word, "pageable", "pinned", "managed", "unknown")
WORDS(mode_word, "observe", "strict", "relaxed")

static const char *category_word(size_t i)
{
  return i <= WEIR_API_OTHER ? wr_api_category_name((uint32_t)i) : NULL;
}

/* ---- small ones ------------------------------------------------------------------------------ */

typedef char *owned_text; /* an element of a list of them */
static const wr_member text_members[] = {{"", WR_MEMBER_TEXT, 0, sizeof(owned_text), .count = 1}};
const wr_shape wr_text_shape = {"text", sizeof(owned_text), text_members, 1};

#define OF wr_sums
static const wr_member wr_sums_members[] = {NUMBERS(calls, ns)};
static const wr_shape sums_shape = SHAPE(wr_sums);
#undef OF

#define OF wr_totals
static const wr_member wr_totals_members[] = {NUMBERS(alloc_calls, hashing_ns)};
static const wr_shape totals_shape = SHAPE(wr_totals);
#undef OF

#define OF wr_device_totals
static const wr_member wr_device_totals_members[] = {
    NUMBERS(alloc_calls, context_live_at_exit_bytes)};
static const wr_shape device_totals_shape = SHAPE(wr_device_totals);
#undef OF

#define OF wr_frame_name
static const wr_member wr_frame_name_members[] = {
    TEXT(function), MAYBE_TEXT(file),    TEXT(module),          NUMBER(line),
    NUMBER(built),  NUMBER_TO(known, 1), NUMBER_TO(library, 1), NATURAL_TO(of, WR_OF_SCRIPT)};
static const wr_shape frame_name_shape = SHAPE(wr_frame_name);
#undef OF

/* ---- places ---------------------------------------------------------------------------------- */

static const wr_member frame_number_members[] = {{.name = "",
                                                  .kind = WR_MEMBER_NUMBER,
                                                  .bytes = sizeof(uint32_t),
                                                  .count = 1,
                                                  .below = offsetof(wr_model, frame_count) + 1}};
static const wr_shape frame_number_shape = {"frame number", sizeof(uint32_t), frame_number_members,
                                            1};

#define OF wr_site_stack
static const wr_member wr_site_stack_members[] = {LIST(frames, frame_number_shape, count),
                                                  UP_TO_OWN(at, count), NUMBER_TO(implicit, 1),
                                                  STRUCT(sums, sums_shape)};
static const wr_shape site_stack_shape = SHAPE(wr_site_stack);
#undef OF

#define OF wr_site
static const wr_member wr_site_members[] = {TEXT(function),
                                            MAYBE_TEXT(file),
                                            TEXT(module),
                                            NUMBER(line),
                                            NUMBER_TO(known, 1),
                                            MAYBE_TEXT(api),
                                            NUMBER_TO(direction, 255),
                                            NUMBER_TO(mem, 15),
                                            NUMBER_TO(src_mem, 15),
                                            NUMBERS(calls, ns),
                                            NUMBER_TO(implicit, 1),
                                            FILLED(stacks, site_stack_shape, stack_count, 1)};
static const wr_shape site_shape = SHAPE(wr_site);
#undef OF

#define OF wr_sites
static const wr_member wr_sites_members[] = {LIST(site, site_shape, count), NUMBER(all),
                                             STRUCT(rest, sums_shape)};
static const wr_shape sites_shape = SHAPE(wr_sites);
#undef OF

/* ---- calls, copies, processes ---------------------------------------------------------------- */

#define OF wr_api_row
static const wr_member wr_api_row_members[] = {
    NATURAL_TO(api, 65535),       TEXT(name),
    WORD(layer, layer_word),      WORD(category, category_word),
    NUMBERS(calls, implicit_ns),  POINTER(place, frame_name_shape),
    NUMBERS(place_calls, places), NUMBER_TO(counted, 1)};
static const wr_shape api_row_shape = SHAPE(wr_api_row);
#undef OF

#define OF wr_route
static const wr_member wr_route_members[] = {NATURAL_TO(src, WR_HOST), NATURAL_TO(dst, WR_HOST),
                                             NUMBERS(calls, timed_ns)};
static const wr_shape route_shape = SHAPE(wr_route);
#undef OF

#define OF wr_host_split
static const wr_member wr_host_split_members[] = {
    WORD(direction, direction_word), WORD(memory, memory_word), NUMBERS(calls, async_calls)};
static const wr_shape host_split_shape = SHAPE(wr_host_split);
#undef OF

#define OF wr_process_row
static const wr_member wr_process_row_members[] = {NUMBER(id),
                                                   NUMBER(pid),
                                                   TEXT(exe),
                                                   TEXT(command),
                                                   TEXT(end_reason),
                                                   TEXT(mode),
                                                   NUMBER(start),
                                                   NUMBER(end),
                                                   NUMBER(end_detail),
                                                   NUMBER_TO(ended, 1),
                                                   NUMBERS(events, bytes_cut)};
static const wr_shape process_row_shape = SHAPE(wr_process_row);
#undef OF

/* ---- devices --------------------------------------------------------------------------------- */

#define OF wr_owner
static const wr_member wr_owner_members[] = {TEXT(module), NUMBER(bytes)};
static const wr_shape owner_shape = SHAPE(wr_owner);
#undef OF

#define OF wr_owners
static const wr_member wr_owners_members[] = {LIST(owner, owner_shape, count)};
static const wr_shape owners_shape = SHAPE(wr_owners);
#undef OF

#define OF wr_moment
static const wr_member wr_moment_members[] = {NUMBER(at), NUMBERS(used, contexts), NUMBER(others),
                                              STRUCT(of_live, owners_shape),
                                              STRUCT(of_code, owners_shape)};
static const wr_shape moment_shape = SHAPE(wr_moment);
#undef OF

#define OF wr_in_use
static const wr_member wr_in_use_members[] = {NUMBERS(samples, before),
                                              SOME(moment, moment_shape, moments),
                                              NUMBER(ahead),
                                              NUMBER_TO(has_ahead, 1),
                                              NUMBER(after),
                                              NUMBER(first_others)};
static const wr_shape in_use_shape = SHAPE(wr_in_use);
#undef OF

#define OF wr_device
static const wr_member wr_device_members[] = {NUMBER_TO(seen, 1),
                                              MAYBE_TEXT(name),
                                              MAYBE_TEXT(label),
                                              NUMBER(peak_place),
                                              STRUCT(total, device_totals_shape),
                                              STRUCT(owners, sites_shape),
                                              ARRAY(in_use, in_use_shape)};
static const wr_shape device_shape = SHAPE(wr_device);
#undef OF

/* ---- what was covered ------------------------------------------------------------------------ */

#define OF wr_unseen
static const wr_member wr_unseen_members[] = {TEXT(path), TEXT(why), NUMBER(count)};
static const wr_shape unseen_shape = SHAPE(wr_unseen);
#undef OF

#define OF wr_lacking
static const wr_member wr_lacking_members[] = {TEXT(path), TEXT(why)};
static const wr_shape lacking_shape = SHAPE(wr_lacking);
#undef OF

#define OF wr_passed
static const wr_member wr_passed_members[] = {LIST(names, wr_text_shape, count)};
static const wr_shape passed_shape = SHAPE(wr_passed);
#undef OF

#define OF wr_coverage
static const wr_member wr_coverage_members[] = {NUMBERS(looked_up, called),
                                                ARRAY(passed, passed_shape),
                                                NUMBER(unknown_lookups),
                                                MAYBE_TEXT(unknown_name),
                                                LIST(embedding, wr_text_shape, embedding_count),
                                                LIST(unseen, unseen_shape, unseen_count),
                                                LIST(lacking, lacking_shape, lacking_count),
                                                NUMBERS(stackless, dropped_extended)};
static const wr_shape coverage_shape = SHAPE(wr_coverage);
#undef OF

/* ---- caches ---------------------------------------------------------------------------------- */

#define OF wr_cache_side
static const wr_member wr_cache_side_members[] = {NUMBERS(hits, cached_end_bytes)};
static const wr_shape cache_side_shape = SHAPE(wr_cache_side);
#undef OF

#define OF wr_tally
static const wr_member wr_tally_members[] = {NUMBERS(calls, ns), NUMBER(first), NUMBER(last)};
static const wr_shape tally_shape = SHAPE(wr_tally);
#undef OF

#define OF wr_staging
static const wr_member wr_staging_members[] = {NUMBERS(copies, percent), NUMBER_TO(was_measured, 1),
                                               NUMBER_TO(earlier, 1)};
static const wr_shape staging_shape = SHAPE(wr_staging);
#undef OF

#define OF wr_unwritten
static const wr_member wr_unwritten_members[] = {NUMBERS(copies, first), NUMBER(time), TEXT(where)};
static const wr_shape unwritten_shape = SHAPE(wr_unwritten);
#undef OF

#define OF wr_pool
static const wr_member wr_pool_members[] = {NUMBER(pid),
                                            NUMBER(handle),
                                            NUMBER_TO(device, ANY_DEVICE),
                                            NUMBER_TO(from_start, 1),
                                            NUMBER_TO(ended, 1),
                                            NUMBERS(reserved, samples),
                                            NUMBER(first_ns),
                                            NUMBER(last_ns)};
static const wr_shape pool_shape = SHAPE(wr_pool);
#undef OF

typedef struct wr_cached_at wr_cached_at;
#define OF wr_cached_at
static const wr_member wr_cached_at_members[] = {NUMBER(at), NUMBER(bytes),
                                                 NUMBER_TO(device, ANY_DEVICE)};
static const wr_shape cached_at_shape = SHAPE(wr_cached_at);
#undef OF

#define OF wr_cache
static const wr_member wr_cache_members[] = {NUMBER_TO(rerouted, 1),
                                             WORD(mode, mode_word),
                                             ARRAY(side, cache_side_shape),
                                             ARRAY(missed, tally_shape),
                                             ARRAY(left, tally_shape),
                                             ARRAY(freed, tally_shape),
                                             ARRAY(given, tally_shape),
                                             ARRAY(tainted, tally_shape),
                                             NUMBERS(kept_frees, kept_calls),
                                             NUMBER(ended),
                                             NUMBERS(held_peak_bytes, end_ns),
                                             ROW(curve),
                                             ARRAY(staging, staging_shape),
                                             SOME(unwritten, unwritten_shape, unwritten_count),
                                             NUMBER(unwritten_places),
                                             NUMBERS(unwritten_copies, unwritten_bytes),
                                             LIST(pools, pool_shape, pool_count),
                                             LIST(cached_at, cached_at_shape, cached_at_count)};
static const wr_shape cache_shape = SHAPE(wr_cache);
#undef OF

/* ---- ranges, names, graphs, kernels, tensors ------------------------------------------------- */

#define OF wr_range_sum
static const wr_member wr_range_sum_members[] = {TEXT(domain), TEXT(text), NUMBERS(ranges, seen)};
static const wr_shape range_sum_shape = SHAPE(wr_range_sum);
#undef OF

#define OF wr_named_ranges
static const wr_member wr_named_ranges_members[] = {LIST(sum, range_sum_shape, count),
                                                    NUMBER_TO(device_times, 1)};
static const wr_shape named_ranges_shape = SHAPE(wr_named_ranges);
#undef OF

#define OF wr_named_sum
static const wr_member wr_named_sum_members[] = {
    TEXT(name), NUMBER_TO(mem, 255), NUMBER_TO(device, ANY_DEVICE), NUMBERS(blocks, now_bytes)};
static const wr_shape named_sum_shape = SHAPE(wr_named_sum);
#undef OF

#define OF wr_named
static const wr_member wr_named_members[] = {LIST(sum, named_sum_shape, count)};
static const wr_shape named_shape = SHAPE(wr_named);
#undef OF

#define OF wr_graph_sum
static const wr_member wr_graph_sum_members[] = {
    UP_TO(captured, wr_model, graphs.places), UP_TO(made, wr_model, graphs.places),
    UP_TO(launched, wr_model, graphs.places), NUMBERS(graphs, maybe)};
static const wr_shape graph_sum_shape = SHAPE(wr_graph_sum);
#undef OF

static const wr_member maybe_text_members[] = {
    {"", WR_MEMBER_MAYBE, 0, sizeof(owned_text), .count = 1}};
static const wr_shape maybe_text_shape = {"text or none", sizeof(owned_text), maybe_text_members,
                                          1};

#define OF wr_graphs
static const wr_member wr_graphs_members[] = {FROM_ONE(place, maybe_text_shape, places),
                                              LIST(sum, graph_sum_shape, count)};
static const wr_shape graphs_shape = SHAPE(wr_graphs);
#undef OF

#define OF wr_kernel_sum
static const wr_member wr_kernel_sum_members[] = {MAYBE_TEXT(name), NUMBERS(launches, longest_ns)};
static const wr_shape kernel_sum_shape = SHAPE(wr_kernel_sum);
#undef OF

#define OF wr_kernels
static const wr_member wr_kernels_members[] = {GROWING(sum, kernel_sum_shape, count, capacity),
                                               APART(by_handle)};
static const wr_shape kernels_shape = SHAPE(wr_kernels);
#undef OF

#define POOL(name) POOLED(name, wr_model, tensors.text, tensors.text_count)
#define OF         wr_tensor_row
static const wr_member wr_tensor_row_members[] = {POOL(module), POOL(name), POOL(dtype),
                                                  POOL(shape), NUMBERS(tensors, bytes)};
static const wr_shape tensor_row_shape = SHAPE(wr_tensor_row);
#undef OF

#define OF wr_tensor_place
static const wr_member wr_tensor_place_members[] = {NUMBER_TO(device, ANY_DEVICE),
                                                    NUMBER_TO(pinned, 1),
                                                    NUMBERS(made, end_tensors),
                                                    NUMBER(peak_at),
                                                    LIST(modules, tensor_row_shape, module_count),
                                                    LIST(tensors, tensor_row_shape, tensor_count),
                                                    NUMBER(all_modules),
                                                    NUMBER(all_tensors)};
static const wr_shape tensor_place_shape = SHAPE(wr_tensor_place);
#undef OF

/* The list of texts grows as rows are read. */
#define OF wr_tensors
static const wr_member wr_tensors_members[] = {LIST(place, tensor_place_shape, count), APART(text),
                                               APART(text_count)};
static const wr_shape tensors_shape = SHAPE(wr_tensors);
#undef OF

/* ---- device times, waits --------------------------------------------------------------------- */

#define OF wr_work_sum
static const wr_member wr_work_sum_members[] = {NUMBERS(operations, busy_ns)};
static const wr_shape work_sum_shape = SHAPE(wr_work_sum);
#undef OF

#define OF wr_idle_part
static const wr_member wr_idle_part_members[] = {NATURAL_TO(cause, WR_IDLE_CAUSES - 1),
                                                 MAYBE_TEXT(function), NUMBER(ns)};
static const wr_shape idle_part_shape = SHAPE(wr_idle_part);
#undef OF

#define OF wr_idle_gap
static const wr_member wr_idle_gap_members[] = {NUMBER(start), NUMBER(end), ROW(ns),
                                                MAYBE_TEXT(function)};
static const wr_shape idle_gap_shape = SHAPE(wr_idle_gap);
#undef OF

#define OF wr_device_time
static const wr_member wr_device_time_members[] = {
    NATURAL_TO(device, 255),
    ARRAY(work, work_sum_shape),
    NUMBERS(span_ns, overlap_ns),
    GROWING(idle, idle_part_shape, idle_count, idle_capacity),
    NUMBER(full_ns),
    MAYBE_TEXT(full_function),
    SOME(gap, idle_gap_shape, gap_count)};
static const wr_shape device_time_shape = SHAPE(wr_device_time);
#undef OF

#define OF wr_device_times
static const wr_member wr_device_times_members[] = {
    LIST(device, device_time_shape, count), MAYBE_TEXT(observed), MAYBE_TEXT(unavailable),
    NUMBERS(yields, unmatched), NUMBER_TO(no_kernels, 1)};
static const wr_shape device_times_shape = SHAPE(wr_device_times);
#undef OF

#define OF wr_wait_part
static const wr_member wr_wait_part_members[] = {TEXT(function), NUMBERS(calls, unknown_ns)};
static const wr_shape wait_part_shape = SHAPE(wr_wait_part);
static const wr_member wait_all_members[] = {APART(function), NUMBERS(calls, unknown_ns)};
static const wr_shape wait_all_shape = {"wr_wait_part of no function", sizeof(wr_wait_part),
                                        wait_all_members, 2};
#undef OF

#define OF wr_wait_truth
static const wr_member wr_wait_truth_members[] = {
    NUMBER_TO(judged, 1),
    NATURAL_TO(why, WR_UNJUDGED_RESOLVED),
    NATURAL_TO(why_undivided, WR_UNJUDGED_RESOLVED),
    NUMBERS(judged_calls, wider_ns),
    NUMBER_TO(divided, 1),
    GROWING(part, wait_part_shape, part_count, part_capacity),
    STRUCT(all, wait_all_shape)};
static const wr_shape wait_truth_shape = SHAPE(wr_wait_truth);
#undef OF

/* ---- all ------------------------------------------------------------------------------------- */

#define OF wr_model
static const wr_member wr_model_members[] = {APART(top),
                                             APART(path),
                                             MAYBE_TEXT(command),
                                             MAYBE_TEXT(version),
                                             MAYBE_TEXT(no_gpu),
                                             MAYBE_TEXT(window_reason),
                                             NUMBER_TO(is_window, 1),
                                             NUMBER(window_start_ns),
                                             NUMBER(window_end_ns),
                                             NUMBER(before_calls),
                                             NUMBER_TO(finished, 1),
                                             NUMBER(duration_ns),
                                             NUMBER(start_realtime_ns),
                                             STRUCT(total, totals_shape),
                                             LIST(frames, frame_name_shape, frame_count),
                                             SPARSE(devices, device_shape, 256),
                                             LIST(apis, api_row_shape, api_count),
                                             LIST(routes, route_shape, route_count),
                                             SOME(split, host_split_shape, split_count),
                                             LIST(processes, process_row_shape, process_count),
                                             LIST(notes, wr_text_shape, note_count),
                                             STRUCT(coverage, coverage_shape),
                                             STRUCT(cache, cache_shape),
                                             STRUCT(ranges, named_ranges_shape),
                                             STRUCT(named, named_shape),
                                             STRUCT(graphs, graphs_shape),
                                             STRUCT(kernels, kernels_shape),
                                             STRUCT(tensors, tensors_shape),
                                             STRUCT(device_times, device_times_shape),
                                             STRUCT(waits, wait_truth_shape),
                                             STRUCT(alloc, sites_shape),
                                             STRUCT(copy, sites_shape),
                                             STRUCT(sync, sites_shape),
                                             STRUCT(redundant, sites_shape),
                                             STRUCT(wider, sites_shape),
                                             STRUCT(leak, sites_shape),
                                             STRUCT(asked, sites_shape),
                                             STRUCT(taken, sites_shape)};
const wr_shape wr_model_shape = SHAPE(wr_model);
#undef OF

/* test_innocents.c: what looks like a waste and is none has no finding that is certain or
 * likely, and none at all where it cannot be one: in each mode, with the hashes that are taken by
 * default, with all, and without. */
#include <stdio.h>
#include <string.h>
#include "tests/findings/found.h"
#include "tests/tools/command.h"

/* `may`: rules that may say "possible"; NULL: none. `sure`: one that is right. */
static const struct innocent {
  const char *name, *may, *sure;
} innocents[] = {
    {"given-by-handle", NULL, NULL},
    {"given-by-attribute", NULL, NULL},
    {"given-physical", NULL, NULL},
    {"given-pool", NULL, NULL},
    {"taken-from-another", NULL, NULL},
    {"look-at-managed", "premature-wait", NULL},
    {"look-at-pinned", "premature-wait", NULL},
    {"look-at-registered", "premature-wait", NULL},
    {"refill", "premature-wait, repeated-upload", NULL},
    {"take-times", NULL, NULL},
    {"watched-by-another", "premature-wait", NULL},
    {"drain", "array-for-a-scalar, unchanged-read-back",
     NULL}, /* of each result a byte is looked at */
    {"copy-behind-work", NULL, "pageable-async"},
    {"wait-then-free", "array-for-a-scalar, unchanged-read-back", NULL},
    {"upload-changed", "repeated-upload", NULL},
    {"uploads-differ", "constant-payload", NULL}, /* the first */
    {"uploads-restore", "copied-instead-of-swapped", NULL},
    {"state-changed", "through-the-host, number-in-each-step", NULL},
    {"graphs-of-buffers", "dead-write, premature-wait", NULL},
    {"interrupted-launches", NULL, "launch-storm"},
    {"asks-for-each", NULL, NULL},
    {"used-by-kernels", NULL, NULL},
    {"handed-no-more", "premature-wait", "idle-object"},
    {"handed-no-more-in-graphs", "premature-wait", "idle-object"},
    {"copied-in-graphs", "premature-wait", NULL},
    {"handed-then-freed", "premature-wait", NULL},
    {"handed-once", "premature-wait, idle-object", NULL},
    {"small-handed-once", "premature-wait", NULL},
    {"used-by-table", "premature-wait, idle-object", NULL},
    {"used-by-texture", "premature-wait", NULL},
    {"copied-then-read",
     "hidden-wait, blocking-copy, premature-wait, constant-payload, mapped-memory-again",
     "unused-transfer"}, /* kernels are handed what it was copied from */
    {"idle-below-the-peak", "hidden-wait", NULL},
    {"refused-by-quota", "fragmentation, unused-allocation, dead-write", NULL},
};

/* Whose streams wait for each other, and need to. */
static const char *const ordered[] = {
    "order-of-a-pipeline", "order-of-two-buffers",     "order-of-a-cache", "order-of-a-ring",
    "order-of-a-join",     "order-of-a-host-function", "order-of-a-table", "order-of-a-pool",
    "order-now-and-then",  "chunks-in-streams",
};

static const char *const modes[] = {"observe", "strict", "relaxed"};

enum {
  INNOCENTS = sizeof(innocents) / sizeof(innocents[0]),
  ORDERED = sizeof(ordered) / sizeof(ordered[0]),
  MODES = 3
};

static void run_all(void)
{
  FILE *runs = found_begin();
  char name[64], words[64], options[64];
  for (int k = 0; k < INNOCENTS * MODES; k++) {
    const char *of = innocents[k / MODES].name, *mode = modes[k % MODES];
    (void)snprintf(name, sizeof name, "%s.%s", of, mode);
    (void)snprintf(words, sizeof words, "innocent %s", of);
    (void)snprintf(options, sizeof options, "--sim=1 --mode=%s", mode);
    found_run(runs, name, words, options);
  }
  for (int k = 0; k < ORDERED; k++) {
    (void)snprintf(words, sizeof words, "innocent %s", ordered[k]);
    found_run(runs, ordered[k], words, "--sim=1 --mode=observe --device-times=all");
  }
  found_run(runs, "upload-changed.hashed", "innocent upload-changed",
            "--sim=1 --mode=observe --hash=on");
  found_run(runs, "upload-changed.unhashed", "innocent upload-changed",
            "--sim=1 --mode=observe --hash=off");
  found_run(runs, "state-changed.hashed", "innocent state-changed",
            "--sim=1 --mode=observe --hash=on");
  found_run(runs, "state-changed.unhashed", "innocent state-changed",
            "--sim=1 --mode=observe --hash=off");
  found_run(runs, "used-by-kernels.unread", "innocent used-by-kernels",
            "--sim=1 --mode=observe --access=off");
  found_run(runs, "copied-then-read.card", "innocent copied-then-read",
            "--sim=1,h100 --mode=observe");
  found_make(runs);
}

/* What is never freed is another matter, and so are managed memory that moves, and that some look until work is complete, which
 * takes long on a busy machine. */
static bool is_other(const char *id)
{
  return !strcmp(id, "leak") || !strcmp(id, "managed-thrash") || !strcmp(id, "polled-in-a-loop");
}

START_TEST(what_is_no_waste_is_not_found)
{
  const struct innocent *n = &innocents[_i / MODES];
  const char *mode = modes[_i % MODES];
  char name[64];
  (void)snprintf(name, sizeof name, "%s.%s", n->name, mode);
  json_t *all = found_read(name);
  const json_t *f;
  size_t i;
  FOUND_EACH(all, i, f)
  {
    const char *id = found_text(f, "id"), *how = found_text(f, "certainty");
    if ((n->sure && !strcmp(id, n->sure)) || is_other(id)) continue;
    bool allowed = n->may && strstr(n->may, id) && !strcmp(how, "possible");
    ck_assert_msg(allowed, "%s in %s: %s is %s", n->name, mode, id, how);
  }
  json_decref(all);
}
END_TEST

START_TEST(what_one_launch_was_handed_is_possibly_idle)
{
  json_t *all = found_read("handed-once.observe");
  ck_assert_ptr_nonnull(found_of(all, "idle-object"));
  ck_assert_str_eq(found_text(found_of(all, "idle-object"), "certainty"), "possible");
  json_decref(all);
}
END_TEST

START_TEST(an_order_that_is_needed_is_not_advised_against)
{
  json_t *all = found_read(ordered[_i]);
  ck_assert_msg(!found_of(all, "streams-serialised-by-events"), "%s", ordered[_i]);
  ck_assert_msg(!found_of(all, "default-stream-between"), "%s", ordered[_i]);
  json_decref(all);
}
END_TEST

/* Pinned memory saves a part of the copy, and nothing of the 2 ms of work that came before it. */
START_TEST(a_copy_behind_work_saves_no_more_than_a_copy_takes)
{
  json_t *all = found_read("copy-behind-work.observe");
  const json_t *f = json_array_get(json_object_get(all, "findings"), 0);
  ck_assert_str_eq(found_text(f, "id"), "pageable-async");
  long long cost = found_number(f, "cost_host_ns"), saving = found_number(f, "saving_host_ns");
  ck_assert_int_ge(cost, 8 * 2000000);
  ck_assert_int_gt(saving, 0);
  ck_assert_int_lt(saving, 8 * 20000); /* 128 KiB at 10 bytes a ns, and so often */
  json_decref(all);
}
END_TEST

START_TEST(whether_a_buffer_was_the_same_is_left_to_hashes)
{
  json_t *all = found_read("upload-changed.unhashed");
  const json_t *list = json_object_get(all, "findings");
  const json_t *f = json_array_get(list, json_array_size(list) - 1);
  ck_assert_str_eq(found_text(f, "id"), "repeated-upload");
  ck_assert_int_eq(found_number(f, "saving_host_ns"), 0);
  ck_assert_ptr_nonnull(strstr(found_text(f, "fix"), "weir run --hash"));
  json_decref(all);
  static const char *const hashed[] = {"upload-changed.hashed", "upload-changed.observe"};
  for (int i = 0; i < 1 + FOUND_CAN_HASH; i++) {
    all = found_read(hashed[i]);
    ck_assert_int_eq((int)json_array_size(json_object_get(all, "findings")), 0);
    json_decref(all);
  }
}
END_TEST

/* Without hashes it is possible that the host brings a state on as it was. */
START_TEST(a_state_that_the_host_changes_does_not_go_through_it)
{
  json_t *all = found_read("state-changed.unhashed");
  ck_assert_ptr_nonnull(found_of(all, "through-the-host"));
  json_decref(all);
  if (!FOUND_CAN_HASH) return;
  all = found_read("state-changed.hashed");
  ck_assert_ptr_null(found_of(all, "through-the-host"));
  json_decref(all);
}
END_TEST

/* By their parameters alone kernels are known to use it. */
START_TEST(what_kernels_use_is_idle_only_where_their_parameters_are_not_read)
{
  json_t *all = found_read("used-by-kernels.unread");
  const json_t *f = found_of(all, "idle-object");
  ck_assert_ptr_nonnull(f);
  ck_assert_str_eq(found_text(f, "certainty"), "possible");
  json_decref(all);
}
END_TEST

/* Pinning takes there what it takes with a card. */
START_TEST(memory_that_kernels_read_is_not_pinned_for_one_copy)
{
  json_t *all = found_read("copied-then-read.card");
  ck_assert_ptr_null(found_of(all, "pinned-for-one-copy"));
  json_decref(all);
}
END_TEST

/* The block of 8 MiB that no launch is handed any more, in each mode: neither by itself nor in a graph, which copies and sets
 * other memory. */
START_TEST(what_launches_are_handed_no_more_is_likely_idle)
{
  char name[64];
  static const char *const programs[] = {"handed-no-more", "handed-no-more-in-graphs"};
  (void)snprintf(name, sizeof name, "%s.%s", programs[_i / MODES], modes[_i % MODES]);
  json_t *all = found_read(name);
  const json_t *f = found_of(all, "idle-object");
  ck_assert_ptr_nonnull(f);
  ck_assert_str_eq(found_text(f, "certainty"), "likely");
  ck_assert_int_eq(found_number(f, "saving_bytes"), 8 << 20);
  json_decref(all);
}
END_TEST

/* The calls that hand memory over are in the trace, with its address. */
START_TEST(what_hands_memory_over_is_in_the_trace)
{
  static const struct {
    const char *trace, *call;
    int times;
  } calls[] = {{"given-by-handle.observe.db", "cuIpcGetMemHandle", 16},
               {"given-by-handle.strict.db", "cuIpcGetMemHandle", 16},
               {"given-by-attribute.relaxed.db", "cuPointerSetAttribute", 1},
               {"given-physical.observe.db", "cuMemExportToShareableHandle", 1},
               {"given-pool.observe.db", "cuMemPoolExportToShareableHandle", 1}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    char query[256];
    (void)snprintf(query, sizeof query,
                   "SELECT count(*) FROM event e JOIN api x ON x.id = e.api WHERE x.name = '%s'"
                   " AND e.status = 0 AND e.a <> 0",
                   calls[i].call);
    ck_assert_msg(ask(calls[i].trace, query) == calls[i].times, "%s", calls[i].call);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("innocents");
  TCase *t = tcase_create("none");
  tcase_set_timeout(t, 120);
  tcase_add_unchecked_fixture(t, run_all, leave_scratch);
  tcase_add_test(t, what_one_launch_was_handed_is_possibly_idle);
  tcase_add_loop_test(t, an_order_that_is_needed_is_not_advised_against, 0, ORDERED);
  tcase_add_loop_test(t, what_is_no_waste_is_not_found, 0, INNOCENTS * MODES);
  tcase_add_test(t, a_copy_behind_work_saves_no_more_than_a_copy_takes);
  tcase_add_test(t, a_state_that_the_host_changes_does_not_go_through_it);
  tcase_add_test(t, whether_a_buffer_was_the_same_is_left_to_hashes);
  tcase_add_loop_test(t, what_launches_are_handed_no_more_is_likely_idle, 0, 2 * MODES);
  tcase_add_test(t, what_kernels_use_is_idle_only_where_their_parameters_are_not_read);
  tcase_add_test(t, memory_that_kernels_read_is_not_pinned_for_one_copy);
  tcase_add_test(t, what_hands_memory_over_is_in_the_trace);
  suite_add_tcase(s, t);
  return run_suite(s);
}

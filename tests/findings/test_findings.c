/* test_findings.c: each rule of Weir's finds the waste of a program that commits it, in the line
 * where it is, and not in one that looks like it. */
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/findings/found.h"
#include "tests/tools/command.h"

static char ids[FOUND_IDS][64], options[FOUND_IDS][64];
static int id_count;

static bool needs_hashes(int i)
{
  return strstr(options[i], "--hash=on") != NULL;
}

/* With its own options, and where these hash, with the default ones too. */
static void run_one(FILE *runs, int i, const char *how)
{
  char name[96], words[80], more[96];
  (void)snprintf(words, sizeof words, "%s %s", ids[i], how);
  (void)snprintf(name, sizeof name, "%s.%s", ids[i], how);
  (void)snprintf(more, sizeof more, "--mode=observe --sim=2%s", options[i]);
  found_run(runs, name, words, more);
  (void)snprintf(name, sizeof name, "%s.default.%s", ids[i], how);
  if (needs_hashes(i)) found_run(runs, name, words, "--mode=observe --sim=2");
}

static void run_all(void)
{
  FILE *runs = found_begin();
  for (int i = 0; i < id_count; i++) {
    run_one(runs, i, "waste");
    run_one(runs, i, "twin");
  }
  found_make(runs);
}

/* The findings of a rule's waste, or of its twin (new). */
static json_t *read_run(const char *id, const char *how)
{
  char name[80];
  (void)snprintf(name, sizeof name, "%.63s.%.5s", id, how);
  return found_read(name);
}

START_TEST(a_waste_is_found_where_it_is)
{
  const char *id = ids[_i];
  if (!FOUND_CAN_HASH && needs_hashes(_i)) return;
  json_t *all = read_run(id, "waste");
  const json_t *f = found_of(all, id);
  ck_assert_msg(f != NULL, "%s is not found", id);
  const json_t *site = json_array_get(json_object_get(f, "sites"), 0);
  const json_t *place = json_object_get(site, "place");
  const char *file = found_text(place, "file");
  long line = (long)found_number(place, "line");
  ck_assert_msg(file && found_says_waste(file, line, id), "%s is found in %s:%ld", id,
                file ? file : "?", line);
  json_decref(all);
}
END_TEST

/* The rules of launches, of waits for them, and of graphs, whose victims have one kernel. */
static const char *const kernel_rules[] = {"launch-storm", "launch-queue-full", "premature-wait",
                                           "wide-wait",    "graph-made-anew",   "wait-before-copy"};

START_TEST(what_is_launched_or_waited_for_is_named)
{
  json_t *all = read_run(kernel_rules[_i], "waste");
  const json_t *f = found_of(all, kernel_rules[_i]);
  ck_assert_msg(f != NULL, "%s is not found", kernel_rules[_i]);
  const char *kernel = json_string_value(json_array_get(json_object_get(f, "kernel_names"), 0));
  ck_assert_msg(kernel && !strcmp(kernel, "victim_touch"), "%s: %s", kernel_rules[_i],
                kernel ? kernel : "none");
  json_decref(all);
}
END_TEST

START_TEST(what_hashes_show_is_found_without_asking_for_them)
{
  char name[96];
  if (!FOUND_CAN_HASH || !needs_hashes(_i)) return;
  (void)snprintf(name, sizeof name, "%.63s.default.waste", ids[_i]);
  json_t *all = found_read(name);
  ck_assert_msg(found_of(all, ids[_i]) != NULL, "%s is not found", ids[_i]);
  json_decref(all);
  (void)snprintf(name, sizeof name, "%.63s.default.twin", ids[_i]);
  all = found_read(name);
  ck_assert_msg(!found_of(all, ids[_i]), "%s is found in its twin", ids[_i]);
  json_decref(all);
}
END_TEST

START_TEST(what_looks_like_a_waste_is_not_found)
{
  json_t *all = read_run(ids[_i], "twin");
  ck_assert_msg(!found_of(all, ids[_i]), "%s is found in its twin", ids[_i]);
  json_decref(all);
}
END_TEST

/* Findings of one run that are certain, and of them those of this rule (NULL: of any). */
static int count_certain(const char *id, const char *how, const char *rule)
{
  json_t *all = read_run(id, how);
  const json_t *f;
  size_t i;
  int count = 0;
  FOUND_EACH(all, i, f)
  {
    const char *of = found_text(f, "id");
    if (strcmp(found_text(f, "certainty"), "certain") != 0) continue;
    if (rule && strcmp(rule, of) != 0) continue;
    if (!rule) printf("%s %s: %s is certain\n", id, how, of);
    count++;
  }
  json_decref(all);
  return count;
}

START_TEST(no_twin_wastes_for_certain_by_any_rule)
{
  int found = 0, right = 0, wrong = 0;
  for (int i = 0; i < id_count; i++) {
    json_t *all = read_run(ids[i], "waste");
    found += found_of(all, ids[i]) != NULL;
    json_decref(all);
    right += count_certain(ids[i], "waste", ids[i]);
    wrong += count_certain(ids[i], "twin", NULL);
  }
  printf("recall %d of %d victims; certain: %d in victims, %d in twins\n", found, id_count, right,
         wrong);
  ck_assert(right > 10);
  ck_assert_int_eq(wrong, 0);
  ck_assert(!FOUND_CAN_HASH || found * 10 >= id_count * 9);
}
END_TEST

/* By the bytes that came to the host and went on as they were: zeros are no exception, and that
 * they could be set without a copy is another finding. */
START_TEST(bytes_that_cross_the_host_are_found_whatever_they_are)
{
  if (!FOUND_CAN_HASH) return;
  json_t *all = read_run("peer-bounce", "waste");
  const json_t *f;
  size_t i;
  int count = 0;
  FOUND_EACH(all, i, f)
  {
    if (strcmp(found_text(f, "id"), "peer-bounce") != 0) continue;
    ck_assert_str_eq(found_text(f, "certainty"), "certain");
    count += (int)found_number(f, "count");
  }
  ck_assert_int_eq(count, 2 * 12);
  ck_assert_ptr_nonnull(found_of(all, "constant-payload"));
  json_decref(all);
}
END_TEST

/* How often a run has what the rule finds, of one certainty. */
static int times_found(const json_t *all, const char *rule, const char *certainty)
{
  const json_t *f;
  size_t i;
  int times = 0;
  FOUND_EACH(all, i, f)
  {
    bool counts =
        !strcmp(found_text(f, "id"), rule) && !strcmp(found_text(f, "certainty"), certainty);
    times += counts ? (int)found_number(f, "count") : 0;
  }
  return times;
}

/* To the host they wait however small they are; that is worth little. */
START_TEST(small_pageable_copies_to_the_host_are_possible)
{
  json_t *all = read_run("pageable-async", "waste");
  int possible = times_found(all, "pageable-async", "possible");
  ck_assert_int_eq(times_found(all, "pageable-async", "certain"), 20);
  ck_assert_int_ge(possible, 36); /* not those before which the device was done */
  ck_assert_int_le(possible, 40);
  json_decref(all);
}
END_TEST

/* Of two lanes, each has 40 kernels in the default stream; of 80 all but the first come while both have work. */
START_TEST(work_of_one_lane_in_the_default_stream_is_possible)
{
  json_t *all = read_run("default-stream-between", "waste");
  ck_assert_int_eq(times_found(all, "default-stream-between", "likely"), 80);
  ck_assert_int_eq(times_found(all, "default-stream-between", "possible"), 79);
  json_decref(all);
}
END_TEST

/* How many findings of a rule there are. */
static int findings_of(const json_t *all, const char *rule)
{
  const json_t *f;
  size_t i;
  int count = 0;
  FOUND_EACH(all, i, f)
  {
    count += !strcmp(found_text(f, "id"), rule);
  }
  return count;
}

START_TEST(a_loop_that_launches_at_two_places_is_one_storm)
{
  json_t *all = read_run("launch-storm", "waste");
  ck_assert_int_eq(findings_of(all, "launch-storm"), 1);
  ck_assert_int_eq(times_found(all, "launch-storm", "likely"), 200 * 2 * 7);
  ck_assert_uint_eq(json_array_size(json_object_get(found_of(all, "launch-storm"), "sites")), 2);
  json_decref(all);
}
END_TEST

/* Calls as long as before, a thousand times as far apart: the device may have been busy with these launches or not. */
START_TEST(slow_launches_of_one_block_are_possible)
{
  json_t *all = read_run("launch-storm", "waste");
  ck_assert_int_gt(times_found(all, "launch-storm", "likely"), 0);
  json_decref(all);
  sh_status(
      0, "cp launch-storm.waste.db slow.db && sqlite3 slow.db"
         " 'UPDATE event_row SET start = start * 1000; UPDATE process SET \"end\" = \"end\" * 1000;"
         " UPDATE meta SET value = value * 1000 WHERE key = \"duration_ns\"' &&"
         " $WEIR report findings --format json --min-cost 0ns slow.db > slow.json");
  all = found_read("slow");
  ck_assert_int_eq(times_found(all, "launch-storm", "likely"), 0);
  ck_assert_int_eq(times_found(all, "launch-storm", "possible"), 200 * 2 * 7);
  json_decref(all);
}
END_TEST

/* The wait for the first copy is none of the host's own time. */
START_TEST(what_goes_on_as_soon_as_it_is_there_is_likely_through_the_host)
{
  json_t *all = read_run("through-the-host", "waste");
  const json_t *f = found_of(all, "through-the-host");
  ck_assert_ptr_nonnull(f);
  ck_assert_str_eq(found_text(f, "certainty"), "likely");
  json_decref(all);
}
END_TEST

/* Zeros are set again without a copy, and what copies one row after the other is one finding. */
START_TEST(the_rule_that_knows_better_is_alone)
{
  static const struct {
    const char *of, *not ;
  } pairs[] = {{"constant-payload", "duplicate-transfer"}, {"rows-one-by-one", "tiny-copies"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (!FOUND_CAN_HASH && !i) continue;
    json_t *all = read_run(pairs[i].of, "waste");
    ck_assert_ptr_nonnull(found_of(all, pairs[i].of));
    ck_assert_msg(!found_of(all, pairs[i].not ), "%s", pairs[i].not );
    json_decref(all);
  }
}
END_TEST

/* A copy that returns at once takes the device's time all the same. */
START_TEST(what_copies_take_of_the_device_is_in_their_cost)
{
  sh_status(0, "$WEIR run --force -o d.db --mode=observe --sim=1,h100 --device-times=all --"
               " $BUILD/tests/findings/waster tiny-copies waste");
  sh_status(0, "$WEIR report findings --min-cost 0ns --format json/1 d.db >d.json");
  json_error_t e;
  json_t *all = json_load_file("d.json", 0, &e);
  const json_t *f = found_of(all, "tiny-copies");
  ck_assert_ptr_nonnull(f);
  /* of its copies nine in ten: what a loaded machine made of the others is apart */
  long long counted = found_number(f, "count") * 9 / 10;
  char query[200];
  (void)snprintf(query, sizeof query,
                 "SELECT sum(ns) FROM (SELECT max(e.duration, sum(d.\"end\" - d.start)) AS ns"
                 " FROM event e JOIN device_work d ON d.event = e.id WHERE e.bytes = 1024"
                 " GROUP BY e.id ORDER BY 1 LIMIT %lld)",
                 counted);
  int64_t least = ask("d.db", query);
  ck_assert_int_gt(least,
                   counted * 1000); /* a copy takes 6 us of the device, and less of the host */
  ck_assert_msg(found_number(f, "cost_ns") >= least, "%lld of %lld",
                (long long)found_number(f, "cost_ns"), (long long)least);
  json_decref(all);
}
END_TEST

static int64_t hashed_of(const char *work)
{
  sh_status(0,
            "$WEIR run --force -o a.db --mode=observe --sim --"
            " $BUILD/tests/findings/waster %s >/dev/null",
            work);
  return ask("a.db", "SELECT count(*) FROM copy_hash WHERE outcome = 1");
}

/* Bytes of these copies: tests/victims/findings/waste_fixed_uploads.c. */
START_TEST(what_uploads_have_in_common_is_recorded)
{
  if (!FOUND_CAN_HASH) return;
  (void)hashed_of("changed_table unfixed 6");
  ck_assert_int_eq(ask("a.db", "SELECT count(*) FROM copy_part WHERE before = 1 << 20"
                               " AND same = (1 << 20) - 3 * (1 << 14) AND changed = 3"),
                   5);
  (void)hashed_of("grown_history unfixed 6");
  ck_assert_int_eq(ask("a.db", "SELECT count(*) FROM copy_part p JOIN event e ON e.id = p.event"
                               " WHERE p.before = e.bytes - 4096 AND p.changed = 1"
                               " AND e.bytes - p.same BETWEEN 4096 AND 1 << 16"),
                   5);
  (void)hashed_of("padded_upload unfixed 6");
  ck_assert_int_eq(ask("a.db",
                       "SELECT count(*) FROM copy_part WHERE last = 0"
                       " AND tail BETWEEN 629145 AND 640000 AND same BETWEEN 600000 AND tail"),
                   5);
}
END_TEST

/* Of copies that have no part in common 16 are hashed, of 40 that repeat at least so many as the allowance at the start leaves
 * (interpose/content/sample.c). */
START_TEST(the_first_copies_of_a_place_are_hashed_and_more_where_they_repeat)
{
  if (!FOUND_CAN_HASH) return;
  ck_assert_int_ge(hashed_of("duplicate_transfer unfixed 40"), 20);
  ck_assert_int_eq(hashed_of("mostly-unchanged-upload twin"), 16);
  sh_status(0, "$WEIR report findings --min-cost 0ns --format json/1 a.db >a.json");
  json_error_t e;
  json_t *all = json_load_file("a.json", 0, &e);
  ck_assert_ptr_null(found_of(all, "repeated-upload"));
  ck_assert_ptr_null(found_of(all, "duplicate-transfer"));
  json_decref(all);
}
END_TEST

/* What Weir's caches did away with is no finding; that they did is said. */
START_TEST(what_weir_removed_in_a_run_is_said_and_not_found)
{
  sh_status(0, "$WEIR run --force -o s.db --mode=strict --sim -- $BUILD/tests/findings/waster"
               " repeated-allocation");
  const char *out = sh_status(0, "$WEIR report findings --min-cost 0ns s.db")->out;
  const char *removed = strstr(out, "Removed by Weir in this run: The same memory allocated");
  ck_assert_msg(removed && strstr(removed, " times"), "%s", out);
  ck_assert_msg(strstr(removed, "waste_memory.c:12") &&
                    strstr(removed, "Allocate it once before the loop"),
                "%s", out);
  out = sh_status(0, "$WEIR report findings --min-cost 0ns --format json s.db")->out;
  ck_assert_msg(strstr(out, "\"removed\": [\n    {\n      \"id\": \"repeated-allocation\""), "%s",
                out);
}
END_TEST

START_TEST(a_summary_begins_with_findings)
{
  const char *out =
      sh_status(0, "$WEIR report --width 80 --min-cost 0ns pinned-churn.waste.db")->out;
  const char *found = strstr(out, "\nFindings"), *title = strstr(out, "1. Host memory pinned");
  ck_assert_msg(found && title && strstr(title, "waste_memory.c:"), "%s", out);
  out = sh_status(0, "$WEIR report findings pinned-churn.twin.db")->out;
  ck_assert_msg(strstr(out, "Nothing was found that costs 1.00 ms or 0.5 % of the run."), "%s",
                out);
}
END_TEST

/* What is possible only is a line each below what is sure, and in no sum; in full where that is
 * asked for. What decides is named. */
START_TEST(what_is_possible_stands_apart_in_a_line_each)
{
  const char *in = "$WEIR report findings --width 0 --min-cost 0ns";
  const char *out = sh_status(0, "%s repeated-upload.waste.db", in)->out;
  const char *apart = strstr(out, "\n  Possible, which the calls alone do not tell (--possible: ");
  const char *line = strstr(out, ". repeated-upload  upload_again  waste_links.c:");
  ck_assert_msg(apart && line > apart && strstr(line, " 39 times; weir run --hash decides\n"), "%s",
                out);
  ck_assert_ptr_null(strstr(out, "copied to the same memory"));
  ck_assert_ptr_null(strstr(apart, "likely: "));
  ck_assert_ptr_null(strstr(apart, "certain: "));
  out = sh_status(0, "%s --possible repeated-upload.waste.db", in)->out;
  ck_assert_msg(strstr(out, "possible: ") && strstr(out, "copied to the same memory"), "%s", out);
  out = sh_status(0, "%s serialised-copies.waste.db", in)->out;
  ck_assert_ptr_null(strstr(out, " to be saved, "));
  out = sh_status(0, "%s --format json serialised-copies.waste.db", in)->out;
  ck_assert_msg(strstr(out, "\"sure_saving_host_ns\": 0,"), "%s", out);
}
END_TEST

/* What comes often has a line with its place, what does not only its rule's name. */
START_TEST(what_is_too_small_to_be_listed_has_a_place_where_it_comes_often)
{
  const char *in = "$WEIR report findings --width 0 --min-cost 1000s";
  const char *out = sh_status(0, "%s copied-instead-of-swapped.waste.db", in)->out;
  const char *small = strstr(out, "\n  Too small to be listed (--min-cost 0ns: in full):");
  const char *line =
      strstr(out, "\n    copied-instead-of-swapped  copied_instead_of_swapped  waste_steps.c:");
  ck_assert_msg(small && line > small && strstr(line, ", 80 times"), "%s", out);
  out = sh_status(0, "%s loaded-in-a-request.waste.db", in)->out;
  small = strstr(out, "\n  Too small to be listed (--min-cost 0ns: in full): ");
  ck_assert_msg(small && strstr(small, "loaded-in-a-request\n"), "%s", out);
  ck_assert_ptr_null(strstr(small, "    loaded-in-a-request"));
}
END_TEST

/* Where the source is at hand its line is quoted, in text and in JSON. */
START_TEST(a_finding_says_what_where_and_how_much)
{
  json_error_t e;
  const char *in = "here=$PWD && cd $WEIR_SOURCE && $WEIR report findings --min-cost 0ns";
  const char *out = sh_status(0, "%s --format json $here/pinned-churn.waste.db", in)->out;
  json_t *all = json_loads(out, 0, &e);
  ck_assert_msg(all != NULL, "%s", e.text);
  const json_t *f = found_of(all, "pinned-churn");
  ck_assert_ptr_nonnull(f);
  const json_t *site = json_array_get(json_object_get(f, "sites"), 0);
  double share = json_real_value(json_object_get(f, "share_of_run"));
  long long saving = found_number(f, "saving_host_ns");
  const json_t *together = json_object_get(all, "savings");
  long long run = found_number(together, "duration_ns");
  const char *source = found_text(site, "source");
  ck_assert_msg(source && strstr(source, "WASTE pinned-churn"), "%s", out);
  ck_assert(saving > 0 && run > saving);
  ck_assert_double_eq_tol(share, (double)saving / (double)run, 1e-9);
  ck_assert_int_ge(found_number(f, "cost_host_ns"), saving);
  ck_assert_int_ge(found_number(together, "saving_host_ns"), saving);
  ck_assert_str_eq(found_text(f, "severity"), "high");
  ck_assert_str_eq(found_text(f, "certainty"), "certain");
  ck_assert_int_gt(found_number(site, "count"), 0);
  ck_assert(json_is_array(json_object_get(all, "unjudged")));
  json_decref(all);
  for (int width = 80; width <= 120; width += 40) {
    out = sh_status(0, "%s --width %d $here/pinned-churn.waste.db", in, width)->out;
    ck_assert_msg(strstr(out, " | ") && strstr(out, "certain: saves up to ") &&
                      strstr(out, " of the run)") && strstr(out, "waste_memory.c:"),
                  "%s", out);
    for (const char *at = out; *at; at += strcspn(at, "\n") + (strchr(at, '\n') != NULL))
      ck_assert_msg(strcspn(at, "\n") <= (size_t)width + 8, "%.160s", at);
  }
}
END_TEST

/* Its resolved tables lack what a later Weir asks of waits: they are made anew. */
START_TEST(a_trace_resolved_by_an_earlier_weir_is_judged_like_another)
{
  sqlite3 *db;
  sh_status(0, "cp premature-wait.waste.db old.db && $WEIR resolve old.db");
  ck_assert_int_eq(sqlite3_open_v2("old.db", &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
  ck_assert_int_eq(sqlite3_exec(db,
                                "ALTER TABLE wait_detail DROP COLUMN host;"
                                "ALTER TABLE wait_detail DROP COLUMN before_legacy",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
  const char *out = sh_status(0, "$WEIR report findings --min-cost 0ns --format json old.db")->out;
  ck_assert_msg(strstr(out, "\"id\": \"premature-wait\""), "%s", out);
}
END_TEST

static long long number_of(const char *command, const char *db)
{
  return strtoll(sh_status(0, command, db)->out, NULL, 10);
}

/* In the report, in the table, in the finding, and where it is checked; of one stream there are
 * none. */
START_TEST(waits_that_are_too_wide_are_the_same_everywhere)
{
  static const char *const runs[] = {"wide-wait.waste", "wide-wait.twin", "redundant-wait.waste",
                                     "tiny-copies.waste"};
  long long most = 0;
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    if (sh("test -e %s.db", runs[i])->status) continue;
    long long found =
        number_of("python3 -c 'import json; print(sum(f[\"count\"] for f in"
                  " json.load(open(\"%s.json\"))[\"findings\"] if f[\"id\"] == \"wide-wait\"))'",
                  runs[i]);
    ck_assert_int_eq(number_of("$WEIR report --format json %s.db | python3 -c 'import json, sys;"
                               " print(json.load(sys.stdin)[\"judged\"][\"wider_calls\"])'",
                               runs[i]),
                     found);
    ck_assert_int_eq(
        number_of("$WEIR report waits --table waits --format csv %s.db | sed -n"
                  " 's/^asked for of all streams where one had work,\\([0-9]*\\),.*/\\1/p'",
                  runs[i]),
        found);
    sh_status(0, "echo 'waits.wider.count <= %lld' >budget; $WEIR check --budget budget %s.db",
              found, runs[i]);
    if (found)
      sh_status(1, "echo 'waits.wider.count < %lld' >budget; $WEIR check --budget budget %s.db",
                found, runs[i]);
    most = found > most ? found : most;
  }
  ck_assert_int_gt(most, 0);
}
END_TEST

START_TEST(every_rule_has_a_victim)
{
  const char *rules =
      sh_status(0, "sed -n 's/^-- id: //p' $WEIR_SOURCE/reports/findings/rules/*.sql")->out;
  int count = 0;
  for (const char *at = rules; *at; at += strcspn(at, "\n") + 1, count++) {
    bool has = false;
    for (int i = 0; i < id_count; i++)
      has |= strlen(ids[i]) == strcspn(at, "\n") && !strncmp(at, ids[i], strlen(ids[i]));
    ck_assert_msg(has, "rule %.*s has none", (int)strcspn(at, "\n"), at);
  }
  ck_assert_int_eq(count, id_count);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("findings");
  TCase *t = tcase_create("rules");
  tcase_set_timeout(t, 120);
  tcase_add_unchecked_fixture(t, run_all, leave_scratch);
  id_count = found_list(ids, options);
  tcase_add_loop_test(t, a_waste_is_found_where_it_is, 0, id_count);
  tcase_add_loop_test(t, what_is_launched_or_waited_for_is_named, 0,
                      sizeof kernel_rules / sizeof *kernel_rules);
  tcase_add_loop_test(t, what_looks_like_a_waste_is_not_found, 0, id_count);
  tcase_add_loop_test(t, what_hashes_show_is_found_without_asking_for_them, 0, id_count);
  tcase_add_test(t, no_twin_wastes_for_certain_by_any_rule);
  tcase_add_test(t, bytes_that_cross_the_host_are_found_whatever_they_are);
  tcase_add_test(t, what_goes_on_as_soon_as_it_is_there_is_likely_through_the_host);
  tcase_add_test(t, small_pageable_copies_to_the_host_are_possible);
  tcase_add_test(t, work_of_one_lane_in_the_default_stream_is_possible);
  tcase_add_test(t, a_loop_that_launches_at_two_places_is_one_storm);
  tcase_add_test(t, slow_launches_of_one_block_are_possible);
  tcase_add_test(t, what_weir_removed_in_a_run_is_said_and_not_found);
  tcase_add_test(t, the_rule_that_knows_better_is_alone);
  tcase_add_test(t, what_copies_take_of_the_device_is_in_their_cost);
  tcase_add_test(t, what_uploads_have_in_common_is_recorded);
  tcase_add_test(t, the_first_copies_of_a_place_are_hashed_and_more_where_they_repeat);
  tcase_add_test(t, a_summary_begins_with_findings);
  tcase_add_test(t, what_is_possible_stands_apart_in_a_line_each);
  tcase_add_test(t, what_is_too_small_to_be_listed_has_a_place_where_it_comes_often);
  tcase_add_test(t, a_finding_says_what_where_and_how_much);
  tcase_add_test(t, a_trace_resolved_by_an_earlier_weir_is_judged_like_another);
  tcase_add_test(t, waits_that_are_too_wide_are_the_same_everywhere);
  tcase_add_test(t, every_rule_has_a_victim);
  suite_add_tcase(s, t);
  return run_suite(s);
}

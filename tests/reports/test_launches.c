/* test_launches.c: what follows from the types of kernels' parameters (launch_facts.h): runs of a few
 * calls, made again and again, of which a rule finds something or nothing. A call is three letters:
 * what it does, and to what. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/trace/spool.h"
#include "reports/base/kernel_stubs.h"
#include "reports/findings/findings.h"
#include "reports/findings/kernel_params.h"
#include "reports/model/open.h"
#include "tests/reports/synth.h"

enum {
  BYTES = 1 << 20,
  BLOCKS = 4, /* a, b, c and d; z is memory in no block */
  TIMES = 12,
  TYPED =
      0x100, /* kernels: one whose name has its types, one of a C name, one of pointers to pointers */
  PLAIN = 0x200,
  TABLE = 0x300,
  STREAM = 0x44,
  HOST = 0x2000
};

static uint64_t now;

static uint64_t address_of(char block)
{
  return UINT64_C(0x700000000000) + (uint64_t)(block - 'a') * (UINT64_C(1) << 32);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void make_call(const char *api, trace_event e)
{
  e.api = synth_api(api);
  e.flags = WEIR_EVF_RUNTIME;
  e.src_device = WEIR_DEVICE_NONE;
  if (e.kind != WEIR_EV_LAUNCH) e.stream = STREAM;
  ck_assert(synth_event(0, now += 100, 50, e));
}

static void hash_next(char to, uint64_t payload)
{
  const copy_hash_info info = {
      .hash = {payload, 7}, .bytes = BYTES, .ticks = 1, .dst = address_of(to), .src = HOST};
  uint64_t start = spool_current()->clock_first.ticks + now + 100;
  trace_event head = {.start = start, .hash_outcome = WEIR_HASH_HASHED, .b = start};
  ck_assert(spool_writer_extended(synth_thread(0), WEIR_EV_COPY_HASH, &head, &info, sizeof info));
}

static void move_bytes(char way, char to, char from)
{
  bool back = way == 'r', within = way == 'c';
  make_call("cudaMemcpy",
            (trace_event){.kind = WEIR_EV_COPY,
                          .a = back ? 0x1000 : address_of(to),
                          .b = within ? address_of(from)
                               : back ? address_of(from)
                                      : HOST,
                          .bytes = BYTES,
                          .copy_kind = back     ? WEIR_COPY_DTOH
                                       : within ? WEIR_COPY_DTOD
                                                : WEIR_COPY_HTOD,
                          .mem = (uint8_t)(back     ? WEIR_MEM_PAGEABLE | WEIR_MEM_DEVICE << 4
                                           : within ? WEIR_MEM_DEVICE | WEIR_MEM_DEVICE << 4
                                                    : WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4)});
}

/* Sets are numbered by their blocks, and were all written at the start. */
static void launch(uint64_t kernel, char reads, char writes)
{
  uint32_t set = (uint32_t)((reads - 'a') * BLOCKS + (writes - 'a') + 1);
  synth_event(0, now += 100, 50,
              (trace_event){.kind = WEIR_EV_LAUNCH,
                            .api = synth_api("cuLaunchKernel"),
                            .a = kernel,
                            .b = 1,
                            .bytes = 64,
                            .detail = (uint8_t)set,
                            .src_device = WEIR_DEVICE_NONE,
                            .stream = STREAM});
}

static void make_one(const char *call)
{
  const trace_event graph = {.kind = WEIR_EV_CALL, .a = 5};
  switch (call[0]) {
  case 'u': /* an upload of one of the payloads, or one whose bytes nobody knows */
    if (call[2] != '?') hash_next(call[1], (uint64_t)call[2]);
    move_bytes('u', call[1], 0);
    return;
  case 'r':
  case 'c':
    move_bytes(call[0], call[1], call[0] == 'r' ? call[1] : call[2]);
    return;
  case 'm':
    make_call("cudaMemset", (trace_event){.kind = WEIR_EV_MEMSET,
                                          .a = address_of(call[1]),
                                          .b = (uint64_t)call[2],
                                          .bytes = BYTES,
                                          .mem = WEIR_MEM_DEVICE});
    return;
  case 'k':
  case 'p':
  case 't':
    launch(call[0] == 'k' ? TYPED : call[0] == 'p' ? PLAIN : TABLE, call[1], call[2]);
    return;
  case 'g':
    make_call("cudaGraphLaunch", graph);
    return;
  case 'f':
    synth_free(0, now += 100, 50, address_of(call[1]));
    return;
  case 'n':
    synth_alloc(0, now += 100, 50, address_of(call[1]), BYTES, 0, WEIR_MEM_DEVICE);
    return;
  default:
    ck_abort_msg("no such call: %s", call);
  }
}

static void make_calls(const char *calls)
{
  for (; *calls; calls += calls[3] ? 4 : 3)
    make_one(calls);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void name_kernel(uint64_t kernel, const char *name)
{
  synth_extended(0, WEIR_EV_NAME, kernel, WEIR_NAME_KERNEL, name, strlen(name));
}

static void write_sets(void)
{
  for (uint32_t i = 0; i < BLOCKS * BLOCKS; i++) {
    const char reads = (char)('a' + i / BLOCKS), writes = (char)('a' + i % BLOCKS);
    access_word w[] = {{address_of(reads), 0, 0, 0}, {address_of(writes), 1, 0, 0}};
    if (reads > writes) {
      access_word first = w[0];
      w[0] = w[1], w[1] = first;
    }
    ck_assert(synth_extended(0, WEIR_EV_ACCESS, i + 1, 4, w, sizeof w));
  }
}

/* The bytes of the parameters of "kab" vary. */
static void write_varying(void)
{
  const uint64_t kernel = TYPED;
  trace_event head = {
      .start = spool_current()->clock_first.ticks, .access_fact = WEIR_ACCESS_VARIES, .a = 2};
  ck_assert(spool_writer_extended(synth_thread(0), WEIR_EV_ACCESS, &head, &kernel, sizeof kernel));
}

static const char *make_run(const char *once, const char *often, bool varies)
{
  now = 0;
  synth_open(synth_dir());
  name_kernel(TYPED, "_Z4stepPKfPfi");
  name_kernel(PLAIN, "step");
  name_kernel(TABLE, "_Z5tablePKPfPfi");
  write_sets();
  if (varies) write_varying();
  for (int b = 0; b < BLOCKS; b++)
    synth_alloc(0, now += 100, 50, address_of((char)('a' + b)), BYTES, 0, WEIR_MEM_DEVICE);
  make_calls(once);
  for (int i = 0; i < TIMES; i++)
    make_calls(often);
  return synth_import_this();
}

/* How often a rule finds it; certainty: of the last. */
static uint64_t count_found(const char *rule, wr_certainty *certainty)
{
  wr_input in;
  wr_findings f;
  uint64_t count = 0;
  const wr_findings_settings settings = {.min = {0, -1, 0}};
  ck_assert_int_eq(wr_input_open(&in, synth_import_this()), WEIR_OK);
  ck_assert_msg(wr_findings_load(&f, &in.db, &settings) == WEIR_OK, "%s", weir_error_message());
  for (size_t i = 0; i < f.count; i++)
    if (!strcmp(f.finding[i].rule->id, rule))
      count += f.finding[i].count, *certainty = f.finding[i].certainty;
  wr_findings_free(&f);
  wr_input_close(&in);
  return count;
}

static const struct run {
  const char *rule, *once, *often;
  uint64_t found;
  wr_certainty certainty;
  bool varies;
} runs[] = {
    /* the same again */
    {"repeated-launch", "ua1", "kab kbc", TIMES - 1 + TIMES - 1, WR_LIKELY, false},
    {"repeated-launch", "ua1", "kab", TIMES - 1, WR_POSSIBLE, false},
    {"repeated-launch", "ua1", "mb0 kab kbc kbd", TIMES - 1 + 2 * (TIMES - 1), WR_LIKELY, false},
    {"repeated-launch", "", "ua1 kab kbc", 2 * (TIMES - 1), WR_LIKELY, false},
    {"repeated-launch", "ua1", "kab pcd", TIMES - 1, WR_LIKELY, false},
    /* its input is another one, or may be */
    {"repeated-launch", "", "ua? kab pcd", 0, 0, false},
    {"repeated-launch", "ua1", "kab gzz", 0, 0, false},
    {"repeated-launch", "ua1", "kab pac", 0, 0, false},
    {"repeated-launch", "ua1", "kab tcd", 0, 0, false},
    {"repeated-launch", "ua1", "kab uz? pcd", 0, 0, false},
    {"repeated-launch", "ua1", "kab pcd", 0, 0, true},
    {"repeated-launch", "", "kab pcd", 0, 0, false}, /* it has none */
    /* it may work on what it wrote */
    {"repeated-launch", "ua1 ub2", "kab pcd", 0, 0, false},
    {"repeated-launch", "ua1 mb0", "kab pcd", 0, 0, false},
    {"repeated-launch", "ua1 pbb", "kab pcd", 0, 0, false},
    {"repeated-launch", "ua1 kcb", "kab pcd", 0, 0, false},
    {"repeated-launch", "ua1", "kaa pcd", 0, 0, false},
    /* others write what it wrote */
    {"repeated-launch", "ua1 uc2", "kab kcb", 0, 0, false},
    {"repeated-launch", "ua1 uc2", "kab cbc", 0, 0, false},
    {"repeated-launch", "ua1", "kab kba", 0, 0, false},
    {"repeated-launch", "ua1", "kab fbx nbx", 0, 0, false},
    /* two of the same */
    {"held-twice", "ua1 ub1", "kac kbd", 1, WR_LIKELY, false},
    {"held-twice", "ua1 cba", "kac kbd", 1, WR_LIKELY, false},
    {"held-twice", "ua1 ub1", "kac kbd rax", 1, WR_LIKELY, false},
    {"held-twice", "ua1 ub2", "kac kbd", 0, 0, false},
    {"held-twice", "ua1 ub1", "kac", 0, 0, false},
    {"held-twice", "ua1 ub1", "kac kbd kcb", 0, 0, false},
    {"held-twice", "ua1 ub1", "pac pbd", 0, 0, false},
    {"held-twice", "ua1 ub1 kac kbd", "gzz", 0, 0, false},
    {"held-twice", "ua? ub?", "kac kbd", 0, 0, false},
    {"held-twice", "ua1 kac fax ub1", "kbd", 0, 0, false},
    /* read again */
    {"redundant-read-back", "ua?", "rax kab", TIMES - 1, WR_LIKELY, false},
    {"redundant-read-back", "ua? kab", "rax pbc", TIMES - 1, WR_LIKELY, false},
    {"redundant-read-back", "ua?", "rax pab", 0, 0, false},
    {"redundant-read-back", "ua?", "rax tab", 0, 0, false},
    {"redundant-read-back", "ua?", "rax kba", 0, 0, false},
    {"redundant-read-back", "ua?", "rax gzz", 0, 0, false},
    /* written for nobody */
    {"dead-write", "kba kba", "ma0 kbc ua? kab", TIMES, WR_LIKELY, false},
    {"dead-write", "pba pba", "ma0 pbc ua? pab", TIMES, WR_LIKELY, false},
    {"dead-write", "kba kba", "ma0 tbc ua? kab", 0, 0, false},
    {"dead-write", "kba kba", "ma0 kac ua? kab", 0, 0, false},
    {"dead-write", "kba kba", "ma0 kbc rax ua? kab", 0, 0, false},
    {"unused-transfer", "", "nax ua? kbc fax", TIMES, WR_LIKELY, false},
    {"unused-transfer", "", "nax ua? kac fax", 0, 0, false},
    {"unused-transfer", "", "nax ua? gzz fax", 0, 0, false},
};

START_TEST(what_kernels_may_write_decides)
{
  wr_certainty certainty = 0;
  const struct run *r = &runs[_i];
  wr_demangler d;
  wr_demangler_open(&d);
  char *text = wr_demangle(&d, "_Z1fv");
  wr_demangler_close(&d);
  if (!text) return; /* without libstdc++ */
  free(text);
  make_run(r->once, r->often, r->varies);
  uint64_t count = count_found(r->rule, &certainty);
  ck_assert_msg(count == r->found, "%s in \"%s\", then \"%s\": %d, and not %d", r->rule, r->once,
                r->often, (int)count, (int)r->found);
  if (count) ck_assert_int_eq(certainty, r->certainty);
}
END_TEST

/* ---- parameters ------------------------------------------------------------------------------ */

/* u unknown, n a number, r it reads, w it may write; "" none; NULL: not known. */
static const struct params {
  const char *name, *of;
} params[] = {
    {"_Z5scalePKfPfi", "rwn"},
    {"_Z3runv", ""},
    {"step", NULL},
    {"_Z4stepIfEvPKT_PS0_i", "rwn"}, /* step<float>(float const*, float*, int) */
    {"_ZN2ns4stepIdLi4EEEvPKT_PS1_m",
     "rwn"}, /* ns::step<double, 4>(double const*, double*, unsigned long) */
    {"_Z4vec4PK6float4PS_S1_", "rwr"}, /* float4 const*, float4*, float4 const* */
    {"_Z4halfPK6__halfPS_", "rw"},
    {"_Z4deepPPfPKS_PKPKf", "uuu"},
    {"_Z4refsRKfRf", "uu"},
    {"_Z5byval6ParamsPf", "uw"},
    {"_Z4boxsP6ParamsPKS_", "uu"},
    {"_Z9fetchyPf", NULL}, /* it is cut */
    {"_Z5fetchyPf", "uw"}, /* a texture */
    {"_Z4voidPKvPv", "uu"},
    {"_Z4callPFvPfiEPKf", "ur"}, /* void (*)(float*, int) */
    {"_Z3volPVfPVKf", "uu"},
};

START_TEST(types_of_parameters_are_read_in_a_kernels_name)
{
  static const char letters[] = {'u', 'n', 'r', 'w'};
  const struct params *p = &params[_i];
  wr_demangler d;
  wr_demangler_open(&d);
  char *whole = wr_demangle(&d, "_Z1fv");
  wr_params found = wr_params_of(&d, p->name);
  wr_demangler_close(&d);
  if (!whole) return;
  free(whole);
  ck_assert_msg(found.count == (p->of ? (int)strlen(p->of) : -1), "%s: %d", p->name, found.count);
  for (int i = 0; i < found.count; i++)
    ck_assert_msg(letters[found.of[i]] == p->of[i], "%s: %d is %c", p->name, i,
                  letters[found.of[i]]);
  if (found.count >= 0) ck_assert_int_eq(found.plain, strchr(p->of, 'u') == NULL);
}
END_TEST

/* ---- stubs ----------------------------------------------------------------------------------- */

/* As nvcc names the host's function that launches a kernel with a C name; and what has such a name in part. */
void stub_of_step(void) __asm__("_Z27__device_stub__Z4stepPKfPfiPKfPfi");
void stub_of_none(void) __asm__("_Z15__device_stub__v");
void stub_cut_short(void) __asm__("_Z99__device_stub__Z4stepPKfPfi");

void stub_of_step(void) {}

void stub_of_none(void) {}

void stub_cut_short(void) {}

static weir_status take_stub(void *context, const char *name)
{
  int *found = context;
  size_t length;
  const char *plain = wr_stub_plain_name(name, &length);
  ck_assert_str_eq(name, "_Z4stepPKfPfi");
  ck_assert_ptr_nonnull(plain);
  ck_assert_uint_eq(length, 4);
  ck_assert_int_eq(strncmp(plain, "step", 4), 0);
  (*found)++;
  return WEIR_OK;
}

START_TEST(a_stub_names_its_kernel_with_its_types)
{
  char path[4096];
  int found = 0;
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  ck_assert_int_gt(length, 0);
  path[length] = '\0';
  ck_assert_int_eq(wr_kernel_stubs_each(path, take_stub, &found), WEIR_OK);
  ck_assert_int_eq(found, 1);
  ck_assert_int_eq(wr_kernel_stubs_each("/proc/self/maps", take_stub, &found), WEIR_OK);
  ck_assert_int_eq(wr_kernel_stubs_each("not/whole", take_stub, &found), WEIR_OK);
  ck_assert_int_eq(found, 1);
}
END_TEST

START_TEST(only_a_plain_function_has_a_plain_name)
{
  static const char *const names[] = {
      "", "_Z", "step", "_Z4ste", "_ZN2ns4stepEv", "_Z0v", "_Z99999999999999999999step"};
  size_t length;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    ck_assert_ptr_null(wr_stub_plain_name(names[i], &length));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/launches");
  TCase *t = tcase_create("launches");
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, what_kernels_may_write_decides, 0, sizeof runs / sizeof *runs);
  suite_add_tcase(s, t);
  TCase *n = tcase_create("names");
  tcase_add_loop_test(n, types_of_parameters_are_read_in_a_kernels_name, 0,
                      sizeof params / sizeof *params);
  tcase_add_test(n, a_stub_names_its_kernel_with_its_types);
  tcase_add_test(n, only_a_plain_function_has_a_plain_name);
  suite_add_tcase(s, n);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}

/* test_symbolize.c: return addresses of this very program get their function, file and line. */
#include <check.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "reports/symbols/symbolize.h"
#include "tests/reports/own_program.h"
#include "tests/reports/synth.h"

#define NOINLINE __attribute__((noinline, noclone))

static uint64_t seen; /* a return address */
static int seen_line; /* of the call that returns there */

/* Notes where it returns to. */
static NOINLINE void note_caller(void)
{
  seen = (uint64_t)(uintptr_t)__builtin_return_address(0);
  __asm__ volatile("" ::: "memory");
}

NOINLINE void known_function(void);
NOINLINE void known_function(void)
{
  seen_line = __LINE__ + 1;
  note_caller();
  __asm__ volatile("" ::: "memory"); /* no tail call */
}

static inline __attribute__((always_inline)) void inlined_function(void)
{
  note_caller();
  __asm__ volatile("" ::: "memory");
}

static int outer_line;
NOINLINE void outer_function(void);
NOINLINE void outer_function(void)
{
  outer_line = __LINE__ + 1;
  inlined_function();
  __asm__ volatile("" ::: "memory");
}

/* A C++ name, as the linker sees it. */
NOINLINE void cxx_function(int) __asm__("_ZN6victim5batch4loadEi");
NOINLINE void cxx_function(int n)
{
  note_caller();
  __asm__ volatile("" ::"r"(n) : "memory");
}

/* ---- asking ---------------------------------------------------------------------------------- */

static wr_frame answer[8]; /* strings are the symbolizer's, which stays open */
static size_t answers;
static struct {
  wr_db db;
  wr_symbols *symbols;
} asked;

static void let_go(void)
{
  wr_symbols_close(asked.symbols);
  sqlite3_close(asked.db.handle);
  asked.symbols = NULL;
  asked.db.handle = NULL;
}

static void teardown(void)
{
  let_go();
  synth_clean();
}

/* Imports one stack of one address and resolves it. */
static void resolve(uint64_t address, const char *module, const unsigned char *id, size_t id_bytes)
{
  const char *one[] = {NULL, NULL};
  const wr_frame *frames;
  synth_open(synth_dir());
  if (module)
    synth_module(0, own_program.base, own_program.start, own_program.end, module, id, id_bytes);
  synth_stack(0, 1, &address, 1);
  synth_event(0, 100, 10, (trace_event){.kind = WEIR_EV_CALL, .stack = 1});
  synth_close();
  one[0] = synth_spool();
  let_go();
  asked.db.path = synth_import("t.db", one);
  ck_assert_int_eq(sqlite3_open(asked.db.path, &asked.db.handle), SQLITE_OK);
  ck_assert_int_eq(wr_symbols_open(&asked.symbols, &asked.db), WEIR_OK);
  ck_assert_int_eq(wr_symbols_stack(asked.symbols, 1, &frames, &answers), WEIR_OK);
  ck_assert_uint_le(answers, 8);
  memcpy(answer, frames, answers * sizeof(*frames));
}

static void expect_file(const wr_frame *f, int line)
{
  ck_assert_ptr_nonnull(f->file);
  ck_assert_ptr_nonnull(strstr(f->file, "test_symbolize.c"));
  ck_assert_int_eq(f->line, line);
}

START_TEST(a_return_address_has_function_file_and_line_of_its_call)
{
  known_function();
  resolve(seen, own_program.path, own_program.build_id, own_program.build_id_bytes);
  ck_assert_uint_eq(answers, 1);
  ck_assert_str_eq(answer[0].function, "known_function");
  ck_assert_str_eq(answer[0].module, own_program.path);
  expect_file(&answer[0], seen_line);
}
END_TEST

START_TEST(an_inlined_function_is_a_frame_of_its_own)
{
  outer_function();
  resolve(seen, own_program.path, NULL, 0);
  ck_assert_uint_eq(answers, 2);
  ck_assert_str_eq(answer[0].function, "inlined_function");
  ck_assert_str_eq(answer[1].function, "outer_function");
  expect_file(&answer[1], outer_line);
}
END_TEST

START_TEST(a_cxx_name_is_demangled)
{
  cxx_function(3);
  resolve(seen, own_program.path, NULL, 0);
  ck_assert_str_eq(answer[0].function, "victim::batch::load(int)");
}
END_TEST

START_TEST(a_changed_or_absent_module_gives_offsets)
{
  unsigned char other[64];
  memcpy(other, own_program.build_id, sizeof(other));
  other[0] ^= 1;
  known_function();
  ck_assert_uint_gt(own_program.build_id_bytes, 0);
  resolve(seen, own_program.path, other, own_program.build_id_bytes);
  ck_assert_uint_eq(answers, 1);
  ck_assert_ptr_null(answer[0].function);
  ck_assert_str_eq(answer[0].module, own_program.path);
  ck_assert_uint_eq(answer[0].offset, seen - own_program.base);
  resolve(seen, "/no/such/module.so", NULL, 0);
  ck_assert_ptr_null(answer[0].function);
  ck_assert_str_eq(answer[0].module, "/no/such/module.so");
  resolve(seen, NULL, NULL, 0);
  ck_assert_ptr_null(answer[0].function);
  ck_assert_str_eq(answer[0].module, "");
  ck_assert_uint_eq(answer[0].offset, seen);
}
END_TEST

START_TEST(a_perf_map_names_what_is_in_no_module)
{
  char map[64];
  (void)snprintf(map, sizeof(map), "/tmp/perf-%d.map", getpid());
  FILE *f = fopen(map, "w");
  ck_assert_ptr_nonnull(f);
  (void)fputs("nonsense\n7000 10 late\n1000 20 py::train:/home/me/train.py\n1020 10 py::other\n",
              f);
  (void)fclose(f);
  resolve(0x1020, NULL, NULL, 0); /* the call before it ends at 0x1020 */
  ck_assert_str_eq(answer[0].function, "py::train:/home/me/train.py");
  resolve(0x1021, NULL, NULL, 0);
  ck_assert_str_eq(answer[0].function, "py::other");
  resolve(0x1000, NULL, NULL, 0);
  ck_assert_ptr_null(answer[0].function);
  resolve(0x1031, NULL, NULL, 0);
  ck_assert_ptr_null(answer[0].function);
  (void)remove(map);
}
END_TEST

/* ---- dumps of JIT compilers ------------------------------------------------------------------ */

/* perf's format, from its specification: a head of 40 bytes; records with kind, bytes and time. */
static void put_words(FILE *f, const uint64_t *words, size_t count)
{
  ck_assert_uint_eq(fwrite(words, 8, count, f), count);
}

static FILE *begin_dump(const char *path, uint32_t magic)
{
  FILE *f = fopen(path, "w");
  ck_assert_ptr_nonnull(f);
  const uint32_t head[10] = {magic, 1, 40, 62, 0, (uint32_t)getpid()};
  ck_assert_uint_eq(fwrite(head, 4, 10, f), 10);
  return f;
}

static void put_load(FILE *f, uint64_t start, uint64_t bytes, uint64_t index, const char *name)
{
  size_t n = strlen(name) + 1;
  put_words(f, (uint64_t[]){(56 + n + 3) << 32, 1, 0, start, start, bytes, index}, 7);
  ck_assert_uint_eq(fwrite(name, 1, n, f), n);
  ck_assert_uint_eq(fwrite("\xc3\xc3\xc3", 1, 3, f), 3); /* the code */
}

static void put_move(FILE *f, uint64_t from, uint64_t start, uint64_t bytes, uint64_t index)
{
  put_words(f, (uint64_t[]){UINT64_C(64) << 32 | 1, 1, 0, start, from, start, bytes, index}, 8);
}

static const char *name_at(uint64_t address)
{
  resolve(address, NULL, NULL, 0);
  return answer[0].function ? answer[0].function : "";
}

static const char *name_after(const char *sql)
{
  static char error[64];
  const wr_frame *frames;
  wr_symbols_close(asked.symbols);
  ck_assert_int_eq(sqlite3_exec(asked.db.handle, sql, NULL, NULL, NULL), SQLITE_OK);
  ck_assert_int_eq(wr_symbols_open(&asked.symbols, &asked.db), WEIR_OK);
  ck_assert_int_eq(wr_symbols_stack(asked.symbols, 1, &frames, &answers), WEIR_OK);
  (void)snprintf(error, sizeof(error), "%s", frames[0].function ? frames[0].function : "");
  return error;
}

START_TEST(a_jit_compilers_dump_names_what_is_in_no_module)
{
  char path[64];
  (void)snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
  FILE *f = begin_dump(path, 0x4A695444);
  put_load(f, 0x1000, 0x20, 1, "first");
  put_words(f, (uint64_t[]){UINT64_C(24) << 32 | 2, 1, 7}, 3); /* of a kind that says no name */
  put_load(f, 0x2000, 0x20, 2, "second");
  put_move(f, 0x2000, 0x3000, 0x10, 2);
  put_load(f, 0x1000, 0x10, 3, "in the place of the first");
  put_move(f, 0x9000, 0x5000, 0x10, 77); /* of what is not known */
  (void)fclose(f);
  ck_assert_str_eq(name_at(0x2020), "second");
  ck_assert_str_eq(name_at(0x2021), "");
  ck_assert_str_eq(name_at(0x3010), "second");
  ck_assert_str_eq(name_at(0x3011), "");
  ck_assert_str_eq(name_at(0x1010), "in the place of the first");
  ck_assert_str_eq(name_at(0x5010), "");
  (void)remove(path);
}
END_TEST

START_TEST(a_dump_is_looked_for_where_symbols_are_too)
{
  char path[600];
  (void)snprintf(path, sizeof(path), "%s/jit-%d.dump", synth_dir(), getpid());
  FILE *f = begin_dump(path, 0x4A695444);
  put_load(f, 0x1000, 0x20, 1, "first");
  (void)fclose(f);
  ck_assert_str_eq(name_at(0x1010), "");
  asked.db.symbols = synth_dir();
  ck_assert_str_eq(name_at(0x1010), "first");
  asked.db.symbols = NULL;
}
END_TEST

/* Cut anywhere, it says what it said so far; sizes that cannot be end it. */
START_TEST(a_dump_that_is_cut_or_wrong_says_what_it_said_before)
{
  char path[64];
  (void)snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
  resolve(0x1010, NULL, NULL, 0);
  for (long bytes = 0; bytes <= 180; bytes++) {
    FILE *f = begin_dump(path, 0x4A695444);
    put_load(f, 0x1000, 0x20, 1, "first");
    put_load(f, 0x2000, 0x20, 2, "second");
    (void)fclose(f);
    ck_assert_int_eq(truncate(path, bytes), 0);
    ck_assert_str_eq(name_after("SELECT 1"), bytes > 101 ? "first" : "");
  }
  for (uint64_t size = 0; size < 56; size += 8) {
    FILE *f = begin_dump(path, 0x4A695444);
    put_load(f, 0x1000, 0x20, 1, "first");
    put_words(f, (uint64_t[]){size << 32, 1, 0, 0x2000, 0x2000, 0x20, 2}, 7);
    put_load(f, 0x2000, 0x20, 2, "second");
    (void)fclose(f);
    ck_assert_str_eq(name_after("SELECT 1"), "first");
  }
  FILE *f = begin_dump(path, 0x4454694A); /* of a machine with another order of bytes */
  put_load(f, 0x1000, 0x20, 1, "first");
  (void)fclose(f);
  ck_assert_str_eq(name_at(0x1010), "");
  (void)remove(path);
}
END_TEST

/* ---- files that are none --------------------------------------------------------------------- */

/* A process that waits for a reader of the pipe `path`, writes `text` to it and ends. */
static pid_t wait_for_reader(const char *path, const char *text)
{
  (void)unlink(path);
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid) return pid;
  int fd = open(path, O_WRONLY);
  _exit(fd >= 0 && write(fd, text, strlen(text)) >= 0 ? 0 : 1);
}

/* It still waits: nobody has opened the pipe. */
static void nobody_has_read(pid_t waiting, const char *path)
{
  int status = 0;
  (void)kill(waiting, SIGKILL);
  ck_assert_int_eq(waitpid(waiting, &status, 0), waiting);
  ck_assert_msg(WIFSIGNALED(status), "%s was opened", path);
  (void)unlink(path);
}

START_TEST(a_pipe_is_no_perf_map_nor_a_dump_nor_a_module)
{
  char path[600];
  (void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
  pid_t waiting = wait_for_reader(path, "1000 20 from_a_pipe\n");
  resolve(0x1010, NULL, NULL, 0);
  ck_assert_ptr_null(answer[0].function);
  nobody_has_read(waiting, path);
  (void)snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
  waiting = wait_for_reader(path, "DTiJ");
  resolve(0x1010, NULL, NULL, 0);
  nobody_has_read(waiting, path);
  known_function();
  (void)snprintf(path, sizeof(path), "%s/module.so", synth_dir());
  waiting = wait_for_reader(path, "\177ELF");
  resolve(seen, path, NULL, 0);
  ck_assert_ptr_null(answer[0].function);
  nobody_has_read(waiting, path);
}
END_TEST

static void write_map(const char *path)
{
  FILE *f = fopen(path, "w");
  ck_assert_ptr_nonnull(f);
  (void)fputs("1000 20 py::train\n", f);
  (void)fclose(f);
}

START_TEST(a_perf_map_counts_when_the_process_s_user_has_made_it)
{
  char map[64], there[600];
  (void)snprintf(map, sizeof(map), "/tmp/perf-%d.map", getpid());
  write_map(map);
  resolve(0x1010, NULL, NULL, 0);
  ck_assert_str_eq(answer[0].function, "py::train");
  if (!geteuid() && chown(map, 4711, 4711)) { /* root's count always */
    (void)remove(map);
    return; /* and this one has nobody else */
  }
  ck_assert_str_eq(name_after("UPDATE process SET uid = uid + 4712"), "");
  if (!geteuid()) ck_assert_int_eq(chown(map, 0, 0), 0);
  ck_assert_str_eq(name_after("UPDATE process SET uid = uid - 4712"), "py::train");
  (void)remove(map);
  (void)snprintf(there, sizeof(there), "%s/map", synth_dir());
  write_map(there);
  ck_assert_int_eq(symlink(there, map), 0);
  ck_assert_str_eq(name_after("SELECT 1"), "");
  (void)remove(map);
}
END_TEST

START_TEST(a_stripped_module_has_its_lines_from_the_file_it_names)
{
  char copy[600], debug[640];
  (void)snprintf(copy, sizeof(copy), "%s/copy", synth_dir());
  (void)snprintf(debug, sizeof(debug), "%s.debug", copy);
  run_shell_format("objcopy --only-keep-debug %s %s", own_program.path, debug);
  run_shell_format("objcopy --strip-all --remove-section=.note.gnu.build-id %s %s",
                   own_program.path, copy);
  run_shell_format("objcopy --add-gnu-debuglink=%s %s", debug, copy);
  known_function();
  resolve(seen, copy, NULL, 0);
  ck_assert_str_eq(answer[0].function, "known_function");
  expect_file(&answer[0], seen_line);
  pid_t waiting = wait_for_reader(debug, "\177ELF");
  resolve(seen, copy, NULL, 0);
  ck_assert_ptr_null(answer[0].file);
  nobody_has_read(waiting, debug);
}
END_TEST

/* ---- what ran, and what is there now --------------------------------------------------------- */

/* Copies this program without its build-id, and notes the copy's size and time in the modules. */
static void copy_without_id(const char *path)
{
  struct stat file;
  run_shell_format("objcopy --remove-section=.note.gnu.build-id %s %s", own_program.path, path);
  ck_assert_int_eq(stat(path, &file), 0);
  synth_stamp((uint64_t)file.st_size,
              (int64_t)file.st_mtim.tv_sec * 1000000000 + file.st_mtim.tv_nsec);
}

START_TEST(a_module_without_build_id_is_known_by_size_and_time)
{
  char copy[600];
  struct timespec later[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};
  (void)snprintf(copy, sizeof(copy), "%s/copy", synth_dir());
  known_function();
  copy_without_id(copy);
  resolve(seen, copy, NULL, 0);
  ck_assert_str_eq(answer[0].function, "known_function");
  ck_assert_ptr_null(answer[0].lacks);
  ck_assert_int_eq(utimensat(AT_FDCWD, copy, later, 0), 0);
  resolve(seen, copy, NULL, 0);
  ck_assert_ptr_null(answer[0].function);
  ck_assert_str_eq(answer[0].lacks, "changed since");
  ck_assert_int_eq(unlink(copy), 0);
  resolve(seen, copy, NULL, 0);
  ck_assert_ptr_null(answer[0].function);
  ck_assert_str_eq(answer[0].lacks, "removed");
}
END_TEST

static char *report_with(const char *trace, const char *symbols)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  report_settings o = {.symbols = symbols, .width = 200};
  ck_assert_int_eq(report_summary(f, trace, &o), WEIR_OK);
  (void)fclose(f);
  return text;
}

static const char *trace_of_an_allocation(const char *module, const void *id, size_t id_bytes)
{
  const char *one[] = {NULL, NULL};
  own_program_record(module, id, id_bytes, &seen, 1);
  synth_close();
  one[0] = synth_spool();
  return synth_import("site.db", one);
}

START_TEST(a_folder_of_symbols_serves_for_what_is_gone)
{
  char gone[600], folder[600], wanted[64], path[900], id[129] = "";
  (void)snprintf(folder, sizeof(folder), "%s/symbols", synth_dir());
  (void)snprintf(gone, sizeof(gone), "%s/gone", synth_dir());
  (void)snprintf(path, sizeof(path), "%s/gone", folder);
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  known_function();
  copy_without_id(path);
  const char *t = trace_of_an_allocation(gone, NULL, 0);
  char *text = report_with(t, NULL);
  ck_assert_msg(strstr(text, "(removed)") && strstr(text, "removed since the run"), "%s", text);
  free(text);
  text = report_with(t, folder);
  (void)snprintf(wanted, sizeof(wanted), "test_symbolize.c:%d", seen_line);
  ck_assert_msg(strstr(text, wanted) && !strstr(text, "removed"), "%s", text);
  free(text);
  synth_stamp(0, 0);
  for (size_t i = 0; i < own_program.build_id_bytes; i++)
    (void)snprintf(id + 2 * i, 3, "%02x", own_program.build_id[i]);
  ck_assert_int_eq(unlink(path), 0);
  (void)snprintf(path, sizeof(path), "%s/.build-id", folder);
  ck_assert_int_eq(mkdir(path, 0700), 0);
  (void)snprintf(path, sizeof(path), "%s/.build-id/%.2s", folder, id);
  ck_assert_int_eq(mkdir(path, 0700), 0);
  (void)snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", folder, id, id + 2);
  run_shell_format("objcopy --only-keep-debug %s %s", own_program.path, path);
  t = trace_of_an_allocation(gone, own_program.build_id, own_program.build_id_bytes);
  text = report_with(t, folder);
  ck_assert_msg(strstr(text, wanted), "%s", text);
  free(text);
}
END_TEST

/* The site of a call is the program's frame, not CUDA's above it; it is in both faces of the
 * report. */
START_TEST(a_report_names_the_place_in_the_program)
{
  const char *one[] = {NULL, NULL};
  known_function();
  uint64_t frames[] = {0x7000100, seen};
  own_program_record(own_program.path, own_program.build_id, own_program.build_id_bytes, frames, 2);
  synth_close();
  one[0] = synth_spool();
  const char *t = synth_import("site.db", one);
  json_t *j = synth_json(t);
  json_t *site = json_array_get(json_object_get(json_object_get(j, "sites"), "live_at_exit"), 0);
  ck_assert_str_eq(json_string_value(json_object_get(site, "function")), "known_function");
  ck_assert_int_eq(json_integer_value(json_object_get(site, "line")), seen_line);
  ck_assert_uint_eq(json_array_size(json_object_get(site, "frames")), 2);
  json_decref(j);
  char *text = synth_text(t, 100), wanted[64];
  (void)snprintf(wanted, sizeof(wanted), "test_symbolize.c:%d", seen_line);
  ck_assert_ptr_nonnull(strstr(text, wanted));
  free(text);
}
END_TEST

/* ---- code without lines ---------------------------------------------------------------------- */

enum { BASE = 0x10000000, ADDRESSES = 240 };

/* Frames of `count` return addresses behind those of the file's, from `first` on; of each the
 * innermost into out[]. */
static void resolve_range(const char *path, uint64_t first, unsigned count, const wr_frame **out)
{
  const char *one[] = {NULL, NULL};
  const wr_frame *frames;
  uint64_t stack[ADDRESSES];
  size_t got = 0;
  for (unsigned i = 0; i < count; i++)
    stack[i] = BASE + first + i + 1;
  synth_open(synth_dir());
  synth_module(0, BASE, BASE, BASE + 0x100000, path, NULL, 0);
  synth_stack(0, 1, stack, count);
  synth_event(0, 100, 10, (trace_event){.kind = WEIR_EV_CALL, .stack = 1});
  synth_close();
  one[0] = synth_spool();
  let_go();
  asked.db.path = synth_import("t.db", one);
  ck_assert_int_eq(sqlite3_open(asked.db.path, &asked.db.handle), SQLITE_OK);
  ck_assert_int_eq(wr_symbols_open(&asked.symbols, &asked.db), WEIR_OK);
  ck_assert_int_eq(wr_symbols_stack(asked.symbols, 1, &frames, &got), WEIR_OK);
  for (unsigned i = 0; i < count; i++)
    out[i] = NULL;
  for (size_t i = 0; i < got; i++) {
    uint64_t at = frames[i].offset - 1 - first;
    if (at < count && !out[at]) out[at] = &frames[i];
  }
}

/* Where the victim begins: at _start. */
static uint64_t open_victim(char path[600])
{
  ElfW(Ehdr) head;
  (void)snprintf(path, 600, "%.*s/../victims/symbols/endless",
                 (int)(strrchr(own_program.path, '/') - own_program.path), own_program.path);
  char *real = realpath(path, NULL);
  ck_assert_ptr_nonnull(real);
  (void)snprintf(path, 600, "%s", real);
  free(real);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ck_assert_int_eq(read(fd, &head, sizeof(head)), sizeof(head));
  close(fd);
  return head.e_entry;
}

START_TEST(code_that_no_line_table_has_gets_no_line_of_what_is_before_it)
{
  const wr_frame *of[ADDRESSES];
  char path[600];
  resolve_range(path, open_victim(path), 32, of);
  for (int i = 0; i < 32; i++) {
    ck_assert_ptr_nonnull(of[i]);
    ck_assert_str_eq(of[i]->function, "_start");
    ck_assert_msg(!of[i]->file, "_start+%d is at %s:%d", i, of[i]->file, of[i]->line);
  }
}
END_TEST

/* All code around it, as far as there is a tool to compare it with. */
START_TEST(an_address_has_no_line_where_addr2line_has_none)
{
  const wr_frame *of[ADDRESSES];
  char path[600], command[1024], line[1024];
  uint64_t first = open_victim(path) - 96;
  resolve_range(path, first, ADDRESSES, of);
  (void)snprintf(command, sizeof(command),
                 "seq %llu %llu | xargs printf '%%x\\n' | addr2line -e %s 2>/dev/null",
                 (unsigned long long)first, (unsigned long long)first + ADDRESSES - 1, path);
  FILE *f = popen(command, "r");
  ck_assert_ptr_nonnull(f);
  for (unsigned i = 0; i < ADDRESSES && fgets(line, sizeof(line), f); i++) {
    bool known = of[i] && of[i]->file;
    ck_assert_msg(!known || line[0] != '?', "%#llx: %s:%d, addr2line has none",
                  (unsigned long long)first + i, of[i]->file, of[i]->line);
  }
  (void)pclose(f);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/symbolize");
  TCase *t = tcase_create("symbolize");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, own_program_find, teardown);
  tcase_add_test(t, a_return_address_has_function_file_and_line_of_its_call);
  tcase_add_test(t, an_inlined_function_is_a_frame_of_its_own);
  tcase_add_test(t, a_cxx_name_is_demangled);
  tcase_add_test(t, a_changed_or_absent_module_gives_offsets);
  tcase_add_test(t, a_perf_map_names_what_is_in_no_module);
  tcase_add_test(t, a_pipe_is_no_perf_map_nor_a_dump_nor_a_module);
  tcase_add_test(t, a_jit_compilers_dump_names_what_is_in_no_module);
  tcase_add_test(t, a_dump_is_looked_for_where_symbols_are_too);
  tcase_add_test(t, a_dump_that_is_cut_or_wrong_says_what_it_said_before);
  tcase_add_test(t, a_perf_map_counts_when_the_process_s_user_has_made_it);
  tcase_add_test(t, a_stripped_module_has_its_lines_from_the_file_it_names);
  tcase_add_test(t, a_module_without_build_id_is_known_by_size_and_time);
  tcase_add_test(t, a_folder_of_symbols_serves_for_what_is_gone);
  tcase_add_test(t, a_report_names_the_place_in_the_program);
  tcase_add_test(t, code_that_no_line_table_has_gets_no_line_of_what_is_before_it);
  tcase_add_test(t, an_address_has_no_line_where_addr2line_has_none);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}

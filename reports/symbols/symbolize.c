/* symbolize.c: see symbolize.h.
 *
 * Every module file gets one libdwfl session, opened when an address of it is first asked for and
 * kept to the end, since names and file names point into it. A frame holds a return address: the
 * call is before it, so the byte before it is what is looked up. Debug information is taken from
 * the file and from separate debug files, never from the network. */
#include "reports/symbols/symbolize.h"
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reports/symbols/debug_files.h"
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/base/demangle.h"
#include "reports/base/util.h"
#include "reports/symbols/jit.h"
#include "reports/symbols/compile_units.h"

typedef struct module_file {
  char *path;
  char *build_id;       /* as recorded, hex, "" none */
  int64_t bytes, mtime; /* as recorded, 0 unknown */
  bool looked;          /* for it, and what follows is known */
  const char *lacks;    /* why there is no module, NULL: nobody knows */
  Dwfl *session;
  Dwfl_Module *module; /* NULL: gone, another since, or no ELF file */
  Dwarf_Addr bias;     /* file address + bias = address in the session */
  wr_units units;
} module_file;

typedef struct module_row {
  int64_t id, process, base, start, end, loaded;
  const char *path; /* the file's */
  size_t file;
} module_row;

typedef struct process_row {
  int64_t id, pid;
  int64_t uid; /* whose it was; -1: not known, so taken for ours */
  bool jit_read;
  jit_symbols jit; /* of code that it made itself */
} process_row;

typedef struct span { /* of frames in the cache */
  size_t first, count;
} span;

struct wr_symbols {
  const wr_db *db;
  sqlite3_stmt *stack;  /* the frames of one */
  sqlite3_stmt *python; /* a frame of a Python program; NULL: the trace has none */
  sqlite3_stmt *stored; /* what the trace itself has of one; NULL: nothing of any */
  module_file *files;
  size_t file_count, file_capacity;
  module_row *modules;
  size_t module_count, module_capacity;
  process_row *processes;
  size_t process_count, process_capacity;
  hash_map by_frame; /* row of frame -> place in spans */
  span *spans;
  size_t span_count, span_capacity;
  wr_frame *frames; /* the cache: what addresses resolved to */
  size_t frame_count, frame_capacity;
  wr_frame *answer; /* of the last wr_symbols_stack() */
  size_t answer_capacity;
  char **strings; /* owned: demangled names */
  size_t string_count, string_capacity;
  wr_demangler cxx;
};

static weir_status no_memory_to_symbolize(const wr_symbols *s)
{
  return weir_fail(WEIR_ENOMEM, "symbolizing %s: out of host memory", s->db->path);
}

const wr_db *wr_symbols_trace(const wr_symbols *s)
{
  return s->db;
}

/* ---- loading --------------------------------------------------------------------------------- */

static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                         .find_debuginfo = wr_debuginfo_find,
                                         .section_address = dwfl_offline_section_address};

static bool has_build_id(Dwfl_Module *module, const char *expected)
{
  const unsigned char *bits = NULL;
  GElf_Addr address = 0;
  int n = dwfl_module_build_id(module, &bits, &address);
  if (n <= 0 || strlen(expected) != (size_t)n * 2) return false;
  for (int i = 0; i < n; i++) {
    char byte[3];
    (void)snprintf(byte, sizeof(byte), "%02x", bits[i]);
    if (memcmp(byte, expected + (size_t)2 * (size_t)i, 2) != 0) return false;
  }
  return true;
}

/* Is that the file which ran? Copies (of db->symbols) have times of their own. */
static bool is_the_one(const module_file *f, Dwfl_Module *module, const struct stat *file,
                       bool copy)
{
  if (f->build_id[0]) return has_build_id(module, f->build_id);
  int64_t mtime = (int64_t)file->st_mtim.tv_sec * 1000000000 + file->st_mtim.tv_nsec;
  return !f->bytes || (f->bytes == file->st_size && (copy || f->mtime == mtime));
}

/* Opens `path` for the module, if it is what ran: *lacks is the reason if it is not. */
static weir_status try_file(wr_symbols *s, module_file *f, const char *path, bool copy)
{
  struct stat file;
  int fd = wr_elf_open(path);
  if (fd < 0) {
    if (!copy && (errno == ENOENT || errno == ENOTDIR)) f->lacks = "removed";
    return WEIR_OK;
  }
  Dwfl *session = dwfl_begin(&callbacks);
  if (!session || fstat(fd, &file)) {
    if (session) dwfl_end(session);
    close(fd);
    return no_memory_to_symbolize(s);
  }
  dwfl_report_begin(session);
  Dwfl_Module *module = dwfl_report_offline(session, path, path, fd);
  dwfl_report_end(session, NULL, NULL);
  if (!module) close(fd); /* else it is the session's */
  bool readable = module && dwfl_module_getelf(module, &f->bias);
  if (readable && is_the_one(f, module, &file, copy)) {
    f->session = session;
    f->module = module;
    return WEIR_OK;
  }
  if (!copy) f->lacks = "changed since";
  dwfl_end(session);
  return WEIR_OK;
}

/* In the folder that the user names: by build-id, by path, by name. */
static weir_status try_folder(wr_symbols *s, module_file *f)
{
  const char *folder = s->db->symbols, *id = f->build_id;
  const char *slash = strrchr(f->path, '/'), *name = slash ? slash : "/";
  char *paths[] = {id[0] && id[1] ? wr_format("%s/.build-id/%.2s/%s.debug", folder, id, id + 2)
                                  : NULL,
                   wr_format("%s%s", folder, f->path), wr_format("%s%s.debug", folder, f->path),
                   wr_format("%s%s", folder, name), wr_format("%s%s.debug", folder, name)};
  weir_status st = WEIR_OK;
  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
    if (paths[i] && !f->module && !st) st = try_file(s, f, paths[i], true);
    free(paths[i]);
  }
  return st;
}

static weir_status open_module_file(wr_symbols *s, module_file *f)
{
  if (f->looked) return WEIR_OK;
  weir_status st = s->db->symbols ? try_folder(s, f) : WEIR_OK;
  if (!st && !f->module) st = try_file(s, f, f->path, false);
  if (f->module) f->lacks = NULL;
  f->looked = !st;
  return st;
}

bool wr_symbols_lacking(const wr_symbols *s, size_t *at, const char **path, const char **why)
{
  while (*at < s->file_count) {
    const module_file *f = &s->files[(*at)++];
    if (!f->looked || !f->lacks) continue;
    *path = f->path;
    *why = f->lacks;
    return true;
  }
  return false;
}

/* The place in s->files of a file as it was recorded. */
static weir_status place_of_file(wr_symbols *s, sqlite3_stmt *q, size_t *out)
{
  const char *path = (const char *)sqlite3_column_text(q, 2);
  const char *build_id = (const char *)sqlite3_column_text(q, 3);
  int64_t bytes = sqlite3_column_int64(q, 8), mtime = sqlite3_column_int64(q, 9);
  if (!path) path = "";
  if (!build_id) build_id = "";
  for (size_t i = 0; i < s->file_count; i++) {
    const module_file *f = &s->files[i];
    *out = i;
    if (!strcmp(f->path, path) && !strcmp(f->build_id, build_id) &&
        (*build_id || (f->bytes == bytes && f->mtime == mtime)))
      return WEIR_OK;
  }
  if (!wr_grow(&s->files, &s->file_capacity, s->file_count + 1, sizeof(module_file)))
    return no_memory_to_symbolize(s);
  *out = s->file_count++;
  s->files[*out] = (module_file){.path = wr_format("%s", path),
                                 .build_id = wr_format("%s", build_id),
                                 .bytes = bytes,
                                 .mtime = mtime};
  return s->files[*out].path && s->files[*out].build_id ? WEIR_OK : no_memory_to_symbolize(s);
}

static weir_status take_module(void *context, sqlite3_stmt *q)
{
  wr_symbols *s = context;
  module_row m = {.id = sqlite3_column_int64(q, 0),
                  .process = sqlite3_column_int64(q, 1),
                  .base = sqlite3_column_int64(q, 4),
                  .start = sqlite3_column_int64(q, 5),
                  .end = sqlite3_column_int64(q, 6),
                  .loaded = sqlite3_column_int64(q, 7)};
  weir_status st = place_of_file(s, q, &m.file);
  if (st) return st;
  if (!wr_grow(&s->modules, &s->module_capacity, s->module_count + 1, sizeof(m)))
    return no_memory_to_symbolize(s);
  m.path = s->files[m.file].path;
  s->modules[s->module_count++] = m;
  return WEIR_OK;
}

static weir_status symbolize_process(void *context, sqlite3_stmt *q)
{
  wr_symbols *s = context;
  if (!wr_grow(&s->processes, &s->process_capacity, s->process_count + 1, sizeof(process_row)))
    return no_memory_to_symbolize(s);
  bool known = sqlite3_column_type(q, 2) == SQLITE_INTEGER;
  s->processes[s->process_count++] = (process_row){.id = sqlite3_column_int64(q, 0),
                                                   .pid = sqlite3_column_int64(q, 1),
                                                   .uid = known ? sqlite3_column_int64(q, 2) : -1};
  return WEIR_OK;
}

weir_status wr_symbols_open(wr_symbols **out, const wr_db *db)
{
  wr_symbols *s = calloc(1, sizeof(*s));
  if (!s) return weir_fail(WEIR_ENOMEM, "symbolizing %s: out of host memory", db->path);
  s->db = db;
#define MODULES(stamp)                                                                             \
  "SELECT id, process, path, build_id, base, start, \"end\", loaded, " stamp                       \
  " FROM module WHERE start IS NOT NULL"
  bool stamped = wr_db_has_column(db, "module", "mtime");
  weir_status st =
      wr_db_each(db, stamped ? MODULES("bytes, mtime") : MODULES("0, 0"), take_module, s);
  if (!st)
    st = wr_db_each(db,
                    wr_db_has_column(db, "process", "uid") ? "SELECT id, pid, uid FROM process"
                                                           : "SELECT id, pid, NULL FROM process",
                    symbolize_process, s);
  if (!st)
    st = wr_db_prepare(db,
                       "SELECT f.id, f.process, f.address, f.module, f.first FROM stack_frame s"
                       " JOIN frame f ON f.id = s.frame WHERE s.stack = ? ORDER BY s.depth"
                       " LIMIT 256",
                       &s->stack);
  if (!st && wr_db_has_table(db, "source_line"))
    st = wr_db_prepare(db,
                       "SELECT function, file, line FROM main.source_line WHERE frame = ?"
                       " ORDER BY inlined LIMIT 256",
                       &s->stored);
  if (!st && wr_db_has_table(db, "python_frame"))
    st = wr_db_prepare(db,
                       "SELECT function, file, line FROM main.python_frame"
                       " WHERE process = ? AND address = ? LIMIT 1",
                       &s->python);
  wr_demangler_open(&s->cxx);
  if (st)
    wr_symbols_close(s);
  else
    *out = s;
  return st;
}

void wr_symbols_close(wr_symbols *s)
{
  if (!s) return;
  sqlite3_finalize(s->stack);
  sqlite3_finalize(s->stored);
  sqlite3_finalize(s->python);
  for (size_t i = 0; i < s->file_count; i++) {
    if (s->files[i].session) dwfl_end(s->files[i].session);
    wr_units_free(&s->files[i].units);
    free(s->files[i].path);
    free(s->files[i].build_id);
  }
  for (size_t i = 0; i < s->process_count; i++)
    jit_symbols_free(&s->processes[i].jit);
  for (size_t i = 0; i < s->string_count; i++)
    free(s->strings[i]);
  hash_map_free(&s->by_frame);
  free(s->files);
  free(s->modules);
  free(s->processes);
  free(s->spans);
  free(s->frames);
  free(s->answer);
  free(s->strings);
  wr_demangler_close(&s->cxx);
  free(s);
}

/* ---- one address ----------------------------------------------------------------------------- */

/* Takes `text`, which lives as long as `s` then. NULL: it is NULL, or out of memory. */
static const char *keep_text(wr_symbols *s, char *text)
{
  if (text && wr_grow(&s->strings, &s->string_capacity, s->string_count + 1, sizeof(char *)))
    return s->strings[s->string_count++] = text;
  free(text);
  return NULL;
}

/* Demangled where it can be; the answer lives as long as `s`. */
static const char *demangled_name(wr_symbols *s, const char *name)
{
  const char *text = keep_text(s, wr_demangle(&s->cxx, name));
  return text ? text : name;
}

static weir_status push_frame(wr_symbols *s, wr_frame frame)
{
  if (!wr_grow(&s->frames, &s->frame_capacity, s->frame_count + 1, sizeof(frame)))
    return no_memory_to_symbolize(s);
  s->frames[s->frame_count++] = frame;
  return WEIR_OK;
}

static const char *die_name(wr_symbols *s, Dwarf_Die *unit, Dwarf_Die *die)
{
  Dwarf_Attribute attribute;
  Dwarf_Attribute *linkage = dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute);
  const char *name = linkage ? dwarf_formstring(linkage) : NULL;
  if (name) return demangled_name(s, name);
  name = keep_text(s, wr_units_name(unit, die));
  return name ? name : dwarf_diename(die);
}

/* Where an inlined function was called from. */
static void call_place(Dwarf_Die *unit, Dwarf_Die *inlined, wr_frame *f)
{
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0, line = 0;
  Dwarf_Files *files = NULL;
  size_t count = 0;
  f->file = NULL;
  f->line = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) ||
      dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) ||
      dwarf_getsrcfiles(unit, &files, &count) || file >= count)
    return;
  f->file = dwarf_filesrc(files, (size_t)file, NULL, NULL);
  f->line = (int)line;
}

/* The scopes around `address`, innermost first, from the innermost function on. Returns their
 * number and *chain (malloc), 0 when nothing is known. */
static int function_chain(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die **chain)
{
  Dwarf_Die *scopes = NULL, innermost;
  int n = dwarf_getscopes(unit, address, &scopes);
  bool found = false;
  for (int i = 0; !found && i < n; i++) {
    int tag = dwarf_tag(&scopes[i]);
    found = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram;
    if (found) innermost = scopes[i];
  }
  free(scopes);
  if (!found && !wr_units_function(unit, address, &innermost)) return 0;
  int count = dwarf_getscopes_die(&innermost, chain);
  return count > 0 ? count : 0;
}

/* Pushes the function at `address` of the unit and those it is inlined into. *pushed: any. */
static weir_status push_inlines(wr_symbols *s, Dwarf_Die *unit, Dwarf_Addr address, wr_frame f,
                                bool *pushed)
{
  Dwarf_Die *chain = NULL;
  int n = function_chain(unit, address, &chain);
  weir_status st = WEIR_OK;
  for (int i = 0; !st && i < n; i++) {
    int tag = dwarf_tag(&chain[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    const char *name = die_name(s, unit, &chain[i]);
    if (name || tag == DW_TAG_inlined_subroutine) f.function = name; /* else the symbol's */
    st = push_frame(s, f);
    *pushed = true;
    if (tag == DW_TAG_subprogram) break;
    call_place(unit, &chain[i], &f);
  }
  free(chain);
  return st;
}

static weir_status resolve_in_module(wr_symbols *s, const module_row *m, wr_frame f)
{
  module_file *file = &s->files[m->file];
  weir_status st = open_module_file(s, file);
  if (st) return st;
  f.lacks = file->lacks;
  if (!file->module) return push_frame(s, f);
  Dwarf_Addr at = f.offset - 1 + file->bias;
  GElf_Off offset;
  GElf_Sym symbol;
  f.function =
      demangled_name(s, dwfl_module_addrinfo(file->module, at, &offset, &symbol, NULL, NULL, NULL));
  Dwarf_Addr bias = 0;
  Dwarf_Die *unit = wr_units_find(&file->units, file->module, at, &bias);
  Dwarf_Line *line = unit ? dwarf_getsrc_die(unit, at - bias) : NULL;
  if (line) f.file = dwarf_linesrc(line, NULL, NULL);
  if (!line || dwarf_lineno(line, &f.line)) f.line = 0;
  bool pushed = false;
  if (unit) st = push_inlines(s, unit, at - bias, f, &pushed);
  return st || pushed ? st : push_frame(s, f);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* The module by its row, or, while a trace has not placed its frames, by address and time. */
static const module_row *module_of_address(const wr_symbols *s, int64_t id, int64_t process,
                                           int64_t address, int64_t first)
{
  const module_row *best = NULL;
  for (size_t i = 0; i < s->module_count; i++) {
    const module_row *m = &s->modules[i];
    if (id && m->id == id && m->process == process) return m;
    if (id || m->process != process || m->start >= address || m->end < address) continue;
    if (!best || (m->loaded <= first && m->loaded > best->loaded)) best = m;
  }
  return best;
}

static bool is_python(uint64_t address)
{
  return address >= WEIR_PYTHON_FRAME_FIRST && address - WEIR_PYTHON_FRAME_FIRST < UINT64_C(1)
                                                                                       << 32;
}

static weir_status push_python(wr_symbols *s, int64_t process, uint64_t address, wr_frame f)
{
  weir_status st = WEIR_OK;
  sqlite3_bind_int64(s->python, 1, process);
  sqlite3_bind_int64(s->python, 2, (int64_t)address);
  int code = sqlite3_step(s->python);
  bool named = code == SQLITE_ROW && sqlite3_column_type(s->python, 0) != SQLITE_NULL;
  bool placed = code == SQLITE_ROW && sqlite3_column_type(s->python, 1) != SQLITE_NULL;
  if (named) f.function = keep_text(s, wr_db_text(s->python, 0));
  if (placed) f.file = keep_text(s, wr_db_text(s->python, 1));
  if (f.file && sqlite3_column_int64(s->python, 2) > 0) f.line = sqlite3_column_int(s->python, 2);
  if ((named && !f.function) || (placed && !f.file)) st = no_memory_to_symbolize(s);
  if (code != SQLITE_ROW && code != SQLITE_DONE) st = wr_db_fail(s->db, "reading");
  sqlite3_reset(s->python);
  return st ? st : push_frame(s, f);
}

static const char *jit_name(const wr_symbols *s, process_row *p, uint64_t address)
{
  if (!p->jit_read) jit_symbols_read(&p->jit, p->pid, p->uid, s->db->symbols);
  p->jit_read = true;
  return jit_symbols_find(&p->jit, address);
}

static weir_status look_up_address(wr_symbols *s, const module_row *m, int64_t process,
                                   uint64_t address, wr_frame f)
{
  if (m) return resolve_in_module(s, m, f);
  if (f.script && s->python) return push_python(s, process, address, f);
  for (size_t i = 0; i < s->process_count; i++)
    if (s->processes[i].id == process) f.function = jit_name(s, &s->processes[i], address - 1);
  f.script |= f.function && !strncmp(f.function, "py::", 4);
  return push_frame(s, f);
}

/* What the trace has of `f`. */
static weir_status push_stored(wr_symbols *s, wr_frame f)
{
  weir_status st = WEIR_OK;
  int code = SQLITE_DONE;
  if (!s->stored) return WEIR_OK;
  sqlite3_bind_int64(s->stored, 1, f.row);
  while (!st && (code = sqlite3_step(s->stored)) == SQLITE_ROW) {
    int line = sqlite3_column_int(s->stored, 2);
    bool named = sqlite3_column_type(s->stored, 0) != SQLITE_NULL;
    bool placed = sqlite3_column_type(s->stored, 1) != SQLITE_NULL;
    f.function = named ? keep_text(s, wr_db_text(s->stored, 0)) : NULL;
    f.file = placed ? keep_text(s, wr_db_text(s->stored, 1)) : NULL;
    f.line = f.file && line > 0 ? line : 0;
    st = (named && !f.function) || (placed && !f.file) ? no_memory_to_symbolize(s)
                                                       : push_frame(s, f);
  }
  if (!st && code != SQLITE_DONE) st = wr_db_fail(s->db, "reading");
  sqlite3_reset(s->stored);
  return st;
}

/* How much an answer holds. */
enum { SAYS_NOTHING, SAYS_FUNCTION, SAYS_LINE };

static int says(const wr_symbols *s, span x)
{
  int most = SAYS_NOTHING;
  for (size_t i = x.first; i < x.first + x.count; i++) {
    if (s->frames[i].file) return SAYS_LINE;
    if (s->frames[i].function) most = SAYS_FUNCTION;
  }
  return most;
}

/* What the trace has, where that is enough, or where files have no more. */
static weir_status resolve_frame(wr_symbols *s, sqlite3_stmt *q, span *out)
{
  int64_t process = sqlite3_column_int64(q, 1), address = sqlite3_column_int64(q, 2);
  const module_row *m = module_of_address(s, sqlite3_column_int64(q, 3), process, address,
                                          sqlite3_column_int64(q, 4));
  wr_frame f = {.module = m ? m->path : "",
                .offset = (uint64_t)address - (m ? (uint64_t)m->base : 0),
                .row = sqlite3_column_int64(q, 0),
                .built = m ? s->files[m->file].mtime : 0,
                .script = !m && is_python((uint64_t)address)};
  *out = (span){.first = s->frame_count};
  weir_status st = push_stored(s, f);
  out->count = s->frame_count - out->first;
  int stored = says(s, *out);
  if (st || stored >= (s->db->want_lines ? SAYS_LINE : SAYS_FUNCTION)) return st;
  span found = {.first = s->frame_count};
  st = look_up_address(s, m, process, (uint64_t)address, f);
  found.count = s->frame_count - found.first;
  if (!stored || says(s, found) > stored) *out = found;
  return st;
}

/* The cached answer for the frame in the current row. */
static weir_status frame_span(wr_symbols *s, sqlite3_stmt *q, span *out)
{
  bool added;
  uint64_t *known = hash_map_place(&s->by_frame, (uint64_t)sqlite3_column_int64(q, 0), &added);
  if (!known) return no_memory_to_symbolize(s);
  if (!added) {
    *out = s->spans[*known];
    return WEIR_OK;
  }
  if (!wr_grow(&s->spans, &s->span_capacity, s->span_count + 1, sizeof(span)))
    return no_memory_to_symbolize(s);
  *known = s->span_count++;
  s->spans[*known] = (span){0, 0};
  size_t at = *known;
  weir_status st = resolve_frame(s, q, out);
  for (size_t i = 0; i < out->count; i++)
    s->frames[out->first + i].inlined = (int)i;
  s->spans[at] = *out;
  return st;
}

bool wr_symbols_resolved(const wr_symbols *s, size_t *at, const wr_frame **frames, size_t *count)
{
  if (*at >= s->span_count) return false;
  const span *x = &s->spans[(*at)++];
  *frames = s->frames + x->first;
  *count = x->count;
  return true;
}

weir_status wr_symbols_stack(wr_symbols *s, int64_t stack, const wr_frame **frames, size_t *count)
{
  weir_status st = WEIR_OK;
  int code = SQLITE_DONE;
  *count = 0;
  sqlite3_bind_int64(s->stack, 1, stack);
  while (!st && (code = sqlite3_step(s->stack)) == SQLITE_ROW) {
    span part = {0, 0};
    st = frame_span(s, s->stack, &part);
    if (st) break;
    if (!wr_grow(&s->answer, &s->answer_capacity, *count + part.count, sizeof(wr_frame))) {
      st = no_memory_to_symbolize(s);
      break;
    }
    if (part.count)
      memcpy(s->answer + *count, s->frames + part.first, part.count * sizeof(wr_frame));
    *count += part.count;
  }
  if (!st && code != SQLITE_DONE) st = wr_db_fail(s->db, "reading");
  sqlite3_reset(s->stack);
  *frames = s->answer;
  return st;
}

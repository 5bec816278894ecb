/* own_program.c: see own_program.h. */
#include "tests/reports/own_program.h"
#include <check.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/reports/synth.h"

struct own_program own_program;

static void note_build_id(const char *at, size_t bytes)
{
  while (bytes >= sizeof(ElfW(Nhdr))) {
    const ElfW(Nhdr) *n = (const void *)at;
    size_t name = (n->n_namesz + 3u) & ~3u, text = (n->n_descsz + 3u) & ~3u;
    if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 &&
        n->n_descsz <= sizeof(own_program.build_id)) {
      memcpy(own_program.build_id, at + sizeof(*n) + name, n->n_descsz);
      own_program.build_id_bytes = n->n_descsz;
    }
    if (sizeof(*n) + name + text > bytes) return;
    at += sizeof(*n) + name + text;
    bytes -= sizeof(*n) + name + text;
  }
}

static int look_at_program(struct dl_phdr_info *info, size_t size, void *context)
{
  (void)size, (void)context;
  own_program.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
      own_program.start = info->dlpi_addr + p->p_vaddr;
      own_program.end = own_program.start + p->p_memsz;
    }
    if (p->p_type == PT_NOTE)
      note_build_id((const char *)(uintptr_t)(info->dlpi_addr + p->p_vaddr), p->p_memsz);
  }
  return 1; /* the first object is the program */
}

void own_program_find(void)
{
  dl_iterate_phdr(look_at_program, NULL);
  ssize_t n = readlink("/proc/self/exe", own_program.path, sizeof(own_program.path) - 1);
  ck_assert_int_gt(n, 0);
  own_program.path[n] = '\0';
}

void own_program_record(const char *path, const void *id, size_t id_bytes, const uint64_t *frames,
                        size_t depth)
{
  synth_open(synth_dir());
  synth_module(0, 0x7000000, 0x7000000, 0x7001000, "/usr/lib/libcudart.so.13", NULL, 0);
  synth_module(0, own_program.base, own_program.start, own_program.end, path, id, id_bytes);
  synth_stack(0, 1, frames, depth);
  synth_event(0, 100, 10,
              (trace_event){.kind = WEIR_EV_ALLOC,
                            .api = synth_api("cudaMalloc"),
                            .a = 0x1000,
                            .bytes = 4096,
                            .mem = WEIR_MEM_DEVICE,
                            .stack = 1});
}

void run_shell_format(const char *format, const char *a, const char *b)
{
  char command[2048];
  (void)snprintf(command, sizeof(command), format, a, b);
  ck_assert_msg(!system(command), "%s", command);
}

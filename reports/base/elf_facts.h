/* elf_facts.h: what a module's file shows of CUDA inside it. */
#ifndef WEIR_REPORTS_ELF_FACTS_H
#define WEIR_REPORTS_ELF_FACTS_H

#include <stdbool.h>
#include <stdint.h>

/* Larger files are no modules: sparse, or not ELF. */
#define WR_ELF_MOST_BYTES (UINT64_C(16) << 30)

typedef struct wr_elf_facts {
  bool readable;     /* it is there and an ELF file; else nothing below is known */
  bool embeds_cuda;  /* has device code (.nv_fatbin), so it was linked with some cudart */
  bool needs_cudart; /* names libcudart.so as needed: its runtime calls can be seen */
} wr_elf_facts;

/* Looks at the file at `path`; never fails, an unreadable file is an answer too. */
wr_elf_facts wr_elf_facts_of(const char *path);

#endif

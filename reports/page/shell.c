/* shell.c: see shell.h. Both halves are linked in as one text, each ended by a NUL (join.py). */
#include "reports/page/shell.h"
#include <string.h>

__asm__(".pushsection .rodata\n"
        ".global wr_page_shell\n"
        ".hidden wr_page_shell\n"
        "wr_page_shell: .incbin \"page_shell.html\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char wr_page_shell[];

const char *page_shell_before(void)
{
  return wr_page_shell;
}

const char *page_shell_after(void)
{
  return wr_page_shell + strlen(wr_page_shell) + 1;
}

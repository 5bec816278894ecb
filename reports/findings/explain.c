/* explain.c: see explain.h. The pages are one text: the id of the first, a NUL, the page, a NUL,
 * then the next one; another NUL ends them. */
#include "reports/findings/explain.h"
#include <stddef.h>
#include <string.h>

__asm__(".pushsection .rodata\n"
        ".global wr_explain_text\n"
        ".hidden wr_explain_text\n"
        "wr_explain_text: .incbin \"findings_explain.txt\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char wr_explain_text[];

const char *wr_explanation(const char *id)
{
  for (const char *at = wr_explain_text; *at;) {
    const char *page = at + strlen(at) + 1;
    if (!strcmp(at, id)) return page;
    at = page + strlen(page) + 1;
  }
  return NULL;
}

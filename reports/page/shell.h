/* shell.h: the page around its data: HTML, style, libraries and the application. */
#ifndef WEIR_REPORTS_PAGE_SHELL_H
#define WEIR_REPORTS_PAGE_SHELL_H

const char *page_shell_before(void); /* the data */
const char *page_shell_after(void);

#endif

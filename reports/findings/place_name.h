/* place_name.h: the name that the instantiations of one C++ template have in common. */
#ifndef WEIR_REPORTS_FINDINGS_PLACE_NAME_H
#define WEIR_REPORTS_FINDINGS_PLACE_NAME_H

/* A demangled function without its template arguments and its parameters: "ns::fill<float>(float*)" is "ns::fill".
 * New; NULL: out of memory. */
char *wr_place_stem(const char *function);

#endif

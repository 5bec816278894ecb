/* kernel_params.c: see kernel_params.h. The demangler has resolved what is abbreviated in the name, and the
 * arguments of templates; what it has written is taken apart from the end: the last brackets are the parameters'. */
#include "reports/findings/kernel_params.h"
#include <stdlib.h>
#include <string.h>

/* Types that have no pointer in them. The vectors of CUDA are named by their elements: "float4". */
static const char *const numbers[] = {"bool",          "char",
                                      "signed char",   "unsigned char",
                                      "short",         "unsigned short",
                                      "int",           "unsigned int",
                                      "long",          "unsigned long",
                                      "long long",     "float",
                                      "double",        "unsigned long long",
                                      "__int128",      "wchar_t",
                                      "__half",        "__half2",
                                      "__nv_bfloat16", "__nv_bfloat162",
                                      "char8_t",       "char16_t",
                                      "char32_t",      "unsigned __int128",
                                      "__nv_fp8_e4m3", "__nv_fp8_e5m2"};

static const char *const vectors[] = {"char", "uchar", "short",    "ushort",    "int",   "uint",
                                      "long", "ulong", "longlong", "ulonglong", "float", "double"};

static bool is_text(const char *at, size_t length, const char *text)
{
  return strlen(text) == length && !memcmp(at, text, length);
}

static bool is_number_type(const char *at, size_t length)
{
  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
    if (is_text(at, length, numbers[i])) return true;
  bool counted = length > 1 && at[length - 1] >= '1' && at[length - 1] <= '4';
  for (size_t i = 0; counted && i < sizeof(vectors) / sizeof(*vectors); i++)
    if (is_text(at, length - 1, vectors[i])) return true;
  return false;
}

/* Texture and surface objects are numbers of this type. */
static bool is_handle_type(const char *at, size_t length)
{
  return is_text(at, length, "unsigned long long");
}

static bool ends_with(const char *at, size_t length, const char *end)
{
  size_t bytes = strlen(end);
  return length >= bytes && !memcmp(at + length - bytes, end, bytes);
}

static wr_param param_of(const char *at, size_t length)
{
  static const char constant[] = " const";
  if (!length || at[length - 1] != '*') {
    bool number = is_number_type(at, length) && !is_handle_type(at, length);
    return number ? WR_PARAM_NUMBER : WR_PARAM_UNKNOWN;
  }
  length--;
  bool reads = ends_with(at, length, constant);
  if (reads) length -= sizeof(constant) - 1;
  if (!is_number_type(at, length)) return WR_PARAM_UNKNOWN;
  return reads ? WR_PARAM_READS : WR_PARAM_WRITES;
}

/* The bracket that opens what the last one closes; NULL: the name has no parameters. */
static const char *begin_of_params(const char *name)
{
  const char *at = name + strlen(name);
  if (at == name || at[-1] != ')') return NULL;
  for (int depth = 0; at > name; at--) {
    if (at[-1] == ')') depth++;
    if (at[-1] == '(' && --depth == 0) return at - 1;
  }
  return NULL;
}

/* After the parameter that begins there: at a comma that is in no brackets, or at the last bracket. */
static const char *end_of_param(const char *at)
{
  for (int depth = 0; *at; at++) {
    if (!depth && (*at == ',' || (*at == ')' && !at[1]))) return at;
    depth += strchr("<([{", *at) != NULL;
    depth -= strchr(">)]}", *at) != NULL;
  }
  return NULL;
}

static wr_params params_of(const char *name)
{
  wr_params p = {.plain = true};
  const char *at = begin_of_params(name);
  if (!at) return (wr_params){.count = -1};
  for (at++; *at != ')' || at[1];) {
    const char *end = end_of_param(at);
    if (!end || p.count == WR_PARAMS) return (wr_params){.count = -1};
    wr_param what = param_of(at, (size_t)(end - at));
    p.plain &= what != WR_PARAM_UNKNOWN;
    p.of[p.count++] = (uint8_t)what;
    at = *end == ',' ? end + 1 + (end[1] == ' ') : end;
  }
  return p;
}

wr_params wr_params_of(wr_demangler *d, const char *name)
{
  char *whole = wr_demangle(d, name);
  wr_params p = whole ? params_of(whole) : (wr_params){.count = -1};
  free(whole);
  return p;
}

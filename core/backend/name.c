/* name.c: devices as text: torch.device's strings and their errors. */
#include <stdlib.h>
#include <string.h>
#include "core/base/require.h"
#include "core/weir/device.h"

static const struct kind {
  const char *name;
  weir_device_type type;
} kinds[] = {{"cpu", WEIR_DEVICE_CPU}, {"cuda", WEIR_DEVICE_CUDA}};

enum { KINDS = sizeof kinds / sizeof *kinds, INDEX_MAX = 127 };

/* Letters and underscores, then nothing or a colon and a number without zeros in front; *index: the
 * number's first digit, NULL: none. */
static bool well_formed(const char *text, size_t *name, const char **index)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  *name = strspn(text, letters);
  *index = text[*name] ? text + *name + 1 : NULL;
  if (!*name || (*index && text[*name] != ':')) return false;
  if (!*index) return true;
  size_t digits = strspn(*index, "0123456789");
  return digits && !(*index)[digits] && (digits == 1 || **index != '0');
}

weir_status weir_device_parse(weir_device *out, const char *text)
{
  WEIR_REQUIRE(out, text);
  size_t length;
  const char *digits;
  if (!*text) return fail_invalid("Device string must not be empty");
  if (!well_formed(text, &length, &digits))
    return fail_invalid("Invalid device string: '%s'", text);
  size_t i = 0;
  while (i < KINDS &&
         (strlen(kinds[i].name) != length || strncmp(kinds[i].name, text, length) != 0))
    i++;
  if (i == KINDS)
    return fail_invalid("Expected one of cpu, cuda device type at start of device string: %.*s",
                        (int)length, text);
  long index = !digits ? -1 : strlen(digits) > 3 ? INDEX_MAX + 1 : strtol(digits, NULL, 10);
  if (index > INDEX_MAX)
    return fail_invalid("Could not parse device index '%s' in device string '%s'", digits, text);
  if (kinds[i].type == WEIR_DEVICE_CPU && index > 0)
    return fail_invalid("CPU device index must be -1 or zero, got %ld", index);
  *out = (weir_device){kinds[i].type, {(int)index + 1}};
  return WEIR_OK;
}

#define TEN(tens)                                                                                  \
  "cuda:" tens "0", "cuda:" tens "1", "cuda:" tens "2", "cuda:" tens "3", "cuda:" tens "4",        \
      "cuda:" tens "5", "cuda:" tens "6", "cuda:" tens "7", "cuda:" tens "8", "cuda:" tens "9"

const char *weir_device_name(weir_device device)
{
  static const char *const cuda[] = {TEN(""),   TEN("1"),  TEN("2"), TEN("3"), TEN("4"),
                                     TEN("5"),  TEN("6"),  TEN("7"), TEN("8"), TEN("9"),
                                     TEN("10"), TEN("11"), TEN("12")};
  int index = weir_device_index(device);
  if (device.type == WEIR_DEVICE_CPU) return index < 0 ? "cpu" : "cpu:0";
  if (device.type != WEIR_DEVICE_CUDA) return "no device";
  if (index < 0) return "cuda";
  return index <= INDEX_MAX ? cuda[index] : "cuda:?";
}

bool weir_device_equal(weir_device a, weir_device b)
{
  return a.type == b.type && weir_device_index(a) == weir_device_index(b);
}

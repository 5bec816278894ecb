/* dnnl_bare.c: a library of the name and version of oneDNN that has none of its functions. */
#pragma GCC visibility push(default)

struct version {
  int major, minor, patch;
  const char *hash;
  unsigned cpu, gpu;
};

const struct version *dnnl_version(void);
const struct version *dnnl_version(void)
{
  static const struct version bare = {3, 0, 0, "bare", 2, 0};
  return &bare;
}

/* throw_plugin.cc: throws through the frames of whoever calls it. */
#include "throw.h"

#include <string>

extern "C" __attribute__((visibility("default"))) int plugin_throw(int n)
{
  if (n == 0) throw plugin_error("thrown by the plug-in");
  std::string on_the_way = "unwound " + std::to_string(n);
  int below = plugin_throw(n - 1);
  return below + static_cast<int>(on_the_way.size());
}

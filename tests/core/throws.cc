// throws.cc: C++ exceptions in a plug-in, for test_stack: they must find libgcc's unwinder.
#include <stdexcept>
#include <string>

static int dig(int depth)
{
  std::string on_the_way = std::to_string(depth);
  if (depth == 0) throw std::runtime_error("bottom");
  return dig(depth - 1) + static_cast<int>(on_the_way.size());
}

extern "C" int throw_and_catch(int depth)
{
  try {
    return dig(depth);
  } catch (const std::runtime_error &e) {
    return std::string(e.what()) == "bottom" ? 1 : 2;
  }
}

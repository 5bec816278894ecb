/* throw.cc: a C++ program without CUDA whose plug-in throws, in eight threads at once. */
#include "throw.h"

#include <cstdio>
#include <dlfcn.h>
#include <thread>
#include <vector>

int main()
{
  void *h = dlopen(PLUGINS "/throw_plugin.so", RTLD_NOW | RTLD_LOCAL);
  if (!h) return std::puts(dlerror()), 1;
  auto plugin = reinterpret_cast<int (*)(int)>(dlsym(h, "plugin_throw"));
  int caught[8] = {};
  std::vector<std::thread> threads;
  for (int &count : caught)
    threads.emplace_back([&count, plugin] {
      for (int i = 0; i < 50; i++)
        try {
          plugin(20);
        } catch (const plugin_error &e) {
          count += *e.what() == 't';
        }
    });
  for (auto &t : threads)
    t.join();
  for (int count : caught)
    std::printf("%d\n", count);
  return 0;
}

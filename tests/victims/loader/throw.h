/* throw.h: what the program and its plug-in throw at each other. */
#ifndef THROW_H
#define THROW_H
#include <stdexcept>
struct plugin_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
#endif

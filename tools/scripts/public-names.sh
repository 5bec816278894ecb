#!/bin/sh
# public-names.sh: the names of the functions that the public headers declare, sorted, one a line. They are what
# libweir.so exports: check-exports.sh holds it to that. Run from the top of the tree.
set -eu
echo '#include "core/weir.h"' | "${CC:-cc}" -I. -E -P - | tr '\n' ' ' |
  grep -oE '_?_?visibility_?_?\("default"\)\)\) [^;(]*\bweir_[a-z0-9_]+\(' | grep -oE 'weir_[a-z0-9_]+\($' | tr -d '(' |
  LC_ALL=C sort -u

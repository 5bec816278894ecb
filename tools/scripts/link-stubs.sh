#!/bin/sh
# link-stubs.sh CC CUDA_HOME CUDA_LIB DIR: what programs are linked against, and never run with: DIR/libcuda.so,
# every function that the Toolkit's cuda.h declares, empty, under the driver's soname; DIR/libcudart.so, a link to
# the Toolkit's own. A driver's library is on few machines that build, and not every Toolkit has a stub of it.
set -eu
cc=$1 cuda=$2 lib=$3 dir=$4
mkdir -p "$dir"
# $cc: a command and its options
# shellcheck disable=SC2086
$cc -E -P -D__CUDA_API_VERSION_INTERNAL -I "$cuda/include" -x c - <<'C' | tr '\n' ' ' | grep -oE 'CUresult +cu[A-Za-z0-9_]+ *\(' |
#include <cuda.h>
#include <cudaProfiler.h>
C
  sed -E 's/CUresult +(\w+).*/void \1(void); void \1(void) {}/' | sort -u >"$dir/libcuda.c"
[ -s "$dir/libcuda.c" ] || { echo "weir: no functions were found in $cuda/include/cuda.h." >&2; exit 1; }
# shellcheck disable=SC2086
$cc -shared -fPIC -w -Wl,-soname,libcuda.so.1 -o "$dir/libcuda.so.new" "$dir/libcuda.c"
for runtime in "$lib"/libcudart.so "$lib"/libcudart.so.*; do
  [ -e "$runtime" ] && ln -sf "$(realpath "$runtime")" "$dir/libcudart.so" && break
done
mv "$dir/libcuda.so.new" "$dir/libcuda.so"

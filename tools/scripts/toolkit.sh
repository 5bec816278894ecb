#!/bin/sh
# toolkit.sh DIR: the pieces of the CUDA Toolkit that a build needs, from PyPI into DIR, for machines that
# have none. `make deps` calls it; nothing outside DIR is touched, and a half-made DIR is made anew.
#
# The wheels of toolkit.txt lack what a Toolkit's installer adds: lib64, and the links that a linker looks for
# (libcudart.so for libcudart.so.13). They are made here, so that DIR/nvidia/cu13 is a CUDA_HOME like others.
# A stub of libcuda is in no wheel: link-stubs.sh makes one for every build.
set -eu
dir=$1
wheels=$(dirname "$0")/toolkit.txt
home=$dir/nvidia/cu13

[ -f "$dir/complete" ] && cmp -s "$wheels" "$dir/complete" && exit 0
if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "weir: python3 has no pip, which fetches the CUDA Toolkit's pieces: install package python3-pip." >&2
  exit 1
fi
echo "  DEPS    no CUDA Toolkit found: its pieces come from PyPI into $dir (115 MB to fetch, 315 MB unpacked; no other folder is touched)"
rm -rf "$dir"
mkdir -p "$dir"
log=$dir/log
python3 -m pip install --disable-pip-version-check --no-input --no-compile --no-deps --only-binary=:all: \
  --require-hashes --root-user-action=ignore --target "$dir" -r "$wheels" </dev/null >"$log" 2>&1 || {
  cat "$log" >&2
  echo "weir: the CUDA Toolkit's pieces could not be fetched from PyPI (see above): install a Toolkit (package cuda-toolkit-13-0 of https://developer.nvidia.com/cuda-downloads) or set CUDA_HOME to where one is." >&2
  exit 1
}
ln -s lib "$home/lib64"
for file in "$home"/lib/lib*.so.*; do
  [ -e "${file%%.so.*}.so" ] || ln -s "${file##*/}" "${file%%.so.*}.so"
done
cp "$wheels" "$dir/complete"

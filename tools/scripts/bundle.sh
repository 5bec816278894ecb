#!/bin/sh
# bundle.sh BUILD VERSION ARCH CUDA_HOME: build/weir-VERSION-ARCH.tar.gz: what install copies, and
# with it what that needs and a machine may not have: the libraries of weir and of libunwind in
# lib/weir/ (their DT_RPATH points there), the examples with the shared
# CUDA runtime in examples/lib, and check-gpu.sh with what it runs. glibc stays the machine's own.
# shellcheck disable=SC2016  # $ORIGIN and ${pcfiledir} are for the loader and pkg-config
set -eu
build=$1 version=$2 arch=$3 cuda=$4
name=weir-$version-$arch

stage=$(mktemp -d "$build/bundle.XXXXXX")
trap 'rm -rf "$stage"' EXIT
root=$stage/$name
mkdir -p "$root"
tools/scripts/install.sh "$build" "" "$root" "$version"
rm -f "$root/share/weir/installed"
rmdir "$root/share/weir" 2>/dev/null || true
# the pkg-config file finds its own place
sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|' "$root/lib/pkgconfig/weir.pc"

needed() { # FILE: paths of the shared libraries it needs, glibc's own left out
  ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' |
    grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so'
}

mkdir -p "$root/lib/weir"
needed "$root/bin/weir" | while read -r f; do install -m 755 "$f" "$root/lib/weir/$(basename "$f")"; done
if [ -e "$root/lib/weir/libunwind.so.8" ]; then
  needed "$root/lib/weir/libunwind.so.8" | while read -r f; do install -m 755 "$f" "$root/lib/weir/$(basename "$f")"; done
  patchelf --set-rpath '$ORIGIN' "$root/lib/weir/libunwind.so.8"
fi

if [ -d "$build/examples" ]; then
  mkdir -p "$root/examples/lib"
  (cd "$build/examples" && find . -type f -perm -100 -o -name '*.py' | tar cf - -T -) | tar xf - -C "$root/examples"
  for f in "$cuda"/lib64/libcudart.so.1[23] "$cuda"/lib64/libcupti.so.1[23] "$cuda"/extras/CUPTI/lib64/libcupti.so.1[23] "$build"/tests/gpu/libcupti_*.so; do
    [ -e "$f" ] && install -m 755 "$f" "$root/examples/lib/"
  done
  for f in "$root"/examples/lib/libcupti_*.so; do
    if [ -e "$f" ]; then patchelf --set-rpath '$ORIGIN' "$f"; fi
  done
fi

# what check-gpu.sh runs on a GPU: the engine's rows, the allocator's suites (Check is in them), the traps, programs that count for themselves, and figures
for f in "$build"/tests/gpu/cuda_* "$build/tests/gpu/engine" "$build/tests/gpu/overlap" "$build/tests/gpu/memory" "$build/tests/gpu/bandwidth" "$build/tests/reroute/trap" "$build/tests/reroute/differ" \
  "$build/tests/gpu/graph_caller" "$build/tests/gpu/nests" "$build/tests/gpu/keeper_static" "$build/tests/e2e/keeper" "$build/tests/e2e/waiter" "$build/tests/e2e/poller"; do
  [ -x "$f" ] && install -D -m 755 "$f" "$root/tests/$(basename "$f")"
done
for f in gpu gpu_tensor; do
  if [ -x "$build/bench/$f" ]; then install -D -m 755 "$build/bench/$f" "$root/bench/$f"; fi
done

install -m 755 tests/gpu/check-gpu.sh tests/gpu/*.py "$root/"
git describe --always --dirty >"$root/COMMIT" 2>/dev/null || echo "$version" >"$root/COMMIT"
install -m 644 README.md LICENSE "$root/"
for f in tools/doc/*.md tools/report.svg reports/SCHEMA.md core/weir/README.md; do # what README.md leads to
  install -D -m 644 "$f" "$root/$f"
done
tar czf "$build/$name.tar.gz" -C "$stage" "$name"
echo "  BUNDLE  $build/$name.tar.gz ($(du -h "$build/$name.tar.gz" | cut -f1))"

#!/bin/sh
# install.sh BUILD PREFIX DESTDIR VERSION [LIBDIR]: copies what was built; install.sh --remove PREFIX DESTDIR.
# What others link with goes to LIBDIR (below PREFIX: lib64, lib/x86_64-linux-gnu; PREFIX/lib), what is Weir's
# alone to lib/weir: the loader's cache serves nothing from there, so that the unwinder and the stand-ins for
# CUDA's libraries, which have other projects' names, are found by Weir only. What was copied is listed in
# share/weir/installed, which --remove goes by, and without its debug information, where `strip` is at hand.
set -eu

if [ "$1" = --remove ]; then
  root=$3$2
  list=$root/share/weir/installed
  [ -f "$list" ] || { echo "weir: nothing is installed below $root." >&2; exit 1; }
  made=$(sed -n 's|/weir\.pc$||p' "$list")
  sed "s|^|$root/|" "$list" | tr '\n' '\0' | xargs -0 rm -f
  rm -f "$list"
  for d in lib/weir/sim lib/weir $made include/weir/core/base include/weir/core/weir include/weir/core/backend include/weir/core include/weir/cuda/sim include/weir/cuda include/weir share/weir share/man/man1 share/man/man3 share/man/man7 share/bash-completion/completions share/zsh/site-functions share/fish/vendor_completions.d; do
    rmdir "$root/$d" 2>/dev/null || true
  done
  exit 0
fi

build=$1 prefix=$2 root=$3$2 version=$4 libdir=${5:-lib}
libdir=${libdir#"$prefix"/}
case $libdir in
  /* | *..* | '') echo "weir: LIBDIR ($libdir) is to be below PREFIX ($prefix)." >&2; exit 1 ;;
esac
list=$root/share/weir/installed
mkdir -p "$root/share/weir"
: >"$list.new"

put() { # MODE FILE TO: TO is relative to the root
  mkdir -p "$root/$(dirname "$3")"
  if [ -L "$2" ] && case $(readlink "$2") in /*) false ;; esac; then
    rm -f "$root/$3"
    cp -P "$2" "$root/$3"
  else
    install -m "$1" "$2" "$root/$3"
  fi
  echo "$3" >>"$list.new"
}

put_all() { # MODE FOLDER FILE...: FOLDER is relative to the root. One process for all: manuals have 1,200 pages.
  mode=$1 folder=$2
  shift 2
  mkdir -p "$root/$folder"
  install -m "$mode" "$@" "$root/$folder"
  printf '%s\n' "$@" | sed "s|.*/|$folder/|" >>"$list.new"
}

put_links() { # FOLDER LINK...: as they are
  folder=$1
  shift
  cp -P -f "$@" "$root/$folder"
  printf '%s\n' "$@" | sed "s|.*/|$folder/|" >>"$list.new"
}

bare() { # TO: without debug information; names of functions stay
  if [ ! -L "$root/$1" ] && command -v strip >/dev/null; then strip --strip-debug "$root/$1"; fi
}

put 755 "$build/bin/weir" bin/weir
bare bin/weir
for f in "$build"/lib/libweir.so* "$build"/lib/libweir-cuda.so "$build"/lib/libweir.a; do
  [ -e "$f" ] || continue
  put 755 "$f" "$libdir/$(basename "$f")"
  bare "$libdir/$(basename "$f")"
done
for f in "$build"/lib/libweir-preload.so "$build"/lib/libunwind.so.8; do
  [ -e "$f" ] || continue
  put 755 "$f" "lib/weir/$(basename "$f")"
  bare "lib/weir/$(basename "$f")"
done
for f in "$build"/lib/sim/*; do
  [ -f "$f" ] || continue
  put 755 "$f" "lib/weir/sim/$(basename "$f")"
  case $f in *.so* | *.a) bare "lib/weir/sim/$(basename "$f")" ;; esac
done
# for LD_PRELOAD, by the name that it has always had
up=$(echo "$libdir" | sed 's|[^/][^/]*|..|g')
ln -sfn "$up/lib/weir/libweir-preload.so" "$root/$libdir/libweir-preload.so"
echo "$libdir/libweir-preload.so" >>"$list.new"
put 644 core/weir.h include/weir/weir.h
put 644 core/base/status.h include/weir/core/base/status.h
put_all 644 include/weir/core/weir core/weir/*.h
put_all 644 include/weir/core/backend core/backend/backend.h core/backend/compute.h core/backend/segment.h
put_all 644 include/weir/cuda/sim cuda/sim/control.h cuda/sim/twin.h cuda/sim/weir_kernel.h cuda/sim/weir_texture.h
put_all 644 share/man/man1 tools/man/*.1
# shellcheck disable=SC2046  # names of functions
put_all 644 share/man/man3 $(find "$build/man" -name '*.3' -type f)
# shellcheck disable=SC2046
put_links share/man/man3 $(find "$build/man" -name '*.3' -type l)
put_all 644 share/man/man7 "$build"/man/*.7

made=$(mktemp)
for f in bash:share/bash-completion/completions/weir zsh:share/zsh/site-functions/_weir fish:share/fish/vendor_completions.d/weir.fish; do
  "$build/bin/weir" completion "${f%%:*}" >"$made" && put 644 "$made" "${f#*:}"
done
rm -f "$made"

pc=$(mktemp)
cat >"$pc" <<PC
prefix=$prefix
libdir=\${prefix}/$libdir
includedir=\${prefix}/include/weir

Name: weir
Description: CUDA memory, pooled and measured
Version: $version
Libs: -L\${libdir} -lweir
Libs.private: -lm -ldl -pthread
Cflags: -I\${includedir}
PC
put 644 "$pc" "$libdir/pkgconfig/weir.pc"
rm -f "$pc"
if [ -f "$list" ]; then # what an earlier installation had elsewhere
  grep -vxFf "$list.new" "$list" | sed "s|^|$root/|" | tr '\n' '\0' | xargs -0 -r rm -f
  rmdir "$root/lib/sim" 2>/dev/null || true
fi
mv "$list.new" "$list"

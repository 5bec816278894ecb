#!/bin/sh
# deps.sh: the packages Weir needs, and what to do about a missing one.
#
#   deps.sh check CC CUDA_HOME                    a build is about to start: a missing thing is one sentence, exit 1
#   deps.sh install SCOPE CUDA_HOME TOOLKIT       installs what is missing where it may (root or sudo without a
#                                                 password, and apt-get), else names it; where there is no CUDA
#                                                 Toolkit, its pieces go into the folder TOOLKIT (toolkit.sh)
#
#   deps.sh need COMMAND WHAT                     WHAT is about to be made, with COMMAND: missing, it is one sentence, exit 1
#
# SCOPE: build (a build and its quick tests), bench (and what benchmarks compare with), all (and test-all).
# One row a need: how to test that it is there, its Debian/Ubuntu package, and the scopes that want it (build: all do);
# may: where it is not to be had, what needs it is skipped (Ubuntu has no chromium package).
# Presence is asked of the tool itself, not of dpkg, so that other systems' packages count as well.
set -u

rows() {
  cat <<'ROWS'
cmd gcc             gcc                build
cmd g++             g++                build
cmd make            make               build
cmd pkg-config      pkg-config         build
cmd python3         python3            build
cmd readelf         binutils           build
pc  sqlite3         libsqlite3-dev     build
pc  jansson         libjansson-dev     build
pc  zlib            zlib1g-dev         build
pc  libdw           libdw-dev          build
pc  libelf          libelf-dev         build
pc  check           check              build
pc  libunwind       libunwind-dev      build
pc  libxxhash       libxxhash-dev      build
lib libunwind.so.8  libunwind8         build
cmd sqlite3         sqlite3            build
cmd clang           clang              all
cmd clang-format    clang-format       all
cmd clang-tidy      clang-tidy         all
cmd shellcheck      shellcheck         all
cmd valgrind        valgrind           all
cmd mandoc          mandoc             all
cmd chromium        chromium           all,may
lib libmimalloc.so.2 libmimalloc2.0    all,bench
lib libopenblas.so.0 libopenblas0      bench
lib liblapack.so.3  liblapack3         all
cmd patchelf        patchelf           all
cmd promtool        prometheus         all
cmd prometheus-node-exporter prometheus-node-exporter all
cmd tmux            tmux               all
py  numpy           python3-numpy      all
ROWS
}

have() { # KIND NAME
  case $1 in
  cmd) command -v "$2" >/dev/null 2>&1 ;;
  py) python3 -c "import $2" 2>/dev/null || /usr/bin/python3 -c "import $2" 2>/dev/null ;;
  pc) pkg-config --exists "$2" 2>/dev/null ;;
  lib) ldconfig -p 2>/dev/null | grep -q "$2" || PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -q "$2" ;;
  esac
}

missing() { # SCOPE [may]: packages, one a line; with may, those that can be done without
  rows | while read -r kind name package scopes; do
    case ",$scopes," in
    *,may,*) [ -n "${2-}" ] || continue ;;
    *) [ -z "${2-}" ] || continue ;;
    esac
    case ",$scopes," in
    *,build,* | *",$1,"*) ;;
    *) continue ;;
    esac
    have "$kind" "$name" || echo "$package"
  done
}

cuda_there() { # CUDA_HOME
  [ -f "$1/include/cuda.h" ] && [ -x "$1/bin/nvcc" ]
}

check() { # CC CUDA_HOME
  compiler=${1%% *}
  if ! command -v "$compiler" >/dev/null 2>&1; then
    echo "weir: no C compiler '$compiler': run 'make deps' or install package gcc." >&2
    exit 1
  fi
  if ! command -v pkg-config >/dev/null 2>&1; then
    echo "weir: pkg-config is missing: run 'make deps' or install package pkg-config." >&2
    exit 1
  fi
  lack=
  for pc in sqlite3 jansson zlib libdw libelf; do
    pkg-config --exists "$pc" || lack="$lack $(rows | awk -v n=$pc '$1 == "pc" && $2 == n { print $3 }')"
  done
  if [ -n "$lack" ]; then
    echo "weir: missing:$lack: run 'make deps' or install these packages." >&2
    exit 1
  fi
  if ! cuda_there "$2"; then
    echo "weir: no CUDA Toolkit at $2: run 'make deps', which fetches one from PyPI, or set CUDA_HOME to where one is." >&2
    exit 1
  fi
  exit 0
}

# Package lists may be old or absent: fetches them only when the first try fails.
apt_install() { # PACKAGES: apt-get's output is in $log; status 2: nothing may be installed from here
  as=
  if [ "$(id -u)" -ne 0 ]; then
    as="sudo -n"
    $as true 2>/dev/null || return 2
  fi
  command -v apt-get >/dev/null 2>&1 || return 2
  echo "  DEPS    $1"
  # shellcheck disable=SC2086  # words: $1, $as
  DEBIAN_FRONTEND=noninteractive $as apt-get install -y --no-install-recommends $1 </dev/null >"$log" 2>&1 ||
    { $as apt-get update && DEBIAN_FRONTEND=noninteractive $as apt-get install -y --no-install-recommends $1; } </dev/null >"$log" 2>&1
}

install() { # SCOPE CUDA_HOME TOOLKIT
  lack=$(missing "$1" | sort -u | tr '\n' ' ')
  may=$(missing "$1" may | sort -u | tr '\n' ' ')
  cuda_there "$2" || python3 -m pip --version >/dev/null 2>&1 || lack="${lack}python3-pip "
  log=$(mktemp)
  if [ -n "$lack" ]; then
    apt_install "$lack"
    case $? in
    0) ;;
    2)
      rm -f "$log"
      echo "weir: missing packages that may not be installed from here: install $lack(Debian and Ubuntu names)." >&2
      exit 1
      ;;
    *)
      cat "$log" >&2
      rm -f "$log"
      echo "weir: apt-get could not install $lack(see above)." >&2
      exit 1
      ;;
    esac
  fi
  if [ -n "$may" ]; then
    apt_install "$may" || echo "weir: could not install ${may%?}: what needs it is skipped." >&2
  fi
  rm -f "$log"
  if cuda_there "$2"; then exit 0; fi
  # Where CUDA_HOME is another folder than the one that is filled here, the user has set it.
  if [ -n "${CUDA_HOME-}" ]; then
    echo "weir: no CUDA Toolkit at $2, which CUDA_HOME says: unset it, and one is fetched from PyPI." >&2
    exit 1
  fi
  exec "$(dirname "$0")/toolkit.sh" "$3"
}

need() { # COMMAND WHAT
  command -v "$1" >/dev/null || {
    echo "weir: $2 needs $1: run 'make deps-all' or install package $(rows | awk -v n="$1" '$1 == "cmd" && $2 == n { print $3 }')." >&2
    exit 1
  }
}

case ${1-} in
need) need "$2" "$3" ;;
check) check "${2-cc}" "${3-/usr/local/cuda}" ;;
install) install "${2-build}" "${3-/usr/local/cuda}" "${4-build/toolkit}" ;;
*)
  echo "usage: deps.sh check CC CUDA_HOME | deps.sh install build|bench|all CUDA_HOME TOOLKIT" >&2
  exit 2
  ;;
esac

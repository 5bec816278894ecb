#!/bin/sh
# binaries.sh driver|ucx OUT CUDA_HOME CUDA_LIB: programs with NVIDIA's and UCX's published binaries, bare and under each mode.
#
# driver: NVIDIA's own driver library, without a device, under its runtime of CUDA 12 and of 13, shared and static
# (no_device.c). A run under Weir must print what the bare run
# printed and end as it did, and events must have been recorded.
# ucx: UCX's memory hooks (ucx.c) on the software device. Each allocation and free must be notified, the decoder must know
# each of our exports, and the patcher of Debian's UCX, which has no CUDA of its own, must patch them.
#
# Downloads into OUT/peers (setup.sh). Prints a line a run, and how many passed.
set -eu
part=$1
out=$(cd "$2" && pwd)
cuda=$3
runtime=$(cd "$4" && pwd)
here=$(dirname "$0")
peers=$out/peers/binaries
made=$out/peers/$part
modes=${PEERS_MODES:-observe strict relaxed}
# shellcheck disable=SC2086 # CC may have options
compile() { ${CC:-cc} -O2 -g -Wall -Wextra -Werror -pthread -D_GNU_SOURCE -I. "$@" -ldl -lrt; }

"$here/setup.sh" "$out/peers" binaries
rm -rf "$made"
mkdir -p "$made"
stub=$out/obj/stubs/libcuda.so
passed=0
failed=0
check() { # NAME STATUS
  if [ "$2" = 0 ]; then
    passed=$((passed + 1))
    echo "ok      $1"
  else
    failed=$((failed + 1))
    echo "FAILED  $1: see $made"
  fi
}
recorded() { # TRACE: the number of events in it
  "$out/peers/venv/bin/python" -c 'import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM event").fetchone())' "$1"
}

# Each program bare, and in each mode: the same.
compare() { # NAME PROGRAM ARGUMENT...
  run=$made/$1
  shift
  status=0
  timeout 120 "$@" >"$run.bare" 2>"$run.bare.err" || status=$?
  [ $status != 0 ] || [ -s "$run.bare" ] || status=1
  check "${run##*/}, bare: $(wc -l <"$run.bare") lines" $status
  for mode in $modes; do
    under=0
    timeout 120 "$out/bin/weir" run --mode="$mode" -o "$run.$mode.db" -- "$@" >"$run.$mode" 2>"$run.$mode.err" || under=$?
    events=$(recorded "$run.$mode.db")
    same=0
    { [ $under = 0 ] && [ "${events:-0}" -gt 0 ] && cmp -s "$run.bare" "$run.$mode"; } || same=1
    check "${run##*/}, $mode: ${events:-0} events" $same
  done
}

driver() {
  old=$peers/nvidia/cuda_runtime
  program=$here/no_device.c
  compile -isystem "$old/include" "$program" -o "$made/shared12" "$old/lib/libcudart.so.12" -Wl,-rpath,"$old/lib" "$stub"
  compile -isystem "$old/include" "$program" -o "$made/static12" "$old/lib/libcudart_static.a" "$stub"
  compile -isystem "$cuda/include" "$program" -o "$made/shared13" "$runtime/libcudart.so.13" -Wl,-rpath,"$runtime" "$stub"
  compile -isystem "$cuda/include" "$program" -o "$made/static13" "$runtime/libcudart_static.a" "$stub"
  LD_LIBRARY_PATH=$(dirname "$(find "$peers/debian" -name libcuda.so.1)")
  export LD_LIBRARY_PATH
  for name in shared12 static12 shared13 static13; do compare no-device-$name "$made/$name"; done
}

ucx() {
  library=$peers/libucx/lib
  old=$(find "$peers/debian" -name libucm.so.0)
  compile -isystem "$cuda/include" "$here/ucx.c" -o "$made/program" -L"$library" -lucm -lucs -Wl,-rpath,"$library" \
    "$runtime/libcudart.so.13" "$stub"
  status=0
  LD_LIBRARY_PATH=$out/lib/sim timeout 120 "$made/program" hooks >"$made/bare" 2>&1 || status=$?
  check "hooks, bare: $(notified "$made/bare")" $status
  for mode in $modes; do
    for what in hooks decode "patch $old"; do
      run=$made/${what%% *}-$mode
      status=0
      # shellcheck disable=SC2086 # the words
      timeout 120 "$out/bin/weir" run --sim --mode="$mode" -o "$run.db" -- "$made/program" $what >"$run.out" 2>"$run.err" || status=$?
      [ "${what%% *}" != hooks ] || cmp -s "$made/bare" "$run.out" || status=1
      check "${run##*/}: $(notified "$run.out")" $status
    done
  done
}
notified() { # FILE: what it says in all
  awk '/notified/ { a += $2; of += $4; f += $7 } / of .* moved/ { m = $0 } /each call came/ { c++ }
    END { if (of) printf "%d of %d allocations notified, %d frees", a, of, f; else if (c) printf "%d functions patched", c; else print m }' "$1"
}

$part
echo "$passed passed, $failed failed"
[ $failed = 0 ]

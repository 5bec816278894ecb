#!/bin/sh
# demo.sh BUILD: the training loop under weir run, on the GPU if there is one, else on two software
# devices; prints its report and what each mode changes, and leaves the trace and its page.
set -eu
build=$1
trace=$build/demo.db

gpu() { # a driver that can be loaded, and a device it can use
  python3 -c 'import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit(1)
n = ctypes.c_int(0)
sys.exit(cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(n)) != 0 or n.value == 0)' 2>/dev/null
}

if gpu; then
  where="the GPU" sim=
else
  where="two software devices (no GPU here)" sim=--sim=2
fi
echo
echo "\$ weir run${sim:+ $sim} --mode=observe -o $trace -- train      # a training loop, on $where"
# shellcheck disable=SC2086  # $sim is one option or none
"$build/bin/weir" run --force $sim --mode=observe -o "$trace" -- "$build/examples/train"
echo
echo "\$ weir report $trace"
echo
"$build/bin/weir" report "$trace"
echo
echo "\$ weir compare${sim:+ $sim} -- train      # in each mode in turn"
# shellcheck disable=SC2086
"$build/bin/weir" compare $sim -- "$build/examples/train"
echo
echo "\$ weir diff $trace $build/demo-fixed.db      # the same loop without its wastes: tools/examples/fixed"
# shellcheck disable=SC2086
"$build/bin/weir" run --force $sim --mode=observe -o "$build/demo-fixed.db" -- "$build/examples/fixed/train" >/dev/null
echo
"$build/bin/weir" diff "$trace" "$build/demo-fixed.db"
echo
"$build/bin/weir" report --html -o "$build/demo.html" "$trace"
echo "The trace is $trace: ask it with 'weir report' or 'sqlite3'."
echo "The page is $build/demo.html: open it in a browser."

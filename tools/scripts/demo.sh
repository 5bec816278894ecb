#!/bin/sh
# demo.sh BUILD: the training loop under weir run, on the GPU if there is one, else on a software
# device with the costs of an H100; prints its report, proves the fixes that Weir can make, runs the
# unchanged program with them, compares it with the loop whose source is mended, and leaves the
# trace, its page and the fixes.
set -eu
build=$1
trace=$build/demo.db
fixes=$build/demo.fixes

gpu() { # a driver that can be loaded, and a device it can use
  python3 -c 'import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit(1)
n = ctypes.c_int(0)
sys.exit(cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(n)) != 0 or n.value == 0)' 2>/dev/null
}

# Prints a command as it is typed, and runs it.
weir() {
  echo
  echo "\$ weir $*"
  "$build/bin/weir" "$@"
}

# The program without Weir: on the driver that there is, or on the software device.
bare() {
  if [ -n "$sim" ]; then
    LD_LIBRARY_PATH=$build/lib/sim WEIR_SIM_DEVICES=1 WEIR_SIM_CARD=h100 "$@"
  else
    "$@"
  fi
}

fixed() { # the unchanged program, with the fixes that were proven
  # shellcheck disable=SC2086
  "$build/bin/weir" run $sim --apply "$fixes" -- "$build/examples/train"
}

# Prints the median time of five runs of a command, in milliseconds.
milliseconds() {
  for _ in 1 2 3 4 5; do
    start=$(date +%s%N)
    "$@" >/dev/null
    echo $((($(date +%s%N) - start) / 1000000))
  done | sort -n | sed -n 3p
}

seconds() { # 1234 ms as 1.23 s
  if [ "$1" -lt 0 ]; then
    printf -- '-%s' "$(seconds $((-$1)))"
  else
    printf '%d.%02d s' $(($1 / 1000)) $(($1 % 1000 / 10))
  fi
}

if gpu; then
  where="the GPU" sim=
else
  where="a software device with the costs of an H100 (no GPU here)" sim=--sim=1,h100
fi
echo
echo "A training loop, tools/examples/train.cu, on $where:"
# shellcheck disable=SC2086  # $sim is one option or none
{
  weir run --force $sim --hash --mode=observe -o "$trace" -- "$build/examples/train"
  weir report "$trace"
  rm -f "$fixes"
  weir prove $sim --time 40 -o "$fixes" -- "$build/examples/train"
  "$build/bin/weir" run --force $sim --mode=observe -o "$build/demo-fixed.db" -- "$build/examples/fixed/train" >/dev/null
}
echo
echo "# The same loop, its source mended as the report has it: tools/examples/fixed"
weir diff "$trace" "$build/demo-fixed.db"
echo
"$build/bin/weir" report --html -o "$build/demo.html" "$trace"
echo "The trace is $trace: ask it with 'weir report' or 'sqlite3'."
echo "The page is $build/demo.html: open it in a browser."

before=$(milliseconds bare "$build/examples/train")
after=$(milliseconds bare "$build/examples/fixed/train")
if [ -f "$fixes" ]; then
  alone=$(milliseconds fixed)
  echo "The proven fixes are $fixes: weir run --apply $fixes -- $build/examples/train"
  echo
  echo "Median of 5 runs: $(seconds "$before") → $(seconds "$after"), of it by Weir alone $(seconds $((before - alone))), by the source's fixes $(seconds $((alone - after)))."
else
  echo
  echo "Median of 5 runs: $(seconds "$before") → $(seconds "$after") by the source's fixes. What Weir gains alone was not proven here."
fi

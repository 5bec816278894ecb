#!/bin/bash
# check-gpu.sh: on a machine with a GPU: runs the examples, with the shared and with NVIDIA's static
# runtime, with and without Weir; their outputs must be equal, and every call that CUPTI counts must be
# in the trace. Then rerouting: the programs of tests/reroute and some of every day, alone and in each
# mode: their outputs must be equal. Then the allocator's suites, and what it all costs, on the GPU.
# Writes the date, the machine and the figures to RESULTS.md beside this file.
# Without a GPU it says so, changes nothing and succeeds.
#
# Works in the source tree (make check-gpu: O, CUDA_HOME) and in an unpacked bundle.
set -u

here=$(cd "$(dirname "$0")" && pwd)
if [ -x "$here/bin/weir" ]; then # a bundle
  root=$here examples=$here/examples count=$here/examples/lib/libcupti_count.so
  libraries=$here/examples/lib suites=$here/tests traps=$here/tests
  version=$(cat "$here/COMMIT")
else
  root=${O:?make check-gpu sets O} examples=$root/examples count=$root/tests/gpu/libcupti_count.so
  cuda=${CUDA_HOME:-/usr/local/cuda}
  libraries=$cuda/lib64:$cuda/extras/CUPTI/lib64 suites=$root/tests/gpu traps=$root/tests/reroute
  version=$(git -C "$here" describe --always --dirty 2>/dev/null || echo unknown)
fi
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
results=$here/RESULTS.md
weir=$root/bin/weir

devices() { # succeeds when there is a driver that has a device
  python3 -c 'import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit(1)
n = ctypes.c_int(0)
sys.exit(bool(cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(n)) or not n.value))' 2>/dev/null
}

if ! devices; then
  echo "check-gpu: no GPU here (no driver, or no device): nothing was checked."
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
rows=

seconds() { # COMMAND...: runs it, output to $work/out; prints how long it took
  local begin end
  begin=$(date +%s%N)
  "$@" >"$work/out" 2>"$work/err"
  local rc=$?
  end=$(date +%s%N)
  echo "$rc" >>"$work/out" # the status is part of what must be equal
  awk -v t=$((end - begin)) 'BEGIN { printf "%.2f", t / 1e9 }'
}

check() { # NAME LINKAGE LAYER PROGRAM...: one row
  local name=$1 linkage=$2 layer=$3 plain traced same=yes counted events
  shift 3
  [ -e "${!#}" ] || { echo "check-gpu: ${!#} is not built"; failed=$((failed + 1)); return; }
  plain=$(seconds "$@")
  mv "$work/out" "$work/plain"
  rm -f "$work/t.db" "$work/counts"
  traced=$(seconds "$weir" run --mode=observe -o "$work/t.db" -- "$@")
  cmp -s "$work/plain" "$work/out" || same=NO
  counted="no CUPTI here"
  if [ -e "$count" ]; then
    rm -f "$work/c.db"
    CUDA_INJECTION64_PATH=$count CUPTI_COUNT_FILE=$work/counts "$weir" run --mode=observe -o "$work/c.db" -- "$@" >/dev/null 2>&1
    if [ -s "$work/counts" ]; then
      counted=$(python3 "$here/compare.py" "$work/c.db" "$work/counts" "$layer") || failed=$((failed + 1))
    else
      counted="CUPTI did not start"
    fi
  fi
  events=$("$weir" report --format json "$work/t.db" | python3 -c 'import json, sys; print(json.load(sys.stdin)["totals"]["events"])')
  [ $same = yes ] || failed=$((failed + 1))
  rows+="| $name | $linkage | $same | $events | $counted | $plain | $traced |"$'\n'
  printf '  %-14s %-16s same output: %-3s  %s\n' "$name" "$linkage" "$same" "$counted"
}

for program in train pipeline stencil; do
  check $program "shared cudart" outer "$examples/$program"
  check $program "static cudart" driver "$examples/static/$program"
done
check driver "driver API" outer "$examples/driver"
check ctypes_vector "ctypes" outer python3 "$examples/ctypes_vector.py"

# ---- rerouting

trapped=''
in_mode() { # MODE COMMAND...: its output and status in $work/out
  local mode=$1
  shift
  if [ "$mode" = bare ]; then "$@"; else "$weir" run --stacks=off --mode="$mode" -o "$work/t.db" -- "$@"; fi >"$work/out" 2>/dev/null
  echo "$?" >>"$work/out"
}

alike() { # NAME MODES COMMAND...: the same in all modes as alone
  local name=$1 modes=$2 mode
  shift 2
  in_mode bare "$@"
  mv "$work/out" "$work/plain"
  for mode in $modes; do
    in_mode "$mode" "$@"
    cmp -s "$work/plain" "$work/out" && continue
    failed=$((failed + 1))
    trapped+="| $name | differs in $mode |"$'\n'
    diff "$work/plain" "$work/out" | head -5
    return 1
  done
}

if [ -x "$traps/trap" ]; then
  agreed=0 tried=0
  for name in $("$traps/trap"); do
    modes="observe strict relaxed"
    case $name in free_waits | error_found_by_free | managed_waits) modes="observe strict" ;; esac # only cudaFree's wait
    tried=$((tried + 1))
    alike "$name" "$modes" "$traps/trap" "$name" && agreed=$((agreed + 1))
  done
  for seed in $(seq 0 39); do
    tried=$((tried + 1))
    alike "random program $seed" "strict relaxed" "$traps/differ" "$seed" $((seed % 3 * 2 + 1)) 200 && agreed=$((agreed + 1))
  done
  trapped+="| all | $agreed of $tried programs see no difference |"$'\n'
  printf '  %-14s %s of %s programs see no difference\n' traps "$agreed" "$tried"
else
  echo "check-gpu: $traps/trap is not built"
  failed=$((failed + 1))
fi

compared=''
modes() { # NAME PROGRAM...: a row of times and waits
  local name=$1 row
  shift
  if row=$("$weir" compare -n 3 --format json -- "$@" 2>"$work/err" | python3 "$here/modes.py" "$name" 2>>"$work/err"); then
    :
  else
    failed=$((failed + 1))
    tail -5 "$work/err"
  fi
  compared+="${row:-| $name | failed |}"$'\n'
  printf '  %s\n' "${row:-$name failed}"
}

for program in train pipeline stencil driver memory; do modes $program "$examples/$program"; done
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
  export PYTORCH_NO_CUDA_MEMORY_CACHING=1
  modes "PyTorch, its cache off" python3 "$here/torch_train.py"
  unset PYTORCH_NO_CUDA_MEMORY_CACHING
else
  compared+="| PyTorch | none here |"$'\n'
fi
if python3 -c 'import cupy' 2>/dev/null; then
  modes "CuPy, its pools off" python3 "$here/cupy_steps.py"
else
  compared+="| CuPy | none here |"$'\n'
fi

speeds=''
if [ -x "$suites/bandwidth" ]; then
  for mode in bare strict relaxed; do
    in_mode $mode env WEIR_STAGING=on "$suites/bandwidth"
    speeds+="| $mode | $(awk 'NF == 2 { printf "%s | ", $2 }' "$work/out")"$'\n'
    sed "s/^/  $mode /" "$work/out"
  done
fi

# The allocator. A stream that is held must hold no other: each gets a queue of its own.
export CUDA_DEVICE_MAX_CONNECTIONS=32
tested='' figures=''
for suite in cuda_backend cuda_reuse cuda_stress cuda_compute; do
  timeout --kill-after=10 600 "$suites/$suite" >"$work/suite" 2>&1
  rc=$?
  said=$(grep -E '^[0-9]+%: Checks: ' "$work/suite" | tail -1)
  [ $rc -eq 0 ] || { failed=$((failed + 1)); tail -n 40 "$work/suite"; }
  [ $rc -eq 124 ] && said="hung"
  tested+="| $suite | ${said:-ended with status $rc} |"$'\n'
  printf '  %-14s %s\n' "$suite" "${said:-ended with status $rc}"
done
said=$("$examples/memory" 2>&1)
if [ "$said" = "as it should be: CUDA out of memory."$'\n'"0 MiB live, 64 MiB cached" ]; then
  said="right"
else
  failed=$((failed + 1))
fi
tested+="| examples/memory | ${said//$'\n'/ } |"$'\n'
printf '  %-14s %s\n' memory "$said"
if "$root/bench/gpu" all >"$work/figures" 2>"$work/err"; then
  figures=$(awk '{ printf "| %s | %s |\n", $1, $2 }' "$work/figures")
  sed 's/^/  ns  /' "$work/figures"
else
  failed=$((failed + 1))
  figures="| failed | $(head -1 "$work/err") |"
  cat "$work/err"
fi

{
  echo "# Weir on a GPU"
  echo
  echo "Written by \`make check-gpu\`. Every example ran alone, under \`weir run\`, and under \`weir run\` with CUPTI"
  echo "counting every API call. \"Calls\": the calls in Weir's table, by CUPTI's count and by the trace's."
  echo
  echo "- date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
  echo "- commit: $version"
  echo "- GPU: $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sort | uniq -c | sed 's/^ *//; s/$/;/' | tr '\n' ' ')"
  echo "- host: $(uname -srm), $(getconf GNU_LIBC_VERSION)"
  echo
  echo "| program | linked with | same output | events | calls, CUPTI against Weir | s alone | s under Weir |"
  echo "|---|---|---|---|---|---|---|"
  printf '%s' "$rows"
  echo
  echo "Rerouting. Programs that rely on what it could get wrong (tests/reroute), alone and in each mode:"
  echo
  echo "| program | result |"
  echo "|---|---|"
  printf '%s' "$trapped"
  echo
  echo "Programs in each mode (\`weir compare\`, medians of 3; waits: how many / seconds; peak MiB):"
  echo
  echo "| program | same output | s bare | s observe | s strict | s relaxed | waits observe | waits strict | waits relaxed | peak observe / strict / relaxed | hits, strict |"
  echo "|---|---|---|---|---|---|---|---|---|---|---|"
  printf '%s' "$compared"
  echo
  echo "Copies of 256 MiB, GB/s, and pairs of 1 MiB, ns; staging forced on in strict and relaxed:"
  echo
  echo "| mode | pinned to device | pinned to host | pageable to device | pageable to host | cudaMalloc + cudaFree | cudaMallocAsync + cudaFreeAsync |"
  echo "|---|---|---|---|---|---|---|"
  printf '%s' "$speeds"
  echo
  echo "The allocator's suites, with this GPU's driver beneath:"
  echo
  echo "| suite | result |"
  echo "|---|---|"
  printf '%s' "$tested"
  echo
  echo "What it costs (ns a call or pair, medians of one run; tools/bench/gpu.c says of what):"
  echo
  echo "| what | ns |"
  echo "|---|---|"
  echo "$figures"
} >"$results"
echo "check-gpu: $failed differences; see $results"
exit $((failed != 0))

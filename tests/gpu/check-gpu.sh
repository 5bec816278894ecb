#!/bin/bash
# check-gpu.sh [SECTION...]: what only a machine with a GPU can tell. Sections, all of them unless named:
#   engine     the engine's 35 rows on the device (engine.c), copies beside calculation by CUPTI's times
#   figures    copies, memory, elementwise work and products, beside PyTorch's; what the allocator costs
#   allocator  the allocator's and kernels' suites (tests/cuda) with this GPU's driver beneath
#   times      device times of the examples, by Weir and by CUPTI in a program of its own: the same operations;
#              what they cost; a program with a CUPTI client: the same records
#   memory     what is in use of the device, by the driver's word and by NVML's, against Weir's account of it
#   calls      the examples, with NVIDIA's shared and static runtime, with and without Weir: their outputs
#              must be equal, and every call that CUPTI counts must be in the trace
#   kinds      programs that count for themselves (tests/e2e), and their traces: memory of every kind,
#   graphs     what launches of graphs ran,
#   waits      which waits had nothing to wait for,
#   polls      polls, each counted,
#   ranges     and NVTX's ranges with the calls in them
#   reroute    the programs of tests/reroute alone and in each mode: their outputs must be equal
#   modes      programs of every day, PyTorch and CuPy among them, in each mode: outputs, times, waits
# Writes each section's tables to a file (in $PARTS), and from those there are RESULTS.md beside this file (or
# $RESULTS): so sections can be run one after the other where a command may not take long, on several machines
# even; `check-gpu.sh results` only puts together what there is. Ends with 1 where something differs. Without a
# GPU it says so, changes nothing and succeeds.
#
# Works in the source tree (make check-gpu: O, CUDA_HOME) and in an unpacked bundle. WEIR_SIM_TRIAL=DIR tries
# this script itself, with the software device's libraries in DIR in the driver's place.
set -u

here=$(cd "$(dirname "$0")" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
if [ -x "$here/bin/weir" ]; then # a bundle
  root=$here examples=$here/examples cupti=$here/examples/lib
  libraries=$here/examples/lib suites=$here/tests traps=$here/tests counters=$here/tests parts=$here/results
  version=$(cat "$here/COMMIT")
else
  root=${O:?make check-gpu sets O} examples=$root/examples cupti=$root/tests/gpu
  libraries=$cuda/lib64:$cuda/extras/CUPTI/lib64 suites=$root/tests/gpu traps=$root/tests/reroute
  counters=$root/tests/e2e parts=$root/results
  version=$(git -C "$here" describe --always --dirty 2>/dev/null || echo unknown)
fi
count=$cupti/libcupti_count.so
trial=${WEIR_SIM_TRIAL:+-s 64} # figures of the software device say nothing: small ones will do
export LD_LIBRARY_PATH=${WEIR_SIM_TRIAL:+$WEIR_SIM_TRIAL:}$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
[ -z "$trial" ] || export WEIR_RIG_REAL=1
results=${RESULTS:-$here/RESULTS.md} parts=${PARTS:-$parts}
weir=$root/bin/weir
# A stream that is held must hold no other: each gets a queue of its own.
export CUDA_DEVICE_MAX_CONNECTIONS=32

write_results() {
  {
    echo "# Weir on a GPU"
    echo
    echo "Written by \`make check-gpu\`."
    echo
    for part in "$parts"/[0-9]-*.md "$parts"/[0-9][0-9]-*.md; do [ ! -e "$part" ] || cat "$part"; done
  } >"$results"
}

if [ "$*" = results ]; then
  write_results
  exit
fi

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
mkdir -p "$parts"
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
  part+="| $name | $linkage | $same | $events | $counted | $plain | $traced |"$'\n'
  printf '  %-14s %-16s same output: %-3s  %s\n' "$name" "$linkage" "$same" "$counted"
}

# A section's text goes to $part; what differs is counted in $failed.

section_calls() {
  local program
  part="Every example ran alone, under \`weir run\`, and under \`weir run\` with CUPTI counting every API call.
\"Calls\": the calls in Weir's table, by CUPTI's count and by the trace's.

| program | linked with | same output | events | calls, CUPTI against Weir | s alone | s under Weir |
|---|---|---|---|---|---|---|
"
  for program in train pipeline stencil; do
    check $program "shared cudart" outer "$examples/$program"
    [ -n "$trial" ] || check $program "static cudart" driver "$examples/static/$program"
  done
  check driver "driver API" outer "$examples/driver"
  check ctypes_vector "ctypes" outer python3 "$examples/ctypes_vector.py"
}

# ---- device times

compare_times() { # PROGRAM: CUPTI's records of one run, and Weir's of another
  local program=$1 said="no CUPTI here"
  rm -f "$work/t.db" "$work/records"
  "$weir" run --mode=observe --device-times=all -o "$work/t.db" -- "$examples/$program" >/dev/null 2>&1
  if [ -e "$cupti/libcupti_activity.so" ] && [ -z "$trial" ]; then
    CUDA_INJECTION64_PATH=$cupti/libcupti_activity.so CUPTI_ACTIVITY_FILE=$work/records "$examples/$program" >/dev/null 2>&1
    if [ -s "$work/records" ]; then
      said=$(python3 "$here/times.py" "$work/t.db" "$work/records") || failed=$((failed + 1))
    else
      said="CUPTI did not start"
    fi
  fi
  part+="| $program | $said | $(seconds "$weir" run --mode=observe -o "$work/u.db" -- "$examples/$program") |"
  part+=" $(seconds "$weir" run --mode=observe --device-times=copies --force -o "$work/u.db" -- "$examples/$program") |"
  part+=" $(seconds "$weir" run --mode=observe --device-times=all --force -o "$work/u.db" -- "$examples/$program") |"$'\n'
  rm -f "$work/u.db"
  printf '  %-14s %s\n' "$program" "$said"
}

# What a trace says of copies without device times, of times when Weir was away, of allocations.
in_trace() {
  python3 - "$work/t.db" <<'END'
import sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
one = lambda query: db.execute(query).fetchone()[0]
print(one("SELECT count(*) FROM copy WHERE device_ns IS NULL"),
      one("SELECT count(*) FROM device_fact WHERE fact = 'yielded'"),
      one("SELECT count(*) FROM allocation"))
END
}

# A client of CUPTI in the program, which opens it or is linked with it: what it prints. One that is
# alone has Weir away for its time; beside one that allows others Weir has all, too.
try_client() { # NAME PROGRAM WORDS...
  local name=$1 program=$2 said
  shift 2
  [ -x "$program" ] || return 0
  seconds "$program" "$@" >/dev/null
  mv "$work/out" "$work/plain"
  rm -f "$work/t.db"
  seconds "$weir" run --mode=observe --device-times=copies -o "$work/t.db" -- "$program" "$@" >/dev/null
  if [[ " $* " == *" begin-beside "* ]] && ! grep -q 'client begins beside: 0 0 0 0' "$work/plain"; then
    said="none here: CUPTI has one subscriber"
  elif ! cmp -s "$work/plain" "$work/out"; then
    said="DIFFERENT: $(diff "$work/plain" "$work/out" | sed -n 's/|/ /g; 2,5p' | tr '\n' ';')"
  elif [[ " $* " != *" begin-beside "* ]]; then
    said="same records"
  elif [ "$(in_trace)" = "0 0 1" ]; then
    said="same records, and every copy's time"
  else
    said="DIFFERENT: copies without times, times away, allocations: $(in_trace)"
  fi
  [[ $said == DIFFERENT* ]] && failed=$((failed + 1))
  part+="| $name | $said | | | |"$'\n'
  printf '  %-14s %s\n' "client" "$said"
}

# CUPTI takes device memory for its records, which is none of the program's.
try_memory() {
  local tier said="the program's alone" counts=()
  for tier in off all; do
    rm -f "$work/t.db"
    "$weir" run --mode=observe --device-times=$tier -o "$work/t.db" -- "$examples/train" >/dev/null 2>&1
    counts+=("$(in_trace | cut -d' ' -f3)")
  done
  if [ "${counts[0]}" != "${counts[1]}" ]; then
    said="DIFFERENT: ${counts[0]} allocations without device times, ${counts[1]} with"
    failed=$((failed + 1))
  fi
  part+="| memory that is recorded | $said | | | |"$'\n'
  printf '  %-14s %s\n' "memory" "$said"
}

section_times() {
  local program
  part="Device times by Weir (\`--device-times=all\`), and by CUPTI in a run without Weir.

| program | operations, CUPTI against Weir | s, off | s, copies | s, all |
|---|---|---|---|---|
"
  for program in train pipeline stencil driver; do compare_times $program; done
  local alone="copies 50 begin-client copies 70 end-client again copies 5"
  # shellcheck disable=SC2086 # the words are arguments
  {
    try_client "a client that opens CUPTI" "$root/tests/activity/worker" $alone
    try_client "a client that is linked with CUPTI" "$root/tests/activity/worker_linked" $alone
    try_client "one that sets a clock first" "$root/tests/activity/worker" set-clock $alone
  }
  try_client "one that allows others" "$root/tests/activity/worker" copies 50 begin-beside copies 70 end-beside copies 5
  try_memory
}

# ---- memory

section_memory() {
  local said status hold=2.5 slack=$((64 << 20)) # what modules, heaps and pools of the driver grow by meanwhile
  [ -n "$trial" ] && slack=0 hold=0
  part="A program (tests/gpu/memory.c) takes memory by several ways and keeps account; of each level NVML is asked, too.

| program | what is in use, and explained |
|---|---|
"
  if [ ! -x "$suites/memory" ]; then
    echo "check-gpu: $suites/memory is not built"
    failed=$((failed + 1))
    return
  fi
  rm -f "$work/t.db"
  "$weir" run --mode=observe -o "$work/t.db" -- "$suites/memory" "$hold" >"$work/account" 2>"$work/err"
  status=$?
  if [ $status -eq 0 ] && "$weir" report --format json "$work/t.db" >"$work/report.json"; then
    said=$(python3 "$here/memory.py" "$work/report.json" "$work/account" "$slack") || failed=$((failed + 1))
  else
    said="failed: $(head -1 "$work/err")"
    failed=$((failed + 1))
  fi
  part+="| memory | $said |"$'\n'
  printf '  %-14s %s\n' memory "$said"
}

# ---- programs that count for themselves

begin_accounts() { # OF-WHAT
  part="Programs that keep an account of $1, and what their traces say:

| program | mode | result |
|---|---|---|
"
}

say_account() { # NAME MODE STATUS SAID
  [ "$3" -eq 0 ] || failed=$((failed + 1))
  part+="| $1 | $2 | $4 |"$'\n'
  printf '  %-28s %-8s %s\n' "$1" "$2" "$4"
}

account() { # WHAT MODE NAME PROGRAM...: what it prints is its account
  local what=$1 mode=$2 name=$3 trace=$work/a.db said rc
  shift 3
  if [ ! -x "$1" ]; then
    say_account "$name" "$mode" 1 "not built"
    return
  fi
  timeout --kill-after=10 120 "$weir" run --force --mode="$mode" -o "$trace" -- "$@" >"$work/account" 2>"$work/err"
  rc=$?
  if [ $rc -ne 0 ]; then
    say_account "$name" "$mode" 1 "ended with status $rc: $(tail -1 "$work/err" | tr '|' ' ')"
    return
  fi
  case $what in
    graphs) "$weir" report --format json "$trace" >"$work/a.json" && trace=$work/a.json ;;
    waits) "$weir" resolve "$trace" >"$work/out" 2>&1 && mv "$work/waits" "$work/account" ;;
  esac
  said=$(python3 "$here/accounts.py" "$what" "$work/account" "$trace" 2>&1 | tail -1 | tr '|' ' ')
  case $said in EQUAL*) rc=0 ;; *) rc=1 ;; esac
  say_account "$name" "$mode" $rc "$said"
}

section_kinds() {
  local seed=0 mode how end runtime
  begin_accounts "memory of every kind (tests/e2e/keeper.c: what is live, and peaks)"
  for runtime in keeper keeper_static; do
    [ $runtime = keeper ] || { [ -x "$suites/$runtime" ] && [ -z "$trial" ]; } || continue # NVIDIA's own runtime
    for mode in observe strict relaxed; do
      for how in each together; do
        for end in leave drop reset; do
          seed=$((seed + 1))
          case $runtime in
            keeper) account memory $mode "one runtime, $how, $end" "$counters/keeper" $seed $((seed % 3 * 3 + 1)) 120 $how $end ;;
            *) account memory $mode "linked in, $how, $end" "$suites/$runtime" $seed $((seed % 3 * 3 + 1)) 120 $how $end ;;
          esac
        done
      done
    done
  done
}

section_graphs() {
  local mode seed most=10
  [ -z "$trial" ] || most=2
  begin_accounts "what launches of graphs ran (tests/e2e/graph_caller.c)"
  for mode in loop explicit memory condition "large 20000"; do
    # shellcheck disable=SC2086  # a mode and its size
    account graphs strict "$mode" "$suites/graph_caller" $mode
  done
  for ((seed = 0; seed < most; seed++)); do
    account graphs observe "random $seed" "$suites/graph_caller" random $seed
    account graphs strict "blocks $seed" "$suites/graph_caller" blocks $seed
  done
}

# A stream that is held must not keep the driver from loading what it has put off.
section_waits() {
  local first
  begin_accounts "which waits had something to wait for (tests/e2e/waiter.c)"
  export CUDA_MODULE_LOADING=EAGER
  for first in 1 101 201; do
    account waits observe "programs from $first" "$counters/waiter" $first 100 "$work/waits" words
  done
  unset CUDA_MODULE_LOADING
}

section_polls() {
  begin_accounts "polls (tests/e2e/poller.c)"
  account polls observe "event and stream" "$counters/poller" count 150000
  account polls strict "event and stream" "$counters/poller" count 1000
}

section_ranges() {
  local threads
  begin_accounts "NVTX's ranges, and of the calls within each (tests/victims/nvtx/nests.c)"
  for threads in 1 4 16; do
    account ranges observe "$threads threads" "$suites/nests" $threads $threads 500
  done
}

# ---- rerouting

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
    part+="| $name | differs in $mode |"$'\n'
    diff "$work/plain" "$work/out" | head -5
    return 1
  done
}

section_reroute() {
  local agreed=0 tried=0 name modes seed most=40
  [ -n "$trial" ] && most=4
  part="Programs that rely on what rerouting could get wrong (tests/reroute), alone and in each mode:

| program | result |
|---|---|
"
  if [ ! -x "$traps/trap" ]; then
    echo "check-gpu: $traps/trap is not built"
    failed=$((failed + 1))
    return
  fi
  for name in $("$traps/trap"); do
    modes="observe strict relaxed"
    case $name in free_waits | error_found_by_free | managed_waits) modes="observe strict" ;; esac # only cudaFree's wait
    tried=$((tried + 1))
    alike "$name" "$modes" "$traps/trap" "$name" && agreed=$((agreed + 1))
  done
  for ((seed = 0; seed < most; seed++)); do
    tried=$((tried + 1))
    alike "random program $seed" "strict relaxed" "$traps/differ" "$seed" $((seed % 3 * 2 + 1)) 200 && agreed=$((agreed + 1))
  done
  part+="| all | $agreed of $tried programs see no difference |"$'\n'
  printf '  %-14s %s of %s programs see no difference\n' traps "$agreed" "$tried"
}

compare() { # NAME PROGRAM...: a row of times and waits
  local name=$1 row
  shift
  if row=$("$weir" compare --runs 3 --format json -- "$@" 2>"$work/err" | python3 "$here/modes.py" "$name" 2>>"$work/err"); then
    :
  else
    failed=$((failed + 1))
    tail -5 "$work/err"
  fi
  part+="${row:-| $name | failed |}"$'\n'
  printf '  %s\n' "${row:-$name failed}"
}

section_modes() {
  local program mode
  part="Programs in each mode (\`weir compare\`, medians of 3; waits: how many / seconds; peak MiB):

| program | same output | s bare | s observe | s strict | s relaxed | waits observe | waits strict | waits relaxed | peak observe / strict / relaxed | hits, strict |
|---|---|---|---|---|---|---|---|---|---|---|
"
  for program in train pipeline stencil driver memory; do compare $program "$examples/$program"; done
  if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    export PYTORCH_NO_CUDA_MEMORY_CACHING=1
    compare "PyTorch, its cache off" python3 "$here/torch_train.py"
    unset PYTORCH_NO_CUDA_MEMORY_CACHING
  else
    part+="| PyTorch | none here |"$'\n'
  fi
  if python3 -c 'import cupy' 2>/dev/null; then
    compare "CuPy, its pools off" python3 "$here/cupy_steps.py"
  else
    part+="| CuPy | none here |"$'\n'
  fi
  [ -x "$suites/bandwidth" ] && [ -z "$trial" ] || return
  part+="
Copies of 256 MiB, GB/s, and pairs of 1 MiB, ns; staging forced on in strict and relaxed:

| mode | pinned to device | pinned to host | pageable to device | pageable to host | cudaMalloc + cudaFree | cudaMallocAsync + cudaFreeAsync |
|---|---|---|---|---|---|---|
"
  for mode in bare strict relaxed; do
    in_mode $mode env WEIR_STAGING=on "$suites/bandwidth"
    part+="| $mode | $(awk 'NF == 2 { printf "%s | ", $2 }' "$work/out")"$'\n'
    sed "s/^/  $mode /" "$work/out"
  done
}

section_allocator() {
  local suite rc said
  part="The suites of tests/cuda, with this GPU's driver beneath:

| suite | result |
|---|---|
"
  for suite in cuda_backend cuda_reuse cuda_stress cuda_compute; do
    timeout --kill-after=10 150 "$suites/$suite" >"$work/suite" 2>&1
    rc=$?
    said=$(grep -E '^[0-9]+%: Checks: ' "$work/suite" | tail -1)
    [ $rc -eq 0 ] || { failed=$((failed + 1)); tail -n 40 "$work/suite"; }
    [ $rc -eq 124 ] && said="hung"
    part+="| $suite | ${said:-ended with status $rc} |"$'\n'
    printf '  %-14s %s\n' "$suite" "${said:-ended with status $rc}"
  done
  said=$("$examples/memory" 2>&1)
  if [ "$said" = "as it should be: CUDA out of memory."$'\n'"0 MiB live, 64 MiB cached" ]; then
    said="right"
  else
    failed=$((failed + 1))
  fi
  part+="| examples/memory | ${said//$'\n'/ } |"$'\n'
  printf '  %-14s %s\n' memory "$said"
}

# cuBLAS and cuDNN where nothing names them: the CUDA Toolkit's, or those that came with PyTorch.
find_libraries() {
  local d name
  for name in 'libcublas.so.1[23]' 'libcudnn.so.[89]'; do
    for d in "$cuda/lib64" $(python3 -c 'import nvidia, glob
for p in nvidia.__path__: print(*glob.glob(p + "/cu*/lib"), *glob.glob(p + "/cublas/lib"))' 2>/dev/null); do
      if compgen -G "$d/$name" >/dev/null; then
        export LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$d
        break
      fi
    done
  done
}

section_engine() {
  local kind said
  part="Every row of what the engine promises, on cuda:0, results compared with the cpu's (tests/gpu/engine.c):

| row | | |
|---|---|---|
"
  WEIR_ROW_SECONDS=40 timeout --kill-after=10 400 "$suites/engine" >"$work/rows" 2>"$work/err" || failed=$((failed + 1))
  sed 's/^/  /' "$work/rows"
  head -3 "$work/err"
  part+=$(sed -nE 's/^(ok|FAIL) +([0-9]+) (.*[^ ]) +[0-9.]+ s *(.*)$/| \2 \3 | \1 | \4 |/p' "$work/rows")$'\n'
  said=$(tail -1 "$work/rows")
  part+="| all | ${said:-nothing was said} | |

Copies in streams of their own beside products in another (tests/gpu/overlap.c), us on the device by CUPTI's
activity records, and ms by the host's clock: products / copies to the device / from it, each alone / all at once.

| host memory | kernels | to device | from device | to device beside kernels | from device beside kernels | copies beside each other | host |
|---|---|---|---|---|---|---|---|
"
  for kind in pinned pageable; do
    rm -f "$work/activity"
    # shellcheck disable=SC2086  # sizes are words
    CUDA_INJECTION64_PATH=$cupti/libcupti_activity.so CUPTI_ACTIVITY_FILE=$work/activity \
      timeout 100 "$suites/overlap" $kind ${trial:+128 4} >"$work/host" 2>"$work/err" || { failed=$((failed + 1)); cat "$work/err"; }
    if [ -s "$work/activity" ]; then
      said=$(python3 "$here/overlap.py" $kind "$work/activity" "$work/host") || failed=$((failed + 1))
    else
      said="| $kind | CUPTI did not start | | | | | | $(awk '{ printf "%s%s", s, $2; s = " / " }' "$work/host") |"
    fi
    part+="$said"$'\n'
    printf '  %s\n' "$said"
  done
}

section_figures() {
  : >"$work/theirs"
  part="What tensors cost, and the same by PyTorch $(python3 -c 'import torch; print(torch.__version__)' 2>/dev/null || echo '(none here)') (tools/bench/gpu_tensor.c says of what;
tests/gpu/torch_figures.py). Of ns less is better; the last column is above 1 where Weir's is better. PyTorch's
calls are Python's: what the host's clock took has that in it.

| what | unit | Weir | PyTorch | |
|---|---|---|---|---|
"
  # shellcheck disable=SC2086  # $trial is words
  timeout 200 "$root/bench/gpu_tensor" $trial all >"$work/ours" 2>"$work/err" || { failed=$((failed + 1)); tail -3 "$work/err"; }
  sed 's/^/  /' "$work/ours"
  if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    timeout 200 python3 "$here/torch_figures.py" >"$work/theirs" 2>"$work/err" || { failed=$((failed + 1)); tail -3 "$work/err"; }
    sed 's/^/  PyTorch: /' "$work/theirs"
  fi
  part+=$(python3 "$here/figures.py" "$work/ours" "$work/theirs")"

What the allocator and the driver's own ways cost (ns a call or pair, medians of one run; tools/bench/gpu.c):

| what | ns |
|---|---|
"
  if timeout 100 "$root/bench/gpu" all >"$work/figures" 2>"$work/err"; then
    part+=$(awk '{ printf "| %s | %s |\n", $1, $2 }' "$work/figures")$'\n'
    sed 's/^/  ns  /' "$work/figures"
  else
    failed=$((failed + 1))
    part+="| failed | $(head -1 "$work/err") |"$'\n'
    cat "$work/err"
  fi
}

# ---- which

titles=([1]="The engine" [2]="Figures" [3]="The allocator's suites" [4]="Calls" [5]="Rerouting" [6]="Modes" [7]="Device times" [8]="Memory"
  [9]="Kinds of memory" [10]="Graphs" [11]="Waits" [12]="Polls" [13]="Ranges")
all=([1]=engine [2]=figures [3]=allocator [4]=calls [5]=reroute [6]=modes [7]=times [8]=memory
  [9]=kinds [10]=graphs [11]=waits [12]=polls [13]=ranges)
[ $# -gt 0 ] || set -- "${all[@]}"
find_libraries
machine="$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sort | uniq -c | sed 's/^ *//; s/,/, driver/' | tr '\n' ';') $(uname -srm), $(getconf GNU_LIBC_VERSION)"
for i in "${!all[@]}"; do
  name=${all[i]} part='' before=$failed
  case " $* " in *" $name "*) ;; *) continue ;; esac
  echo "$name:"
  began=$SECONDS
  case $name in
    engine) section_engine ;;
    figures) section_figures ;;
    allocator) section_allocator ;;
    calls) section_calls ;;
    reroute) section_reroute ;;
    modes) section_modes ;;
    times) section_times ;;
    memory) section_memory ;;
    kinds) section_kinds ;;
    graphs) section_graphs ;;
    waits) section_waits ;;
    polls) section_polls ;;
    ranges) section_ranges ;;
  esac
  {
    echo "## ${titles[i]}"
    echo
    echo "$(date -u +%Y-%m-%dT%H:%M:%SZ), commit $version; $machine. Took $((SECONDS - began)) s; $((failed - before)) differences."
    echo
    printf '%s\n' "$part"
  } >"$parts/$i-$name.md"
done

write_results
echo "check-gpu: $failed differences; see $results"
exit $((failed != 0))

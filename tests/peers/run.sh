#!/bin/sh
# run.sh OUT [CASE...]: PyTorch's published CUDA build (client.py) on the software device: bare, and under
# each mode of `weir run`; each with PyTorch's cache, without it, and with expandable segments. And peaks of device memory, whichever
# way PyTorch makes its segments.
#
# A run under Weir must print what the bare run printed and exit as it did, and the bare run must pass.
# CASES are those of client.py, and the parts that compare libraries (README.md); none: all of both.
set -eu
out=$(cd "$1" && pwd)
shift
here=$(dirname "$0")
python=$out/peers/venv/bin/python
scratch=$out/peers/client
modes=${PEERS_MODES:-observe strict relaxed}

rm -rf "$scratch"
mkdir -p "$scratch"
unset LD_LIBRARY_PATH PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF PYTORCH_NO_CUDA_MEMORY_CACHING
# Handles that could be exported make PyTorch ask NVML about the fabric; there is no NVML here.
export TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC=0
export PYTHONDONTWRITEBYTECODE=1
export WEIR_LIBRARY="$out/lib/libweir.so"

passed=0
failed=0
check() { # NAME STATUS
  if [ "$2" = 0 ]; then
    passed=$((passed + 1))
    echo "ok      $1"
  else
    failed=$((failed + 1))
    echo "FAILED  $1: see $scratch"
  fi
}

# The libraries beside each other, in one process. wanted NAME: whether the command line asks for it.
wanted() {
  [ "$everything" = yes ] && return 0
  for case in $cases; do [ "$case" != "$1" ] || return 0; done
  return 1
}
everything=no
[ $# != 0 ] || everything=yes
cases=$*
set --
for case in $cases; do
  case $case in amp | convolutions | tensors | composed | curves | memory | formats | grad | loading | models | optim | ops | rows | gpus | files | dlpack | exports | page | peaks | places | training | profiler | driver | ucx) ;; *) set -- "$@" "$case" ;; esac
done
compare() { # NAME FILE ARGUMENT...
  name=$1
  wanted "$name" || return 0
  shift
  status=0
  timeout 1800 "$python" "$@" >"$scratch/$name$seed.out" 2>&1 || status=$?
  check "$name${seed:+, seed $seed}: $(tail -n 1 "$scratch/$name$seed.out")" $status
}
for seed in ${PEERS_SEEDS:-1 2 3}; do
  compare tensors "$here/tensors.py" "$WEIR_LIBRARY" 2000 "$((seed * 10000))"
  compare ops "$here/ops.py" "$WEIR_LIBRARY" 20000 "$seed"
  compare composed "$here/composed.py" "$WEIR_LIBRARY" 5000 "$seed"
  compare formats "$here/formats.py" "$WEIR_LIBRARY" 5000 "$seed"
  compare grad "$here/grad.py" "$WEIR_LIBRARY" 3000 "$((seed * 10000))"
  compare optim "$here/optim.py" "$WEIR_LIBRARY" 2000 "$seed"
  compare amp "$here/amp.py" "$WEIR_LIBRARY" 4000 "$seed"
  compare models "$here/models.py" "$out" --small "$seed"
  compare rows "$here/rows.py" "$WEIR_LIBRARY" "$seed"
done
# Convolutions by oneDNN, whatever their size; products of them need a BLAS as well.
by_libraries() {
  [ -e "$out/peers/venv/lib/libdnnl.so.3" ] || return 1
  "$python" -c 'import ctypes, sys
name = ctypes.CDLL(sys.argv[1]).weir_cpu_blas_name
name.restype = ctypes.c_char_p
sys.exit(name() == b"builtin")' "$WEIR_LIBRARY"
}
export LD_LIBRARY_PATH="$out/peers/venv/lib" WEIR_BLAS=vendor
if wanted convolutions && by_libraries; then
  for seed in ${PEERS_SEEDS:-1 2 3}; do
    compare convolutions "$here/ops.py" "$WEIR_LIBRARY" 1000 "$seed" image convolution
  done
fi
unset WEIR_BLAS
seed=
export LD_LIBRARY_PATH="$out/lib/sim" WEIR_SIM_DEVICES=2
compare gpus "$here/gpus.py" "$WEIR_LIBRARY"
unset LD_LIBRARY_PATH WEIR_SIM_DEVICES
compare curves "$here/curves.py" "$out"
compare memory "$here/memory.py" "$out"
compare dlpack "$here/dlpack.py" "$WEIR_LIBRARY"
mkdir -p "$scratch/files"
compare files "$here/../io/numpy_files.py" "$WEIR_LIBRARY" "$scratch/files"
mkdir -p "$scratch/loading"
compare loading "$here/loading.py" "$WEIR_LIBRARY" "$scratch/loading"
compare models "$here/models.py" "$out" 1
compare exports "$here/exports.py" "$out" "$scratch/exports"
compare page "$here/axe.py" "$out" "$scratch/page" "$(echo "$out"/peers/venv/lib/python3*/site-packages/axe_playwright_python/axe.min.js)"

# NVIDIA's driver library without a device, and UCX's hooks: lines and counts of their own.
binaries() { # PART
  wanted "$1" || return 0
  status=0
  "$here/binaries.sh" "$1" "$out" "$CUDA_HOME" "$CUDA_LIB" >"$scratch/$1.out" 2>&1 || status=$?
  cat "$scratch/$1.out"
  check "$1: $(tail -n 1 "$scratch/$1.out")" $status
}
binaries driver
binaries ucx

# The most device memory PyTorch had, by its own account and by the trace.
peaks() { # whole|any EXPANDABLE MODE
  run=$scratch/peaks-$1-$2-$3
  status=0
  PYTORCH_ALLOC_CONF=expandable_segments:$2 timeout 600 "$out/bin/weir" run --sim=1 --mode="$3" -o "$run.db" -- \
    "$python" "$here/peaks.py" "$1" >"$run.out" 2>"$run.err" || status=$?
  [ $status != 0 ] || "$python" "$here/peaks.py" check "$run.db" "$run.out" >"$run.said" 2>&1 || status=$?
  check "peaks, $1, expandable_segments:$2, $3: $(tail -n 1 "$run.said")" $status
}
if wanted peaks; then
  for mode in $modes; do
    for expandable in False True; do
      peaks whole $expandable "$mode"
      peaks any $expandable "$mode"
    done
  done
fi

# Frames and ranges of Python in stacks of PyTorch's calls.
if wanted training; then
  run=$scratch/training
  status=0
  timeout 600 "$out/bin/weir" run --sim=1 --stacks=64 -o "$run.db" -- "$python" "$here/training.py" >"$run.out" 2>"$run.err" || status=$?
  [ $status != 0 ] || "$python" "$here/training.py" check "$run.db" "$out/bin/weir" >"$run.said" 2>&1 || status=$?
  check "training: $(tail -n 1 "$run.said")" $status
fi

# Findings of Python's programs name the user's own lines, whichever way a program reaches the device.
placed() { # PEER
  run=$scratch/places-$1
  status=0
  timeout 600 "$out/bin/weir" run --sim=1 -o "$run.db" -- "$python" "$here/places.py" "$1" >"$run.out" 2>"$run.err" || status=$?
  [ $status != 0 ] || "$python" "$here/places.py" check "$1" "$run.db" "$out/bin/weir" >"$run.said" 2>&1 || status=$?
  check "places: $(tail -n 1 "$run.said")" $status
}
if wanted places; then
  for peer in torch numba bindings ctypes; do placed $peer; done
fi

# torch.profiler counts what it counts without Weir, and Weir says where it had no device times. The wheel's own CUPTI cannot
# run on the software device: the stand-in is loaded ahead of it.
profiled() { # NAME COMMAND...
  run=$scratch/profiler-$1
  shift
  status=0
  LD_PRELOAD=$out/lib/sim/libcupti.so.13 timeout 600 "$@" "$python" "$here/training.py" profile >"$run.out" 2>"$run.err" || status=$?
}
if wanted profiler; then
  profiled bare env LD_LIBRARY_PATH="$out/lib/sim"
  check "torch.profiler, bare" $status
  profiled copies "$out/bin/weir" run --sim=1 --device-times=copies -o "$scratch/profiler-copies.db" --
  [ $status != 0 ] || cmp "$scratch/profiler-bare.out" "$run.out" || status=$?
  "$out/bin/weir" report "$run.db" >"$run.said" || status=$?
  gap=$(grep 'the program used CUPTI itself: .* without device times' "$run.said") || status=1
  check "torch.profiler, --device-times=copies: $gap" $status
fi
settings='cache no-cache expandable'
[ $everything = yes ] || [ $# != 0 ] || settings=

# With the address of nothing in it: messages name the program's own folder.
for setting in $settings; do
  case $setting in
  cache) set -- "$@" ;;
  no-cache) export PYTORCH_NO_CUDA_MEMORY_CACHING=1 ;;
  expandable)
    unset PYTORCH_NO_CUDA_MEMORY_CACHING
    export PYTORCH_ALLOC_CONF=expandable_segments:True
    ;;
  esac
  bare=$scratch/$setting-bare
  status=0
  LD_LIBRARY_PATH="$out/lib/sim" WEIR_SIM_DEVICES=2 timeout 600 "$python" "$here/client.py" "$@" >"$bare.out" 2>"$bare.err" || status=$?
  check "$setting, bare: $(tail -n 1 "$bare.out")" $status
  for mode in $modes; do
    run=$scratch/$setting-$mode
    under=0
    timeout 600 "$out/bin/weir" run --sim=2 --mode="$mode" -o "$run.db" -- "$python" "$here/client.py" "$@" >"$run.out" 2>"$run.err" || under=$?
    same=0
    { [ $under = $status ] && cmp -s "$bare.out" "$run.out"; } || same=1
    check "$setting, $mode" $same
  done
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]

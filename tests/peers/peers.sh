#!/bin/sh
# peers.sh OUT CUDA_HOME TRACE...: the comparison with the real allocators of PyTorch and RMM.
#
# On the software device, unless there is a GPU (PEERS_DEVICE=sim or gpu decides it). Each row of
# the memory table is a process of its own: PyTorch's allocator is one a process. Exit status 1 when
# a model and its peer differ by more than 1 % on a row.
#
# PEERS_LISTS=N (default 40) random lists are compared too, and only those that differ are shown.
set -eu
out=$1
cuda=$2
shift 2
here=$(dirname "$0")
peers=$out/peers
lists=${PEERS_LISTS:-40}

device=${PEERS_DEVICE:-}
if [ -z "$device" ]; then
  device=sim
  if [ -e /dev/nvidiactl ]; then device=gpu; fi
fi
unset PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF WEIR_ALLOC_CONF
if [ "$device" = sim ]; then
  export LD_LIBRARY_PATH="$out/lib/sim"
  memory=${WEIR_SIM_MEMORY:-96G}
  export WEIR_SIM_MEMORY="$memory"
  # Handles that could be exported make PyTorch ask NVML about the fabric; there is no NVML here.
  export TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC=0
else
  export LD_LIBRARY_PATH="$cuda/lib64"
fi

version() {
  echo "$peers/venv/lib/"python3*/"site-packages/$1"-*.dist-info | sed 's/.*-\([0-9.]*\)\.dist-info/\1/'
}

# compare POLICY TRACE [SETTING]: one row
compare() {
  case $1 in
  pytorch) "$peers/peers" memory "$1" "$peers/pytorch.so" "$2" "${3:-}" ;;
  pytorch-expandable) "$peers/peers" memory "$1" "$peers/pytorch.so" "$2" expandable_segments:True ;;
  rmm-pool) "$peers/peers" memory "$1" "$peers/rmm.so" "$2" ;;
  esac
}

echo "torch $(version torch), librmm $(version librmm_cu13), weir $(git rev-parse --short HEAD 2>/dev/null || echo unknown), device: $device"
echo
printf '%-19s %-12s %12s %12s %12s %11s\n' policy trace 'model MiB' 'real MiB' 'device MiB' difference
bad=0
for policy in pytorch pytorch-expandable rmm-pool; do
  for trace; do
    compare $policy "$trace" || bad=1
  done
done

rows=0
differing=0
compare_list() { # as compare
  rows=$((rows + 1))
  if ! compare "$@" >"$peers/row.txt" 2>"$peers/row.err"; then
    echo "$3, WEIR_SIM_MEMORY=${WEIR_SIM_MEMORY:-}:"
    cat "$peers/row.err" "$peers/row.txt"
    differing=$((differing + 1))
    bad=1
  fi
}

for seed in $(seq "$lists"); do
  list=$peers/random-$seed.csv
  "$here/random_list.py" "$seed" >"$list"
  for policy in pytorch pytorch-expandable rmm-pool; do
    compare_list $policy "$list" ''
  done
  # What PyTorch does when memory is short: a third more than the list needs, in whole 20 MiB.
  if [ "$device" = sim ]; then
    live=$("$out/bin/weir" replay --policy malloc --format json "$list" | sed 's/.*"peak_live": \([0-9]*\).*/\1/')
    room=$(((live * 4 / 3 / 20971520 + 2) * 20971520))
    WEIR_SIM_MEMORY=$room
    compare_list pytorch "$list" ''
    compare_list pytorch "$list" max_split_size_mb:32
    compare_list pytorch-expandable "$list" ''
    # It collects garbage only where a process may not have the whole device.
    WEIR_SIM_MEMORY=$((room * 2))
    compare_list pytorch "$list" per_process_memory_fraction:0.5,garbage_collection_threshold:0.6
    WEIR_SIM_MEMORY=$memory
  fi
  rm -f "$list"
done
rm -f "$peers/row.txt" "$peers/row.err"
echo "random lists: $lists, $rows rows; $differing differ by more than 1 %"

echo
if [ "$device" = sim ]; then
  echo "The device below is the software device, so only host-side costs compare; a call of the driver"
  echo "(RMM records an event at each free) costs what it costs there."
fi
"$peers/peers" time "$peers/weir.so" "$peers/pytorch.so" "$peers/rmm.so"
exit $bad

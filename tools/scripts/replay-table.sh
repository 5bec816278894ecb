#!/bin/sh
# replay-table.sh WEIR FILE...: what each policy of `weir replay` reserves for each list of operations:
# peak live bytes, then peak reserved / peak live a policy.
set -eu
weir=$1
shift
for file; do
  name=$(basename "$file" .csv)
  "$weir" replay --format json "$file" | sed "s/^[[ ]*{/{\"trace\": \"$name\", /"
done | awk '
  function value(key,   s) {
    s = $0
    if (!sub(".*\"" key "\": \"?", "", s)) exit bad = 1
    sub("[\",}].*", "", s)
    return s
  }
  {
    trace = value("trace"); policy = value("policy")
    if (!(trace in live)) { live[trace] = value("peak_live"); traces[++rows] = trace }
    if (!(policy in known)) { known[policy] = 1; policies[++columns] = policy }
    ratio[trace, policy] = value("ratio")
  }
  END {
    if (bad || !rows) exit 1
    printf "%-14s %10s", "trace", "live MiB"
    for (c = 1; c <= columns; c++) printf " %18s", policies[c]
    printf "\n"
    for (r = 1; r <= rows; r++) {
      printf "%-14s %10.1f", traces[r], live[traces[r]] / 1048576
      for (c = 1; c <= columns; c++) printf " %18.3f", ratio[traces[r], policies[c]]
      printf "\n"
    }
  }'

#!/bin/sh
# called.sh BUILD SOURCE: names the functions libweir.so exports that nothing in the tests calls. What a test
# calls is what its object refers to (so that calls made by macros count), or names where it is a script;
# the pages' examples are built and run by a test, too. Calls with NULL alone (nulls.py) are none.
set -eu
build=$1 source=$2
exported=$(nm -D --defined-only "$build/lib/libweir.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u)
called=$({
  find "$build/obj/tests" -name '*.o' -exec nm -u {} + 2>/dev/null | awk '$1 == "U" { print $2 }'
  find "$source/tests" -name '*.py' ! -name nulls.py ! -name grads.py -exec grep -ohwE 'weir_[a-z0-9_]+' {} +
  grep -ohwE 'weir_[a-z0-9_]+' "$source"/tools/man/examples/*.c "$source"/tools/examples/*.c || true
} | sort -u)
n=$(echo "$exported" | wc -l)
[ "$n" -gt 300 ] || { echo "only $n functions are exported" >&2; exit 1; }
printf '%s\n' "$exported" | while read -r f; do
  printf '%s\n' "$called" | grep -qxF "$f" || echo "$f"
done

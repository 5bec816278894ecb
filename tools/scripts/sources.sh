#!/bin/sh
# sources.sh KIND: the project's own files, one a line: c (C, C++ and CUDA sources and headers, written by
# hand), tidy (C files clang-tidy reads), sh (shell scripts). Asked of git, so that nothing built is
# among them; where there is no git (an unpacked archive), of find.
files() {
  git ls-files --cached --others --exclude-standard 2>/dev/null ||
    find . -path ./build -prune -o -type f -print | sed 's|^\./||'
}
case $1 in
c) files | grep -E '\.(c|h|cc|cu|cuh)$' | grep -v '\.gen\.' ;;
tidy) files | grep -E '\.c$' | grep -v '\.gen\.' ;;
sh)
  files | grep -E '\.sh$'
  files | grep -vE '\.[a-z0-9]+$' | while read -r f; do
    [ -f "$f" ] && head -c 64 "$f" | head -1 | grep -qE '^#!.*\b(ba)?sh\b' && echo "$f"
  done
  ;;
*)
  echo "usage: sources.sh c|tidy|sh" >&2
  exit 2
  ;;
esac | while read -r f; do [ -f "$f" ] && echo "$f"; done | sort -u

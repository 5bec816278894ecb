#!/bin/sh
# check-exports.sh BUILD: a shared library of ours exports what it is for and nothing else.
# libweir.so: the functions of the public headers. libweir-cuda.so: its one entry. libweir-preload.so: the names of its export map. libc is
# all the last two need, libc and libm the first. The engine has nothing to print or end a program with.
set -u
build=$1
bad=0

exports() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u; }

complain() { # LIBRARY WHAT LIST
  [ -z "$3" ] && return
  echo "$1 $2:" "$(echo "$3" | head -5 | tr '\n' ' ')" >&2
  bad=1
}

beyond_libc() { # what a library needs that is not libc or a sanitizer
  readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -vxE 'libc\.so\.6|ld-linux[a-z0-9-]*\.so\.[0-9]|libasan\.so.*|libubsan\.so.*|libtsan\.so.*'
}

loud() { # what a library asks of libc to print or to end the program
  nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $2); print $2 }' |
    grep -xE 'stdout|stderr|(__)?v?printf(_chk)?|puts|putchar|perror|psignal|v?(err|warn)x?|error|abort|_?_?[eE]xit|quick_exit|raise|__assert(_perror)?_fail'
}

public=$("${0%/*}/public-names.sh")
complain libweir.so "exports what no header declares" "$(exports "$build/lib/libweir.so" | grep -vxF "$public")"
complain libweir.so "does not export" "$(echo "$public" | grep -vxF "$(exports "$build/lib/libweir.so")")"
complain libweir.so "needs more than libc and libm" "$(beyond_libc "$build/lib/libweir.so" | grep -vx 'libm\.so\.6')"
complain libweir.so "prints or ends programs" "$(loud "$build/lib/libweir.so")"
cuda=$build/lib/libweir-cuda.so
complain libweir-cuda.so "prints or ends programs" "$(loud "$cuda")"
complain libweir-cuda.so "exports more than its entry" "$(exports "$cuda" | grep -vx weir_cuda_plugin_open)"
complain libweir-cuda.so "needs more than libc" "$(beyond_libc "$cuda")"
preload=$build/lib/libweir-preload.so
complain libweir-preload.so "exports what no hook is for" "$(exports "$preload" |
  grep -vxE '(cu|cuda|__cuda)[A-Za-z0-9_]+|dlsym|dlvsym|dlopen|dlmopen|dlclose|weir_note|weir_note_engine|InitializeInjectionNvtx(2|Extension)|(f?execve|execl|execle|execlp|execv|execvpe?|posix_spawnp?)|_exit|_Exit|usleep|(clock_)?nanosleep|sched_yield|select|__asan_default_options')"
complain libweir-preload.so "needs more than libc" "$(beyond_libc "$preload")"
exit $bad

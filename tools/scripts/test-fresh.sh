#!/bin/bash
# test-fresh.sh COMMIT DIR: README's commands on a machine that has nothing: a minimal Debian below DIR, into which COMMIT
# is cloned. Needs root, debootstrap and half an hour. LAST lines of each step are shown, whole logs lie in DIR/log.
#
#   1  make demo, make test: what README promises of a fresh machine; make install: weir by its name
#   2  make bundle, unpacked in a second minimal Debian, where its weir runs its examples
#
# Environment: SUITE (default: bookworm), MIRROR (default: what debootstrap takes). What this machine needs to reach its
# mirrors (resolv.conf, certificates, pip's configuration) goes along; its packages do not.
set -eu
commit=$1 dir=$2
: "${SUITE:=bookworm}" "${MIRROR:=http://deb.debian.org/debian}"
failed=0

[ "$(id -u)" -eq 0 ] || { echo "weir: make test-fresh makes a Debian of its own: run it as root." >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "weir: make test-fresh needs debootstrap: install package debootstrap." >&2; exit 1; }
mkdir -p "$dir/log"
dir=$(realpath "$dir")

fresh() { # ROOT: a minimal Debian there, made anew of a copy that is kept
  if [ ! -e "$dir/$SUITE.tar" ]; then
    rm -rf "$dir/base"
    debootstrap --variant=minbase "$SUITE" "$dir/base" "$MIRROR" >"$dir/log/debootstrap" 2>&1 || {
      tail -n 5 "$dir/log/debootstrap" >&2
      exit 1
    }
    tar cf "$dir/$SUITE.tar" -C "$dir/base" .
    rm -rf "$dir/base"
  fi
  rm -rf "$1"
  mkdir -p "$1"
  tar xf "$dir/$SUITE.tar" -C "$1"
  printf 'deb %s %s main\n' "$MIRROR" "$SUITE" >"$1/etc/apt/sources.list"
  for file in /etc/resolv.conf /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$file" ] || install -D -m 644 "$file" "$1$file"
  done
  cp -r /usr/local/share/ca-certificates "$1/usr/local/share/"
}

inside() { # ROOT COMMAND: in namespaces of its own, so that nothing stays mounted and no process stays
  # shellcheck disable=SC2016  # $0, $1: the inner shell's
  unshare --mount --pid --fork --kill-child sh -c '
    mount --make-rprivate /
    mount -t proc proc "$0/proc"
    mount -t tmpfs tmpfs "$0/dev"
    for node in null zero full random urandom tty; do touch "$0/dev/$node"; mount --bind "/dev/$node" "$0/dev/$node"; done
    mkdir "$0/dev/shm" "$0/dev/pts"
    mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
    ln -s pts/ptmx "$0/dev/ptmx"
    ln -s /proc/self/fd "$0/dev/fd"
    ln -s /proc/self/fd/0 "$0/dev/stdin"; ln -s /proc/self/fd/1 "$0/dev/stdout"; ln -s /proc/self/fd/2 "$0/dev/stderr"
    exec chroot "$0" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      LANG=C.UTF-8 PIP_CERT=/etc/ssl/certs/ca-certificates.crt sh -c "$1"' "$1" "$2"
}

step() { # NAME LINES ROOT COMMAND: its last lines
  local begin=$SECONDS rc=0
  inside "$3" "$4" >"$dir/log/$1" 2>&1 </dev/null || rc=$?
  echo "== $1: status $rc, $((SECONDS - begin)) s"
  tail -n "$2" "$dir/log/$1"
  [ "$rc" -eq 0 ] || failed=$((failed + 1))
}

first=$dir/first second=$dir/second
fresh "$first"
git clone -q --no-local "$(git rev-parse --show-toplevel)" "$first/root/weir"
git -C "$first/root/weir" checkout -q "$commit"
# What a person who has cloned it has: git and make.
step packages 1 "$first" "apt-get update && apt-get install -y --no-install-recommends make ca-certificates git"
step demo 12 "$first" "cd /root/weir && make demo"
step test 3 "$first" "cd /root/weir && make test"
step install 3 "$first" "cd /root/weir && make install && cd /tmp && weir run --sim -o t.db -- /root/weir/build/examples/train &&
  weir report t.db && ! ldconfig -p | grep -E '/usr/local/lib/(libunwind|libcuda|libcudart)'"
step bundle 2 "$first" "apt-get install -y --no-install-recommends patchelf && cd /root/weir && make bundle"
fresh "$second"
cp "$first"/root/weir/build/weir-*.tar.gz "$second/root/"
step bundle-elsewhere 5 "$second" "cd /root && tar xzf weir-*.tar.gz && cd weir-*/ && bin/weir run --sim -o /tmp/t.db -- examples/train &&
  bin/weir report /tmp/t.db"
rm -rf "$first" "$second"
echo "$failed of 6 steps failed"
exit "$((failed > 0))"

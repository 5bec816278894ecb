#!/bin/sh
# setup.sh DIR [client|binaries]: the published wheels of the peers, in a virtual environment DIR/venv.
#
# Only the packages named here, without what they need: of PyTorch the allocator's two libraries are
# loaded (libc10.so, libc10_cuda.so), of RMM its headers. That is 1.2 GB on disk. `client` adds what
# PyTorch needs to be imported: 4 GB more. `binaries` is apart from it, 170 MB in DIR/binaries: UCX, and NVIDIA's
# runtime of CUDA 12, from PyPI; NVIDIA's driver library and Debian's UCX, from Debian's packages, which are unpacked
# there and not installed.
#
# torch: a wheel for CUDA 13, as libcudart.so.13 is what the software device stands in for.
# librmm: the last one whose pool is a header. Since 26.6 it is inside librmm.so, together with
# NVIDIA's runtime, which only NVIDIA's driver can carry.
set -eu
packages='torch==2.15.0 librmm-cu13==26.4.0 rapids-logger==0.2.3'
client='torch==2.15.0 numpy==2.4.6 safetensors==0.8.0 perfetto==0.59.1 protobuf==7.36.2'
# With what pip finds that they need.
python='numba==0.68.1 numba-cuda==0.30.4 cuda-bindings==13.5.0'
onednn='onednn-cpu-gomp==2023.2.0' # for libdnnl.so.3; x86-64 only, and done without where it cannot be had
# UCX: RAPIDS' build, as Debian's is without CUDA. The runtime: the last of CUDA 12, which the driver of 12.2 takes.
binaries='libucx-cu13==1.22.0 nvidia-cuda-runtime-cu12==12.9.79'
debian='libcuda1 libucx0'
alone='axe-playwright-python==0.1.8' # for the axe.min.js in it, without what drives a browser

venv=$1/venv
what=${2:-peers}
fetch() { # STAMP PIP-ARGUMENT...
  if [ "$(cat "$venv/$1" 2>/dev/null)" = "$*" ]; then return; fi
  stamp=$*
  shift
  echo "fetching $*" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-compile "$@"
  echo "$stamp" >"$venv/${stamp%% *}"
}

# Debian's packages, by its own tools with lists of their own: neither the machine's lists nor what is installed on
# it are touched, and nobody has to be root.
unpack_debian() { # PACKAGE...
  lists=$1/debian-lists
  into=$1/binaries/debian
  shift
  mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial" "$into"
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  echo "deb [signed-by=$keyring] ${PEERS_DEBIAN:-http://deb.debian.org/debian} bookworm main contrib non-free" >"$lists/sources"
  for step in update "download $*"; do
    # shellcheck disable=SC2086 # a list
    (cd "$lists" && apt-get -qq -o Dir::Etc::sourcelist="$lists/sources" -o Dir::Etc::sourceparts=/dev/null \
      -o Dir::State::lists="$lists/lists" -o Dir::Cache="$lists/cache" -o APT::Sandbox::User=root $step)
  done
  for package in "$lists"/*.deb; do dpkg-deb -x "$package" "$into"; done
}

if [ ! -x "$venv/bin/pip" ]; then python3 -m venv "$venv"; fi
# shellcheck disable=SC2086 # lists
if [ "$what" = client ]; then
  fetch client $client
  fetch alone --no-deps $alone
  fetch python $python $client
  fetch onednn --no-deps $onednn || echo "without oneDNN: the part convolutions is left out" >&2
elif [ "$what" = binaries ]; then
  fetch binaries --no-deps --upgrade --target "$1/binaries" $binaries
  unpack_debian "$(realpath "$1")" $debian
  exit
else
  fetch peers --no-deps $packages
fi

# NVIDIA's runtime steps aside: PyTorch's libraries look for it there before LD_LIBRARY_PATH.
site=$(echo "$venv"/lib/python3*/site-packages)
runtime=$site/nvidia/cu13/lib/libcudart.so.13
if [ -e "$runtime" ]; then
  mkdir -p "$1/nvidia"
  mv "$runtime" "$1/nvidia/"
fi
for package in torch librmm rapids_logger; do
  ln -sfn "$(realpath "$site/$package")" "$1/$package"
done

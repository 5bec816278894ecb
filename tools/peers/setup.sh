#!/bin/sh
# setup.sh DIR: the published wheels of the peers, in a virtual environment DIR/venv.
#
# Only the packages named here, without what they need: of PyTorch the allocator's two libraries are
# loaded (libc10.so, libc10_cuda.so), of RMM its headers. That is 1.3 GB on disk instead of 8.
#
# torch: a wheel for CUDA 13, as libcudart.so.13 is what the software device stands in for.
# librmm: the last one whose pool is a header. Since 26.6 it is inside librmm.so, together with
# NVIDIA's runtime, which only NVIDIA's driver can carry.
set -eu
packages='torch==2.15.0 librmm-cu13==26.4.0 rapids-logger==0.2.3'

venv=$1/venv
if [ "$(cat "$venv/peers" 2>/dev/null)" != "$packages" ]; then
  echo "fetching $packages (0.6 GB)" >&2
  rm -rf "$venv"
  python3 -m venv "$venv"
  # shellcheck disable=SC2086 # a list
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-compile --no-deps $packages
  echo "$packages" >"$venv/peers"
fi
site=$(echo "$venv"/lib/python3*/site-packages)
for package in torch librmm rapids_logger; do
  ln -sfn "$(realpath "$site/$package")" "$1/$package"
done

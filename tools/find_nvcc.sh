#!/usr/bin/env bash
# find_nvcc.sh - prints where nvcc is: on the PATH, in CUDA_HOME, in /usr/local/cuda, or fetched into .deps by setup.sh.
set -eu
cd "$(dirname "$0")/.."
for nvcc in "$(command -v nvcc || true)" "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
    [ -n "$nvcc" ] && [ -x "$nvcc" ] && { echo "$nvcc"; exit 0; }
done
tools/setup.sh cuda >&2
echo "$PWD/.deps/cuda/nvidia/cu13/bin/nvcc"

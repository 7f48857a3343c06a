#!/usr/bin/env bash
# setup.sh - fetches what Debian does not carry, by package name, with a pinned version and hash.
set -eu
cd "$(dirname "$0")/.."

YYJSON_VERSION=4.0.6
YYJSON_SHA256=fcd4dc15c1e39a30bf9fa85d56903029111506860fc3080ab0d81c6c6dacaa8c

yyjson() {
    [ -f .deps/yyjson/yyjson.c ] && return
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    python3 -m pip download -q --no-deps --no-binary :all: -d "$work" "yyjson==$YYJSON_VERSION"
    echo "$YYJSON_SHA256  $work/yyjson-$YYJSON_VERSION.tar.gz" | sha256sum -c --quiet
    tar -C "$work" -xzf "$work/yyjson-$YYJSON_VERSION.tar.gz"
    mkdir -p .deps/yyjson
    find "$work" -name 'yyjson.[ch]' -exec cp {} .deps/yyjson/ \;
}

for step in "$@"; do "$step"; done

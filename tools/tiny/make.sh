#!/bin/sh
# Makes quern-tiny.gguf from nothing: text, tokenizer, ids, training, GGUF. One H200 and 16 cores: about 6 minutes.
#   tools/tiny/make.sh WORK_DIR [MINUTES] [MEGABYTES]
set -e
here=$(cd "$(dirname "$0")" && pwd)
work=$1
minutes=${2:-5}
mb=${3:-900}
mkdir -p "$work"
python3 "$here/text.py" "$work/text" --mb "$mb" --seed 2 >/dev/null
python3 "$here/bpe.py" learn "$work/text" "$work/tokenizer.json"
python3 "$here/bpe.py" encode "$work/text" "$work/tokenizer.json" "$work/ids"
python3 -u "$here/train.py" "$work/ids" "$work/tokenizer.json" "$work/out" --minutes "$minutes"
python3 "$here/export.py" "$work/out/model.npz" "$work/tokenizer.json" "$work/quern-tiny.gguf"

#!/usr/bin/env python3
"""perplexity.py - what the fast kernels cost in accuracy. Writes a model in every type that we time and scores a text with each
file twice: on the reference path (floats all the way: `--no-repack` at a plain level, or the reference kernels themselves with
`--reference ref`, which takes a minute for 100 tokens) and at each of the levels asked for. Prints one table; exit status 1 if any
level is off by more than the limit.

  bench/perplexity.py .deps/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf /usr/share/common-licenses/GPL-3 --levels avx2,auto"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

TYPES = "Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K F16 BF16 F32"


def quern(a, *words):
    p = subprocess.run([a.quern, *words], capture_output=True, text=True)
    if p.returncode:
        sys.exit(f"perplexity.py: quern {' '.join(words)}: {p.stderr.strip()[-300:]}")
    return p.stdout


def score(a, path, *settings):
    out = json.loads(quern(a, "perplexity", path, a.text, "-c", str(a.ctx), "--chunks", str(a.chunks), "-t", str(a.threads), "--json",
                           "-q", *settings))
    return out["perplexity"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model", help="GGUF file to start from")
    p.add_argument("text")
    p.add_argument("--quern", default="build/quern")
    p.add_argument("--types", default=TYPES)
    p.add_argument("--levels", default="auto", help="levels of --isa to compare")
    p.add_argument("--reference", default="base", help="level of the reference path")
    p.add_argument("--limit", type=float, default=1, help="per cent")
    p.add_argument("-c", "--ctx", type=int, default=256)
    p.add_argument("--chunks", type=int, default=4)
    p.add_argument("-t", "--threads", type=int, default=2)
    a = p.parse_args()
    levels, off = a.levels.split(","), []
    print(f"| type | MiB | {a.reference}, not repacked | " + " | ".join(levels) + " |")
    print("|---|---:|---:|" + "---:|" * len(levels))
    with tempfile.TemporaryDirectory() as folder:
        for name in a.types.replace(",", " ").split():
            path = os.path.join(folder, "model.gguf")
            quern(a, "quantize", a.model, path, name, "-q")
            want = score(a, path, "--isa", a.reference, "--no-repack")
            cells = []
            for level in levels:
                got = score(a, path, "--isa", level)
                per_cent = 100 * (got / want - 1)
                off += [f"{name} at {level}"] if abs(per_cent) > a.limit else []
                cells.append(f"{got:.3f} ({per_cent:+.2f} %)")
            print(f"| {name} | {os.path.getsize(path) / 2**20:.1f} | {want:.3f} | " + " | ".join(cells) + " |", flush=True)
            os.unlink(path)
    if off:
        print(f"more than {a.limit:g} % off: " + ", ".join(off))
    return 1 if off else 0


if __name__ == "__main__":
    sys.exit(main())

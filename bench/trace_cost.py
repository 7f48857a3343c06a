#!/usr/bin/env python3
"""trace_cost.py - what recording costs: `quern bench` decodes with and without a step trace, in turn, and the ratio of each pair is
taken, so that a disturbance that lasts cancels out. Prints the median of the ratios with its 95 % interval. Exit status 1 when the
median is above --most percent."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile


def decode_ns(a, trace):
    """Median ns of the samples of one run of the program."""
    command = [a.quern, "bench", a.model, "-p", "0", "-n", str(a.tokens), "-r", str(a.repetitions), "-t", str(a.threads),
               "--no-ceilings", "-o", "json"] + (["--trace", trace, "--trace-level", a.level] if trace else [])
    p = subprocess.run(command, capture_output=True, text=True, check=True)
    if "lacks" in p.stderr:
        sys.exit(p.stderr)
    return statistics.median(json.loads(p.stdout)[0]["samples_ns"])


def interval(x):
    """95 % interval of a median by its order statistics (binomial)."""
    n, x = len(x), sorted(x)
    total, k = 0.0, 0
    p = 0.5 ** n
    while k < n // 2 and total + p <= 0.025:
        total += p
        p = p * (n - k) / (k + 1)
        k += 1
    k = max(k - 1, 0)
    return x[k], x[n - 1 - k]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--quern", default="build/quern")
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--repetitions", type=int, default=2)
    p.add_argument("--pairs", type=int, default=6)
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--level", default="step")
    p.add_argument("--suffix", default=".jsonl", help=".jsonl.zst compresses")
    p.add_argument("--most", type=float, default=2.0, help="percent")
    a = p.parse_args()
    ratios, off, size = [], [], 0
    with tempfile.TemporaryDirectory() as d:
        trace = os.path.join(d, "trace" + a.suffix)
        for i in range(a.pairs):
            pair = {}
            for on in (False, True) if i % 2 else (True, False):  # neither always goes first
                pair[on] = decode_ns(a, trace if on else None)
            ratios.append(pair[True] / pair[False])
            off.append(pair[False])
        size = os.path.getsize(trace)
    lo, hi = interval(ratios)
    cost = 100 * (statistics.median(ratios) - 1)
    print(f"{a.level} trace: decode takes {cost:+.2f} % ({100 * (lo - 1):+.2f} to {100 * (hi - 1):+.2f}), {a.pairs} pairs of "
          f"{a.repetitions} x {a.tokens} tokens, {statistics.median(off) / a.tokens / 1e6:.2f} ms a token without, "
          f"{size / (a.tokens * a.repetitions) / 1024:.0f} KiB of trace a token")
    return 1 if cost > a.most else 0


if __name__ == "__main__":
    sys.exit(main())

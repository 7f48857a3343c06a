#!/usr/bin/env python3
"""law.py - is the time of a token what its bytes cost? Reads rows that `table.py --keep` or `quern bench -o jsonl` left and fits
time per token = bytes / rate + rest, by least squares of relative errors, once over models at one depth and once over the depths of
each model. Prints the rate, the rest, and how far the worst point lies from the line. Memory of a shared machine gives another rate
every second: where the rows say what it gave around their samples, reading counts as if that had been the median of them all.

  quern bench a.gguf b.gguf c.gguf -p 0 -n 64 -d 0,1024,4096 -o jsonl > rows; bench/law.py rows"""

import argparse
import json
import os
import statistics
import sys


def fit(points):
    """Slope and intercept of y over x, each point weighted by 1 / y^2: a per cent counts the same everywhere."""
    w = [1 / (y * y) for _, y in points]
    sw = sum(w)
    mx = sum(k * x for k, (x, _) in zip(w, points)) / sw
    my = sum(k * y for k, (_, y) in zip(w, points)) / sw
    sxx = sum(k * (x - mx) ** 2 for k, (x, _) in zip(w, points))
    sxy = sum(k * (x - mx) * (y - my) for k, (x, y) in zip(w, points))
    slope = sxy / sxx if sxx else 0
    return slope, my - slope * mx


def token_ns(row, usual):
    """The median of a token's time; usual: bytes a second that memory is to have given, None: as it was."""
    reads = row["samples_read_bytes_s"] if usual else []
    longer = [row["bytes_read"] * 1e9 * (1 / usual - 1 / read) for read in reads] or [0] * len(row["samples_ns"])
    return statistics.median(ns + more for ns, more in zip(row["samples_ns"], longer)) / row["n_gen"]


def usual_rate(rows):
    """None: some row does not say."""
    reads = [x for r in rows for x in r.get("samples_read_bytes_s", [0])]
    return statistics.median(reads) if reads and min(reads) > 0 else None


def show(title, rows):
    usual = usual_rate(rows)
    points = [(r["bytes_read"] / r["n_gen"], token_ns(r, usual)) for r in rows]
    if len({x for x, _ in points}) < 3:
        print(f"{title}: {len(points)} points, too few for a line")
        return
    slope, rest = fit(points)
    worst = max(abs(slope * x + rest - y) / y for x, y in points)
    rate = f"{1 / slope:.1f} GB/s" if slope > 0 else "no rate"
    print(f"{title}: {len(points)} points, {rate} and {rest / 1e3:.0f} us a token besides; the worst point is {100 * worst:.1f} % "
          f"off the line" + (f" (as if memory had given {usual / 1e9:.1f} GB/s all the time)" if usual else ""))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("rows", help="file of JSON lines")
    a = p.parse_args()
    with open(a.rows, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    rows = [r for r in rows if r["n_gen"] > 0 and r["n_prompt"] == 0]
    for threads, isa in sorted({(r["n_threads"], r["isa"]) for r in rows}):
        mine = [r for r in rows if (r["n_threads"], r["isa"]) == (threads, isa)]
        where = f"{threads} thread{'s' if threads > 1 else ''}, {isa}"
        for depth in sorted({r["n_depth"] for r in mine}):
            show(f"{where}, models at depth {depth}", [r for r in mine if r["n_depth"] == depth])
        for path in sorted({r["model_filename"] for r in mine}):
            show(f"{where}, depths of {os.path.basename(path)}", [r for r in mine if r["model_filename"] == path])
    return 0 if rows else sys.exit("law.py: no rows of generating")


if __name__ == "__main__":
    sys.exit(main())

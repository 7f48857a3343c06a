#!/usr/bin/env python3
"""table.py - quern beside other engines: one markdown table from side-by-side runs on the machine at hand.

  bench/table.py --models DIR --make --against "llama.cpp=/path/llama-bench" --against "ik=/path/llama-bench -rtr 1"

Runs `quern bench --against` on every .gguf file of DIR, so that the samples of all engines are taken in turn, and prints medians,
ratios with their 95 % intervals, the share of the machine's ceiling, time to the first token and peak memory. Figures of one run
compare with each other and with nothing else. --make first writes the files that are missing: random weights in real shapes
(tools/make_gguf.py, which needs NumPy), Q4_K_M by `quern quantize`; they are fine for speed and useless for text. Each engine's
name, before the `=`, is a column and, on the CPU, is looked up in bench/floors.csv: ratios below their floor are marked with a `!`,
and, where the ceiling around that engine's samples (an estimate: memory is asked before and behind them) is below the floor too,
with that.
Exit status: 0; 1 if a file failed; 3 if a ratio is below its floor and --check was given."""

import argparse
import csv
import datetime
import fnmatch
import json
import os
import platform
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
SHAPES = ["smollm2-135m", "qwen2.5-0.5b", "llama-3.2-1b", "gemma-3-1b"]
TYPES = ["F16", "Q8_0", "Q4_0", "Q4_K_M"]  # Q4_K_M is made from F16


def make_models(a):
    for shape in a.shapes:
        for kind in a.types:
            path = os.path.join(a.models, f"{shape}-{kind}.gguf")
            if os.path.exists(path):
                continue
            print(f"making {path}", file=sys.stderr)
            source = os.path.join(a.models, f"{shape}-F16.gguf")
            if kind != "Q4_K_M":
                make(a, shape, kind, path)
                continue
            fresh = not os.path.exists(source)
            if fresh:
                make(a, shape, "F16", source)
            subprocess.run([a.quern, "quantize", "-q", source, path, kind], check=True)
            if fresh and "F16" not in a.types:
                os.remove(source)


def make(a, shape, kind, path):
    tool = os.path.join(ROOT, "tools", "make_gguf.py")
    try:
        subprocess.run([sys.executable, tool, "--preset", shape, "--type", kind, "-o", path + ".part"], check=True,
                       stdout=subprocess.DEVNULL)
        os.replace(path + ".part", path)
    finally:
        if os.path.exists(path + ".part"):
            os.remove(path + ".part")


def run_bench(a, path):
    command = [a.quern, "bench", path, "-p", a.p, "-n", a.n, "-d", a.d, "-t", a.t, "-r", str(a.r), "-o", "jsonl", "--device", a.device]
    if a.memory_from:
        command += ["--memory-from", str(a.memory_from), "--memory-wait", str(a.memory_wait)]
    for rival in a.against:
        command += ["--against", rival]
    p = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    rows = [json.loads(line) for line in p.stdout.splitlines()]
    return rows if p.returncode == 0 else None


def run_batch(a, path):
    """Tokens per second of eight sequences over those of one."""
    p = subprocess.run([a.quern, "batch-bench", path, "-npp", "64", "-ntg", "32", "-npl", "1,8", "-r", "3",
                        "-t", a.t.split(",")[0], "--device", a.device, "-o", "jsonl"], stdout=subprocess.PIPE, text=True)
    if p.returncode:
        return None
    one, eight = (json.loads(line)["speed_tg"] for line in p.stdout.splitlines())
    return eight / one


# ---- the table

def floor_of(floors, stem, engine, test):
    for f in floors:
        if f["engine"] == engine and fnmatch.fnmatch(stem.lower(), f["file"]):
            return float(f[test]) if f[test] else None
    return None


def ratio_cell(rival, floor):
    text = f"{rival['ratio']:.2f} ({rival['ratio_lo']:.2f}–{rival['ratio_hi']:.2f})"
    if floor and rival["ratio"] < floor:
        text += f" ! < {floor:g}"
        if 0 < rival["ratio_most"] < floor:
            text += f", the ceiling {rival['ratio_most']:.2f}"
    return text


def group(rows):
    """Prompts and generating of one file, threads and depth belong into one line."""
    lines = {}
    for r in rows:
        key = (r["model_filename"], r["n_threads"], r["n_depth"])
        test = "prefill" if r["n_gen"] == 0 else "decode"
        lines.setdefault(key, {}).setdefault(test, []).append(r)
    return lines


def line_cells(key, tests, a, floors, batch):
    path, threads, depth = key
    stem = os.path.splitext(os.path.basename(path))[0]
    pairs = [(t, r) for t in ("prefill", "decode") for r in tests.get(t, [])]
    some = pairs[0][1]
    below = 0

    def join(f):
        return " / ".join(f(t, r) for t, r in pairs)
    cells = [stem, str(threads), str(depth), join(lambda t, r: f"{r['median_ts']:.1f}"),
             join(lambda t, r: f"{100 * r['share_of_ceiling']:.0f} %")]
    for i, rival in enumerate(some["against"]):
        floor = {t: floor_of(floors, stem, rival["name"], t) for t in tests}
        cells.append(join(lambda t, r: f"{r['against'][i]['median_ts']:.1f}"))
        cells.append(join(lambda t, r: ratio_cell(r["against"][i], floor[t])))
        below += sum(bool(floor[t]) and r["against"][i]["ratio"] < floor[t] for t, r in pairs)
    peak = max(r["peak_rss_bytes"] / (r["model_size"] + r["kv_bytes"] + r["scratch_bytes"]) for _, r in pairs)
    cells += [f"{some['first_token_ns'] / 1e9:.2f}", f"{peak:.2f}"]
    if a.batch:
        cells.append(f"{batch[path]:.2f}" if batch.get(path) else "–")
    cells.append("yes" if any(r["disturbed"] for _, r in pairs) else "no")
    return cells, below


def print_table(rows, a, floors, batch):
    first = rows[0]
    head = ["file", "threads", "depth", "quern", "of ceiling"]
    for rival in first["against"]:
        head += [rival["name"], f"quern ÷ {rival['name']}"]
    head += ["first token, s", "peak ÷ (file + KV + scratch)"] + (["8 sequences ÷ 1"] if a.batch else []) + ["disturbed"]
    tests = sorted({(r["n_prompt"], r["n_gen"]) for r in rows}, key=lambda x: x[1] > 0)
    print(f"{datetime.date.today()}, {first['cpu_info']}, {platform.system()} {platform.release()}, {first['build_commit']}, "
          f"{first['isa']}; {a.r} samples of each, in turn; cells are "
          f"{' / '.join(f'pp{p}' if p else f'tg{n}' for p, n in tests)}, medians of tokens per second; ratios with their 95 % interval" +
          (f"; only samples around which memory gave {a.memory_from:g} GB/s, but where that took more than {a.memory_wait:g} s"
           if a.memory_from else ""))
    print()
    print("| " + " | ".join(head) + " |")
    print("|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|")
    below = 0
    for key, group_tests in group(rows).items():
        cells, n = line_cells(key, group_tests, a, floors, batch)
        below += n
        print("| " + " | ".join(cells) + " |")
    print()
    for t in sorted({r["n_threads"] for r in rows}):
        mine = sorted((r for r in rows if r["n_threads"] == t), key=lambda r: r["ceiling_read_huge_bytes_s"])
        r = mine[len(mine) // 2]
        print(f"Ceilings with {t} thread{'s' if t > 1 else ''}: {r['ceiling_read_small_bytes_s'] / 1e9:.1f} GB/s from 4 KiB pages, "
              f"{r['ceiling_read_huge_bytes_s'] / 1e9:.1f} GB/s from huge pages, {r['ceiling_flop_s'] / 1e9:.0f} GFLOP/s f32, "
              f"{r['ceiling_bf16_flop_s'] / 1e9:.0f} bf16, {r['ceiling_int8_op_s'] / 1e9:.0f} GOP/s int8.")
    for rival in first["against"]:
        words = rival["command"].split()  # where it lies is of no interest to a reader
        print(f"{rival['name']}: {' '.join([os.path.basename(words[0])] + words[1:])}")
    return below


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", required=True, metavar="DIR", help="folder of .gguf files")
    p.add_argument("--make", action="store_true", help="write the files that are missing there")
    p.add_argument("--shapes", default=",".join(SHAPES[1:3]), help="what --make makes: of " + ",".join(SHAPES))
    p.add_argument("--types", default=",".join(TYPES), help="and in which types")
    p.add_argument("--quern", default=os.path.join(ROOT, "build", "quern"), metavar="FILE")
    p.add_argument("--against", action="append", default=[], metavar="NAME=COMMAND", help="another llama-bench; may be repeated")
    p.add_argument("--device", default="cpu", help="where quern runs: cpu, cuda or cuda:N; other engines are told by their COMMAND")
    p.add_argument("--only", default="*", metavar="PATTERN", help="files whose name matches, such as '*q8_0*'")
    p.add_argument("--batch", action="store_true", help="eight sequences at once, too")
    p.add_argument("--check", action="store_true", help="exit status 3 if a ratio is below its floor")
    p.add_argument("--keep", metavar="FILE", help="append all rows to this file as JSON lines")
    p.add_argument("--memory-from", type=float, default=0, metavar="GB/S", help="only samples around which memory gave so much")
    p.add_argument("--memory-wait", type=float, default=600, metavar="S", help="a test waits for that so long, at most")
    p.add_argument("-p", default="512")
    p.add_argument("-n", default="128")
    p.add_argument("-d", default="0")
    p.add_argument("-t", default="2")
    p.add_argument("-r", type=int, default=5)
    a = p.parse_args()
    a.shapes, a.types = a.shapes.split(","), a.types.split(",")
    if a.make:
        make_models(a)
    files = sorted(f for f in os.listdir(a.models) if f.endswith(".gguf") and fnmatch.fnmatch(f.lower(), a.only.lower()))
    rows, batch, failed = [], {}, 0
    for f in files:
        path = os.path.join(a.models, f)
        print(f"{f} ...", file=sys.stderr)
        got = run_bench(a, path)
        if got is None:
            failed += 1
            continue
        rows += got
        if a.batch:
            batch[path] = run_batch(a, path)
        if a.keep:
            with open(a.keep, "a", encoding="utf-8") as out:
                out.writelines(json.dumps(r) + "\n" for r in got)
    if not rows:
        sys.exit(f"table.py: nothing measured in {a.models}")
    with open(os.path.join(HERE, "floors.csv"), encoding="utf-8") as f:
        floors = list(csv.DictReader(f)) if a.device == "cpu" else []  # they are of processors
    below = print_table(rows, a, floors, batch)
    return 1 if failed else 3 if below and a.check else 0


if __name__ == "__main__":
    sys.exit(main())

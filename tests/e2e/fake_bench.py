#!/usr/bin/env python3
"""A llama-bench that measures nothing: prints the JSON that one would print for the test asked for. Rates come from --rates, one
for each run, counted in a file; --say adds a line before the array, --fail ends as a broken program does. Every call's arguments
are appended to the file named by --log."""

import argparse
import json
import os
import sys

p = argparse.ArgumentParser()
p.add_argument("--log", required=True)
p.add_argument("--rates", default="100")
p.add_argument("--fail")
p.add_argument("--say")
p.add_argument("-m")
p.add_argument("-p", type=int, default=512)
p.add_argument("-n", type=int, default=128)
p.add_argument("-pg")
p.add_argument("-d", type=int, default=0)
p.add_argument("-gp", help="generating behind a prompt")
p.add_argument("--no-depth", action="store_true", help="-d is not known")
p.add_argument("-t", type=int)
p.add_argument("-r", type=int)
p.add_argument("-o")
p.add_argument("-ctk", default="f16")
p.add_argument("-ctv", default="f16")
a = p.parse_args()

with open(a.log, "a+") as log:
    log.seek(0)
    calls = len(log.readlines())
    log.write(json.dumps(dict(vars(a), cpus=len(os.sched_getaffinity(0)))) + "\n")
if a.no_depth and a.d:
    sys.exit("error: invalid parameter for argument: -d")
if a.fail == "status":
    print("loading", file=sys.stderr)
    sys.exit("no such model \x1b[31m")
if a.fail == "signal":
    os.abort()
if a.fail == "text":
    print("hello")
    sys.exit(0)
rates = [float(x) for x in a.rates.split(",")]
prompt, gen = map(int, (a.pg or a.gp).split(",")) if a.pg or a.gp else (a.p, a.n)
row = {"build_commit": "fake", "n_prompt": prompt, "n_gen": gen, "n_depth": a.d, "n_threads": a.t,
       "avg_ts": rates[calls % len(rates)]}
if a.fail == "other":
    row["n_prompt"] += 1
if a.fail == "zero":
    row["avg_ts"] = 0
if a.fail == "broken":
    print("[{]")
    sys.exit(0)
if a.say:
    print(a.say)
print(json.dumps([row], indent=2))

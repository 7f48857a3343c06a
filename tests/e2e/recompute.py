"""recompute.py - a second opinion on `quern analyze`: the figures of its report from the raw trace, by another program in another
language that shares no code with the first. Plain sums, sorted lists and textbook formulas; nothing is optimised.

    python3 recompute.py TRACE [--by kernel|op|role|layer]   prints what it computed, as JSON"""
import argparse
import json
import math
import re
import statistics

PHASES = ["load", "tokenize", "prefill", "decode", "sample", "other"]


def quantile(values, q):
    v = sorted(values)
    at = q * (len(v) - 1)
    low = math.floor(at)
    return v[low] if low + 1 >= len(v) else v[low] + (at - low) * (v[low + 1] - v[low])


def line(points):
    """a, b, standard error of b, r2 of y = a + b x."""
    n = len(points)
    mx, my = (sum(p[i] for p in points) / n for i in (0, 1))
    vx = sum((x - mx) ** 2 for x, _ in points)
    vy = sum((y - my) ** 2 for _, y in points)
    b = sum((x - mx) * (y - my) for x, y in points) / vx
    a = my - b * mx
    left = sum((y - a - b * x) ** 2 for x, y in points)
    return a, b, math.sqrt(left / (n - 2) / vx), 1 - left / vy if vy else 0


class Trace:
    def __init__(self, path):
        self.records = [json.loads(text) for text in open(path, encoding="utf-8") if text.strip()]
        self.header = self.of("trace")[0]
        self.plan = {r["step"]: r for r in self.of("plan")}
        self.choices = self.of("choice")
        self.passes = self.of("pass")
        self.steps = self.of("step")
        self.wall = self.of("end")[0]["ns"]

    def of(self, kind):
        return [r for r in self.records if r["ev"] == kind]

    def kernel(self, step):
        for c in self.choices:
            if c["step"] != step["step"]:
                continue
            low, high = (re.fullmatch(r"(\d+)(?:-(\d+)|(\+))?", c["rows"])[i] for i in (1, 2))
            high = math.inf if c["rows"].endswith("+") else int(high or low)
            if int(low) <= step["rows"] <= high:
                return c["kernel"]
        raise KeyError(step)

    def name(self, step, by):
        plan = self.plan[step["step"]]
        if by == "kernel":
            return self.kernel(step)
        if by == "op":
            return plan["op"]
        if by == "role":
            return re.sub(r"^blk\.\d+\.", "", plan["role"])
        return f"layer {plan['layer']}" if plan["layer"] >= 0 else "outside layers"


def phases(t):
    """Exclusive times: in these traces nothing overlaps, so a phase is the sum of what lasted."""
    ns = {p: 0 for p in PHASES}
    for r in t.records:
        if r["ev"] in ("load", "tokenize", "sample"):
            ns[r["ev"]] += r["ns"]
        if r["ev"] == "pass":
            ns[r["phase"]] += r["ns"]
    ns["other"] = t.wall - sum(ns.values())
    tokens = {"tokenize": sum(r["tokens"] for r in t.of("tokenize")), "sample": len(t.of("sample"))}
    out = {}
    for p in PHASES:
        per_token = [r["ns"] / r["rows"] * (r["seqs"] if p == "decode" else 1) for r in t.passes if r["phase"] == p]
        count = tokens.get(p, sum(r["rows"] for r in t.passes if r["phase"] == p))
        inside = sum(r["ns"] for r in t.steps if r["phase"] == p)
        out[p] = {"ns": ns[p], "share": ns[p] / t.wall, "tokens": count or None, "tok_s": count * 1e9 / ns[p] if count else None,
                  "token_avg_ns": ns[p] / count if count else None, "passes": len(per_token) or None,
                  "steps_ns": inside or None, "between_ns": ns[p] - inside if inside else None}
        for q in (50, 95, 99):
            out[p][f"token_p{q}_ns"] = quantile(per_token, q / 100) if per_token else None
    return out


def ideal(t, step):
    h, op = t.header, t.plan[step["step"]]["op"]
    memory = step["bytes"] / h["read_gbs"]
    kind = {"qlinear": "int8_gops", "blinear": "bf16_gflops"}.get(op, "f32_gflops")
    work = step["flops"] / h[kind]
    return (memory, "memory") if memory >= work else (work, kind.split("_")[0])


def steps(t, phase, by):
    whole = sum(p["ns"] for p in t.passes if p["phase"] == phase)
    groups, series = {}, {}
    for s in t.steps:
        if s["phase"] == phase:
            groups.setdefault(t.name(s, by), []).append(s)
    rows, running = [], 0
    for name, launches in sorted(groups.items(), key=lambda g: (-sum(s["ns"] for s in g[1]), g[0])):
        ns = [s["ns"] for s in launches]
        total = sum(ns)
        running += total
        size, flops = sum(s["bytes"] for s in launches), sum(s["flops"] for s in launches)
        # the ceiling is judged for each step of the plan by the sums of all its launches
        series = {}
        for s in launches:
            sums = series.setdefault((s["step"], t.kernel(s)), {"step": s["step"], "bytes": 0, "flops": 0})
            sums["bytes"] += s["bytes"]
            sums["flops"] += s["flops"]
        bounds = {}
        for s in series.values():
            best, by_what = ideal(t, s)
            bounds[by_what] = bounds.get(by_what, 0) + best
        best = sum(bounds.values())
        wait = sum(sum(s["ns"] - b for b in s["busy"] if 0 <= b < s["ns"]) // len(s["busy"]) for s in launches if s.get("busy"))
        rows.append({"name": name, "captured": len(ns), "total_ns": total, "share": total / whole, "cumulative": running / whole,
                     "avg_ns": total / len(ns), "min_ns": min(ns), "p50_ns": quantile(ns, 0.5), "p95_ns": quantile(ns, 0.95),
                     "p99_ns": quantile(ns, 0.99), "max_ns": max(ns), "gbs": size / total, "gflops": flops / total,
                     "of_ceiling": best / total, "bound": max(bounds, key=bounds.get), "wait_share": wait / total if wait else None})
    return rows


def disturbed(t):
    """Far above a line that was fitted without what is far above it."""
    decode = [p for p in t.passes if p["phase"] == "decode"]
    points = [(p["pos"], p["ns"]) for p in decode]
    at = statistics.median(x for x, _ in points)
    near, far = [p for p in points if p[0] <= at], [p for p in points if p[0] > at]
    middle = [[statistics.median(q[k] for q in half) for k in (0, 1)] for half in (near, far)]
    a, b = 0, (middle[1][1] - middle[0][1]) / (middle[1][0] - middle[0][0])
    for i in range(6):
        if i:
            a, b = line(inner)[:2]
        left = [y - a - b * x for x, y in points]
        middle = statistics.median(left)
        left = [r - middle for r in left]
        scale = 1.4826 * statistics.median(abs(r) for r in left)
        inner = [p for p, r in zip(points, left) if abs(r) <= 4 * scale]
    return {i: r for i, (r, p) in enumerate(zip(left, decode)) if r > 4.5 * scale and r > 0.02 * abs(p["ns"] - r)}, decode


def growth(t):
    out_of, decode = disturbed(t)
    sums = {}
    for s in t.steps:
        if s["phase"] == "decode":
            one = sums.setdefault(t.kernel(s), {})
            one[s["pass"]] = one.get(s["pass"], 0) + s["ns"]
    sums["all steps"] = {p["pass"]: p["ns"] for p in decode}
    table = {}
    for name, by_pass in sums.items():
        a, b, error, r2 = line([(p["pos"], by_pass[p["pass"]]) for i, p in enumerate(decode) if i not in out_of])
        calm = [p["pos"] for i, p in enumerate(decode) if i not in out_of]
        low, high = min(calm), max(calm)
        table[name] = {"slope_ns": b, "error_ns": error, "r2": r2, "first_ns": a + b * low, "last_ns": a + b * high}
    return table


def latency(t):
    gaps = [r["ns"] for r in t.of("token") if r["index"] > 0]
    return {"first": statistics.median(r["first_ns"] for r in t.of("done")), **{q: quantile(gaps, q / 100) for q in (50, 95, 99)}}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("trace")
    p.add_argument("--by", default="kernel")
    a = p.parse_args()
    t = Trace(a.trace)
    print(json.dumps({"phases": phases(t), **{p: steps(t, p, a.by) for p in ("prefill", "decode")}, "growth": growth(t),
                      "disturbed": {k + 1: v for k, v in disturbed(t)[0].items()}, "latency": latency(t)}, indent=1))


if __name__ == "__main__":
    main()

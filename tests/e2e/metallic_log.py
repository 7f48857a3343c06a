"""An analyser of Metallic's JSONL, written from the description of its report alone: sections 0 to 13, rows and percentiles by its
rules. `quern analyze --format metallic` must print the same for a log and for the trace that the log was exported from."""
import json
import math
import sys
from collections import Counter, defaultdict


def row(title, samples, pad=2):
    head = " " * pad + title
    if not samples:
        return f"{head}: no samples"
    s = sorted(samples)

    def p(q):
        at = q / 100 * (len(s) - 1)
        lo, hi = math.floor(at), math.ceil(at)
        return (s[lo] + (s[hi] - s[lo]) * (at - lo)) / 1000

    total = sum(s)
    return (f"{head}: count={len(s)} | total={total / 1000:.2f}ms | avg={total / len(s) / 1000:.3f}ms | min={s[0] / 1000:.3f}ms | "
            f"max={s[-1] / 1000:.3f}ms | p95_ms={p(95):.3f}ms, p99_ms={p(99):.3f}ms")


def kind_of(op):
    name = op.rsplit("/", 1)[-1]
    for stem in ("sdpa", "mlp_swiglu"):
        if name.startswith(stem + "_block_") and name.endswith("_op"):
            return stem
    if name.startswith("forward_cpu_block_"):
        return "forward_cpu"
    if name.endswith("_op"):
        name = name.rsplit("_", 1)[0]
    return name.rstrip("_")


def by_total(groups):
    return sorted(groups.items(), key=lambda kv: -sum(kv[1]))


def analyse(path, top=20, kernel_top=50):
    types, counts = defaultdict(list), Counter()
    backend, reason, op_backend = Counter(), Counter(), Counter()
    parents, parent_ops, kernels, gpu, gpu_kind = (defaultdict(list) for _ in range(5))
    mm_backend, mm_op, waits, buffers, sync = (defaultdict(list) for _ in range(5))
    shapes = defaultdict(lambda: defaultdict(list))
    for text in open(path, encoding="utf-8"):
        if not text.strip():
            continue
        event = json.loads(text).get("event") or {}
        kind, data = event.get("type"), event.get("data") or {}
        if not kind:
            continue
        us = int(data["duration_us"]) if "duration_us" in data else None
        counts[kind] += 1
        types[kind] += [us] if us is not None else []
        op, kernel = data.get("op_name", ""), data.get("internal_kernel_name", "")
        if us is not None and ("sync" in op or "sync" in kernel):
            sync["sync kernels"].append(us)
        if kind == "KernelBackendSelected":
            backend[data["backend"]] += 1
            reason[data["reason"]] += 1
            op_backend[(op, data["backend"])] += 1
        elif kind == "InternalKernelCompleted":
            parent = data["parent_op_name"]
            parents[parent].append(us)
            parent_ops[f"{parent} :: {kernel}"].append(us)
            if not kernel.endswith(("_total", "cb_wait")):
                kernels[kernel].append(us)
        elif kind == "GpuOpCompleted":
            if "/cb_gpu" in op:
                buffers[op].append(us)
            elif "cb_wait" in op or op.endswith("wait"):
                waits[op].append(us)
            else:
                gpu[op].append(us)
                gpu_kind[kind_of(op)].append(us)
                m = data.get("data") or {}
                if m.get("op"):
                    mm_backend[m["backend"]].append(us)
                    mm_op[f"{m['op']} @ {m['backend']}"].append(us)
                    known = ("op", "batch", "m", "n", "k", "tA", "tB")
                    name = " | ".join(f"{k}={m.get(k, '?')}" for k in known)
                    name += "".join(f" | {k}={m[k]}" for k in sorted(m) if k not in known + ("backend",))
                    shapes[name][m["backend"]].append(us)
    out = [f"Total events: {sum(counts.values())}"]

    def section(title, rows):
        if rows:
            out.extend(["", title, *rows])

    section("Event type summary:", [row(f"{k} (count={n})", types[k]) for k, n in counts.most_common()])
    section("Backend selection summary:", [f"  backend={k}: count={n}" for k, n in backend.most_common()])
    section("Backend selection reasons:", [f"  reason={k}: count={n}" for k, n in reason.most_common()])
    section("Backend selection by op/backend:", [f"  op={k[0]} backend={k[1]}: count={n}" for k, n in op_backend.most_common(top)])
    section("Internal kernel by parent:", [row(k, v) for k, v in by_total(parents)[:top]])
    section("Internal kernel by parent/op:", [row(k, v) for k, v in by_total(parent_ops)[:top]])
    section("Kernel aggregate (all parents):", [row(k, v) for k, v in by_total(kernels)[:kernel_top]])
    section("GPU kernel durations (excluding waits):", [row(k, v) for k, v in by_total(gpu)[:top]])
    section("GPU kernel aggregate (by kernel type):", [row(k, v) for k, v in by_total(gpu_kind)[:top]])
    section("Matmul backend summary:", [row(f"backend={k}", v) for k, v in by_total(mm_backend)[:top]])
    section("Matmul op/backend summary:", [row(k, v) for k, v in by_total(mm_op)[:top]])
    lines = []
    for name, per in sorted(shapes.items(), key=lambda kv: -sum(map(sum, kv[1].values())))[:top]:
        lines += [f"  {name}:"] + [row(f"backend={k}", v, 4) for k, v in by_total(per)]
    section("Matmul shape backend summary:", lines)
    section("GPU wait breakdown:", [row(k, v) for k, v in by_total(waits)[:top]])
    section("Command buffer GPU timing:", [row(k, v) for k, v in by_total(buffers)[:top]])
    out += ["", "Sync operations:", row("sync kernels", sync["sync kernels"])]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    sys.stdout.write(analyse(sys.argv[1]))

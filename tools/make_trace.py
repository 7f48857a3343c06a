#!/usr/bin/env python3
"""make_trace.py - a trace of a run that never was: the plan of a small model, laws for the times that are known exactly (so a
report can be held against them), and a generator of numbers that gives the same file everywhere. For tests and for readers'
speed: --tokens 25000 --layers 24 makes ten million events.
  attention: 2000 + 30 ns a position; matrices: bytes at 30 GB/s; every 11th decode pass is disturbed: its steps take 3 times."""

import argparse
import json
import os
import re
import sys

D, FF, HEADS, KV, HEAD, VOCAB = 896, 4864, 14, 2, 64, 49152
LAYER = [("rmsnorm", "attn_norm", D, 0), ("quant", "attn_q.x", D, 0), ("qlinear", "attn_q", D, D), ("qlinear", "attn_k", D, KV * HEAD),
         ("qlinear", "attn_v", D, KV * HEAD), ("rope", "rope", D, 0), ("store", "kv_store", KV * HEAD, 0), ("attend", "attend", D, 0),
         ("quant", "attn_output.x", D, 0), ("qlinear", "attn_output", D, D), ("add", "attn_add", D, 0), ("rmsnorm", "ffn_norm", D, 0),
         ("quant", "ffn_gate.x", D, 0), ("qlinear", "ffn_gate", D, FF), ("qlinear", "ffn_up", D, FF), ("swiglu", "ffn_act", FF, 0),
         ("quant", "ffn_down.x", FF, 0), ("qlinear", "ffn_down", FF, D), ("add", "ffn_add", D, 0)]
TYPES = {"embed": "Q8_0", "qlinear": "Q8_0", "store": "F16", "attend": "F16"}
KERNELS = {"qlinear": "qlinear_q8_0_avx512vnni_r12", "embed": "embed_q8_0_avx512_gen", "store": "store_f16_avx512_gen",
           "attend": "attend_f16_avx512_gen"}

EVENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src", "trace", "events.def")
ORDER = {m[1]: re.findall(r"F\(\w+,\s*(\w+),", m[2])
         for m in re.finditer(r"^EVENT\((\w+),(.*?)\)\)$", open(EVENTS, encoding="utf-8").read(), re.M | re.S)}


class Trace:
    def __init__(self, out, a):
        self.out, self.a, self.n, self.now, self.state = out, a, 0, 0, a.seed or 1

    def draw(self, most):  # a small generator that every language can repeat
        self.state = self.state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        return (self.state >> 33) % most

    def put(self, ev, t, **fields):
        inorder = {name: fields[name] for name in ORDER[ev] if name in fields}
        self.out.write(json.dumps({"ev": ev, "t": t, **inorder}, separators=(",", ":")) + "\n")
        self.n += 1

    def lasting(self, ev, ns, **fields):
        self.put(ev, self.now, **fields, ns=ns)
        self.now += ns


def plan_of(layers):
    steps = [(-1, "embed", "token_embd", D, 0, 0)]
    for il in range(layers):
        steps += [(il, op, f"blk.{il}.{role}", n, m, 0) for op, role, n, m in LAYER]
    return steps + [(-1, "pick", "pick", D, 0, 1), (-1, "rmsnorm", "output_norm", D, 0, 1), (-1, "quant", "output.x", D, 0, 1),
                    (-1, "qlinear", "output", D, VOCAB, 1)]


def put_header(t, plan):
    a = t.a
    t.put("trace", 0, schema=1, program="quern 0.1.0", commit="0000000", command="quern run sample.gguf -n " + str(a.tokens),
          started="2026-11-16T12:00:00Z", level="step", seed=a.seed, host="sample", os="Linux 6.1.0", cpu="Sample CPU", device="cpu",
          isa="avx512vnni", cores=a.threads, threads=a.threads, clock="CLOCK_MONOTONIC", clock_ns=25, read_gbs=37.5,
          read_small_gbs=25, f32_gflops=230, bf16_gflops=460, int8_gops=900, barrier_us=1.5, model="sample", path="sample.gguf",
          arch="qwen2", type="Q8_0", hash="ab" * 32, model_bytes=525000000, params=494000000, layers=a.layers,
          settings={"n_ctx": 4096, "n_batch": 512, "kv": "f16", "temp": 0}, plan_hash="cd" * 32)
    for i, (layer, op, role, _, _, logits) in enumerate(plan):
        t.put("plan", 0, step=i, layer=layer, op=op, role=role, type=TYPES.get(op, "F32"), logits=logits)
        for rows in ("1", "2-8", "9+"):
            t.put("choice", 0, step=i, rows=rows, kernel=KERNELS.get(op, op + "_f32_avx512_gen"),
                  reason="no kernel above avx512vnni", rejected=op + "_ref: lower level")


def cost(op, n, m, rows, pos):
    if m:
        return n * m * 34 // 32 + 4 * rows * (n + m), 2 * rows * n * m
    if op == "attend":
        return rows * (pos + 1) * 2 * KV * HEAD * 2, 4 * rows * (pos + 1) * HEADS * HEAD
    return rows * n * 8, rows * n * 4


def put_pass(t, plan, number, phase, rows, pos):
    a, begin = t.a, t.now
    t.now += 3000  # gathering rows
    slow = 3 if phase == "decode" and number % 11 == 0 else 1
    for i, (_, op, _, n, m, logits) in enumerate(plan):
        r = 1 if logits else rows
        size, flops = cost(op, n, m, r, pos + rows - 1)
        ns = 2000 + 30 * r * (pos + rows) if op == "attend" else 500 + size // 30 + flops // 900
        ns = (ns + t.draw(ns // 20 + 1)) * slow
        busy = [ns - 100 - t.draw(ns // 10 + 1) for _ in range(a.threads)] if m or op == "attend" else [ns]
        t.lasting("step", ns, **{"pass": number, "step": i, "phase": phase, "rows": r, "pos": pos}, busy=busy, bytes=size, flops=flops)
        t.now += 40
    t.put("pass", begin, **{"pass": number, "phase": phase, "rows": rows, "seqs": 1, "pos": pos, "logits": 1}, ns=t.now - begin)


def put_run(t, plan):
    a = t.a
    t.lasting("load", 4000000, phase="open", bytes=525000000)
    t.lasting("load", 1500000, phase="plan", bytes=0)
    t.lasting("load", 90000000, phase="repack", bytes=520000000)
    parts = {"embedding": 140000000, "attention": 90000000, "feed-forward": 290000000, "output": 0, "norms": 5000000}
    memory = dict(weights=525000000, parts=parts, kv=50331648, kv_used=0, scratch=60000000, resident=640000000, peak=700000000)
    t.put("memory", t.now, when="loaded", **memory)
    t.lasting("tokenize", 60000, request=0, bytes=5 * a.prompt, tokens=a.prompt)
    begin = t.now
    t.put("request", begin, request=1, prompt=a.prompt, cached=0, predict=a.tokens, sampling={"temp": 0, "seed": a.seed})
    put_pass(t, plan, 1, "prefill", a.prompt, 0)
    prompt_ns, last = t.now - begin, begin
    for i in range(a.tokens):
        t.lasting("sample", 20000 + t.draw(2000), request=1, **{"pass": i + 1})
        t.put("token", t.now, request=1, index=i, id=t.draw(VOCAB), pos=a.prompt + i, ns=t.now - last)
        if i == 0:
            first = t.now - begin
        last = t.now
        t.now += 5000  # text, terminal
        if i + 1 < a.tokens:
            put_pass(t, plan, i + 2, "decode", 1, a.prompt + i)
    t.put("done", t.now, request=1, stop="length", prompt=a.prompt, cached=0, tokens=a.tokens, first_ns=first, prompt_ns=prompt_ns,
          decode_ns=t.now - begin - prompt_ns, ns=t.now - begin)
    t.put("memory", t.now, when="end", **{**memory, "kv_used": 12288 * (a.prompt + a.tokens)})


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--prompt", type=int, default=24)
    p.add_argument("--tokens", type=int, default=14)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("-o", "--output", default="-")
    a = p.parse_args()
    with sys.stdout if a.output == "-" else open(a.output, "w", encoding="utf-8") as out:
        t = Trace(out, a)
        plan = plan_of(a.layers)
        put_header(t, plan)
        put_run(t, plan)
        t.put("end", t.now, status="ok", events=t.n + 1, lost=0, ns=t.now)


if __name__ == "__main__":
    main()

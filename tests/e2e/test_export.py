"""`quern export`: what other tools read must be what the trace says."""
import collections
import csv
import io
import json
import os
import sys

import pytest

from conftest import ROOT, TINY, quern

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import metallic_log  # noqa: E402
import trace_events  # noqa: E402

SAMPLE = os.path.join(ROOT, "tests", "data", "trace", "sample.jsonl")
DOPPLER = os.path.join(ROOT, "tests", "data", "logs", "doppler.log.zst")
MLC = os.path.join(ROOT, "tests", "data", "logs", "mlc.md")
EVENTS = [json.loads(line) for line in open(SAMPLE)]


def export(path, to, *more):
    r = quern("export", path, "--to", to, *more)
    assert r.rc == 0, r.err
    return r.out


def ns(value):
    return round(value * 1000)


@pytest.mark.parametrize("to", ["chrome", "perfetto"])
def test_chrome(to):
    doc = json.loads(export(SAMPLE, to))
    events = doc["traceEvents"]
    assert doc["displayTimeUnit"] == "ns" and all(ev["ph"] in "XMCi" and "name" in ev for ev in events)
    tracks = {ev["args"]["name"] for ev in events if ev["ph"] == "M"}
    assert {"passes and steps", "tokens", "requests", "load, tokenize, sample"} <= tracks
    spans = collections.defaultdict(list)
    for ev in events:
        if ev["ph"] == "X":
            spans[ev["cat"]].append(ev)
    for kind in ("step", "pass", "token", "sample", "load"):
        wanted = sorted((e["t"] - (e["ns"] if kind == "token" else 0), e["ns"]) for e in EVENTS if e["ev"] == kind)
        told = sorted((ns(ev["ts"]), ns(ev["dur"])) for ev in spans[kind])
        assert len(told) == len(wanted)
        for (t, d), (t0, d0) in zip(told, wanted):  # a nanosecond less, so that no span ends where the next begins
            assert t == t0 and d == (d0 - 1 if d0 > 1 else d0), (kind, t, d, d0)
    assert all(ev["args"]["kernel"] and ev["args"]["op"] for ev in spans["step"])
    trace_events.check(doc)
    assert any(ev["ph"] == "C" for ev in events) == (to == "perfetto")


@pytest.mark.parametrize("to", ["chrome", "perfetto"])
def test_real_runs(to, tmp_path):
    """A chat, a benchmark of many sequences, and requests that overlap, as a server has them."""
    for command in (["run", "-cnv", "--temp", "0", "-n", "8"], ["batch-bench", "-npp", "8", "-ntg", "4", "-npl", "3"]):
        path = tmp_path / "run.jsonl"
        assert quern(command[0], TINY, *command[1:], "--trace", path, stdin="Once upon a time\nAnd then?\n/quit\n").rc == 0
        trace_events.check(json.loads(export(path, to)))
    at, events = {}, [EVENTS[0]]
    for i in range(1, 201):  # each lasts 5 turns: five go on at once
        events.append({"ev": "request", "t": 1000 * i, "request": i, "prompt": 3})
        at[i] = 1000 * i
        for k in range(max(1, i - 4), i + 1):
            t = 1000 * i + 400 + 10 * (k % 5)
            events.append({"ev": "token", "t": t, "request": k, "index": i - k, "id": 1, "pos": i - k, "ns": t - at[k]})
            at[k] = t
        if i > 4:
            k = i - 4
            events.append({"ev": "done", "t": 1000 * i + 500 + k, "request": k, "stop": "end", "prompt": 3, "tokens": 5, "first_ns": 400,
                           "prompt_ns": 300, "decode_ns": 4000, "ns": 1000 * i + 500 + k - 1000 * k})
    path = tmp_path / "many.jsonl"
    path.write_text("".join(json.dumps(e) + "\n" for e in events))
    doc = json.loads(export(path, to))
    trace_events.check(doc)
    lanes = {ev["args"]["name"] for ev in doc["traceEvents"] if ev["ph"] == "M" and ev["args"]["name"].startswith("requests, lane")}
    assert lanes == {f"requests, lane {i}" for i in range(2, 6)} and sum(ev.get("cat") == "token" for ev in doc["traceEvents"]) == 990


def test_chrome_comes_back(tmp_path):
    """Our own export, read as any Chrome trace is, has the phases of the trace."""
    path = tmp_path / "run.json"
    path.write_text(export(SAMPLE, "chrome"))
    ours, back = (quern("analyze", p, "--json").json() for p in (SAMPLE, path))
    run = [d["runs"][0] if "runs" in d else d for d in (ours, back)]
    text = [quern("analyze", p, "--section", "phases").out for p in (SAMPLE, path)]
    for phase in ("load", "prefill", "decode"):
        times = [next(line.split()[1] for line in t.split("\n") if line.startswith(phase)
                      and len(line.split()) > 2 and line.split()[1][0].isdigit()) for t in text]
        assert times[0] == times[1], (phase, run)


def test_folded():
    total = collections.Counter()
    for line in export(SAMPLE, "folded").splitlines():
        stack, own = line.rsplit(" ", 1)
        total[stack.split(";")[0]] += int(own)
    steps = collections.Counter()
    for e in EVENTS:
        if e["ev"] == "pass":
            steps[e["phase"]] += e["ns"]
    assert total["prefill"] == steps["prefill"] and total["decode"] == steps["decode"]
    assert sum(total.values()) == next(e["ns"] for e in EVENTS if e["ev"] == "end")
    assert len(export(MLC, "folded").splitlines()) > 60


def test_csv():
    rows = list(csv.DictReader(io.StringIO(export(SAMPLE, "csv"))))
    steps = [e for e in EVENTS if e["ev"] == "step"]
    got = [r for r in rows if r["kind"] == "step"]
    assert [(int(r["t"]), int(r["ns"]), int(r["step"]), int(r["bytes"])) for r in got] == \
        [(e["t"], e["ns"], e["step"], e["bytes"]) for e in steps]
    assert all(r["kernel"] and r["op"] and r["role"] for r in got)
    assert sum(r["kind"] == "token" for r in rows) == sum(e["ev"] == "token" for e in EVENTS)
    assert all(None not in r and None not in r.values() for r in rows)


@pytest.mark.parametrize("path", [SAMPLE])
def test_metallic(path, tmp_path):
    """A second analyser of that format, fed with the export, prints what we print for the trace and for the export."""
    log = tmp_path / "run.jsonl"
    log.write_text(export(path, "metallic"))
    theirs = metallic_log.analyse(log).splitlines()
    for source in (path, log):
        ours = quern("analyze", source, "--format", "metallic").out.splitlines()
        assert ours[1].startswith("=== Analyzing ")
        assert ours[2:] == theirs, source


def test_other_programs(tmp_path):
    doc = json.loads(export(DOPPLER, "perfetto"))
    trace_events.check(doc)
    assert sum(ev["ph"] == "X" and ev["cat"] == "pass" for ev in doc["traceEvents"]) == 65
    r = quern("export", MLC, "--to", "chrome")
    assert r.rc == 1 and "3 runs" in r.err
    out = tmp_path / "x.csv"
    assert quern("export", DOPPLER, "--to", "csv", "-o", out).rc == 0 and out.read_text().startswith("kind,t,")
    assert quern("export", "-").rc == 2
    assert quern("export", tmp_path / "none").rc == 1
    assert quern("export", SAMPLE, "--to", "csv", "-o", tmp_path).rc == 1

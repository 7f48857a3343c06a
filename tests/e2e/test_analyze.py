"""`quern analyze`: every figure of its report against a second program (recompute.py) to the last digit printed; the formats of
other programs against fixed texts; their own logs with the findings that must come out; and what a reader may throw at it."""
import csv
import io
import json
import os
import re
import subprocess
import sys

import pytest

from conftest import ROOT, quern

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import recompute  # noqa: E402

DATA = os.path.join(ROOT, "tests", "data", "trace")
SAMPLE = os.path.join(DATA, "sample.jsonl")
GOLDEN = os.path.join(DATA, "golden")
MAKER = os.path.join(ROOT, "tools", "make_trace.py")


def report(*args, **more):
    done = quern("analyze", *args, **more)
    assert done.rc == 0, done.err
    assert not re.search(r"\b(nan|inf)\b", done.out, re.I), done.out
    return done.out


def tables(text):
    """Markdown tables by the heading before them: lists of {column: text}."""
    found, title, head = {}, "", None
    for row in text.split("\n"):
        if row.startswith("#"):
            title, head = row.lstrip("# "), None
        elif row.startswith("|"):
            cells = [c.strip().replace("\\", "") for c in row.strip("|").split("|")]
            if head is None:
                head = cells
            elif not set(row) <= set("|-:"):
                found.setdefault(title, []).append(dict(zip(head, cells)))
        else:
            head = None
    return found


@pytest.fixture(scope="module", params=["sample", "long"])
def trace(request, tmp_path_factory):
    if request.param == "sample":
        return SAMPLE
    path = str(tmp_path_factory.mktemp("trace") / "long.jsonl")
    subprocess.run([sys.executable, MAKER, "--layers", "3", "--tokens", "90", "--prompt", "40", "--seed", "11", "-o", path], check=True)
    return path


SHOW = {"ns": lambda v: f"{v / 1e6:.3f}", "share": lambda v: f"{100 * v:.1f}%", "count": lambda v: f"{v:.0f}",
        "us": lambda v: f"{v / 1e3:.1f}", "real": lambda v: f"{v:.2f}", "text": str}


def check(row, figures, columns):
    for key, (head, kind) in columns.items():
        want = "" if figures[key] is None else SHOW[kind](figures[key])
        assert row[head] == want, (row, key)


def test_phases_agree(trace):
    t = recompute.Trace(trace)
    rows = {r["phase"].split(":")[0]: r for r in tables(report(trace, "--format", "markdown"))["Where the time went"]}
    columns = {"ns": ("ms", "ns"), "share": ("share", "share"), "tokens": ("tokens", "count"), "tok_s": ("tok/s", "real"),
               "token_avg_ns": ("ms/token", "ns"), "token_p50_ns": ("p50", "ns"), "token_p95_ns": ("p95", "ns"),
               "token_p99_ns": ("p99", "ns"), "steps_ns": ("in steps", "ns"), "between_ns": ("between", "ns"), "passes": ("passes", "count")}
    for phase, figures in recompute.phases(t).items():
        check(rows[phase], figures, columns)
    assert rows["all"]["ms"] == SHOW["ns"](t.wall)


def test_phases_add_up(trace):
    run = json.loads(report(trace, "--json"))["runs"][0]
    rows = run["phases"]["phases"]
    assert sum(r["ns"] for r in rows if r["phase"] != "all") == run["phases"]["wall_ns"] == rows[-1]["ns"]
    for phase in ("prefill", "decode"):
        own = next(r for r in rows if r["phase"] == phase)
        assert sum(r["total_ns"] for r in run["steps"][phase]) + own["between_ns"] == own["ns"]


@pytest.mark.parametrize("by", ["kernel", "op", "role", "layer"])
def test_steps_agree(trace, by):
    found = tables(report(trace, "--format", "markdown", "--by", by, "--top", "-1"))
    columns = {"name": ("step", "text"), "captured": ("calls", "count"), "total_ns": ("ms", "ns"), "share": ("share", "share"),
               "cumulative": ("cum.", "share"), "avg_ns": ("avg us", "us"), "min_ns": ("min", "us"), "p50_ns": ("p50", "us"),
               "p95_ns": ("p95", "us"), "p99_ns": ("p99", "us"), "max_ns": ("max", "us"), "gbs": ("GB/s", "real"),
               "gflops": ("GFLOP/s", "real"), "of_ceiling": ("ceiling", "share"), "bound": ("by", "text"),
               "wait_share": ("waiting", "share")}
    t = recompute.Trace(trace)
    for phase in ("prefill", "decode"):
        want = recompute.steps(t, phase, by)
        rows = found[f"{phase}, by {by}"]
        assert [r["step"] for r in rows[-2:]] == ["between the steps", "all"]
        assert len(rows) == len(want) + 2
        for row, figures in zip(rows, want):
            check(row, figures, columns)
            assert row["expected"] == row["calls"]


def test_growth_agrees(trace):
    want = recompute.growth(recompute.Trace(trace))
    rows = json.loads(report(trace, "--json"))["runs"][0]["growth"]["growth"]
    assert {r["name"] for r in rows} == set(want)
    for row in rows:
        for key, value in want[row["name"]].items():
            assert row[key] == pytest.approx(value, rel=1e-6, abs=1e-6), (row, key)
    attend = next(r for r in rows if r["name"].startswith("attend"))
    layers = recompute.Trace(trace).header["layers"]
    assert attend["slope_ns"] == pytest.approx(30 * layers, rel=0.05)  # the law that the trace was made by
    assert attend["verdict"] == f"grows {attend['slope_ns'] / 1e3:.2f} us per position"


def test_disturbed_agree(trace):
    want, decode = recompute.disturbed(recompute.Trace(trace))
    run = json.loads(report(trace, "--json"))["runs"][0]
    rows = run["disturbed"]["passes"]
    assert [r["pass"] for r in rows] == [decode[i]["pass"] for i in want] == [p["pass"] for p in decode if p["pass"] % 11 == 0]
    assert [r["extra_ns"] for r in rows] == pytest.approx(list(want.values()), rel=1e-9)


def test_latency_agrees(trace):
    want = recompute.latency(recompute.Trace(trace))
    text = report(trace)
    assert f"first token after {want['first'] / 1e6:.3f} ms" in text
    assert f"between tokens p50 {want[50] / 1e6:.3f}, p95 {want[95] / 1e6:.3f}, p99 {want[99] / 1e6:.3f} ms" in text


# ---- formats


@pytest.mark.parametrize("name, args", [("metallic", []), ("doppler", ["--batch", "4"]), ("mlc", []), ("text", []), ("markdown", [])])
def test_golden(name, args):
    got = quern("analyze", "sample.jsonl", "--format", name, *args, cwd=DATA)
    assert got.rc == 0, got.err
    with open(os.path.join(GOLDEN, f"{name}.txt"), encoding="utf-8") as f:
        assert got.out == f.read()


def test_doppler_reads_itself(tmp_path):
    """What --format doppler prints is such a log: read again, it gives the same tables."""
    text = report(SAMPLE, "--format", "doppler")
    path = tmp_path / "again.log"
    path.write_text(text)
    run = json.loads(report(str(path), "--json"))["runs"][0]
    ours = json.loads(report(SAMPLE, "--json"))["runs"][0]
    assert run["run"]["source"] == "doppler"
    tokens = {r["phase"]: r["tokens"] for r in run["phases"]["phases"]}
    assert tokens["decode"] == next(r["tokens"] for r in ours["phases"]["phases"] if r["phase"] == "decode")
    head = next(r for r in run["steps"]["decode"] if r["role"] == "lm_head")
    mine = json.loads(report(SAMPLE, "--json", "--by", "role"))["runs"][0]["steps"]["decode"]
    assert head["total_ns"] == pytest.approx(next(r for r in mine if r["name"] == "output")["total_ns"], abs=13 * 5000)


def test_csv_and_json_hold_the_same():
    rows = list(csv.DictReader(io.StringIO(report(SAMPLE, "--format", "csv"))))
    run = json.loads(report(SAMPLE, "--json"))["runs"][0]
    want = [r for phase in run["steps"].values() if isinstance(phase, list) for r in phase if isinstance(r, dict)]
    assert [r["name"] for r in rows] == [r["name"] for r in want]
    assert [float(r["total_ns"]) for r in rows] == [r["total_ns"] for r in want]
    parts = report(SAMPLE, "--format", "csv", "--section", "phases,memory").split("\n\n")
    assert parts[0].startswith("phase,ns,share") and parts[1].startswith("when,weights") and parts[2].startswith("part,bytes")


def test_options(tmp_path):
    decode = report(SAMPLE, "--phase", "decode", "--top", "2")
    assert "decode, by kernel" in decode and "prefill, by kernel" not in decode and "8 more" in decode
    assert report(SAMPLE, "--section", "memory").startswith("Memory\n")
    path = tmp_path / "out.md"
    assert report(SAMPLE, "--format", "markdown", "-o", str(path)) == ""
    assert path.read_text() == report(SAMPLE, "--format", "markdown")
    assert quern("analyze", SAMPLE, "--section", "nothing").rc == 2
    assert quern("analyze").rc == 2
    missing = quern("analyze", str(tmp_path / "none.jsonl"))
    assert missing.rc == 1 and "none.jsonl" in missing.err
    two = report(SAMPLE, SAMPLE)
    assert two.count("==== sample Q8_0 ====") == 2 and "Side by side" in two
    bandwidth = json.loads(report(SAMPLE, "--json", "--bandwidth", "75"))["runs"][0]
    assert bandwidth["steps"]["decode"][0]["of_ceiling"] < json.loads(report(SAMPLE, "--json"))["runs"][0]["steps"]["decode"][0]["of_ceiling"]


@pytest.mark.parametrize("locale", ["C", "de_DE.UTF-8", "tr_TR.UTF-8"])
def test_locale(locale):
    assert report(SAMPLE, env={"LC_ALL": locale}) == report(SAMPLE, env={"LC_ALL": "C"})


@pytest.mark.parametrize("device", ["cpu", "cuda:0 (NVIDIA H200)"])
def test_launches_that_are_missing(device, tmp_path):
    """On the CPU every step has a launch, so one without is a loss; a device may do a step's work in another's launch."""
    events = [json.loads(line) for line in open(SAMPLE)]
    events[0]["device"] = device
    gone = {e["step"] for e in events if e["ev"] == "plan" and e["op"] == "add"}
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(e) + "\n" for e in events if e["ev"] != "step" or e["step"] not in gone))
    run = json.loads(report(path, "--json"))["runs"][0]
    told = any("missing from the trace" in line for line in report(path).splitlines())
    rows = [r for t in ("prefill", "decode") for r in run["steps"][t]]
    assert told == (device == "cpu") == any(r["step"].startswith("add") if "step" in r else r["name"].startswith("add") for r in rows)


def test_a_trace_that_was_cut(tmp_path):
    """Cut anywhere in its last lines, a trace is reported on, without a division by nothing."""
    whole = open(SAMPLE, "rb").read()
    path = tmp_path / "cut.jsonl"
    for n in list(range(len(whole) - 400, len(whole), 37)) + [len(whole) // k for k in (2, 3, 5, 9, 40)]:
        path.write_bytes(whole[:n])
        text = report(str(path), "--format", "json")
        assert json.loads(text)["runs"][0]["run"]["source"] == "quern"
        for name in ("text", "csv", "metallic", "doppler", "mlc"):
            report(str(path), "--format", name)


# ---- other programs' logs

LOGS = os.path.join(ROOT, "tests", "data", "logs")


def test_doppler_findings():
    """A debug run of Doppler, 64 batches: its two guilty kernels, what grows and how much, which batches were disturbed."""
    run = json.loads(report(os.path.join(LOGS, "doppler.log.zst"), "--json", "--by", "op"))["runs"][0]
    steps = run["steps"]["decode"]
    whole = sum(r["total_ns"] for r in steps)
    assert [r["name"] for r in steps[:2]] == ["matmul_rmsnorm_fused", "attention"]
    assert [round(100 * r["total_ns"] / whole, 2) for r in steps[:2]] == [41.96, 41.58]
    slopes = {r["name"]: r for r in run["growth"]["growth"]}
    assert slopes["attention"]["verdict"] == "grows 0.44 ms per position" and slopes["attention"]["r2"] > 0.999
    assert slopes["all steps"]["verdict"] == "grows 0.44 ms per position"
    assert {r["verdict"] for n, r in slopes.items() if n not in ("attention", "all steps")} == {"flat"}
    assert [r["decode"] for r in run["disturbed"]["passes"]] == [27, 28, 29, 39, 53, 54, 55]
    assert run["disturbed"]["extra_ns"] == pytest.approx(501e6, rel=0.01)
    advice = " ".join(r["what"] for r in run["advice"]["advice"])
    for words in ("matmul_rmsnorm_fused:ffn_down takes 38.5 % of decode", "attention takes 38.1 % of decode and grows 0.44 ms per position",
                  "ffn_down (matmul_rmsnorm_fused) reads half of what gate and up read, yet takes 5.7 times as long",
                  "27-29, 39, 53-55 were disturbed", "8.4 % of decode lies between its steps"):
        assert words in advice, advice


def test_doppler_as_doppler():
    """Its own log in its own format: the closing lines to the letter, tables with the same rows."""
    text = report(os.path.join(LOGS, "doppler.log.zst"), "--format", "doppler")
    assert text.count("[Profile] Batch decode (N=4):") == 63 and text.count("[Profile] Batch decode (N=3):") == 1
    for line in ("[Perf] TTFT: 308ms | Prefill: 192ms | Decode: 40472ms (255 tokens @ 6.3 tok/s)",
                 "[ok] debug model=gemma-3-1b-it passed=1 failed=0 duration=44124.1ms",
                 "[metrics] load=3343.5ms prefillTokens=9 decodeTokens=256 maxTokens=256",
                 "[metrics] ttft=308.1ms prefill=191.8ms decode=40471.5ms total=40780.1ms",
                 "[metrics] tok/s total=6.28 prefill=46.92 decode=6.33",
                 "fused_ffn                       39.66    11.4", "matmul_rmsnorm_fused:L9.ffn_down       11.46     3.3"):
        assert line + "\n" in text


def test_mlc_findings():
    """Three precisions of one model: roles, tokens a second, how much of 100 GB/s that is, and which precision does what better."""
    got = json.loads(report(os.path.join(LOGS, "mlc.md"), "--json", "--by", "role", "--bandwidth", "100"))
    assert [r["run"]["type"] for r in got["runs"]] == ["q0f16", "q4f16_1", "q4f32_1"]
    want = {"layer_ns": (2.243, 1.449, 1.347), "head_ns": (7.35, 5.34, 4.34), "step_ns": (43.27, 28.56, 25.92)}
    for i, run in enumerate(got["runs"]):
        m = run["implied"]
        assert (m["layers"], m["prefills"], m["steps"], m["expected"]) == (16, 4, 8, 2024)
        for key, values in want.items():
            assert m[key] / 1e6 == pytest.approx(values[i], abs=0.005), key
        assert round(m["tok_s"], 1) == (23.1, 35.0, 38.6)[i]
        assert round(m["roof_tok_s"], 1) == (40.5, 143.9, 129.5)[i]
        assert round(m["weight_bytes"] / 1e6, 1) == (2471.5, 695.1, 772.3)[i]
        assert round(100 * m["of_roof"]) == (57, 24, 30)[i]
        assert [round(100 * m[k], 1) for k in ("matmul_share", "head_share", "attention_share")] == \
            [[89.5, 17.0, 7.2], [85.9, 18.7, 9.3], [87.5, 16.7, 7.5]][i]
        assert m["captured"] == (1988, 1967, 1981)[i]
        assert m["prefill_ns"] / 1e6 == pytest.approx((507, 516, 971)[i], rel=0.01)
        assert [r["name"] for r in run["steps"]["decode"][:3]] == [["gate+up", "down", "qkv"], ["gate+up", "down", "attention"],
                                                                    ["gate+up", "down", "qkv"]][i]
    roles = {(r["role"], r["phase"]): r for r in got["compared"]["across"]["roles"]}
    assert roles["gate+up", "prefill"]["ratio"] == pytest.approx(1.98, abs=0.005)  # f32 activations: prefill twice as slow,
    assert roles["gate+up", "decode"]["ratio"] == pytest.approx(0.59, abs=0.005)   # decode faster
    assert roles["gate+up", "decode"]["Llama 3.2 1B q4f16_1"] == pytest.approx(667400, abs=50)


def test_mlc_as_mlc():
    """The first table of such a file, printed again: the same but for what its own rounding hides (a hundredth, here and there)."""
    with open(os.path.join(LOGS, "mlc.md"), encoding="utf-8") as f:
        theirs = f.read().split("\n---\n\n## ")[0].split("\n")
    ours = report(os.path.join(LOGS, "mlc.md"), "--format", "mlc").split("\n")
    number = re.compile(r"\d+\.\d\d")
    for a, b in zip(theirs, ours):
        assert number.sub("#", a) == number.sub("#", b)
        assert [float(x) for x in number.findall(a)] == pytest.approx([float(x) for x in number.findall(b)], abs=0.0101)
    assert len([1 for a, b in zip(theirs, ours) if a != b]) <= 4


@pytest.mark.parametrize("name", ["doppler.log.zst", "mlc.md", "metallic.jsonl"])
@pytest.mark.parametrize("form", ["text", "markdown", "json", "csv", "metallic", "doppler", "mlc"])
def test_every_log_in_every_format(name, form):
    assert report(os.path.join(LOGS, name), "--format", form)


FLAGS = ["", "--top 3", "--kernel-top 2", "--kernel-filter BLOCK_1", "--kernel-filter zzz", "--include-kernel-totals"]


def test_metallic_as_metallic():
    """A log of Metallic's with every kind of event; the expected text was compared with what its own analyser prints."""
    text = ""
    for flags in FLAGS:
        done = quern("analyze", "metallic.jsonl", "--format", "metallic", *flags.split(), cwd=LOGS)
        assert done.rc == 0, done.err
        text += f"# {flags}\n" + re.sub(r"(Error parsing line \d+): .*", r"\1", done.out)
    with open(os.path.join(LOGS, "golden", "metallic.txt"), encoding="utf-8") as f:
        assert text == f.read()


def test_metallic_by_other_rules():
    """The row of a kernel, by hand."""
    rows = [json.loads(line)["event"] for line in open(os.path.join(LOGS, "metallic.jsonl")) if line.startswith('{"timestamp')]
    us = sorted(e["data"]["duration_us"] for e in rows if e["data"].get("op_name", "").endswith("RMSNormOp"))
    p95, p99 = (recompute.quantile(us, q) for q in (0.95, 0.99))
    row = f"  metallic::kernels::rmsnorm::RMSNormOp: count={len(us)} | total={sum(us) / 1000:.2f}ms | avg={sum(us) / len(us) / 1000:.3f}ms " \
          f"| min={us[0] / 1000:.3f}ms | max={us[-1] / 1000:.3f}ms | p95_ms={p95 / 1000:.3f}ms, p99_ms={p99 / 1000:.3f}ms\n"
    assert row in report(os.path.join(LOGS, "metallic.jsonl"), "--format", "metallic")


@pytest.mark.parametrize("form", ["text", "json", "metallic", "doppler", "mlc"])
def test_a_pipe(form):
    """From standard input, which cannot be read twice."""
    with open(SAMPLE, "rb") as f:
        text = report("-", "--format", form, stdin=f.read())
    assert "qlinear" in text or "matmul:lm_head" in text

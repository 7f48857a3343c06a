"""The probe from outside: contests, what is remembered, what is tuned, and that plans obey."""

import csv
import io
import json
import os
import re
import sqlite3
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import MODELS, ROOT, quern

SMALL = "op=matmul m=1 n=64 k=96 tB=1"
MODEL = f"{MODELS}/llama/model.gguf"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("QUERN_HOME", str(tmp_path))
    return tmp_path


def probe(*words):
    return quern("probe", "--time", 0.02, "-t", 1, *words)


def results(*words):
    r = probe("--json", *words)
    assert r.rc == 0, r.err
    decoder, out, at = json.JSONDecoder(), [], 0
    text = r.out
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        out.append(value)
        while at < len(text) and text[at] in "\n ":
            at += 1
    return out


def test_contest(home):
    (spec,) = results("--spec", SMALL)
    ran = [v for v in spec["variants"] if "unsupported" not in v]
    assert spec["flops"] == 2 * 64 * 96 and spec["ranked_by"] == "warm"
    assert {"matmul_ref", "matmul_f32_base_few", "matmul_f32_base_pack"} <= {v["name"] for v in ran}
    for v in ran:
        assert v["right"] and v["warm"]["n"] >= 3 and v["warm"]["lo_ns"] <= v["warm"]["p50_ns"] <= v["warm"]["hi_ns"], v
        assert v["cold"]["p50_ns"] > 0 and v["nmse"] < 1e-6 or v["name"].startswith("onednn int8"), v
    best = min(ran, key=lambda v: v["warm"]["p50_ns"])
    assert spec["best"] == best["name"]
    assert any(v.get("unsupported") == "another type" for v in spec["variants"])


def test_a_fused_op_against_its_parts(home):
    specs = results("--spec", "op=attend type=f16 n=1 heads=4 kv=2 d=64 depth=100")
    assert [re.match(r"op=(\w+)", s["spec"])[1] for s in specs] == ["matmul", "softmax", "matmul", "attend"]
    assert " m=2 n=101 k=64 " in specs[0]["spec"] and " n=4 d=101" in specs[1]["spec"] and " m=2 n=64 k=101 " in specs[2]["spec"]
    best = [next(v for v in s["variants"] if v["name"] == s["best"]) for s in specs]
    assert specs[3]["parts_ns"] == pytest.approx(sum(v["cold"]["p50_ns"] for v in best[:3]), abs=1) and specs[0]["parts_ns"] == 0
    assert "times as fast as its parts one by one" in probe("--spec", "op=attend type=f16 n=1 heads=4 kv=2 d=64 depth=100").out


def test_second_run_is_remembered(home):
    first = results("--spec", SMALL)[0]
    begin = time.monotonic()
    second = results("--spec", SMALL)[0]
    assert time.monotonic() - begin < 2
    assert not any(v.get("cached") for v in first["variants"])
    for a, b in zip(first["variants"], second["variants"]):
        if "unsupported" in a:
            continue
        assert b["cached"] and a["warm"] == b["warm"] and a["max_abs"] == b["max_abs"], b
    again = results("--no-cache", "--spec", SMALL)[0]
    assert not any(v.get("cached") for v in again["variants"])


def test_two_at_once(home):
    """Both write the same results into one cache: neither fails, and afterwards all is known."""
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: probe("--spec", SMALL, "--spec", "op=add n=1 d=64"), range(2)))
    assert [r.rc for r in both] == [0, 0] and not any("cache" in r.err for r in both)
    assert all(v["cached"] for s in results("--spec", SMALL, "--spec", "op=add n=1 d=64") for v in s["variants"] if "unsupported" not in v)


def test_damaged_cache_is_measured_again(home):
    results("--spec", SMALL)
    path = home / "cache" / "probe.db"
    data = path.read_bytes()
    at = data.rindex(b"0x1.")  # inside a number of some row
    path.write_bytes(data[:at + 4] + bytes([data[at + 4] ^ 1]) + data[at + 5:])
    r = probe("--json", "--spec", SMALL)
    assert r.rc == 0 and "1 results in the cache were damaged" in r.err
    path.write_bytes(b"not a database" * 400)
    r = probe("--spec", SMALL)
    assert r.rc == 0 and "is damaged: set aside" in r.err and "cached" not in r.out
    assert (home / "cache" / "probe.db.old").exists()


def test_references_are_kept(home):
    results("--spec", SMALL)
    path = home / "cache" / "probe.db"
    db = sqlite3.connect(path)
    kept = db.execute("SELECT shape, mood, operand, body, sum FROM reference ORDER BY mood").fetchall()
    assert len(kept) == 4 and all(len(row[3]) == 2 * 64 * 8 for row in kept)  # an output of 64, in four kinds of data
    values = struct.unpack("64d", kept[0][3][:512])
    assert all(abs(v) < 96 for v in values) and any(v != 0 for v in values)
    # one that was damaged is worked out anew, so that nobody is called wrong for it
    db.execute("UPDATE reference SET body = zeroblob(1024)")
    db.execute("DELETE FROM result")
    db.commit()
    assert all(v["right"] for v in results("--spec", SMALL)[0]["variants"] if "unsupported" not in v)
    again = sqlite3.connect(path).execute("SELECT shape, mood, operand, body, sum FROM reference ORDER BY mood").fetchall()
    assert again == kept


def test_formats(home):
    text = probe("--spec", SMALL).out
    assert re.search(r"^1\. op=matmul type=f32 batch=1 m=1 n=64 k=96", text, re.M) and "[best]" in text and "best: " in text
    assert re.search(r"^\d+ pairs of variant and spec were run, \d+ were not$", text, re.M)
    assert re.search(r"^ - matmul_f16_base_few: skipped 1 \(another type\)$", text, re.M)  # nothing is passed over silently
    seed = probe("--spec", SMALL, "--format", "seed").out
    assert "Spec op=matmul | batch=1 | m=1 | n=64 | k=96 | tA=0 | tB=1:" in seed
    assert re.search(r"^   - matmul_ref.*: median_warm=[\d.]+ms \| median_cold=[\d.]+ms \[vs engine N/A\] maxAbs=", seed, re.M)
    assert re.search(r"^Processed \d+ total results with \d+ failures$", seed, re.M) and "skipped 1 (another type)" in seed
    assert "op=matmul type=f32" in probe("--spec", SMALL, "--format", "seed", "--verbose-failures").out
    rows = list(csv.DictReader(io.StringIO(probe("--spec", SMALL, "--format", "csv").out)))
    assert [r["variant"] for r in rows if r["best"] == "1"] and {r["verdict"] for r in rows} == {"right", ""}


def test_specs_of_a_model_and_of_a_trace(home):
    shapes = [s["spec"] for s in results(MODEL, "--op", "rmsnorm")]
    assert len(shapes) == 3 and shapes[0].startswith("op=rmsnorm n=1 ") and shapes[2].startswith("op=rmsnorm n=256 ")
    trace = home / "t.jsonl"
    assert quern("bench", MODEL, "-p", 3, "-n", 2, "-r", 1, "--no-ceilings", "--trace", trace).rc == 0
    (first, *rest) = results("--trace", trace, "--op", "rmsnorm")
    assert all(s["engine_ns"] > 0 for s in [first, *rest])
    assert {re.search(r" n=(\d+)", s["spec"])[1] for s in [first, *rest]} == {"1", "3"}


def test_what_was_timed_is_recorded(home):
    path = home / "p.jsonl"
    assert probe("--spec", SMALL, "--record", path).rc == 0
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert records[0]["ev"] == "trace" and records[-1]["ev"] == "end" and records[-1]["lost"] == 0
    timed = [r for r in records if r["ev"] == "probe"]
    assert any(r["kernel"] == "matmul_f32_base_few" and r["p50_ns"] > 0 and r["flops"] == 2 * 64 * 96 for r in timed)
    assert quern("analyze", path).rc == 0


def test_tuned_plans(home):
    r = probe(MODEL, "--op", "add", "--tune")
    assert r.rc == 0 and "shapes are tuned in" in r.err
    path = home / "cache" / "winners.jsonl"
    assert path.exists()
    plan = quern("plan", MODEL, "-t", 1, "--json").json()
    step = next(s for s in plan["steps"] if s["op"] == "add")
    shape = re.sub(r"op=add n=\d+ ", "", step["shape"])
    cpu = quern("doctor", "--json").json()["machine"]["cpu"]
    line = {"cpu": cpu, "threads": 1, "op": "add", "shape": shape, "rows": "1", "kernel": "add_ref", "gain": 1.14, "error": 0.02,
            "date": "2026-11-20"}
    path.write_text(json.dumps(line) + "\n")
    step = next(s for s in quern("plan", MODEL, "-t", 1, "--json").json()["steps"] if s["op"] == "add")
    assert step["kernel"][0] == "add_ref" and step["reason"][0] == "tuned: add_ref, 1.14x the default (+- 2 %), 2026-11-20"
    assert step["kernel"][2] != "add_ref"
    step = next(s for s in quern("plan", MODEL, "-t", 1, "--no-tuning", "--json").json()["steps"] if s["op"] == "add")
    assert step["kernel"][0] != "add_ref"


def test_threads_are_a_choice(home):
    """With two threads every kernel of the plan's level is also timed on one; the winners say which it was, and plans obey."""
    r = quern("probe", "--time", 0.02, "-t", 2, "--json", "--spec", "op=add n=1 d=64", "--spec", "op=qlinear type=q8_0 n=1 rows=4864 cols=896")
    assert r.rc == 0, r.err
    small, large = r.out.split('{"spec": ')[1:]
    assert "@1" in small and re.search(r'"name": "add_f32_\w+@1".*?"engine": true', small)  # too little work to share
    (chosen,) = [v["name"] for v in json.loads('{"spec": ' + large)["variants"] if v.get("engine")]
    assert chosen.startswith("qlinear_q8_0") and "@" not in chosen
    path = home / "cache" / "winners.jsonl"
    plan = quern("plan", MODEL, "-t", 2, "--json").json()
    step = next(s for s in plan["steps"] if s["op"] == "add")
    line = {"cpu": quern("doctor", "--fast", "--json").json()["machine"]["cpu"], "threads": 2, "op": "add", "rows": "9+", "lanes": 1,
            "shape": re.sub(r"op=add n=\d+ ", "", step["shape"]), "kernel": step["kernel"][2], "gain": 1.5, "error": 0.01, "date": "2026-11-20"}
    path.write_text(json.dumps(line) + "\n")
    step = next(s for s in quern("plan", MODEL, "-t", 2, "--json").json()["steps"] if s["op"] == "add")
    assert step["reason"][2] == f"tuned: {step['kernel'][2]} on one thread, 1.50x the default (+- 1 %), 2026-11-20"
    assert logits(home, "-t", 2) == logits(home, "-t", 2, "--no-tuning")


def logits(home, *words):
    path = home / "logits.f32"
    r = quern("logits", MODEL, "--tokens", "5 9 33 7 2 1 8 5 9 33 7 2", "-o", path, *words)
    assert r.rc == 0 and path.stat().st_size > 12 * 4, r.err
    return path.read_bytes()


def test_fused_or_apart(home):
    """Plans fuse add and rmsnorm unless a winner says that they are faster apart, or somebody asks for it; the logits do not change."""
    def steps(*words):
        return quern("plan", MODEL, "-t", 1, "--json", *words).json()["steps"]
    fused = [s for s in steps() if s["op"] == "addnorm"]
    assert fused and fused[0]["role"].endswith("_norm")
    before = logits(home, "-t", 1)
    r = probe(MODEL, "--op", "addnorm", "--tune")
    assert r.rc == 0 and re.search(r"best: addnorm_\w+.* times as fast as its parts one by one", r.out)
    assert {"op=add ", "op=rmsnorm ", "op=addnorm "} == set(re.findall(r"^\d+\. (op=\w+ )", r.out, re.M))
    kept = [json.loads(line) for line in (home / "cache" / "winners.jsonl").read_text().splitlines()]
    mine = [k for k in kept if k["op"] == "addnorm"]
    assert mine and all(k["rows"] == "all" and k["gain"] > 1 if k["kernel"] == "apart" else k["over_parts"] > 0 for k in mine)
    shape = re.sub(r"op=addnorm n=\d+ ", "", fused[0]["shape"])
    line = {"cpu": mine[0]["cpu"], "threads": 1, "op": "addnorm", "shape": shape, "rows": "all", "kernel": "apart", "lanes": 0, "gain": 1.07,
            "error": 0.02, "over_parts": 0, "date": "2026-11-20"}
    (home / "cache" / "winners.jsonl").write_text(json.dumps(line) + "\n")
    apart = steps()
    assert not any(s["op"] == "addnorm" for s in apart) and len(apart) == len(steps("--no-tuning")) + len(fused)
    first = next(s for s in apart if s["op"] == "add")
    assert first["reason"][0].endswith("; tuned: apart from the next, 1.07x addnorm (+- 2 %), 2026-11-20")
    assert len(steps("--no-tuning", "--kernel", "addnorm=apart")) == len(apart)
    assert logits(home, "-t", 1) == before == logits(home, "-t", 1, "--no-tuning")


def test_the_built_in_table(home):
    """Printed as C, with the rows of every machine that was seen; nothing is kept by it."""
    r = probe("--spec", "op=add n=1 d=64", "--spec", "op=best n=1 d=5000 k=1", "--tune", "--builtin")
    assert r.rc == 0 and r.out.startswith("/* winners.def") and not (home / "cache" / "winners.jsonl").exists()
    source = open(os.path.join(ROOT, "src", "kernel", "winners.def")).read()
    rows = re.findall(r'WINNER\("([^"]*)", "([^"]*)", (\d+), "([^"]*)", "([^"]*)", "([^"]*)",\s+"([^"]*)", (\d+), ([\d.]+), [\d.]+, "[\d-]{10}"\)', source)
    assert len(rows) == source.count("WINNER(\"") and all(float(row[8]) > 1 for row in rows)
    names = set(re.findall(r'"kernel": "(\w+)"', quern("probe", "--check", "--json", "--op", "add").out))
    assert all(row[6].startswith(row[3] + "_") for row in rows) and names
    for row in rows:
        assert row in re.findall(r'WINNER\("([^"]*)", "([^"]*)", (\d+), "([^"]*)", "([^"]*)", "([^"]*)",\s+"([^"]*)", (\d+), ([\d.]+), [\d.]+, "[\d-]{10}"\)', r.out)


def test_an_override(home):
    r = quern("plan", MODEL, "--kernel", "add=add_ref", "--json").json()
    assert {k for s in r["steps"] if s["op"] == "add" for k in s["kernel"]} == {"add_ref"}
    assert "there is no kernel hammer" in quern("plan", MODEL, "--kernel", "add=hammer").err


@pytest.mark.parametrize("words,why", [
    (["--spec", "op=hammer"], "no such op"),
    (["--spec", "rows=1"], "has no op=NAME"),
    (["--op", "nothing"], "there is no op nothing"),
    (["--op", "add", "--type", "q4_0"], "no shape is of this op and type"),
    (["--trace", "/nowhere/t.jsonl"], "/nowhere/t.jsonl"),
    (["--spec", "op=linear type=q8_0 cols=33"], "no multiple"),
    (["--spec", "op=blinear type=f16 cols=48"], "no multiple"),
    (["--spec", "op=qlinear type=f32 n=1 rows=200000"], "does not take the type"),
    (["--spec", "op=plinear type=q8_0 n=1 rows=200000"], "does not take the type"),
    (["--spec", "op=attend type=q4_0 d=64"], "does not take the type"),
    (["--spec", "op=matmul type=q8_0"], "does not take the type"),
    (["--spec", SMALL, "--tune", "--isa", "base"], "leave --isa out"),
])
def test_wrong_words(home, words, why):
    r = probe(*words)
    assert r.rc != 0 and why in r.err, r.err

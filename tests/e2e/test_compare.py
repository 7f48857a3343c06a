"""`quern compare` and `quern runs` from outside: what became slower is found and named, noise is not, exit codes hold; the store keeps
runs, survives damage and two programs at once."""

import json
import os
import subprocess
import sys

import pytest
from conftest import QUERN, ROOT, TINY, quern


def trace(path, *options):
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "make_trace.py"), "-o", str(path), *map(str, options)], check=True)
    return path


def slower(source, path, word, factor, **head):
    """The same run with the steps whose role holds `word` taking `factor` as long, and their passes longer by that."""
    plan, extra, lines = {}, {}, []
    for line in open(source):
        x = json.loads(line)
        if x["ev"] == "trace":
            x.update(head)
        if x["ev"] == "plan":
            plan[x["step"]] = x["role"]
        if x["ev"] == "step" and word in plan[x["step"]]:
            more = int(x["ns"] * (factor - 1))
            x["ns"] += more
            extra[x["pass"]] = extra.get(x["pass"], 0) + more
        if x["ev"] == "pass":
            x["ns"] += extra.get(x["pass"], 0)
        lines.append(json.dumps(x))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return trace(tmp_path_factory.mktemp("compare") / "base.jsonl", "--layers", 4, "--tokens", 60)


def test_equal_runs(base):
    r = quern("compare", base, base, "--threshold", 0)
    assert r.rc == 0 and "regression" not in r.out and "slower" not in r.out, r.out


def test_the_guilty_step_comes_first(base, tmp_path):
    b = slower(base, tmp_path / "b.jsonl", "ffn_up", 1.5)
    r = quern("compare", base, b)
    assert r.rc == 3 and "regression" in r.out and "slower than before" in r.err
    d = quern("compare", base, b, "--json").json()["others"][0]
    assert d["regressed"] and d["steps"][0]["name"] == "ffn_up" and d["steps"][0]["phase"] == "decode"
    assert abs(d["steps"][0]["change"] - 0.5) < 0.01 and d["steps"][0]["paired"] and d["steps"][0]["verdict"] == "slower"
    assert all(s["verdict"] in ("same", "") for s in d["steps"] if s["name"] != "ffn_up")
    decode = next(p for p in d["phases"] if p["name"] == "decode")
    # recomputed: medians and the median of the paired differences of a pass
    passes = [[json.loads(x)["ns"] for x in open(f) if '"ev":"pass"' in x.replace(" ", "") and "decode" in x] for f in (base, b)]
    median = lambda v: (sorted(v)[(len(v) - 1) // 2] + sorted(v)[len(v) // 2]) / 2
    assert decode["a_ns"] == median(passes[0]) and decode["b_ns"] == median(passes[1])
    assert decode["diff_ns"] == median([y - x for x, y in zip(*passes)]) and decode["n"] == len(passes[0])
    assert quern("compare", base, b, "--threshold", 80).rc == 0
    assert quern("compare", b, base).rc == 0  # faster


def test_a_slower_machine_is_no_guilty_step(base, tmp_path):
    b = slower(base, tmp_path / "b.jsonl", "", 1.3)
    r = quern("compare", base, b)
    assert r.rc == 3 and "nearly every step became slower" in r.out and "the machine" in r.out
    b = slower(base, tmp_path / "b.jsonl", "ffn_up", 1.3)
    assert "nearly every step" not in quern("compare", base, b).out


def test_groupings_and_formats(base, tmp_path):
    b = slower(base, tmp_path / "b.jsonl", "attend", 3)
    for by, name in [("kernel", "attend_f16_avx512_gen"), ("op", "attend"), ("role", "attend"), ("layer", "layer 0")]:
        steps = quern("compare", base, b, "--by", by, "--json").json()["others"][0]["steps"]
        assert any(s["name"] == name and s["verdict"] == "slower" for s in steps), by
    assert "| attend " in quern("compare", base, b, "--format", "markdown").out
    out = tmp_path / "x.html"
    assert quern("compare", base, b, base, "--format", "html", "-o", out).rc in (0, 3) and "<!doctype html>" in out.read_text()[:20]


@pytest.mark.parametrize("change, says", [({"threads": 8}, "threads"), ({"hash": "ef" * 32}, "model files"), ({"cpu": "Other CPU"}, "processors"),
                                          ({"device": "cuda:0"}, "devices"), ({"arch": "llama"}, "architectures")])
def test_unlike_runs(base, tmp_path, change, says):
    b = slower(base, tmp_path / "b.jsonl", "nothing", 1, **change)
    r = quern("compare", base, b)
    assert r.rc == 2 and says in r.err and "--force" in r.err and r.out == ""
    r = quern("compare", base, b, "--force")
    assert r.rc == 0 and "unlike runs" in r.out


def test_other_precisions_compare(base, tmp_path):
    b = slower(base, tmp_path / "b.jsonl", "ffn", 0.5, type="Q4_0", hash="12" * 32)
    r = quern("compare", base, b)
    assert r.rc == 0 and "Q8_0, then Q4_0" in r.out and "faster" in r.out


def test_tables_of_three_precisions():
    """MLC's three tables in one file: 4-bit weights decode faster; with 32-bit activations prefill takes nearly twice as long."""
    r = quern("compare", os.path.join(ROOT, "tests", "data", "logs", "mlc.md"), "--json")
    assert r.rc == 3, r.err
    half, full = r.json()["others"]
    phase = lambda v, name: next(p for p in v["phases"] if p["name"] == name)
    assert half["notes"] == ["weights: q0f16, then q4f16_1"] and not half["regressed"] and full["regressed"]
    assert phase(half, "decode")["change"] < -0.3 and phase(full, "decode")["change"] < -0.3
    assert abs(phase(half, "prefill")["change"]) < 0.05 and 0.85 < phase(full, "prefill")["change"] < 1
    assert full["steps"][0]["name"] == "gate+up" and abs(full["steps"][0]["change"] - 0.977) < 0.001
    assert any(s["name"] == "residual + norm" and s["verdict"] == "gone" for s in full["steps"])


def test_bad_arguments(base, tmp_path, home):
    assert "one run" in quern("compare", base).err
    assert quern("compare", tmp_path / "none.jsonl", base).rc == 1
    assert "no such run" in quern("compare", "@last", env=home).err
    assert quern("compare", base, "@nobody", env=home).rc == 2
    (tmp_path / "junk").write_bytes(b"\0" * 1000)
    assert quern("compare", base, tmp_path / "junk").rc == 1


# ---- the store

def test_store(base, tmp_path, home):
    b = slower(base, tmp_path / "b.jsonl", "ffn_up", 1.5, started="2026-11-17T12:00:00Z")
    assert quern("runs", env=home).out == ""
    assert quern("runs", "add", base, "--label", "good", env=home).out == "@1\n"
    assert quern("runs", "add", b, env=home).out == "@2\n"
    assert quern("runs", "add", b, env=home).out == "@2\n"  # it is there
    listed = quern("runs", "list", "--json", env=home).json()
    assert [x["id"] for x in listed] == [2, 1] and listed[1]["label"] == "good" and listed[0]["decode_tok_s"] > 0
    base.rename(tmp_path / "gone")  # the traces are not needed any more
    try:
        for names in (["@last"], ["@-1", "@last"], ["@good", "@2"], ["@1", b]):
            r = quern("compare", *names, "--json", env=home)
            assert r.rc == 3, (names, r.err)
            assert r.json()["others"][0]["steps"][0]["name"] == "ffn_up"
        r = quern("runs", "show", "@good", "--json", env=home)
        assert r.rc == 0 and r.json()["runs"][0]["run"]["model"] == "sample"
        shown = quern("runs", "show", "@good", env=home).out  # what a report of the trace says, growth and disturbances too
        for word in ("attend_f16_avx512_gen", "grows", "disturbed", "first token"):
            assert word in shown, word
        assert "<!doctype html>" in quern("runs", "show", "@1", "--format", "html", env=home).out
    finally:
        (tmp_path / "gone").rename(base)
    assert quern("runs", "rm", "@good", env=home).rc == 0 and quern("runs", "show", "@good", env=home).rc == 2
    assert quern("runs", "rm", env=home).rc == 2 and quern("runs", "rm", "--all", env=home).rc == 0
    assert quern("runs", "--json", env=home).json() == []
    assert quern("runs", "frobnicate", env=home).rc == 2


def test_damaged_store(base, tmp_path, home):
    quern("runs", "add", base, env=home)
    store = tmp_path / ".local" / "state" / "quern" / "runs.sqlite"
    whole = store.read_bytes()
    for harm in (b"no database at all" * 50, whole[: len(whole) // 2], b""):
        store.write_bytes(harm)
        r = quern("runs", "add", base, env=home)
        assert r.rc == 0 and r.out == "@1\n", r.err
        assert ("set aside" in r.err) == (harm != b"")
    store.unlink()
    store.mkdir()
    r = quern("runs", env=home)
    assert r.rc == 1 and "Sanitizer" not in r.err and r.err.count("\n") <= 2


def test_two_at_once(base, tmp_path, home):
    env = {k: v for k, v in dict(os.environ, **home).items() if v is not None}
    others = [slower(base, tmp_path / f"{i}.jsonl", "nothing", 1, started=f"2026-11-1{i}T00:00:00Z") for i in range(6)]
    running = [subprocess.Popen([QUERN, "runs", "add", str(p)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for p in others]
    ids = sorted(p.communicate(timeout=60)[0].decode() for p in running)
    assert all(p.returncode == 0 for p in running) and ids == [f"@{i}\n" for i in range(1, 7)]


def test_a_traced_run_is_kept(tmp_path, home):
    for i in range(2):
        r = quern("run", TINY, "Once upon a time", "-n", 8, "--seed", 1, "--trace", tmp_path / f"{i}.jsonl", env=home, stdin="")
        assert r.rc == 0, r.err
    listed = quern("runs", "--json", env=home).json()
    assert [x["id"] for x in listed] == [2, 1] and listed[0]["tokens"] > 0
    r = quern("compare", "@last", env=home)
    assert r.rc in (0, 3) and "decode" in r.out  # eight tokens of a tiny model on a busy machine may differ by anything
    home["HOME"] = None  # no place for a store: the run itself is not harmed
    r = quern("run", TINY, "Once upon a time", "-n", 8, "--seed", 1, "--trace", tmp_path / "x.jsonl", env=home, stdin="")
    assert r.rc == 0 and "not in the store" in r.err

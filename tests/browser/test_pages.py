"""The pages of `--format html` in a real browser: both sizes, both themes, pointer and keyboard. Needs chromium (Debian's package) and
playwright-core (npm, fetched once into .deps/browser); without them the tests say what is missing. QUERN_SHOTS=folder keeps
pictures of every page."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, quern

PLAYWRIGHT = os.path.join(ROOT, ".deps", "browser")
VERSION = "1.56.1"


def run(*command, timeout=120, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, text=True, **more)


@pytest.fixture(scope="session")
def browser():
    """What look.mjs needs; skips with the reason when it cannot be had."""
    path = os.environ["PATH"] + os.pathsep + os.path.join(ROOT, ".venv", "bin")
    node, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium and os.geteuid() == 0 and shutil.which("apt-get"):
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core", timeout=280)
        chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("chromium is not here and cannot be installed")
    if not node or not npm:
        pytest.skip("node or npm is missing")
    if not os.path.exists(os.path.join(PLAYWRIGHT, "node_modules", "playwright-core", "package.json")):
        os.makedirs(PLAYWRIGHT, exist_ok=True)
        got = run(npm, "install", "--no-save", "--no-audit", "--no-fund", "--prefix", PLAYWRIGHT, f"playwright-core@{VERSION}",
                  env=dict(os.environ, PATH=path))
        if got.returncode:
            pytest.skip("npm cannot fetch playwright-core: " + got.stdout.strip().splitlines()[-1][:120])
    return {"node": node, "chromium": chromium, "playwright": PLAYWRIGHT}


def trace(path, *options):
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "make_trace.py"), "-o", str(path), *map(str, options)], check=True)
    return path


def look(browser, tmp_path, pages):
    shots = os.environ.get("QUERN_SHOTS")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"chromium": browser["chromium"], "playwright": browser["playwright"], "shots": shots, "pages": pages}))
    got = run(browser["node"], os.path.join(ROOT, "tests", "browser", "look.mjs"), str(config), timeout=240)
    assert got.returncode == 0, got.stdout[-2000:]
    return json.loads(got.stdout.strip().splitlines()[-1])


def page(tmp_path, name, *args, rc=0):
    out = tmp_path / f"{name}.html"
    r = quern(*args, "--format", "html", "-o", out)
    assert r.rc == rc, r.err
    return str(out)


def test_report(browser, tmp_path):
    t = trace(tmp_path / "a.jsonl", "--layers", 12, "--prompt", 100, "--tokens", 64)
    found = look(browser, tmp_path, [{"name": "report", "rich": True, "file": page(tmp_path, "report", "analyze", t)}])
    assert found["problems"] == []
    for facts in found["facts"].values():
        assert facts["sections"] == ["advice", "phases", "timeline", "icicle", "roofline", "latency", "growth", "memory", "steps",
                                     "choices", "run"]
        assert facts["title"] == "sample" and facts["rows"] > 10
        drawn = dict(facts["shapes"])
        assert drawn["Time of each token along the answer"] > 63  # a dot for each, and lines
        assert drawn["Time of a phase as nested bars"] > 12 and len(drawn) == 5


def test_compare(browser, tmp_path):
    a = trace(tmp_path / "a.jsonl", "--tokens", 40)
    b = tmp_path / "b.jsonl"  # every step of the feed-forward part takes a tenth longer
    plan, lines = {}, []
    for line in open(a):
        x = json.loads(line)
        if x["ev"] == "plan":
            plan[x["step"]] = x["role"]
        if x["ev"] == "step" and "ffn" in plan[x["step"]]:
            x["ns"] = x["ns"] * 11 // 10
        lines.append(json.dumps(x))
    b.write_text("\n".join(lines) + "\n")
    mlc = os.path.join(ROOT, "tests", "data", "logs", "mlc.md")
    found = look(browser, tmp_path, [
        {"name": "compare", "rich": False, "file": page(tmp_path, "compare", "compare", a, b)},
        {"name": "tables", "rich": False, "file": page(tmp_path, "tables", "compare", mlc, rc=3)}])
    assert found["problems"] == []
    assert all(dict(f["shapes"])["Differences of steps"] > 10 for f in found["facts"].values())


def test_probe(browser, tmp_path, monkeypatch):
    """A bar for every variant, the ceiling beside them, and reasons for those that took no part."""
    monkeypatch.setenv("QUERN_HOME", str(tmp_path))
    specs = ["op=matmul m=1 n=64 k=96 tB=1", "op=matmul m=16 n=64 k=96 tA=1", "op=rmsnorm n=3 d=896", "op=attend type=f16 n=1 heads=4 kv=2 d=64 depth=100"]
    words = [w for s in specs for w in ("--spec", s)]
    path = page(tmp_path, "probe", "probe", "--time", 0.02, "-t", 1, *words)
    found = look(browser, tmp_path, [{"name": "probe", "rich": False, "file": path}])
    assert found["problems"] == []
    data = json.loads(open(path).read().split('type="application/json">')[1].split("</script>")[0])
    assert len(data["specs"]) >= len(specs) and data["kind"] == "probe" and data["ceilings"]["f32_gflops"] > 0
    first = data["specs"][0]
    timed = [v for v in first["variants"] if v.get("warm")]
    for facts in found["facts"].values():
        assert facts["sections"] == ["overview", "shapes", "results", "absent"]
        drawn = dict(facts["shapes"])
        assert drawn["The best of each shape against the ceiling"] >= len(specs)
        assert drawn["Variants of " + first["spec"]] > len(timed)  # a bar and an interval for each, and the ceiling


def test_logs_of_others(browser, tmp_path):
    """MLC's tables have no positions and no tokens, Doppler's log no bytes: the page says so and shows the rest."""
    pages = []
    for name in ("mlc.md", "doppler.log.zst"):
        path = os.path.join(ROOT, "tests", "data", "logs", name)
        pages.append({"name": name.split(".")[0], "rich": False, "file": page(tmp_path, name, "analyze", path)})
    found = look(browser, tmp_path, pages)
    assert found["problems"] == []
    for name, facts in found["facts"].items():
        assert "icicle" in facts["sections"] and "timeline" not in facts["sections"], name
        assert facts["rows"] > 15


def test_odd_runs(browser, tmp_path):
    """Nothing in it, hardly anything in it, and texts that would like to be scripts."""
    evil = "</script><img src=x onerror='window.evil=1'><script>window.evil=2</script>"
    header = {"ev": "trace", "t": 0, "schema": 1, "level": "step", "model": evil + "W" * 300, "cpu": evil, "command": evil + "x" * 500, "type": evil}
    odd = {
        "empty": [{"ev": "trace", "t": 0, "schema": 1}],
        "tokens": [{"ev": "trace", "t": 0, "schema": 1}] + [
            {"ev": "token", "t": 10**9 * i, "request": 1, "index": i, "id": 5, "pos": i, "ns": 10**9} for i in range(5)],
        "evil": [header, {"ev": "plan", "t": 0, "step": 0, "layer": 0, "op": evil, "role": evil + "r" * 200, "type": evil},
                 {"ev": "choice", "t": 0, "step": 0, "rows": "1", "kernel": evil, "reason": evil, "rejected": evil}] + [
            x for i in range(1, 9) for x in (
                {"ev": "step", "t": 1000 * i + 1, "pass": i, "step": 0, "phase": "decode", "rows": 1, "pos": i, "ns": 500, "bytes": 100, "flops": 200},
                {"ev": "pass", "t": 1000 * i, "pass": i, "phase": "decode", "rows": 1, "seqs": 1, "pos": i, "logits": 1, "ns": 600})]
                + [{"ev": "note", "t": 10**6, "text": evil}],
    }
    pages = []
    for name, lines in odd.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(x) + "\n" for x in lines))
        pages.append({"name": name, "rich": False, "file": page(tmp_path, name, "analyze", path)})
    found = look(browser, tmp_path, pages)
    assert found["problems"] == []

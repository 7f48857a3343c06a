"""`quern doctor`: every section is there, the JSON is JSON, no locale changes it, Ctrl-C ends it."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

PROGRAM = os.environ.get("QUERN", str(Path(__file__).resolve().parents[2] / "build" / "quern"))


def doctor(*args, **env):
    p = subprocess.run([PROGRAM, "doctor", *args], env={**os.environ, **env}, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and "Sanitizer" not in p.stderr, p.stderr
    return p.stdout


@pytest.mark.parametrize("locale", ["C", "de_DE.UTF-8"])
def test_json(locale):
    d = json.loads(doctor("--json", "-t", "1", LC_ALL=locale))
    assert d["machine"]["cpu"] and d["machine"]["cores"] >= 1 and d["machine"]["threads"] >= 1
    c = d["ceilings"]
    assert c["threads"] == 1 and 0 <= c["huge_share"] <= 1
    for name in ("read_small_bytes_s", "read_huge_bytes_s", "f32_flop_s", "int8_op_s", "barrier_ns", "clock_ns"):
        s = c[name]
        assert s["n"] >= 5 and 0 < s["min"] <= s["lo"] <= s["median"] <= s["hi"] <= s["max"]
    assert c["read_huge_bytes_s"]["max"] > 1e8 and c["f32_flop_s"]["max"] > 1e8
    assert [x["name"] for x in d["libraries"]] == ["OpenBLAS", "oneDNN", "CUDA driver"]
    assert all(isinstance(a, str) and a for a in d["advice"])


def test_text_and_limits():
    out = doctor("--fast")
    for word in ("CPU", "cores", "memory", "huge pages", "OpenBLAS", "oneDNN", "CUDA driver"):
        assert word in out
    assert "GB/s" not in out and json.loads(doctor("--fast", "--json"))["ceilings"] is None
    assert "with 1 thread and base" in doctor("-t", "1", "--isa", "base")


def test_affinity_is_seen():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        pytest.skip("one CPU only")
    p = subprocess.run([PROGRAM, "doctor", "--fast", "--json"], capture_output=True, text=True, timeout=30,
                       preexec_fn=lambda: os.sched_setaffinity(0, {cpus[0]}))
    d = json.loads(p.stdout)
    assert d["machine"]["threads"] == 1 and d["machine"]["allowed_pus"] == 1
    assert any("affinity" in a for a in d["advice"])


def test_ctrl_c():
    p = subprocess.Popen([PROGRAM, "doctor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate(timeout=10)
    assert p.returncode == 130 and not out

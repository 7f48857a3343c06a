"""Recording, seen from outside: what a trace holds, that it explains the wall time, that it changes nothing, and what happens when it
cannot be written."""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import threading
import time

import pytest
from conftest import QUERN, ROOT, TINY, quern

PROMPT = ["-p", "Once upon a time", "--temp", "0"]


def text_of(*more):
    r = quern("run", TINY, *PROMPT, "-n", "40", "--ignore-eos", *more)
    assert r.rc == 0, r.err
    return r


def read(path):
    data = subprocess.run(["zstd", "-dcq", path], check=True, capture_output=True).stdout if path.endswith(".zst") else open(path, "rb").read()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.decode().splitlines()]


def of(events, kind):
    return [e for e in events if e["ev"] == kind]


def record(path, *more, command="run", args=PROMPT):
    r = quern(command, TINY, *args, "--trace", path, *more)
    assert r.rc == 0, r.err
    return read(str(path))


def check_frame(events, status="ok"):
    """What holds for every trace."""
    head, end = events[0], events[-1]
    assert head["ev"] == "trace" and head["schema"] == 1 and head["program"].startswith("quern ")
    assert end["ev"] == "end" and end["status"] == status and end["events"] == len(events) and end["lost"] == 0 and end["writer_ns"] > 0
    assert not [e for e in events[1:-1] if e["ev"] in ("trace", "end")]
    assert all(0 <= e["t"] <= end["t"] for e in events) and end["ns"] == end["t"]


def test_a_run(tmp_path):
    path = tmp_path / "a.jsonl"
    r = quern("run", TINY, *PROMPT, "-n", "40", "--ignore-eos", "--json", "--seed", "3", "--trace", path)
    events, answer = read(str(path)), r.json()
    check_frame(events)
    head = events[0]
    assert head["level"] == "step" and head["seed"] == 3 and head["model"] == "quern-tiny" and head["layers"] == 8
    assert len(head["hash"]) == 64 and len(head["plan_hash"]) == 64 and head["threads"] == answer["threads"]
    assert head["settings"]["predict"] == 40 and head["settings"]["kv"] == "f16" and "'Once upon a time'" in head["command"]

    plan, passes, steps = of(events, "plan"), of(events, "pass"), of(events, "step")
    assert [p["step"] for p in plan] == list(range(len(plan))) and len(of(events, "choice")) == 3 * len(plan)
    assert all(p["bytes"] > 0 for p in plan) and [p["op"] for p in plan if p["pos_bytes"] > 0] == ["attend"] * 8
    assert all(c["kernel"] and c["reason"] for c in of(events, "choice")) and any(c.get("rejected") for c in of(events, "choice"))
    assert [p["pass"] for p in passes] == list(range(1, 41))
    assert [p["phase"] for p in passes] == ["prefill"] + ["decode"] * 39 and passes[0]["rows"] == answer["n_prompt"]
    assert len(steps) == len(plan) * len(passes)  # every step of every pass
    for p in passes:
        mine = [s for s in steps if s["pass"] == p["pass"]]
        assert [s["step"] for s in mine] == list(range(len(plan))) and sum(s["ns"] for s in mine) <= p["ns"]
        assert all(a["t"] + a["ns"] <= b["t"] for a, b in zip(mine, mine[1:])), "one step at a time"
        assert mine[0]["t"] >= p["t"] and mine[-1]["t"] + mine[-1]["ns"] <= p["t"] + p["ns"]
        assert all(s["phase"] == p["phase"] and s["pos"] == p["pos"] for s in mine)
    assert all(1 <= len(s["busy"]) <= head["threads"] and max(s["busy"]) <= s["ns"] for s in steps)
    assert all(s["rows"] == (1 if plan[s["step"]]["logits"] else passes[s["pass"] - 1]["rows"]) for s in steps)

    tokens = of(events, "token")
    assert [t["id"] for t in tokens] == answer["tokens"] and [t["index"] for t in tokens] == list(range(40))
    assert [t["pos"] for t in tokens] == [answer["n_prompt"] + i for i in range(40)] and len(of(events, "sample")) == 40
    [request], [done] = of(events, "request"), of(events, "done")
    assert request["prompt"] == answer["n_prompt"] == done["prompt"] and done["tokens"] == 40 and done["stop"] == "length"
    assert done["first_ns"] == answer["first_ns"] and done["decode_ns"] == answer["decode_ns"]
    loaded, end = of(events, "memory")
    assert sum(loaded["parts"].values()) == loaded["weights"] == head["model_bytes"] and 0 < end["kv_used"] <= end["kv"]
    assert max(p["kv_used"] for p in passes) == end["kv_used"] and all(p["kv_used"] > 0 for p in passes)
    assert [e["phase"] for e in of(events, "load")].count("open") == 1 and len(of(events, "tokenize")) == 1


def test_times_add_up(tmp_path):
    """What is recorded explains 99 % of the wall time."""
    for _ in range(6):  # a machine that takes the processor away between two records may do so once
        events = record(tmp_path / "a.jsonl", "-n", "250", "--ignore-eos")
        known = sum(e["ns"] for e in events if e["ev"] in ("load", "tokenize", "pass", "sample"))
        known += sum(e["out_ns"] for e in of(events, "token"))
        steps = sum(e["ns"] for e in of(events, "step"))
        passes = sum(e["ns"] for e in of(events, "pass"))
        share, inside = known / events[-1]["ns"], steps / passes
        if share >= 0.99 and inside >= 0.8:
            break
    assert 0.99 <= share <= 1 and 0.8 <= inside <= 1  # a pass takes 0.1 ms here: a tenth of it may be between its 150 steps


SMOL = os.path.join(ROOT, ".deps", "smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.mark.skipif(not os.path.exists(SMOL), reason="no SmolLM2 in .deps (make setup)")
@pytest.mark.parametrize("command", [["run", "-p", "mill " * 400, "-n", "1"], ["run", "-p", "A mill", "-n", "48", "--ignore-eos"],
                                     ["batch-bench", "-npp", "32", "-ntg", "24", "-npl", "6"]], ids=["prefill", "decode", "sequences"])
def test_steps_add_up(tmp_path, command):
    """On a real model passes, and what is outside of them, are 99 % of the wall time, each time once; and steps are all but 3 % of
    the passes: what recording takes between two steps (about 0.1 us) is reported as such, and a token of 2.6 ms has 540 of them."""
    path, shares = tmp_path / "a.jsonl", []
    for _ in range(6):  # the machine may be disturbed
        r = quern(command[0], SMOL, *command[1:], "--trace", path)
        assert r.rc == 0, r.err
        events = read(str(path))
        known = sum(e["ns"] for e in events if e["ev"] in ("load", "tokenize", "pass", "sample")) + sum(e["out_ns"] for e in of(events, "token"))
        inside = sum(e["ns"] for e in of(events, "step")) / sum(e["ns"] for e in of(events, "pass"))
        shares.append((known / events[-1]["ns"], inside))
        if shares[-1][0] >= 0.99 and inside >= 0.97:
            break
    assert shares[-1][0] >= 0.99 and shares[-1][1] >= 0.97 and all(max(s) <= 1 for s in shares), shares


def test_levels_and_text(tmp_path):
    want, sizes = text_of().out, []
    for level in ("request", "token", "step"):
        path = str(tmp_path / f"{level}.jsonl.zst")
        assert text_of("--trace", path, "--trace-level", level).out == want
        events = read(path)
        check_frame(events)
        kinds = {e["ev"] for e in events}
        assert ("token" in kinds) == ("pass" in kinds) == (level != "request") and ("step" in kinds) == (level == "step")
        assert {"plan", "choice", "load", "memory", "request", "done", "tokenize"} <= kinds
        sizes.append(len(events))
    assert sizes == sorted(sizes)


def test_cached_tokens(tmp_path):
    path = tmp_path / "chat.jsonl"
    r = quern("run", TINY, "-cnv", "--temp", "0", "-n", "8", "--trace", path, stdin="Once upon a time\nAnd then?\n/quit\n")
    assert r.rc == 0
    events = read(str(path))
    check_frame(events)
    requests = of(events, "request")
    assert [q["request"] for q in requests] == [1, 2] and requests[0]["cached"] == 0 and requests[1]["cached"] > 0
    rows = sum(p["rows"] for p in of(events, "pass") if p["phase"] == "prefill")
    assert rows == sum(q["prompt"] - q["cached"] for q in requests)


def test_other_commands(tmp_path):
    ids = " ".join(map(str, range(40)))
    text = tmp_path / "text"
    text.write_text("All happy families are alike; each unhappy family is unhappy in its own way. " * 40)
    logits = record(tmp_path / "l", command="logits", args=["--tokens", ids, "-o", tmp_path / "out"])
    check_frame(logits)
    assert sum(p["logits"] for p in of(logits, "pass")) == 40
    ppl = record(tmp_path / "p", command="perplexity", args=[text, "-c", "64", "--chunks", "3"])
    check_frame(ppl)
    assert 3 * 48 < sum(p["rows"] for p in of(ppl, "pass")) <= 3 * 63 and len(of(ppl, "tokenize")) == 1
    bench = record(tmp_path / "b", "--no-ceilings", command="bench", args=["-p", "16", "-n", "4", "-r", "2"])
    check_frame(bench)
    assert [(t["name"], t["rep"]) for t in of(bench, "test")] == [("pp16", -1), ("pp16", 0), ("pp16", 1), ("tg4", -1), ("tg4", 0), ("tg4", 1)]
    batch = record(tmp_path / "bb", command="batch-bench", args=["-npp", "8", "-ntg", "4", "-npl", "3"])
    check_frame(batch)
    assert max(p["seqs"] for p in of(batch, "pass")) == 3 and of(batch, "test")[-1]["name"] == "pp8+tg4 x 3"
    r = quern("bench", TINY, "-t", "1,2", "--trace", tmp_path / "no")
    assert r.rc == 2 and "one model with one setting" in r.err


# ---- what cannot be written


def lacks(r, why):
    lines = [line for line in r.err.splitlines() if "the trace lacks" in line]
    assert len(lines) == 1 and lines[0].startswith("quern: the trace lacks ") and why in lines[0], r.err


def test_full_disk():
    want = text_of().out
    r = text_of("--trace", "/dev/full")
    assert r.out == want
    lacks(r, "No space left on device")


def test_size_limit(tmp_path):
    want = text_of().out
    for name in ("a.jsonl", "a.jsonl.zst"):
        path = str(tmp_path / name)
        most = 65536 if name.endswith("l") else 4096
        r = quern("run", TINY, *PROMPT, "-n", "40", "--ignore-eos", "--trace", path,
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
        assert r.rc == 0 and r.out == want
        lacks(r, "File too large")
        assert os.path.getsize(path) <= most
        if name.endswith("l"):
            assert os.path.getsize(path) > most - 2000 and read(path)[0]["ev"] == "trace"


def test_small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounting needs root")
    try:
        r = text_of("--trace", disk / "a.jsonl")
        assert r.out == text_of().out
        lacks(r, "No space left on device")
        events = read(str(disk / "a.jsonl"))
        assert events[0]["ev"] == "trace" and len(events) > 100
    finally:
        subprocess.run(["umount", disk], check=True)


def test_reader_leaves(tmp_path):
    want, fifo = text_of().out, str(tmp_path / "fifo")
    os.mkfifo(fifo)

    def read_a_little():
        fd = os.open(fifo, os.O_RDONLY)
        os.read(fd, 100)
        os.close(fd)
    reader = threading.Thread(target=read_a_little)
    reader.start()
    p = subprocess.Popen([QUERN, "run", TINY, *PROMPT, "-n", "40", "--ignore-eos", "--trace", fifo], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    out, err = p.communicate(timeout=60)
    reader.join(10)
    if b"nobody reads" in err:
        pytest.skip("the reader was not there in time")
    assert p.returncode == 0 and out.decode() == want and b"Broken pipe" in err


@pytest.mark.parametrize("make, says", [
    (os.mkdir, "Is a directory"), (os.mkfifo, "nobody reads"), (lambda p: open(p, "w").write("a letter to a friend"), "no trace"),
    (lambda p: os.symlink(p, p), "symbolic links"),
])
def test_refused_at_start(tmp_path, make, says):
    path = str(tmp_path / "x")
    make(path)
    begin = time.monotonic()
    r = quern("run", TINY, *PROMPT, "-n", "4", "--trace", path)
    assert r.rc in (1, 2) and r.out == "" and says in r.err and time.monotonic() - begin < 20
    assert len([line for line in r.err.splitlines() if line.startswith("quern:")]) == 1


def test_refused_where_nothing_may_be_written(tmp_path):
    for path in (str(tmp_path / "none" / "a.jsonl"), "", "/proc/a.jsonl"):
        r = quern("run", TINY, *PROMPT, "-n", "4", "--trace", path)
        assert r.rc == 1 and r.out == "" and "cannot write the trace" in r.err, path


def test_written_over(tmp_path):
    path = tmp_path / "a.jsonl"
    long = record(path, "-n", "30", "--ignore-eos")
    short = record(path, "-n", "2", "--ignore-eos")
    assert len(short) < len(long)
    check_frame(short)


def test_failed_run_has_an_end(tmp_path):
    path = tmp_path / "a.jsonl"
    r = quern("run", TINY, "-c", "16", "-p", "word " * 200, "--trace", path)
    assert r.rc == 1
    check_frame(read(str(path)), "failed")
    r = quern("run", os.path.join(ROOT, "README.md"), "x", "--trace", path)
    assert r.rc == 1
    events = read(str(path))
    check_frame(events, "failed")
    assert len(events) <= 4


@pytest.mark.parametrize("after", [0.0, 0.02, 0.06, 0.3])
def test_interrupt(tmp_path, after):
    path = str(tmp_path / "a.jsonl")
    p = subprocess.Popen([QUERN, "run", TINY, *PROMPT, "-n", "-1", "-c", "100000", "--ignore-eos", "--trace", path],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    begin = time.monotonic()
    while not os.path.exists(path) and time.monotonic() - begin < 20:
        time.sleep(0.001)
    time.sleep(after)
    p.send_signal(signal.SIGINT)
    assert p.wait(20) == 130, p.stderr.read()
    check_frame(read(path), "cancelled")


# ---- ceilings


def test_ceilings_are_kept(tmp_path, home):
    path = tmp_path / "a.jsonl"

    def head():
        r = quern("run", TINY, *PROMPT, "-n", "2", "-t", "1", "--trace", path, env=home)
        assert r.rc == 0
        return read(str(path))
    events = head()
    assert "read_gbs" not in events[0] and "quern doctor" in of(events, "note")[0]["text"]
    doctor = quern("doctor", "-t", "1", "--json", env=home).json()["ceilings"]
    events = head()
    assert abs(events[0]["f32_gflops"] * 1e9 / doctor["f32_flop_s"]["median"] - 1) < 1e-5 and not of(events, "note")
    assert events[0]["read_small_gbs"] > 0 and events[0]["barrier_us"] > 0 and events[0]["clock_ns"] > 0
    store = tmp_path / ".cache" / "quern" / "ceilings.db"
    with sqlite3.connect(store) as db:  # a wrong figure is not believed
        db.execute("UPDATE ceilings SET f32 = f32 * 2")
    db.close()
    events = head()
    assert "read_gbs" not in events[0] and "damaged" in of(events, "note")[0]["text"]
    store.write_bytes(b"SQLite format 3\0" + os.urandom(5000))
    events = head()
    assert "read_gbs" not in events[0] and "set aside" in of(events, "note")[0]["text"]


def test_no_place_for_ceilings(tmp_path, home):
    r = quern("doctor", "-t", "1", env=dict(home, HOME=None))
    assert r.rc == 0 and len([line for line in r.err.splitlines() if "cannot be kept" in line]) == 1
    (tmp_path / ".cache").write_text("no folder")
    r = quern("doctor", "-t", "1", env=home)
    assert r.rc == 0 and "cannot be kept" in r.err


# ---- profile, documentation


def test_profile(tmp_path, home):
    r = quern("profile", TINY, "Once upon a time", "-n", "12", "--temp", "0", "-t", "1", env=home)
    assert r.rc == 0 and "prefill" in r.out and "decode" in r.out and "nothing explains it" in r.out and "GB/s" in r.out
    assert "12 tokens" in r.err and "not known" not in r.out
    assert os.listdir(tmp_path / ".cache" / "quern") == ["ceilings.db"]
    path = tmp_path / "kept.jsonl"
    r = quern("profile", TINY, "-n", "4", "--temp", "0", "-t", "1", "--format", "json", "--trace", path, env=home)
    report = r.json()
    assert r.rc == 0 and report == quern("analyze", path, "--json").json()
    check_frame(read(str(path)))
    want = quern("run", TINY, *PROMPT, "-n", "12")
    for temp in (str(tmp_path), "/nonexistent"):
        r = quern("run", TINY, *PROMPT, "-n", "12", "--profile", env={"TMPDIR": temp})
        assert r.rc == 0 and r.out == want.out and "qlinear" in r.err
    assert quern("profile", TINY, "a", "b", "c").rc == 2


def test_the_page_is_made_from_the_table():
    r = quern("__trace")
    assert r.rc == 0
    assert r.out == open(os.path.join(ROOT, "docs", "TRACE.md"), encoding="utf-8").read(), "make docs writes it anew"

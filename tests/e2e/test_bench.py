"""`quern bench` and `quern batch-bench`: formats parse and have llama-bench's keys, lists mean what they say, wrong values are
refused, another engine is sampled in turn. Nothing here judges speed."""

import csv
import io
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

import pytest

from conftest import MODELS, QUERN, ROOT, TINY, quern

MODEL = os.path.join(MODELS, "qwen2", "model.gguf")
FAKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_bench.py")
FAST = ["-p", "8", "-n", "4", "-r", "3", "-t", "1", "--no-ceilings", "-q"]

# what llama-bench prints, as its readers expect it
THEIRS = """build_commit build_number cpu_info gpu_info backends model_filename model_type model_size model_n_params n_batch n_ubatch
    n_threads type_k type_v n_gpu_layers flash_attn use_mmap n_prompt n_gen n_depth test_time avg_ns stddev_ns avg_ts
    stddev_ts""".split()
# what its script for comparing builds needs besides
NEEDED = """n_cpu_moe tensor_buft_overrides embeddings cpu_mask cpu_strict poll load_mode no_kv_offload split_mode main_gpu
    tensor_split fit_target fit_min_ctx""".split()
OURS = """median_ts lo_ts hi_ts load_ns first_token_ns peak_rss_bytes kv_bytes scratch_bytes disturbed others_share host_share
    memory_from_bytes_s ceiling_read_huge_bytes_s ceiling_flop_s share_of_ceiling isa against""".split()


def bench(*args, **more):
    d = quern("bench", *args, **more)
    assert d.rc == 0, d.err
    return d


def rows(*args):
    return bench(*args, "-o", "json").json()


def list_of(*args):
    return [(r["n_prompt"], r["n_gen"], r["n_depth"]) for r in rows(MODEL, "-r", "1", "-t", "1", "--no-ceilings", "-q", *args)]


def test_who_else_runs_is_seen_and_said():
    """A program that computes beside the samples is counted; it alone is why, not what the load average remembers."""
    busy = subprocess.Popen([sys.executable, "-c", "import time\nend = time.time() + 60\nwhile time.time() < end: pass"])
    try:
        d = bench(MODEL, "-p", "0", "-n", "64", "-r", "120", "-t", "1", "--no-ceilings", "-v", "-o", "json")
    finally:
        busy.kill()
        busy.wait()
    (r,) = d.json()
    assert sum(r["samples_ns"]) > 5e7, "samples too short for a clock of ticks"
    assert r["others_share"] > 0.4 / os.cpu_count() and r["disturbed"]
    assert "others took" in d.err and "-v says why" in d.err


def test_samples_wait_for_memory(tmp_path):
    """Memory that is fast enough is not waited for; none gives a thousand terabytes a second, for which it is waited so long as said."""
    (r,) = rows(MODEL, "-p", "0", "-n", "4", "-r", "2", "-t", "1", "--no-ceilings", "--memory-from", "0.001")
    assert r["memory_from_bytes_s"] == 1e6 and len(r["samples_ns"]) == 2
    command, log = fake(tmp_path, "--rates", "7")
    never = [MODEL, "-p", "0", "-n", "4", "-r", "1", "-t", "1", "--no-ceilings", "--memory-from", "1e6", "--against", command]
    p = subprocess.Popen([QUERN, "bench", *never], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2)
    assert p.poll() is None, "it waits"
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=10)
    assert p.returncode == 130 and not out and not os.path.exists(log), (out, err)
    start = time.time()
    d = bench(*never, "--memory-wait", "1", "-v", "-o", "json")
    (r,) = d.json()
    assert time.time() - start > 1 and r["disturbed"] and len(r["samples_ns"]) == 1 and len(calls(log)) == 1
    assert "memory gave less than 1e+06 GB/s, and 1 s were waited for it" in d.err
    d = quern("bench", *never, "--no-repack")
    assert d.rc == 2 and "--memory-from" in d.err and not d.out.strip(), "memory is not known then"


def test_json_keys_and_figures():
    r, g = rows(MODEL, "-p", "8", "-n", "4", "-r", "3", "-t", "1", "-q")
    keys = list(r)
    assert all(k in keys for k in THEIRS + NEEDED + OURS) and list(g) == keys
    assert max(keys.index(k) for k in THEIRS) < min(keys.index(k) for k in OURS), "our keys stand behind theirs"
    assert r["model_filename"] == MODEL and r["n_threads"] == 1 and r["backends"] == "CPU" and r["type_k"] == "f16"
    assert (r["n_prompt"], r["n_gen"], g["n_prompt"], g["n_gen"]) == (8, 0, 0, 4)
    for x, n in ((r, 8), (g, 4)):
        assert len(x["samples_ns"]) == len(x["samples_ts"]) == 3
        for ns, ts in zip(x["samples_ns"], x["samples_ts"]):
            assert ts == pytest.approx(n * 1e9 / ns, rel=1e-3)
        assert x["avg_ts"] == pytest.approx(statistics.mean(x["samples_ts"]), rel=1e-4)
        assert x["stddev_ts"] == pytest.approx(statistics.stdev(x["samples_ts"]), rel=1e-3, abs=1e-3)
        assert x["median_ts"] == pytest.approx(statistics.median(x["samples_ts"]), rel=1e-5)
        assert x["lo_ts"] <= x["median_ts"] <= x["hi_ts"]
        assert 0 < x["load_ns"] < x["first_token_ns"] and x["peak_rss_bytes"] > 1 << 20 and x["kv_bytes"] > 0 and x["scratch_bytes"] > 0
        assert x["ceiling_read_huge_bytes_s"] > 1e8 and x["ceiling_flop_s"] > 1e8 and x["against"] == []
    assert r["flops"] > 0 and r["bytes_read"] == 0 and g["flops"] == 0 and g["bytes_read"] > 0
    rate = r[{"f32": "ceiling_flop_s", "bf16": "ceiling_bf16_flop_s", "int8": "ceiling_int8_op_s"}[r["ceiling_arithmetic"]]]
    least_s = r["flops"] / rate
    assert rate >= r["ceiling_flop_s"]
    assert r["share_of_ceiling"] == pytest.approx(least_s / (statistics.median(r["samples_ns"]) / 1e9), rel=1e-2, abs=1e-6)
    assert r["samples_read_bytes_s"] == [0, 0, 0], "memory is no bound of a prompt"
    assert len(g["samples_read_bytes_s"]) == 3 and min(g["samples_read_bytes_s"]) > 1e8
    shares = [g["bytes_read"] / read / (ns / 1e9) for read, ns in zip(g["samples_read_bytes_s"], g["samples_ns"])]
    assert g["share_of_ceiling"] == pytest.approx(statistics.median(shares), rel=1e-2)


def test_other_formats():
    lines = bench(MODEL, *FAST, "-o", "jsonl").out.splitlines()
    assert [json.loads(x)["n_gen"] for x in lines] == [0, 4]
    table = list(csv.DictReader(io.StringIO(bench(MODEL, *FAST, "-o", "csv").out)))
    assert [x["n_prompt"] for x in table] == ["8", "0"] and all(k in table[0] for k in THEIRS + NEEDED + OURS)
    assert float(table[0]["avg_ts"]) > 0 and table[0]["flash_attn"] == "1"
    db = sqlite3.connect(":memory:")
    db.executescript(bench(MODEL, *FAST, "-o", "sql").out)
    got = db.execute("select n_prompt, n_gen, avg_ts, model_filename from llama_bench").fetchall()
    assert [x[:2] for x in got] == [(8, 0), (0, 4)] and all(x[2] > 0 and x[3] == MODEL for x in got)


def test_table():
    out = bench(MODEL, *FAST, "-pg", "4,2", "-d", "3").out.splitlines()
    head = [c.strip() for c in out[0].strip("|").split("|")]
    assert head[:7] == ["model", "size", "params", "backend", "threads", "test", "t/s"]
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in out[2:5]]
    assert [c[5] for c in cells] == ["pp8 @ d3", "tg4 @ d3", "pp4+tg2 @ d3"]
    assert all("±" in c[6] and len(c) == len(head) for c in cells)
    wide = bench(MODEL, *FAST, "-n", "0", "--isa", "ref,base", "--kv", "f16,f32", "-b", "4").out
    assert "isa" in wide and "type_kv" in wide and "n_batch" in wide and wide.count("pp8") == 4


def test_second_output_on_stderr():
    d = quern("bench", MODEL, "-p", "8", "-n", "0", "-r", "1", "-t", "1", "--no-ceilings", "-q", "-oe", "jsonl")
    assert d.rc == 0 and d.out.startswith("| model") and json.loads(d.err)["n_prompt"] == 8


def test_lists():
    assert list_of("-p", "1-3", "-n", "0") == [(1, 0, 0), (2, 0, 0), (3, 0, 0)]
    assert list_of("-p", "4,2", "-p", "1-8*2", "-n", "0") == [(n, 0, 0) for n in (4, 2, 1, 2, 4, 8)]
    assert list_of("-p", "0", "-n", "1-5+2") == [(0, 1, 0), (0, 3, 0), (0, 5, 0)]
    assert list_of("-p", "0", "-n", "2", "-pg", "3,1", "-pg", "5,2", "-d", "0,4") == \
        [(0, 2, 0), (3, 1, 0), (5, 2, 0), (0, 2, 4), (3, 1, 4), (5, 2, 4)]
    assert [x["repack"] for x in rows(MODEL, *FAST, "--no-repack")] == [False, False]
    r = rows(MODEL, TINY, "-m", MODEL, "-p", "4", "-n", "0", "-r", "1", "-t", "1,2", "--no-ceilings", "-q")
    assert [(x["model_filename"], x["n_threads"]) for x in r] == [(m, t) for m in (MODEL, TINY, MODEL) for t in (1, 2)]


@pytest.mark.parametrize("args", [
    ["-p", "x"], ["-p", "4-1"], ["-p", "1-4*1"], ["-n", "-3"], ["-n", "1,,2"], ["-pg", "4"], ["-pg", "4,0"], ["-pg", "1,2,3"],
    ["-p", "0", "-n", "0"], ["-t", "2000"], ["-b", "0"], ["--isa", "sse9"], ["--isa", "avx2,"], ["--kv", "f8"], ["-r", "0"],
    ["-o", "xml"], ["--delay", "-1"], ["-d", "999999999999"], ["--against", ""], ["--against", "   "], ["--against", "x="],
    ["-p", "1-2000"]] + [["--against", "a"] * 5])
def test_wrong_values(args):
    d = quern("bench", MODEL, *args, "--no-ceilings")
    assert d.rc == 2 and d.out == "" and d.err.startswith("quern:"), d.err


def test_failure_leaves_whole_output():
    d = quern("bench", MODEL, "-m", "missing.gguf", *FAST, "-o", "json")
    assert d.rc == 1 and len(json.loads(d.out)) == 2 and "missing.gguf" in d.err
    d = quern("bench", "missing.gguf", *FAST, "-o", "json")
    assert d.rc == 1 and json.loads(d.out) == []


# ---- another engine

def fake(tmp_path, *words):
    log = tmp_path / "log"
    return " ".join([sys.executable, FAKE, "--log", str(log), *words]), log


def calls(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_against_is_told_what_to_run(tmp_path):
    command, log = fake(tmp_path, "--rates", "100,400,200", "--say", "hello")
    r, = rows(MODEL, "-p", "8", "-n", "0", "-r", "3", "-t", "2", "--no-ceilings", "-q", "--against", command)
    got = calls(log)
    assert len(got) == 3, "one run for each of our samples"
    for c in got:
        assert (c["m"], c["p"], c["n"], c["pg"], c["d"], c["t"], c["r"], c["o"]) == (MODEL, 8, 0, None, 0, 2, 1, "json")
        assert c["cpus"] == len(os.sched_getaffinity(0)), "it may run wherever this process may"
    a, = r["against"]
    assert a["samples_ts"] == [100, 400, 200] and a["median_ts"] == 200 and a["command"] == command
    ratios = [o / t for o, t in zip(r["samples_ts"], a["samples_ts"])]
    assert a["ratio"] == pytest.approx(statistics.median(ratios), rel=1e-3, abs=1e-3)
    assert a["ratio_lo"] == pytest.approx(min(ratios), rel=1e-3, abs=1e-3) and a["ratio_lo"] <= a["ratio"] <= a["ratio_hi"]


def test_against_two_and_every_kind_of_test(tmp_path):
    (tmp_path / "b").mkdir()
    one, log = fake(tmp_path)
    two, _ = fake(tmp_path / "b", "--rates", "50")
    args = [MODEL, "-p", "4", "-n", "2", "-pg", "3,1", "-d", "5", "-r", "1", "-t", "1", "--kv", "f32", "--no-ceilings", "-q",
            "--against", "one=" + one, "--against", two]
    r = rows(*args)
    assert [(c["p"], c["n"], c["pg"], c["d"], c["ctk"], c["ctv"]) for c in calls(log)] == \
        [(4, 0, None, 5, "f32", "f32"), (0, 2, None, 5, "f32", "f32"), (0, 0, "3,1", 5, "f32", "f32")]
    for x in r:
        assert [a["name"] for a in x["against"]] == ["one", os.path.basename(sys.executable)]
        assert x["against"][1]["ratio"] == pytest.approx(2 * x["against"][0]["ratio"], rel=1e-2)
        assert x["against"][0]["depth_as"] == "-d" and x["against"][0]["ratio_most"] == 0, "nobody asked the memory"
    head = bench(*args).out.splitlines()[0]
    assert "one t/s" in head and "quern / one" in head
    flat = list(csv.DictReader(io.StringIO(bench(*args, "-o", "csv").out)))
    assert json.loads(flat[0]["against"])[1]["median_ts"] == 50


def test_against_one_that_knows_no_depth(tmp_path):
    command, log = fake(tmp_path, "--no-depth")
    r, = rows(MODEL, "-p", "0", "-n", "2", "-d", "5", "-r", "2", "-t", "1", "--no-ceilings", "-q", "--against", command)
    assert [(c["n"], c["d"], c["gp"]) for c in calls(log)] == [(2, 5, None), (0, 0, "5,2"), (0, 0, "5,2")]
    assert r["n_depth"] == 5 and r["against"][0]["samples_ts"] == [100, 100] and r["against"][0]["depth_as"] == "-gp"
    d = quern("bench", MODEL, "-p", "4", "-n", "0", "-d", "5", "-r", "1", "-t", "1", "--no-ceilings", "-q", "--against", command)
    assert d.rc == 1 and "invalid parameter for argument: -d" in d.err, "nothing else stands for a prompt at a depth"


def test_against_what_memory_allows(tmp_path):
    command, _ = fake(tmp_path, "--rates", "100")
    r, = rows(MODEL, "-p", "0", "-n", "8", "-r", "3", "-t", "1", "-q", "--against", command)
    a, = r["against"]
    most = [8 / (r["bytes_read"] / read) / 100 for read in r["samples_read_bytes_s"]]
    assert min(most) / 3 < a["ratio_most"] < 3 * max(most), "asked at other moments, of the same memory"


def test_against_itself():
    r, = rows(MODEL, "-p", "8", "-n", "0", "-r", "2", "-t", "1", "--no-ceilings", "-q", "--against",
              f"self={QUERN} bench --no-ceilings -q")
    assert r["against"][0]["median_ts"] > 0 and r["against"][0]["ratio"] > 0


@pytest.mark.parametrize("how, said", [
    ("status", "ended with status 1: no such model \\x1b[31m"), ("signal", "killed by signal"), ("text", "no JSON"),
    ("broken", "JSON"), ("zero", "avg_ts"), ("other", "another test")])
def test_against_fails(tmp_path, how, said):
    command, _ = fake(tmp_path, "--fail", how)
    d = quern("bench", MODEL, *FAST, "--against", "it=" + command, "-o", "json")
    assert d.rc == 1 and said in d.err and "it" in d.err and d.err.count("\n") == 1, d.err
    assert json.loads(d.out) == []


def test_against_is_not_there():
    d = quern("bench", MODEL, *FAST, "--against", "/nowhere/llama-bench -fa 1")
    assert d.rc == 1 and "cannot run /nowhere/llama-bench" in d.err and d.err.count("\n") == 1


def test_ctrl_c_ends_both(tmp_path):
    pid = tmp_path / "pid"
    script = tmp_path / "slow.py"
    script.write_text(f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n")
    p = subprocess.Popen([QUERN, "bench", MODEL, *FAST, "--against", f"{sys.executable} {script}"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, start_new_session=True)
    for _ in range(300):
        if pid.exists() and pid.read_text():
            break
        time.sleep(0.05)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=20)
    assert p.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


# ---- many sequences

BATCH = ["-t", "1", "-q"]


def test_batch_table():
    d = quern("batch-bench", MODEL, "-npp", "8,16", "-ntg", "4", "-npl", "1,3", *BATCH)
    assert d.rc == 0, d.err
    lines = [[c.strip() for c in x.strip("|").split("|")] for x in d.out.splitlines()]
    assert lines[0] == ["PP", "TG", "B", "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s", "T s", "S t/s"]
    assert [x[:4] for x in lines[2:]] == [["8", "4", "1", "12"], ["8", "4", "3", "36"], ["16", "4", "1", "20"],
                                          ["16", "4", "3", "60"]]


def test_batch_jsonl():
    d = quern("batch-bench", MODEL, "-npp", "0,20", "-ntg", "0,3", "-npl", "1-4*2", "-pps", "-r", "2", "-o", "jsonl", *BATCH)
    assert d.rc == 0, d.err
    got = [json.loads(x) for x in d.out.splitlines()]
    assert [(x["pp"], x["tg"], x["pl"]) for x in got] == \
        [(p, t, b) for p in (0, 20) for t in (0, 3) for b in (1, 2, 4) if p + t]
    for x in got:
        assert x["n_kv"] == x["pp"] + x["pl"] * x["tg"] and x["is_pp_shared"] == 1 and x["n_threads"] == 1
        assert x["t"] == pytest.approx(x["t_pp"] + x["t_tg"], abs=1e-5)
        assert x["speed"] == pytest.approx(x["n_kv"] / x["t"], rel=1e-2)
        assert (x["speed_tg"] > 0) == (x["tg"] > 0) and (x["speed_pp"] > 0) == (x["pp"] > 0)


@pytest.mark.parametrize("args", [["-npl", "0"], ["-npp", "0", "-ntg", "0"], ["-npp", "a"], ["-ntg", "5-1"], ["-npl", "5000"],
                                  ["-npp", "64", "-ntg", "8", "-c", "32"], ["-o", "csv"]])
def test_batch_wrong_values(args):
    d = quern("batch-bench", MODEL, *args)
    assert d.rc == 2 and d.out == "" and d.err.startswith("quern:"), d.err


# ---- the table of bench/

def test_table_script(tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    os.symlink(MODEL, models / "Qwen2.5-0.5B-Q8_0.gguf")
    os.symlink(os.path.join(MODELS, "llama", "model.gguf"), models / "other.gguf")
    command, _ = fake(tmp_path, "--rates", "1e9")
    args = [sys.executable, os.path.join(ROOT, "bench", "table.py"), "--models", str(models), "--quern", QUERN, "-p", "8", "-n", "4",
            "-r", "1", "-t", "1", "--keep", str(tmp_path / "rows"), "--against", "llama.cpp=" + command]
    p = subprocess.run([*args, "--batch", "--check"], capture_output=True, text=True, timeout=120)
    assert p.returncode == 3, p.stderr
    table = [[c.strip() for c in x.strip("|").split("|")] for x in p.stdout.splitlines() if x.startswith("|")]
    head, first, second = table[0], table[2], table[3]
    assert len(table) == 4 and first[0] == "Qwen2.5-0.5B-Q8_0" and second[0] == "other" and len(first) == len(head)
    ratio = first[head.index("quern ÷ llama.cpp")]
    assert ratio.count("! < 2.6") == 1 and ratio.count("! < 1.7") == 1, "both are below the floors of that file"
    assert "!" not in second[head.index("quern ÷ llama.cpp")]
    assert float(first[head.index("8 sequences ÷ 1")]) > 0
    assert "GB/s from huge pages" in p.stdout and str(tmp_path) not in p.stdout.split("llama.cpp:")[0]
    assert len((tmp_path / "rows").read_text().splitlines()) == 4
    p = subprocess.run([*args, "--only", "*other*", "--memory-from", "0.001"], capture_output=True, text=True, timeout=120)
    assert p.returncode == 0 and "Qwen" not in p.stdout and "memory gave 0.001 GB/s" in p.stdout
    p = subprocess.run([*args, "--only", "*other*", "--device", "nowhere"], capture_output=True, text=True, timeout=120)
    assert p.returncode != 0 and "nowhere" in p.stderr, "quern is told where to run"
    (models / "bad.gguf").write_text("GGUF")
    p = subprocess.run([*args, "--only", "bad*"], capture_output=True, text=True, timeout=120)
    assert p.returncode != 0 and "nothing measured" in p.stderr


def test_reader_that_leaves():
    p = subprocess.run(f"{QUERN} bench {MODEL} -p 1-8 -n 0 -r 1 -t 1 --no-ceilings | head -1", shell=True, capture_output=True,
                       text=True, timeout=60)
    assert p.stdout.startswith("| model") and "cannot" not in p.stderr


def test_law_script(tmp_path):
    made = [{"n_prompt": 0, "n_gen": 4, "n_threads": 2, "isa": "avx2", "n_depth": 0, "model_filename": f"{gb}.gguf",
             "bytes_read": int(4 * gb * 1e9), "samples_ns": [4e9 * (gb / 20 + 0.0005)]} for gb in (0.5, 1, 3)]
    (tmp_path / "rows").write_text("".join(json.dumps(r) + "\n" for r in made))
    law = [sys.executable, os.path.join(ROOT, "bench", "law.py"), str(tmp_path / "rows")]
    p = subprocess.run(law, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and "20.0 GB/s and 500 us a token" in p.stdout and "0.0 % off" in p.stdout, p.stdout + p.stderr
    for r, slower in zip(made, ([1, 2], [1, 3], [1, 2])): # memory gives less at times, and a token takes as much longer
        r["samples_ns"] = [r["samples_ns"][0] + r["bytes_read"] / 20 * (k - 1) for k in slower]
        r["samples_read_bytes_s"] = [20e9 / k for k in slower]
    (tmp_path / "rows").write_text("".join(json.dumps(r) + "\n" for r in made))
    p = subprocess.run(law, capture_output=True, text=True, timeout=60)
    assert "15.0 GB/s and 500 us" in p.stdout and "0.0 % off" in p.stdout and "given 15.0 GB/s" in p.stdout, p.stdout + p.stderr
    real = rows(MODEL, "-p", "0", "-n", "2", "-d", "0,16,32", "-r", "1", "-t", "1", "--no-ceilings", "-q")
    (tmp_path / "rows").write_text("".join(json.dumps(r) + "\n" for r in real))
    p = subprocess.run(law, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0 and "depths of model.gguf: 3 points" in p.stdout, p.stdout + p.stderr

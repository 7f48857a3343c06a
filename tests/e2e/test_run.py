"""Running models through the program: answers, chats, scores, and what a user may do to them meanwhile."""

import json
import math
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import time

import pytest
from conftest import ASAN, MODELS, QUERN, ROOT, SMOLLM2, TINY, quern

LLAMA = os.path.join(MODELS, "llama", "model.gguf")
PROMPT = "Once upon a time"
GREEDY = ["--temp", "0", "-n", "24"]


def greedy(*more, **kw):
    r = quern("run", TINY, "-p", PROMPT, *GREEDY, *more, **kw)
    assert r.rc == 0, r.err
    return r


def test_answer_goes_to_stdout_and_figures_to_stderr():
    r = greedy()
    assert len(r.out) > 20 and "tok/s" not in r.out
    assert re.search(r"\[24 tokens, first after \d+ ms; prompt \d+ tokens at [\d.]+ tok/s; decode at [\d.]+ tok/s\]", r.err)
    assert greedy("--quiet").err == ""


def test_same_answer_however_it_is_computed():
    want = greedy().out
    for more in (["-t", "1"], ["-t", "2"], ["-t", "3"], ["-b", "1"], ["-b", "3"], ["-c", "256"]):
        assert greedy(*more).out == want, more


def test_seed():
    def sample(seed, *more):
        return quern("run", TINY, "-p", PROMPT, "-n", "32", "--temp", "1", "--seed", seed, *more).out
    assert sample(1) == sample(1, "-t", "1") != sample(2)


def test_json():
    r = greedy("--json", "--n-probs", "3").json()
    assert r["text"] == greedy().out and r["n_new"] == 24 == len(r["tokens"]) and r["stop"] == "length"
    assert len(r["probs"]) == 24 and all(len(p["top"]) == 3 and p["logprob"] <= 0 for p in r["probs"])
    assert all(p["id"] == p["top"][0]["id"] for p in r["probs"])


def test_prompt_from_stdin_and_file(tmp_path):
    want = greedy().out
    (tmp_path / "prompt").write_text(PROMPT)
    for args, text in ((["-p", "-"], PROMPT), (["-"], PROMPT), ([], PROMPT), (["-f", str(tmp_path / "prompt")], "")):
        r = quern("run", TINY, *args, *GREEDY, stdin=text)
        assert r.rc == 0 and r.out == want, args


def test_a_lone_argument_is_a_model_or_several_words(home):
    want = quern("run", TINY, "Tell me a story about a fox.", "-n", "24", "--temp", "0", env=home)
    r = quern("run", "Tell me a story about a fox.", "-n", "24", "--temp", "0", env=home)
    assert r.rc == 0 and r.out == want.out != "" and "so it is the prompt" in r.err
    r = quern("profile", "Tell me a story about a fox.", "-n", "4", "--section", "run", env=home)
    assert r.rc == 0 and "quern-tiny" in r.out
    for words in ("fox", "my fox.gguf"):
        r = quern("run", words, "-n", "2", stdin=PROMPT, env=home)
        assert r.rc == 1 and r.out == "" and r.err.startswith(f"quern: {words}: no such file"), words


def test_nothing_on_stdin_is_no_prompt(tmp_path):
    (tmp_path / "empty").write_text("")
    for args, where in (([], "on stdin"), (["-"], "on stdin"), (["-f", tmp_path / "empty"], "in ")):
        r = quern("run", TINY, *args, *GREEDY)
        assert r.rc == 2 and r.out == "" and "the prompt is empty: there is nothing " + where in r.err, args
    assert quern("run", TINY, "-p", "", *GREEDY).rc == 0


def test_stop_string_never_leaks():
    text = greedy().out
    stop = text[len(text) // 2: len(text) // 2 + 4]
    r = greedy("--stop", stop, "--stop", "never seen \x01")
    assert r.out == text[: text.index(stop)]


def test_logit_bias_bans_a_token():
    first = greedy("--json").json()["tokens"][0]
    r = greedy("--json", "--logit-bias", f"{first}-inf").json()
    assert first not in r["tokens"]
    for bad in ("1", "x+1", "99999999+1", "1+", "1+x", "-1+1"):
        assert quern("run", TINY, "-p", "x", "--logit-bias", bad).rc == 2, bad


def test_profile():
    r = greedy("--profile")
    assert re.search(r"^decode, by op$", r.err, re.M) and re.search(r"^q?linear +\d+ +\d+ +[\d.]+ +[\d.]+% ", r.err, re.M)
    assert greedy("--profile", "--json").json()["profile"]


def test_context_is_never_cut_silently():
    r = quern("run", TINY, "-c", "16", "-p", "word " * 200)
    assert r.rc == 1 and "16" in r.err and r.out == ""
    r = quern("run", TINY, "-c", "32", "-p", PROMPT, "--temp", "0", "--ignore-eos", "--json")
    assert r.rc == 0 and r.json()["stop"] == "context"
    assert r.json()["n_prompt"] + r.json()["n_new"] in (32, 33)


def test_model_without_vocabulary():
    r = quern("run", LLAMA, "hello")
    assert r.rc == 1 and "vocabulary" in r.err


def test_chat_in_a_script(home):
    lines = f"{PROMPT}\n/stats\n/reset\n/nothing\n{PROMPT}\n/quit\nnever reached\n"
    r = quern("run", TINY, "-cnv", *GREEDY, stdin=lines, env=home)
    assert r.rc == 0 and "context" in r.err and "There is no command /nothing" in r.err
    first, second = [part for part in re.split(r"\n", r.out.replace(greedy().out, "\0")) if "\0" in part]
    assert first == second


@pytest.mark.parametrize("args, says", [
    (["--tokens", "-1"], "position 0"), (["--tokens", "1 2 512"], "position 2"), (["--tokens", "1.5"], "position 0"),
    (["--tokens", "[1, [2]]"], "position 1"), (["--tokens", '["1"]'], "position 0"), (["--tokens", "99999999999999999999"], "position 0"),
    (["--tokens", ""], "there are none"), (["--tokens", "[1, 2"], "does not end"), (["--tokens", "[1] 2"], "does not end"),
])
def test_token_ids(args, says, tmp_path):
    r = quern("logits", LLAMA, *args, "-o", tmp_path / "out")
    assert r.rc == 2 and says in r.err and not (tmp_path / "out").exists()


def test_logits_to_stdout_and_last():
    every = quern("logits", LLAMA, "--tokens", "[1, 2, 3]", "-o", "-").raw
    last = quern("logits", LLAMA, "--tokens", "1,2,3", "-o", "-", "--last").raw
    assert len(every) == 3 * len(last) > 0 and every.endswith(last)
    assert quern("logits", LLAMA, "--tokens", "-", "-o", "-", stdin="1\n2\n3\n").raw == every


def test_tokenize_round_trip():
    text = "Hello, world! It's 2026:\n\n  naïve café, 中文, 🙂."
    ids = quern("tokenize", TINY, stdin=text)
    assert ids.rc == 0 and all(isinstance(i, int) for i in json.loads(ids.out))
    assert quern("tokenize", TINY, "--decode", stdin=ids.out).out == text
    assert quern("tokenize", TINY, "-p", text).out == ids.out
    assert quern("tokenize", TINY, stdin="").out == "[]\n"


def test_perplexity(tmp_path):
    text = greedy("-n", "600", "--ignore-eos").out
    (tmp_path / "text").write_text(text)
    r = quern("perplexity", TINY, tmp_path / "text", "-c", "64", "--json").json()
    # what the model itself wrote, always the likeliest token, surprises it little
    assert 1 <= r["perplexity"] < 20 and r["scored"] == r["chunks"] * 31 and r["error"] > 0
    plain = quern("perplexity", TINY, tmp_path / "text", "-c", "64").out
    assert float(re.fullmatch(r"Final estimate: PPL = ([\d.]+) \+/- [\d.]+\n", plain)[1]) == pytest.approx(r["perplexity"], abs=1e-3)
    assert quern("perplexity", TINY, tmp_path / "text", "-c", "4096").rc == 2


def test_perplexity_is_the_mean_of_the_logits(tmp_path):
    """The same figure from `quern logits`, by hand."""
    import array
    text = greedy("-n", "160", "--ignore-eos").out
    (tmp_path / "text").write_text(text)
    ids = json.loads(quern("tokenize", TINY, "--special", stdin=text).out)
    bos = json.loads(quern("tokenize", TINY, "--special", stdin="").out)[:1]
    total, count = 0.0, 0
    for at in range(0, len(ids) - 31, 32):
        chunk = ids[at: at + 32]
        chunk = (bos or chunk[:1]) + chunk[1:]
        rows = array.array("f", quern("logits", TINY, "--tokens", json.dumps(chunk), "-o", "-").raw)
        vocab = len(rows) // 32
        for i in range(16, 31):
            row = rows[i * vocab: (i + 1) * vocab]
            top = max(row)
            total += math.log(sum(math.exp(v - top) for v in row)) + top - row[chunk[i + 1]]
            count += 1
    r = quern("perplexity", TINY, tmp_path / "text", "-c", "32", "--json").json()
    assert r["scored"] == count and r["nll"] == pytest.approx(total / count, rel=1e-5)


# ---- faults

def test_locales_change_nothing():
    want = greedy("--json", "--n-probs", "1").json()["probs"]
    for name in ("de_DE.UTF-8", "tr_TR.UTF-8", "C", "C.UTF-8"):
        assert greedy("--json", "--n-probs", "1", env={"LC_ALL": name}).json()["probs"] == want


def test_without_home():
    r = quern("run", TINY, "-p", PROMPT, *GREEDY, env={"HOME": None, "XDG_DATA_HOME": None, "XDG_CACHE_HOME": None,
                                                      "XDG_STATE_HOME": None, "QUERN_HOME": None})
    assert r.rc == 0 and r.out == greedy().out


def test_home_that_cannot_be_written():
    assert greedy(env={"HOME": "/proc/nowhere"}).out == greedy().out


@pytest.mark.parametrize("ctx", ["1000000000", "2147483647"])
def test_absurd_context(ctx):
    began = time.time()
    r = quern("run", TINY, "-c", ctx, "x", timeout=20)
    assert r.rc in (1, 2, 4) and time.time() - began < 5
    assert r.rc != 4 or re.search(r"\d", r.err)


def test_little_address_space():
    p = subprocess.run(["prlimit", "--as=500000000", QUERN, "run", TINY, "-c", "2000000", "-p", "x", "-n", "4"],
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    assert p.returncode == 4, (p.returncode, p.stderr)
    assert re.search(rb"\d", p.stderr)


def test_output_that_closes_early():
    p = subprocess.run(["bash", "-c", f"set -o pipefail; '{QUERN}' run '{TINY}' -p x -n 2000 --ignore-eos -c 2048 -q | head -c 5"],
                       capture_output=True, timeout=60)
    assert p.returncode == 0 and len(p.stdout) == 5 and p.stderr == b""


def test_stdout_closed_or_full():
    for where in (">&-", "> /dev/full"):
        p = subprocess.run(f"'{QUERN}' run '{TINY}' -p x -n 8 -q {where}", shell=True, capture_output=True, timeout=60)
        assert p.returncode == 1 and b"cannot write" in p.stderr, where


def interrupt(args, after, timeout=20):
    """Starts quern, waits for `after` (seconds, or a function of the process), sends SIGINT; returns status, seconds, stderr."""
    p = subprocess.Popen([QUERN, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if callable(after):
        after(p)
    else:
        time.sleep(after)
    began = time.time()
    p.send_signal(signal.SIGINT)
    try:
        _, err = p.communicate(timeout=timeout)
    finally:
        if p.poll() is None:
            p.kill()
    return p.returncode, time.time() - began, err.decode()


LONG = ["-n", "100000", "--ignore-eos", "-c", "8192", "--isa", "ref", "-t", "1"]


def test_interrupt_in_decode():
    rc, took, err = interrupt(["run", TINY, "-p", PROMPT, *LONG], lambda p: p.stdout.read(20))
    assert rc == 130 and took < 0.5 and "tok/s" in err


def test_interrupt_in_prefill():
    rc, took, _ = interrupt(["run", TINY, "-p", "word " * 1500, *LONG], 0.6)
    assert rc == 130 and took < 0.5


@pytest.mark.parametrize("after", [0.0, 0.005, 0.01, 0.02, 0.05, 0.1])
def test_interrupt_while_loading(after):
    rc, took, _ = interrupt(["run", TINY, "-p", PROMPT, *LONG], after)
    # before main has begun nobody can catch it: the shell's 130 all the same
    assert rc in (130, -signal.SIGINT) and took < 0.5


def test_interrupt_perplexity(tmp_path):
    (tmp_path / "text").write_text("word and word. " * 20000)
    rc, took, _ = interrupt(["perplexity", TINY, tmp_path / "text", "--isa", "ref", "-t", "1"], 0.8)
    assert rc == 130 and took < 0.5


def test_model_cut_while_it_runs(tmp_path):
    copy = tmp_path / "model.gguf"
    copy.write_bytes(open(TINY, "rb").read())
    p = subprocess.Popen([QUERN, "run", copy, "-p", PROMPT, *LONG], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    p.stdout.read(20)
    os.truncate(copy, 65536)
    try:
        _, err = p.communicate(timeout=60)
    finally:
        if p.poll() is None:
            p.kill()
    assert p.returncode == 1 and err.count(b"quern:") == 1, (p.returncode, err)


@pytest.mark.parametrize("keep", [0, 1, 3, 4, 8, 23, 24, 100, 5000])
def test_cut_model(keep, tmp_path):
    (tmp_path / "cut.gguf").write_bytes(open(TINY, "rb").read()[:keep])
    r = quern("run", tmp_path / "cut.gguf", "x", program=ASAN if os.path.exists(ASAN) else QUERN)
    assert r.rc == 1 and r.err.startswith("quern:") and r.err.count("\n") == 1


@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="qemu-user is not installed")
@pytest.mark.parametrize("cpu, isa", [("core2duo", "base"), ("Haswell-noTSX", "avx2")])
def test_older_processors(cpu, isa):
    """No instruction beyond what the processor has, and the same tokens as --isa gives here."""
    def old(*args):
        return subprocess.run(["qemu-x86_64", "-cpu", cpu, QUERN, *args], capture_output=True, timeout=200, stdin=subprocess.DEVNULL)
    assert json.loads(old("--version", "--json").stdout)["isa"] == isa
    args = ["run", TINY, "-p", PROMPT, "--temp", "0", "-n", "6", "-q"]
    p = old(*args)
    assert p.returncode == 0 and p.stdout == quern(*args, "--isa", isa).raw
    p = old(*args, "--isa", "avx512")
    assert p.returncode in (0, 1, 2)  # refused, or run at the level there is; never SIGILL


# ---- a terminal

class Terminal:
    def __init__(self, args, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.clear()
            os.environ.update(env, TERM="xterm", PATH="/usr/bin:/bin")
            os.execv(QUERN, [QUERN, *args])
        self.text = ""

    def wait_for(self, pattern, seconds=20):
        end = time.time() + seconds
        while not re.search(pattern, self.text):
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.time()))
            assert ready, f"no {pattern!r} in {self.text!r}"
            try:
                self.text += os.read(self.fd, 65536).decode("utf-8", "replace")
            except OSError:
                assert re.search(pattern, self.text), self.text
                return
    def send(self, text):
        self.text = ""
        os.write(self.fd, text.encode())

    def end(self, seconds=10):
        end = time.time() + seconds
        while time.time() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            ready, _, _ = select.select([self.fd], [], [], 0.05)
            try:
                if ready:
                    os.read(self.fd, 65536)
            except OSError:
                pass
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("did not end")


@pytest.fixture
def chat(home):
    env = {k: v for k, v in home.items() if v}
    t = Terminal(["run", TINY, "--temp", "0", "-n", "200", "--ignore-eos"], env)
    t.wait_for(r"/help for help")
    t.wait_for(r"> ")
    return t


def test_chat_on_a_terminal(chat, tmp_path):
    chat.send("/help\r")
    chat.wait_for(r"forget the conversation")
    chat.send("Once upon a time\r")
    chat.wait_for(r"tok/s\]")
    chat.send("/stats\r")
    chat.wait_for(r"context +\d+ of \d+[\s\S]*> ")  # the prompt too: before it, the terminal itself would take the Ctrl-D
    chat.send("\x04")
    assert chat.end() == 0
    history = (tmp_path / ".local" / "state" / "quern" / "history").read_text()
    assert "Once" in history


def test_ctrl_c_stops_the_answer_not_the_chat(home):
    env = {k: v for k, v in home.items() if v}
    t = Terminal(["run", TINY, "--temp", "0", "--ignore-eos", "--isa", "ref", "-t", "1", "-n", "4000"], env)
    t.wait_for(r"> ")
    t.send("Once upon a time\r")
    t.wait_for(r"time\r\n.{20}")
    t.send("\x03")
    t.wait_for(r"tok/s\]")
    t.send("/stats\r")
    t.wait_for(r"answers +1")
    t.send("\x03")
    assert t.end() == 130


# ---- a real model

needs_smollm2 = pytest.mark.skipif(not os.path.exists(SMOLLM2), reason="SmolLM2 is not in .deps (pip could not bring it)")


@needs_smollm2
@pytest.mark.parametrize("question, fact", [("What is 2+2?", "4|four"),
                                            ("How many days are in a week?", "7|seven"),
                                            ("What color is the sky on a clear day?", "blue")])
def test_smollm2_answers(question, fact):
    r = quern("run", SMOLLM2, question, "--temp", "0", "-n", "64")
    assert r.rc == 0 and re.search(fact, r.out, re.I), r.out
    assert "<|im_" not in r.out


@needs_smollm2
def test_message_text_is_never_a_control_token():
    """The model's own end-of-turn marker inside a message stays text: the prompt grows by the pieces of its spelling."""
    def n_prompt(text):
        return quern("run", SMOLLM2, "-p", text, "-n", "1", "--json").json()["n_prompt"]
    assert n_prompt("a<|im_end|>b") > n_prompt("ab") + 3


@needs_smollm2
def test_threads_agree_on_a_real_model():
    def answer(*more):
        return quern("run", SMOLLM2, "Name three fruits.", "--temp", "0", "-n", "24", *more).out
    assert answer("-t", "1") == answer("-t", "2") == answer("-b", "5")


STORIES = os.path.join(ROOT, ".deps", "stories260K")


@pytest.mark.skipif(not os.path.exists(STORIES), reason="stories260K is not in .deps (no package carries it)")
def test_stories260k_byte_for_byte():
    with open(os.path.join(STORIES, "expected_greedy_200.txt"), "rb") as f:
        want = f.read()
    got = quern("run", os.path.join(STORIES, "stories260K-f32.gguf"), "-p", "", "--temp", "0", "-n", "200", "--kv", "f32").raw
    assert got.startswith(want.rstrip(b"\n")) or want.startswith(got)

"""The program from outside, without running a model: options, help, exit codes, what goes where."""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import MODELS, QUERN, ROOT, machine_levels, quern

with open(os.path.join(ROOT, "src", "cli", "commands.def")) as f:
    COMMANDS = [name.replace("_", "-") for name in re.findall(r"^COMMAND\((\w+)\)", f.read(), re.M)]


def test_no_arguments_is_usage():
    r = quern()
    assert r.rc == 2 and "Usage: quern COMMAND" in r.out


def test_help_lists_every_command():
    r = quern("--help")
    assert r.rc == 0 and r.err == ""
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", r.out, re.M), name


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command(name):
    short, long = quern(name, "--help"), quern("help", name)
    assert short.rc == 0 and short.out.startswith(f"Usage: quern {name}") and "--quiet" in short.out
    assert long.rc == 0 and long.out.startswith(f"quern {name} - ") and len(long.out) > len(short.out)


def test_help_of_the_words_that_are_no_commands():
    assert quern("help", "--help").out == quern("help", "help").out == quern("--help").out
    r = quern("completion", "--help")
    assert r.rc == 0 and r.out.startswith("Usage: quern completion ") and quern("help", "completion").out == r.out


def test_version():
    assert re.fullmatch(r"quern \d+\.\d+\.\d+\n", quern("--version").out)
    facts = quern("--version", "--json").json()
    assert facts["name"] == "quern" and facts["isa"] in ("ref", "base", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16") and facts["threads"] >= 1


@pytest.mark.parametrize("args, says", [
    (["rum"], "did you mean run?"),
    (["frobnicate"], "unknown command frobnicate"),
    (["run", "--tmp", "1"], "did you mean --temp?"),
    (["run", "--zzzzzz"], "unknown option --zzzzzz"),
    (["run", "-Z"], "unknown option -Z"),
    (["run", "--temp"], "--temp needs a value"),
    (["run", "--temp", "hot"], '"hot" is not a number from 0 to 100'),
    (["run", "--temp=-1"], "not a number from 0"),
    (["run", "--temp=1e400"], "not a number from 0"),
    (["run", "--temp", "nan"], "not a number from 0"),
    (["run", "--top-p", "1.5"], "from 0 to 1"),
    (["run", "--top-k", "-5"], "-5 is below 0"),
    (["run", "--top-k", "2147483648"], "is above 2147483647"),
    (["run", "--top-k", "1.5"], "not a whole number"),
    (["run", "--top-k", " 1"], "not a whole number"),
    (["run", "--top-k", ""], "not a whole number"),
    (["run", "--seed", "-1"], "not a whole number from 0"),
    (["run", "--seed", "18446744073709551616"], "not a whole number from 0"),
    (["run", "--kv", "f64"], "not one of f16|f32|q8_0"),
    (["run", "--raw=yes"], "--raw takes no value"),
    (["run", "a", "b", "c"], 'one argument too many: "c"'),
    (["run", "a", "b", "-p", "c"], "given twice"),
    (["info", "a", "b"], "one argument too many"),
    (["quantize", "a", "b"], "an argument is missing"),
    (["logits", "m"], "--tokens is missing"),
    (["template", "m"], "--messages FILE is missing"),
    (["completion"], "say bash, zsh or fish"),
    (["completion", "tcsh"], "say bash, zsh or fish"),
    (["help", "rum"], "did you mean run?"),
    (["probe", "--check", "--op", "nothing"], "there is no op nothing"),
])
def test_usage_errors(args, says):
    r = quern(*args)
    assert r.rc == 2, (r.rc, r.err)
    assert says in r.err and r.out == ""


def test_control_bytes_are_not_echoed():
    r = quern("run", "--te\x1b[31mmp", "1")
    assert r.rc == 2 and "\x1b" not in r.err


@pytest.mark.parametrize("args", [["info", "no-such-model-anywhere"], ["run", "no-such-model-anywhere", "x"],
                                  ["tokenize", "no-such-model-anywhere"], ["info", "/dev/null"], ["info", "/dev/zero"],
                                  ["info", "x" * 5000]])
def test_missing_models(args, home):
    r = quern(*args, env=home, timeout=10)
    assert r.rc == 1 and r.err.count("\n") <= 2 and "quern:" in r.err and r.out == ""


def test_double_dash_ends_options(home):
    r = quern("info", "--", "--no-such-file", env=home)
    assert r.rc == 1 and "--no-such-file" in r.err


def test_man_page_names_every_option():
    text = quern("__man").out
    assert text.startswith(".TH QUERN 1")
    for name in COMMANDS:
        assert f".SS quern {name}" in text
    for option in set(re.findall(r"--[a-z][a-z-]+", "".join(quern("help", c).out for c in COMMANDS))):
        assert option.replace("-", "\\-") in text or option in ("--no-name",), option
    if shutil.which("groff"):
        p = subprocess.run(["groff", "-man", "-ww", "-z"], input=text.encode(), capture_output=True)
        assert p.returncode == 0 and p.stderr == b""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_parses(shell):
    text = quern("completion", shell).out
    assert "perplexity" in text and "repeat-penalty" in text
    if shutil.which(shell):
        p = subprocess.run([shell, "-n"], input=text.encode(), capture_output=True)
        assert p.returncode == 0, p.stderr


def complete(words):
    script = quern("completion", "bash").out + f"""
COMP_WORDS=({' '.join(words)} ''); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
[ "{words[-1]}" = + ] && {{ unset 'COMP_WORDS[COMP_CWORD]'; COMP_CWORD=$((COMP_CWORD-1)); COMP_WORDS[COMP_CWORD]=''; }}
_quern; echo "${{COMPREPLY[@]}}"
"""
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True).stdout.split()


def test_bash_completion_works():
    assert "perplexity" in complete(["quern"])
    assert complete(["quern", "run", "--kv"]) == ["f16", "f32", "q8_0"]
    assert complete(["quern", "completion"]) == ["bash", "zsh", "fish"]


# ---- where output goes

def test_closed_stdout():
    p = subprocess.run(f"'{QUERN}' help run >&-", shell=True, capture_output=True, timeout=20)
    assert p.returncode == 1 and b"cannot write the output" in p.stderr


def test_full_disk():
    p = subprocess.run(f"'{QUERN}' help run > /dev/full", shell=True, capture_output=True, timeout=20)
    assert p.returncode == 1 and b"No space left" in p.stderr


def test_reader_that_leaves_is_no_error():
    p = subprocess.run(["bash", "-c", f"set -o pipefail; for i in 1 2 3; do '{QUERN}' __man; done | head -1"],
                       capture_output=True, timeout=20)
    assert p.returncode == 0 and p.stderr == b"" and p.stdout.count(b"\n") == 1


def test_closed_stdin_and_stderr(home):
    p = subprocess.run(f"'{QUERN}' --version <&- 2>&-", shell=True, capture_output=True, timeout=20)
    assert p.returncode == 0 and p.stdout.startswith(b"quern ")


def test_no_color_without_terminal():
    assert "\x1b" not in quern("info", os.path.join(MODELS, "llama", "model.gguf")).out
    assert "\x1b" in quern("info", os.path.join(MODELS, "llama", "model.gguf"), "--color", "always").out


# ---- commands that read a model but do not run it

@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3"])
def test_info(name):
    path = os.path.join(MODELS, name, "model.gguf")
    r = quern("info", path)
    assert r.rc == 0 and name in r.out and "tokens: KV cache" in r.out
    facts = json.loads(quern("info", path, "--json").out)
    assert isinstance(facts, dict)


def test_info_folder_and_file_agree():
    folder = os.path.join(MODELS, "llama")
    shape = [line for line in quern("info", folder).out.splitlines() if line.startswith("shape")]
    assert shape and shape == [line for line in quern("info", folder + "/model.gguf").out.splitlines() if line.startswith("shape")]


def test_plan():
    path = os.path.join(MODELS, "llama", "model.gguf")
    plan = quern("plan", path, "--json").json()
    assert {"op", "role", "layer", "kernel", "reason", "bytes", "flops"} <= set(plan["steps"][0])
    more = quern("plan", path, "--json", "-b", 64, "-d", 100).json()
    assert len(more["steps"]) == len(plan["steps"])
    assert sum(s["flops"] for s in more["steps"]) > 60 * sum(s["flops"] for s in plan["steps"])
    table = quern("plan", path)
    assert table.rc == 0 and f"{len(plan['steps'])} steps;" in table.out
    ref = quern("plan", path, "--json", "--isa", "ref").json()
    assert all("ref" in k for s in ref["steps"] for k in s["kernel"])


def test_probe_one_op():
    r = quern("probe", "--check", "--op", "rmsnorm", "--seed", 7)
    assert r.rc == 0 and re.search(r"^ok +rmsnorm\w+", r.out, re.M)
    lines = [json.loads(line) for line in quern("probe", "--check", "--op", "rmsnorm", "--json").out.splitlines()]
    assert lines and all(line["passed"] for line in lines)

"""--device, on a machine that may have no GPU: the CPU runs when nobody insists, and one clear line when somebody does."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from conftest import TINY, quern  # noqa: E402

WHY_NOT = ["holds no CUDA kernels", "no CUDA driver", "sees no device", "too old", "not enough memory", "compute capability"]
COMMANDS = [["run", TINY, "-p", "Hi", "-n", "2"], ["plan", TINY], ["logits", TINY, "--tokens", "1 2", "-o", "-"],
            ["bench", TINY, "-p", "4", "-n", "2", "-r", "1", "--no-ceilings"],
            ["batch-bench", TINY, "-npp", "4", "-ntg", "2", "-npl", "1,2"],
            ["perplexity", TINY, __file__, "-c", "64", "--chunks", "1"]]
MEASURING = [["doctor"], ["probe"], ["probe", TINY], ["probe", "--spec", "op=linear type=f16 n=8 rows=64 cols=64"]]


@pytest.mark.parametrize("command", COMMANDS + MEASURING, ids=lambda c: " ".join(c[:2]))
def test_cuda_or_one_line(command):
    r = quern(*command, "--device", "cuda")
    if r.rc == 0:
        return  # there is a GPU, and kernels for it
    lines = r.err.strip().splitlines()
    assert len(lines) == 1 and any(w in lines[0] for w in WHY_NOT), r.err
    assert r.out == ""


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_auto_runs_anywhere(command):
    assert quern(*command).rc == 0
    assert quern(*command, "--device", "auto").rc == 0


def test_cpu_and_auto_say_which():
    assert "engine: cpu" in quern(*COMMANDS[0], "--device", "cpu", "-v").err
    r = quern(*COMMANDS[0], "--device", "auto", "-v")
    assert "engine: cuda" in r.err or ("engine: cpu" in r.err and any(w in r.err for w in WHY_NOT)), r.err


@pytest.mark.parametrize("word", ["gpu", "cuda:", "cuda:x", "cuda:-1", ""])
def test_unknown_device(word):
    r = quern(*COMMANDS[0], "--device", word)
    assert r.rc == 2 and "device" in r.err


@pytest.mark.parametrize("extra", [["--check"], ["--tune"], ["--op", "add"]], ids=lambda c: c[0])
def test_probe_on_a_device_takes_linears(extra):
    r = quern("probe", "--device", "cuda", *extra)
    assert r.rc == 2 and "--device cuda takes" in r.err

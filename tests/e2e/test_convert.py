"""convert and quantize from outside: what they write runs and says the same, and they write whole files or none."""

import array
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import MODELS, NAMES, QUERN, SMOLLM2, TINY, quern

IDS = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


def logits(path):
    """In plain floats: what a file holds is compared, not what bytes or bf16 make of the activations."""
    r = quern("logits", path, "--tokens", IDS, "-o", "-", "--kv", "f32", "--no-repack")
    assert r.rc == 0, r.err
    return array.array("f", r.raw)


@pytest.mark.parametrize("name", NAMES)
def test_converted_folder_gives_the_same_logits(name, tmp_path):
    folder = os.path.join(MODELS, name)
    r = quern("convert", folder, tmp_path / "out.gguf")
    assert r.rc == 0, r.err
    # not bit for bit: GGUF stores the rows of q and k of a llama in another order, so sums are rounded in another order
    want, got = logits(folder), logits(tmp_path / "out.gguf")
    assert len(got) == len(want) and max(abs(a - b) for a, b in zip(want, got)) <= 1e-5 * max(map(abs, want))
    assert os.listdir(tmp_path) == ["out.gguf"]


@pytest.mark.parametrize("kind, worst", [("F16", 0.01), ("Q8_0", 0.05), ("Q4_K_M", 0.8)])
def test_quantised_default_model(kind, worst, tmp_path):
    r = quern("quantize", TINY, tmp_path / "out.gguf", kind)
    assert r.rc == 0, r.err
    want, got = logits(TINY), logits(tmp_path / "out.gguf")
    most = max(map(abs, want))
    assert max(abs(a - b) for a, b in zip(want, got)) <= worst * most
    assert quern("info", tmp_path / "out.gguf").rc == 0


@pytest.mark.parametrize("args, code", [
    ([TINY, "{tmp}/out.gguf", "Q9_Z"], 2), ([TINY, "{tmp}/out.gguf", ""], 2), (["/nowhere.gguf", "{tmp}/out.gguf", "Q8_0"], 1),
    ([TINY, "{tmp}/no/such/folder/out.gguf", "Q8_0"], 1), ([TINY, "/dev/full/out.gguf", "Q8_0"], 1),
])
def test_refused(args, code, tmp_path):
    r = quern("quantize", *[a.format(tmp=tmp_path) for a in args])
    assert r.rc in (code, 1) and r.err.startswith("quern:") and os.listdir(tmp_path) == []


def test_output_over_input_is_refused_or_whole(tmp_path):
    shutil.copy(TINY, tmp_path / "model.gguf")
    before = (tmp_path / "model.gguf").read_bytes()
    r = quern("quantize", tmp_path / "model.gguf", tmp_path / "model.gguf", "Q4_0")
    assert os.listdir(tmp_path) == ["model.gguf"]
    assert r.rc == 0 or (tmp_path / "model.gguf").read_bytes() == before


@pytest.mark.skipif(not os.path.exists(SMOLLM2), reason="SmolLM2 is not in .deps (pip could not bring it)")
def test_interrupted_quantize_leaves_nothing(tmp_path):
    p = subprocess.Popen([QUERN, "quantize", SMOLLM2, tmp_path / "out.gguf", "Q4_K", "-t", "1"], stderr=subprocess.PIPE)
    time.sleep(0.5)
    began = time.time()
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=30)
    assert p.returncode == 130 and time.time() - began < 1.0, p.returncode
    assert os.listdir(tmp_path) == []


def test_size_limit(tmp_path):
    """RLIMIT_FSIZE stands for a full disk: refused, nothing left."""
    p = subprocess.run(["prlimit", "--fsize=100000", QUERN, "quantize", TINY, tmp_path / "out.gguf", "Q8_0"], capture_output=True,
                       timeout=60)
    assert p.returncode == 1 and re.match(rb"quern: .*(large|space|big)", p.stderr, re.I | re.S), p.stderr
    assert os.listdir(tmp_path) == []

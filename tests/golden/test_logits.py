"""Logits of the reference models against transformers' float32: from GGUF and from safetensors, at every ISA level of this
machine, with one, two and three threads; greedy tokens; the default KV cache."""

import array
import json
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from conftest import MODELS, NAMES, quern  # noqa: E402

LEVELS = ["ref", "base", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16"]


def machine_levels():
    best = quern("--version", "--json").json()["isa"]
    return [level for level in LEVELS[: LEVELS.index(best) + 1] if level != "avxvnni" or level == best]


def sources(name):
    folder = os.path.join(MODELS, name)
    return {"gguf": os.path.join(folder, "model.gguf"), "safetensors": folder}


def cases(name):
    with open(os.path.join(MODELS, name, "reference.json")) as f:
        reference = json.load(f)["cases"]
    with open(os.path.join(MODELS, name, "logits.f32"), "rb") as f:
        raw = f.read()
    for case in reference:
        want = array.array("f")
        n = case["positions"] * case["vocab"]
        want.frombytes(raw[case["logits_offset_bytes"]: case["logits_offset_bytes"] + 4 * n])
        assert len(want) == n
        yield case, want


def logits(path, ids, out, *more):
    r = quern("logits", path, "--tokens", " ".join(map(str, ids)), "-o", out, *more)
    assert r.rc == 0, r.err
    got = array.array("f")
    with open(out, "rb") as f:
        got.frombytes(f.read())
    return got


def check(path, name, out, tolerance, *more):
    for case, want in cases(name):
        got = logits(path, case["prompt"], out, *more)
        assert len(got) == len(want)
        most = max(abs(v) for v in want)
        off = max(abs(a - b) for a, b in zip(got, want))
        assert off <= tolerance * most, f"{len(case['prompt'])} tokens: off by {off:.3g}, largest logit {most:.3g}"


@pytest.mark.parametrize("source", ["gguf", "safetensors"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("isa", machine_levels())
def test_f32_cache(name, source, isa, tmp_path):
    path = sources(name)[source]
    for threads in (1, 2, 3):
        check(path, name, tmp_path / "out", 1e-3, "--kv", "f32", "--isa", isa, "-t", threads)


@pytest.mark.parametrize("source", ["gguf", "safetensors"])
@pytest.mark.parametrize("name", NAMES)
def test_default_cache(name, source, tmp_path):
    check(sources(name)[source], name, tmp_path / "out", 2e-2)


@pytest.mark.parametrize("name", NAMES)
def test_threads_and_chunks_change_nothing(name, tmp_path):
    """Bit for bit: the number of threads, and how the prompt is cut into passes."""
    path = sources(name)["gguf"]
    case = max((c for c, _ in cases(name)), key=lambda c: len(c["prompt"]))
    one = logits(path, case["prompt"], tmp_path / "a", "-t", 1)
    for more in (["-t", 2], ["-t", 3], ["-b", 1], ["-b", 7], ["-t", 3, "-b", 5]):
        assert logits(path, case["prompt"], tmp_path / "b", *more) == one, more


@pytest.mark.parametrize("source", ["gguf", "safetensors"])
@pytest.mark.parametrize("name", NAMES)
def test_greedy(name, source, tmp_path):
    """Sixteen tokens, each the likeliest, wherever the reference's lead is clear."""
    path = sources(name)[source]
    for case, _ in cases(name):
        ids = case["prompt"] + case["greedy"][:-1]
        got, vocab = logits(path, ids, tmp_path / "out", "--kv", "f32"), case["vocab"]
        for i, (token, margin) in enumerate(zip(case["greedy"], case["greedy_margin"])):
            at = (len(case["prompt"]) - 1 + i) * vocab
            row = got[at: at + vocab]
            if margin > 1e-2:
                assert row.index(max(row)) == token, f"token {i} after a prompt of {len(case['prompt'])}"

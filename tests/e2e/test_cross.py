"""The kernels of the other architecture: built with Debian's cross compiler, checked under qemu-user by the same walk that
`quern probe --check` does here. Emulation is slow, so the generic kernels are a sample: every kernel with NEON instructions of
its own is run."""

import os
import shutil
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(ROOT, "build", "cross", "check_kernels")
TYPES = ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k"]


@pytest.fixture(scope="module")
def program():
    for tool in ["aarch64-linux-gnu-gcc", "qemu-aarch64"]:
        if not shutil.which(tool):
            pytest.skip(f"no {tool} here")
    if not os.path.isdir("/usr/aarch64-linux-gnu/include"):
        pytest.skip("no C library for aarch64 here (libc6-dev-arm64-cross)")
    build = subprocess.run(["make", "-s", "-j2", "MODE=cross", "build/cross/check_kernels"], cwd=ROOT, capture_output=True,
                           text=True, timeout=280)
    assert build.returncode == 0, build.stderr[-2000:]
    return PROGRAM


def check(program, cpu, *triples):
    p = subprocess.run(["qemu-aarch64", "-cpu", cpu, program, "3", *triples], capture_output=True, text=True, timeout=250)
    lines = p.stdout.splitlines()
    assert p.returncode == 0, p.stdout[-3000:] + p.stderr[-1000:]
    assert not [line for line in lines if line.startswith("FAILED")]
    return lines[0], [line.split()[1] for line in lines[1:] if line.startswith("ok")]


@pytest.mark.parametrize("isa", ["neondot", "neoni8mm"])
def test_bytes(program, isa):
    level, kernels = check(program, "max", "qlinear", "-", isa)
    assert level == "level neoni8mm"
    assert kernels == [f"qlinear_{t}_{isa}_r4" for t in TYPES]


def test_floats_and_small_steps(program):
    _, kernels = check(program, "max", "quant", "-", "neondot", "plinear", "-", "base", "linear", "q4_k", "base",
                       "attend", "f16", "base", "rmsnorm", "-", "base")
    named = {"quant_f32_neondot_r1", "linear_q4_k_base_gen", "attend_f16_base_gen", "rmsnorm_f32_base_gen",
             *(f"plinear_{t}_base_gen" for t in ["f32", "f16", "bf16"])}
    assert named <= set(kernels)
    assert all(k in named or k.startswith("plinear_") for k in kernels), "variants of plinear, and nothing that was not asked for"


def test_processor_without_dot_products(program):
    """An older processor is told apart, and what it gets runs there."""
    level, kernels = check(program, "cortex-a57", "rmsnorm", "-", "-")
    assert level == "level base"
    assert kernels == ["rmsnorm_ref", "rmsnorm_f32_base_gen"]

"""What all Python tests share: the program, a way to run it that cannot hang, the models that tests use."""

import json
import os
import re
import signal
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUERN = os.path.join(ROOT, "build", "quern")
ASAN = os.path.join(ROOT, "build", "asan", "quern")
MODELS = os.path.join(ROOT, "tests", "data", "models")
TINY = os.path.join(ROOT, "models", "quern-tiny.gguf")
SMOLLM2 = os.path.join(ROOT, ".deps", "smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
NAMES = ["llama", "llama3", "mistral", "qwen2", "qwen3", "gemma3"]

# A shell that starts the tests in the background has them ignore Ctrl-C, and what they start inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Done:
    """A finished run: rc, out and err as text, raw as bytes."""

    def __init__(self, p):
        self.rc, self.raw = p.returncode, p.stdout
        self.out = p.stdout.decode("utf-8", "replace")
        self.err = p.stderr.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.out)


def quern(*args, stdin=b"", env=None, timeout=120, program=QUERN, **more):
    if isinstance(stdin, str):
        stdin = stdin.encode()
    full = dict(os.environ, **(env or {}))
    full = {k: v for k, v in full.items() if v is not None}
    p = subprocess.run([program, *map(str, args)], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=full,
                       timeout=timeout, **more)
    return Done(p)


def machine_levels():
    """What --isa may say here, lowest first; the program knows the list."""
    names = re.search(r"--isa auto\|(\S+)", quern("run", "--help").out)[1].split("|")
    return names[: names.index(quern("--version", "--json").json()["isa"]) + 1]


@pytest.fixture
def home(tmp_path):
    """An environment whose folders are all below tmp_path."""
    return {"HOME": str(tmp_path), "QUERN_HOME": None, "XDG_DATA_HOME": None, "XDG_CACHE_HOME": None, "XDG_STATE_HOME": None,
            "HF_HOME": None, "HF_HUB_CACHE": None}

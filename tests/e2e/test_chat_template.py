"""quern template on templates that mean harm or make no sense: refused in a second with a place to look at, and nothing outside
is reached. What templates mean is tested in tests/unit/test_template.c."""

import json
import shutil
import subprocess
import time

import pytest
from conftest import QUERN, quern

MESSAGES = [{"role": "user", "content": "Hi"}]


@pytest.fixture
def chat(tmp_path):
    """Renders a template that stands in a folder's tokenizer_config.json."""
    (tmp_path / "messages.json").write_text(json.dumps(MESSAGES))

    def render(template, *before):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, "eos_token": "</s>"}))
        args = ["template", tmp_path / "tokenizer_config.json", "--messages", tmp_path / "messages.json"]
        if before:
            return subprocess.run([*before, QUERN, *map(str, args)], capture_output=True, text=True, timeout=60)
        return quern(*args)

    return render


def test_renders(chat):
    done = chat("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ 'A:' if add_generation_prompt }}")
    assert done.rc == 0, done.err
    assert done.out.rstrip("\n") == "<user>HiA:"


@pytest.mark.parametrize("template, why", [
    ("{{ range(10**9) }}", "range"),
    ("{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}{% endfor %}{% endfor %}{% endfor %}", "steps"),
    ("{% set n = namespace(s='x') %}{% for i in range(64) %}{% set n.s = n.s + n.s %}{% endfor %}", "MiB"),
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "within each other"),
    ("{{ " + "(" * 10000 + "1" + ")" * 10000 + " }}", "nested too deeply"),
    ("{% if 1 %}" * 10000 + "{% endif %}" * 10000, "nested too deeply"),
    ("{% nope %}", "unknown tag"),
    ("{{ 1|nope }}", "no filter named"),
    ("{% if %}", "unexpected"),
    ("{{ cycler.__init__.__globals__.os.popen('id').read() }}", "undefined"),
    ("{{ ''.__class__.__mro__ }}", "unsafe"),
    ("{{ messages.append(1) }}", "unsafe"),
    ("{{ raise_exception('only one turn') }}", "only one turn"),
])
def test_refused(chat, template, why):
    begin = time.monotonic()
    done = chat(template)
    assert done.rc > 0 and done.out == ""
    assert "line 1, column" in done.err and why in done.err, done.err
    assert time.monotonic() - begin < 10


def test_too_long(chat):
    done = chat("x" * (50 << 20))
    assert done.rc > 0 and "limit" in done.err, done.err


@pytest.mark.skipif(not shutil.which("strace"), reason="skipped: strace is not here")
def test_reaches_nothing(chat, tmp_path):
    log = tmp_path / "calls"
    chat("{{ lipsum.__globals__['os'].popen('id') }}", "strace", "-f", "-e", "trace=execve,openat,connect", "-o", str(log))
    if not log.exists() or "execve" not in log.read_text():
        pytest.skip("strace may not trace here")
    calls = log.read_text()
    assert calls.count("execve(") == 1
    assert "connect(" not in calls and "passwd" not in calls

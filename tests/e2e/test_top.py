"""`quern top`: one look at a finished trace, and following a growing one on a terminal that gets its screen back."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest
from conftest import QUERN, ROOT, quern

SAMPLE = os.path.join(ROOT, "tests", "data", "trace", "sample.jsonl")


def test_once():
    r = quern("top", "--once", SAMPLE)
    assert r.rc == 0 and "\033" not in r.out
    for word in ("quern top  sample Q8_0", "ended after", "decode", "prefill", "memory", "qlinear_q8_0_avx512vnni_r12", "tokens a second"):
        assert word in r.out, word
    assert "layer 1" in quern("top", SAMPLE, "--by", "layer").out  # no terminal: the same as --once


def test_newest_of_the_folder(tmp_path):
    assert "no trace in this folder" in quern("top", "--once", cwd=tmp_path).err
    (tmp_path / "a.jsonl").write_bytes(open(SAMPLE, "rb").read())
    assert "sample" in quern("top", "--once", cwd=tmp_path).out


@pytest.mark.parametrize("content", [b"", b"\n\n", b"PK\3\4" + b"\0" * 100, b"not a trace\n"])
def test_no_trace(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    r = quern("top", "--once", tmp_path / "x")
    assert r.rc in (0, 1) and (r.rc == 0 or r.err.count("\n") == 1)


def test_cut_at_any_byte(tmp_path):
    whole = open(SAMPLE, "rb").read()
    for n in range(len(whole) - 400, len(whole), 37):
        (tmp_path / "cut.jsonl").write_bytes(whole[:n])
        assert quern("top", "--once", tmp_path / "cut.jsonl").rc == 0


class Terminal:
    """A program on a pseudo-terminal of 100 columns."""

    def __init__(self, *args, rows=30):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.p = subprocess.Popen([QUERN, *map(str, args)], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                  preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = b""

    def until(self, word, seconds=10):
        end = time.time() + seconds
        while word not in self.seen and time.time() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        assert word in self.seen, self.seen[-2000:]

    def close(self):
        rc = self.p.wait(timeout=10)
        while select.select([self.master], [], [], 0.1)[0]:
            self.seen += os.read(self.master, 65536)
        after = termios.tcgetattr(self.slave)
        os.close(self.slave)
        os.close(self.master)
        assert self.seen.rstrip().endswith(b"\033[?25h\033[?1049l") or b"\033[?1049l" in self.seen[-40:]
        assert after[3] == self.before[3], "the terminal was left without echo"
        return rc


def test_follows_a_growing_trace(tmp_path):
    lines = open(SAMPLE, "rb").read().splitlines(keepends=True)
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(lines[:300]))
    t = Terminal("top", path, "--interval", "0.1")
    t.until(b"q quits")
    assert b"ended after" not in t.seen
    with open(path, "ab") as f:
        f.write(b"".join(lines[300:600]) + lines[600][:20])  # a line that is not whole yet
        f.flush()
        time.sleep(0.3)
        f.write(lines[600][20:] + b"".join(lines[601:]))
    t.until(b"ended after")
    os.write(t.master, b"r")
    t.until(b"ffn_down")
    fcntl.ioctl(t.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 8, 40, 0, 0))
    time.sleep(0.3)
    os.write(t.master, b"q")
    assert t.close() == 0


def test_ctrl_c_gives_the_terminal_back(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(open(SAMPLE, "rb").read().splitlines(keepends=True)[:100]))
    t = Terminal("top", path)
    t.until(b"q quits")
    os.kill(t.p.pid, signal.SIGINT)
    assert t.close() == 130

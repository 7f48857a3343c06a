"""make install into an empty folder, used as a stranger would: the program, the library through pkg-config, the examples."""

import os
import re
import subprocess

import pytest
from conftest import ROOT, TINY


def sh(command, **more):
    p = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=300, cwd=ROOT, **more)
    assert p.returncode == 0, f"{command}\n{p.stdout}{p.stderr}"
    return p.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    sh(f"make -s install DESTDIR='{root}' PREFIX=/usr")
    return root / "usr"


def test_files(installed):
    for name in ("bin/quern", "include/quern.h", "lib/libquern.a", "lib/libquern.so", "lib/pkgconfig/quern.pc",
                 "share/man/man1/quern.1", "share/bash-completion/completions/quern", "share/zsh/site-functions/_quern",
                 "share/fish/vendor_completions.d/quern.fish", "share/quern/quern-tiny.gguf"):
        assert (installed / name).stat().st_size > 100, name


def test_installed_program_has_its_default_model(installed, tmp_path):
    out = sh(f"cd '{tmp_path}' && HOME='{tmp_path}' '{installed}/bin/quern' run -p 'Once upon a time' -n 8 -q")
    assert len(out) > 5


def test_only_the_header_s_names_are_exported(installed):
    names = {line.split()[-1].split("@")[0] for line in sh(f"nm -D --defined-only '{installed}/lib/libquern.so'").splitlines()}
    header = (installed / "include/quern.h").read_text()
    declared = set(re.findall(r"\b(qn_\w+)\(", header))
    assert names and names <= declared, names - declared
    assert declared - names <= {"qn_free"} or not declared - names, declared - names


def test_needs_no_more_than_it_should(installed):
    """The portable baseline: no file of the program outside kernel/<isa>/ may use wider instructions."""
    needed = sh(f"readelf -d '{installed}/bin/quern'")
    assert "libcuda" not in needed and "libstdc++" not in needed


@pytest.mark.parametrize("how", ["shared", "static"])
@pytest.mark.parametrize("name", ["complete", "score"])
def test_examples_through_pkg_config(installed, tmp_path, name, how):
    env = dict(os.environ, PKG_CONFIG_PATH=f"{installed}/lib/pkgconfig", PKG_CONFIG_SYSROOT_DIR=str(installed.parent),
               LD_LIBRARY_PATH=f"{installed}/lib")
    flags = sh("pkg-config --cflags --libs quern", env=env).strip()
    if how == "static":
        flags = f"-I'{installed}/include' '{installed}/lib/libquern.a' " + sh(
            "pkg-config --libs libpcre2-8 libutf8proc libcurl sqlite3 libzstd hwloc libedit").strip() + " -pthread -ldl"
    sh(f"gcc -std=c17 -Wall -Wextra -Werror -o '{tmp_path}/{name}' examples/{name}.c {flags} -lm", env=env)
    out = sh(f"'{tmp_path}/{name}' '{TINY}' 'Once upon a time'", env=env)
    if name == "complete":
        assert out.startswith("Once upon a time") and len(out) > 60
    else:
        assert re.search(r"^ +-\d+\.\d+  in all, \d+ tokens$", out, re.M)


def test_library_from_cplusplus(installed, tmp_path):
    (tmp_path / "a.cc").write_text('#include <quern.h>\n#include <cstdio>\nint main() { qn_err e = {}; qn_options o = '
                                   'QN_OPTIONS_DEFAULT; (void)o; qn_model *m = qn_model_open("/nowhere", &e);\n'
                                   'std::printf("%d %s\\n", m == nullptr, e.msg); return 0; }\n')
    env = dict(os.environ, LD_LIBRARY_PATH=f"{installed}/lib")
    sh(f"g++ -std=c++17 -Wall -Wextra -Werror -o '{tmp_path}/a' '{tmp_path}/a.cc' -I'{installed}/include' -L'{installed}/lib' -lquern")
    assert sh(f"'{tmp_path}/a'", env=env).startswith("1 ")

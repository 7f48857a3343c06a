#!/usr/bin/env python3
"""run_all.py - everything that must hold, in one run: builds, house rules, unit tests (plain and under sanitizers), kernels,
golden logits, the program from outside, examples, an installation. Ends with one line: `N passed, N failed, N skipped`.
Needs what tools/setup.sh brings. `run_all.py unit e2e` runs only those stages."""

import argparse
import glob
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.chdir(ROOT)

passed, failed, skipped = 0, [], []
jobs = 2


def ok(n=1):
    global passed
    passed += n


def fail(name, output=""):
    failed.append(name)
    print(f"FAILED {name}")
    if output:
        print("\n".join("    " + line for line in output.strip().splitlines()[-40:]))


def skip(name, reason):
    skipped.append(f"{name}: {reason}")


def run(command, timeout=600, **more):
    """Returns (exit status, stdout and stderr together); never raises, never waits for ever."""
    try:
        p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout, errors="replace", **more)
        return p.returncode, p.stdout
    except subprocess.TimeoutExpired as e:
        return 124, (e.stdout or b"").decode(errors="replace") if isinstance(e.stdout, bytes) else f"no end within {timeout} s"
    except OSError as e:
        return 127, str(e)


def expect(name, command, timeout=600, **more):
    status, output = run(command, timeout, **more)
    if status == 0:
        ok()
    else:
        fail(f"{name} (exit status {status})", output)
    return status == 0


def make(*words):
    return ["make", "-s", f"-j{jobs}", *words]


# ---- stages

def stage_rules():
    """The house's rules, by scripts."""
    expect("include law", [sys.executable, "tools/check_includes.py"])
    expect("style limits and banned calls", [sys.executable, "tools/check_style.py"])
    headers = sorted(glob.glob("include/*.h") + glob.glob("src/**/*.h", recursive=True))
    flags = ["-Iinclude", "-Isrc", "-isystem", ".deps/yyjson", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    for h in headers:
        # a header of intrinsics compiles only where its folder's flags hold; kernel/generic is a template
        if "kernel/avx" in h or "kernel/neon" in h or "kernel/generic" in h:
            continue
        expect(f"{h} compiles alone", ["gcc", "-std=gnu17", "-x", "c", "-Wno-unused-function", *flags, h])
    expect("quern.h as C++", ["g++", "-std=c++11", "-x", "c++", "-pedantic", *flags, "include/quern.h"])
    expect("quern.h as strict C99", ["gcc", "-std=c99", "-x", "c", "-pedantic", *flags, "include/quern.h"])


def stage_build():
    """gcc release, clang with sanitizers: both with -Werror."""
    expect("build, gcc", make("all", "unit-build", "examples"), timeout=1800)
    expect("build, clang, ASan and UBSan", make("MODE=asan", "build/asan/quern", "unit-build", "replay-build"), timeout=1800)


def count_tap(name, status, output):
    """cmocka's TAP: one line per test. A crash in the middle is a failure of its own."""
    planned = sum(int(n) for n in re.findall(r"^1\.\.(\d+)", output, re.M))
    seen = 0
    for line in output.splitlines():
        m = re.match(r"(not ok|ok) \d+ - (\S+)(.*)", line)
        if not m:
            continue
        seen += 1
        if "SKIP" in m[3].upper():
            reason = re.search(r"skipped: ([^\n]*)", output)
            skip(f"{name} {m[2]}", reason[1] if reason else "no reason given")
        elif m[1] == "ok":
            ok()
        else:
            fail(f"{name} {m[2]}", output)
    if status != 0 and not re.search(r"^not ok", output, re.M):
        fail(f"{name} (exit status {status})", output)
    elif seen < planned or seen == 0:
        fail(f"{name}: {seen} of {planned} tests reported", output)


def run_units(build, label):
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP", ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1",
               UBSAN_OPTIONS="print_stacktrace=1")
    for source in sorted(glob.glob("tests/unit/test_*.c")):
        name = os.path.basename(source)[:-2]
        began = time.time()
        status, output = run([f"{build}/unit/{name}"], timeout=300, env=env)
        count_tap(f"{label} {name}", status, output)
        if time.time() - began > 20:
            print(f"  ({label} {name} took {time.time() - began:.0f} s)")


def stage_unit():
    run_units("build", "unit")


def stage_sanitizers():
    """The same tests under ASan and UBSan, the pool under TSan, the corpora of the fuzz targets."""
    run_units("build/asan", "asan")
    if os.path.exists("tests/unit/test_pool.c"):
        status, output = run(make("MODE=tsan", "build/tsan/unit/base-test_pool"))
        if status:
            fail("TSan build of the pool", output)
        else:
            # address randomisation beyond what TSan's shadow expects is a setting of newer kernels, not a race
            status, output = run(["setarch", "-R", "build/tsan/unit/base-test_pool"], timeout=300,
                                 env=dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP"))
            count_tap("tsan test_pool", status, output)
    for source in sorted(glob.glob("tests/fuzz/fuzz_*.c")):
        name = os.path.basename(source)[:-2]
        corpus = f"tests/fuzz/corpus/{name[5:]}"
        if not os.path.isdir(corpus):
            fail(f"{name} has no corpus {corpus}")
            continue
        expect(f"{name}: corpus", [f"build/asan/replay/{name}", corpus], timeout=300)


def stage_kernels():
    """Every kernel of this machine against its reference: one test each."""
    status, output = run(["build/quern", "probe", "--check", "--seed", "1"], timeout=600)
    good, bad = len(re.findall(r"^ok ", output, re.M)), re.findall(r"^FAILED +(\S+)", output, re.M)
    ok(good)
    for kernel in bad:
        fail(f"kernel {kernel}", output)
    if (status != 0 and not bad) or good + len(bad) == 0:
        fail(f"probe --check (exit status {status})", output)


def run_pytest(folder):
    report = f"build/{folder.replace('/', '-')}.xml"
    status, output = run([".venv/bin/python", "-m", "pytest", "-q", "--tb=short", "--timeout=300",
                          "-p", "no:cacheprovider",
                          f"--junitxml={report}", folder], timeout=1800)
    try:
        cases = list(xml.parse(report).getroot().iter("testcase"))
    except (OSError, xml.ParseError):
        fail(f"{folder}: pytest left no report (exit status {status})", output)
        return
    for case in cases:
        name = f"{folder} {case.get('classname', '').split('.')[-1]} {case.get('name')}"
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        if problem is not None:
            fail(name, problem.text or "")
        elif case.find("skipped") is not None:
            skip(name, case.find("skipped").get("message") or "no reason given")
        else:
            ok()
    if not cases:
        fail(f"{folder}: no tests (exit status {status})", output)


def stage_golden():
    run_pytest("tests/golden")


def stage_e2e():
    run_pytest("tests/e2e")


def stage_cuda():
    """CUDA code compiles, for the newest target, with whatever nvcc there is; needs no GPU."""
    status, nvcc = run(["tools/find_nvcc.sh"], timeout=600)
    if status:
        skip("CUDA kernels compile", "no nvcc here, and none could be fetched")
    else:
        expect("CUDA kernels compile", make("CUDA=1", "BUILD=build/cuda-check", "CUDA_ARCH=90a", "fatbins"), timeout=600)


def stage_browser():
    """Pages in a real browser; says what is missing where there is none."""
    run_pytest("tests/browser")


def stage_fetch():
    """What some tests want and can do without: they say so."""
    status, output = run(["tools/setup.sh", "models"], timeout=900)
    if status:
        print("\n".join("  " + line for line in output.strip().splitlines()[-8:]))


STAGES = {name[6:]: f for name, f in list(globals().items()) if name.startswith("stage_")}
ORDER = ["rules", "build", "fetch", "unit", "sanitizers", "kernels", "golden", "e2e", "browser", "cuda"]


def main():
    global jobs
    p = argparse.ArgumentParser()
    p.add_argument("-j", type=int, default=2)
    p.add_argument("stages", nargs="*")
    a = p.parse_args()
    jobs = a.j
    for name in a.stages or ORDER:
        began, before = time.time(), (passed, len(failed), len(skipped))
        STAGES[name]()
        print(f"{name:<12} {passed - before[0]:5d} passed {len(failed) - before[1]:3d} failed "
              f"{len(skipped) - before[2]:3d} skipped {time.time() - began:6.1f} s", flush=True)
    for s in skipped:
        print(f"skipped: {s}")
    for f in failed:
        print(f"failed: {f}")
    print(f"{passed} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""check_style.py - the limits of the house, as far as a script can see them: lengths of functions, files and lines, nesting,
calls that are banned, who may read the environment, allocate, exit or keep a global, and paths of somebody's machine.
Warnings are printed with -v; breaches always, and then the exit status is 1."""

import glob
import os
import re
import subprocess
import sys

FUNCTION, FILE, COLUMNS = (60, 100), (600, 1000), (125, 130)  # warn, fail
NESTING = (4, 6)
BANNED = r"\b(strcpy|strcat|stpcpy|sprintf|vsprintf|atoi|atol|atoll|atof|strtok|strtok_r|gets|alloca)\s*\("
# call -> folders (or files) that may make it, and why nobody else does
ONLY_IN = [
    (r"\b(getenv|secure_getenv)\s*\(", ("src/cli/", "src/hub/"), "the environment is an interface of the program, not of the library"),
    (r"(?<![_\w])(exit|abort|quick_exit)\s*\(", ("src/cli/",), "a library does not end its caller"),
    (r"\b(malloc|calloc|realloc|strdup|strndup|aligned_alloc|posix_memalign)\s*\(", ("src/base/",), "memory comes from base/mem.h"),
    (r"\bsetlocale\s*\(", ("src/cli/terminal.c",), "numbers are written with '.' everywhere"),
    (r"\b(printf|puts|putchar)\s*\(", ("src/cli/",), "only the program prints"),
    (r"\bassert\s*\(\s*0|\bassert\s*\(\s*false", (), "an assertion is a statement that can hold"),
]
GLOBALS_IN = ("src/base/", "src/cli/signals.c")  # signals.c: a handler reaches nothing else
SKIP_TABLE = re.compile(r"^(static )?const .*= \{\s*$|^(static )?const [^;]*\[\]\s*=\s*\{")
PATHS = re.compile(r"(?<![\w.])/(work|home|root|Users)/[\w.]")
HOSTS = re.compile(r"registry\.npmjs|files\.pythonhosted|pypi\.org/simple|deb\.debian\.org")

breaches, warnings = [], []


def judge(value, limits, where, what):
    if value > limits[1]:
        breaches.append(f"{where}: {what} {value}, at most {limits[1]}")
    elif value > limits[0]:
        warnings.append(f"{where}: {what} {value}, better at most {limits[0]}")


def strip_text(source):
    """The same lines without comments and without what stands in strings."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m[0]) if m[0].startswith("/") else m[0][0] + " " * (len(m[0]) - 2) + m[0][-1]
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, source, flags=re.S)


def check_functions(path, lines):
    begin = None
    for i, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            begin = i
        elif line.startswith("}") and begin:
            judge(i - begin - 1, FUNCTION, f"{path}:{begin}", "lines in a function:")
            begin = None
        elif begin and line.strip() and not line.lstrip().startswith(("#", "|", "&", "?", ":")):
            depth = 0
            if re.match(r"\s*(if|for|while|switch|do|return|else|\w+[\s(])", line):
                depth = (len(line) - len(line.lstrip())) // 4 - 1
            # continuation lines are aligned to a bracket above, so only control words are counted
            if re.match(r"\s*(if|for|while|switch|do)\b", line):
                judge(depth, NESTING, f"{path}:{i}", "nesting:")


def table_lines(lines):
    inside, n = False, 0
    for line in lines:
        inside = inside or bool(SKIP_TABLE.match(line))
        n += inside
        if line.startswith("};"):
            inside = False
    return n


def check_global(path, number, line):
    if path.startswith(GLOBALS_IN) or "const" in line or "inline" in line or "typedef" in line:
        return
    if re.match(r"\s*static\s+[^()]*(=|;|\[)", line) or re.match(r"(?!extern|struct|enum|union|return)[a-z_]\w*\s+\**\w+(\[\w*\])?\s*(=[^=].*)?;", line):
        breaches.append(f"{path}:{number}: a global that is not const: {line.strip()[:60]}")


def check_source(path):
    source = open(path, encoding="utf-8").read()
    lines, code = source.splitlines(), strip_text(source).splitlines()
    if not source.startswith("/*"):
        breaches.append(f"{path}: does not open with its purpose")
    if not path.endswith(".def"):
        judge(len(lines) - table_lines(lines), FILE, path, "lines outside tables:")
    check_functions(path, code)
    for number, (line, text) in enumerate(zip(lines, code), 1):
        judge(len(line), COLUMNS, f"{path}:{number}", "columns:")
        if "\t" in line or line != line.rstrip():
            breaches.append(f"{path}:{number}: a tab, or space at the end of the line")
        m = re.search(BANNED, text)
        if m:
            breaches.append(f"{path}:{number}: {m[1]} is banned")
        for pattern, places, why in ONLY_IN:
            m = re.search(pattern, text)
            if m and path.startswith("src/") and not path.startswith(places or ("?",)):
                breaches.append(f"{path}:{number}: {m[0].strip('( ')} here: {why}")
        check_global(path, number, text)


def all_files():
    p = subprocess.run(["git", "ls-files"], capture_output=True, text=True)
    return p.stdout.split() if p.returncode == 0 else [f for f in glob.glob("**/*", recursive=True) if os.path.isfile(f)]


def check_text(path):
    try:
        text = open(path, encoding="utf-8").read()
    except (UnicodeDecodeError, OSError):
        return
    for number, line in enumerate(text.splitlines(), 1):
        if (PATHS.search(line) or HOSTS.search(line)) and path != "tools/check_style.py":
            breaches.append(f"{path}:{number}: a machine's path or a registry's host: {line.strip()[:80]}")
        if re.search(r"\b(TODO|FIXME|XXX)\b", line) and path != "tools/check_style.py":
            breaches.append(f"{path}:{number}: something left to do: {line.strip()[:80]}")


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sources = sorted(glob.glob("src/**/*.[ch]", recursive=True) + glob.glob("include/*.h") + glob.glob("examples/*.c") +
                     glob.glob("src/**/*.def", recursive=True))
    for path in sources:
        check_source(path)
    for path in all_files():
        if not path.startswith("tests/data/") and not path.startswith("models/"):
            check_text(path)
    if "-v" in sys.argv:
        print("\n".join("warning: " + w for w in warnings))
    print("\n".join(breaches) if breaches else f"{len(sources)} files, {len(warnings)} warnings (-v shows them)")
    return 1 if breaches or not sources else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""check_includes.py - who may include whom. A folder of src/ includes itself, what the table allows, and quern.h; nobody
includes a .c file. Prints each breach; exit status 1 if there is one."""

import glob
import os
import re
import sys

LAW = {
    "base": set(),
    "trace": {"base"},
    "format": {"base", "trace"},
    "text": {"base"},
    "hub": {"base"},
    "kernel": {"base", "trace", "format"},
    "model": {"base", "trace", "format", "kernel", "text"},
    "engine": {"base", "trace", "format", "kernel", "model", "text"},
    "probe": {"base", "trace", "format", "kernel"},
    "report": {"base", "trace"},
    "serve": {"base", "trace"},
    "cli": {"base", "trace", "probe", "report", "serve", "hub"},
}


def breaches(path, own, allowed):
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        m = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
        if not m or m[1] == "quern.h":
            continue
        if m[1].endswith(".c"):
            yield f"{path}:{number}: includes a .c file, {m[1]}"
            continue
        if own is None:
            yield f"{path}:{number}: includes {m[1]}; only quern.h is public"
            continue
        if "/" not in m[1]:
            yield f"{path}:{number}: \"{m[1]}\" must be named from src/"
            continue
        folder = m[1].split("/")[0]
        if folder != own and folder not in allowed:
            yield f"{path}:{number}: {own}/ may not include {m[1]}"
        elif not os.path.exists(os.path.join("src", m[1])):
            yield f"{path}:{number}: there is no src/{m[1]}"


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found, seen = [], 0
    for path in sorted(glob.glob("src/**/*.[ch]", recursive=True) + glob.glob("src/**/*.def", recursive=True)):
        own = path.split("/")[1]
        seen += 1
        if own not in LAW:
            found.append(f"{path}: {own}/ is not in the law")
            continue
        found += breaches(path, own, LAW[own])
    for path in sorted(glob.glob("examples/*.c")):
        found += breaches(path, None, set())
    print("\n".join(found) if found else f"{seen} files keep the law")
    return 1 if found or not seen else 0


if __name__ == "__main__":
    sys.exit(main())

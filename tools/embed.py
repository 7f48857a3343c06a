#!/usr/bin/env python3
"""embed.py NAME FILE... - files as one C string constant `const char NAME[]` on stdout, one literal for each of their lines. The
build makes the page of the HTML report and its script from real files this way."""

import sys


def literal(line):
    out = []
    for byte in line.encode():
        c = chr(byte)
        out.append({"\\": "\\\\", '"': '\\"', "\n": "\\n", "?": "\\?"}.get(c) or (c if 32 <= byte < 127 else f"\\{byte:03o}"))
    return '"' + "".join(out) + '"'


def main():
    name, files = sys.argv[1], sys.argv[2:]
    print(f"extern const char {name}[];\nconst char {name}[] =")
    for path in files:
        with open(path, encoding="utf-8") as f:
            for line in f:
                print("    " + literal(line))
    print('    "";')


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints the size and the shape of the product's code: tree_figures.py [TREE ...], a column for each tree.

Lines of code are lines of base, vmm, symbolizer and profile that are neither blank nor comment. A function
reaches from a brace in column 0 to the next closing one.
"""

import os
import re
import sys
from statistics import median

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("base", "vmm", "symbolizer", "profile")
SHORT = 100


def without_comments(text):
    """Comments are gone, strings stay, and lines keep their numbers."""
    def keep(m):
        return m.group(0) if m.group(0)[0] in "\"'" else re.sub(r"[^\n]", "", m.group(0))
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", keep, text, flags=re.S)


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))] if values else 0


def functions(lines):
    """The length of each function."""
    start = None
    for number, line in enumerate(lines):
        if line == "{":
            start = number
        elif line == "}" and start is not None:
            yield number - start - 1
            start = None


def prefixed(path, code):
    """(functions of a header, those of them that begin with the word of its file or folder)."""
    names = re.findall(r"^(?!static|typedef|#)[\w ]+[ *](\w+)\((?:[^()]|\([^()]*\))*\)[^;{]*;", code, re.M)
    words = [os.path.splitext(os.path.basename(path))[0], os.path.basename(os.path.dirname(path))]
    return len(names), sum(any(n == w or n.startswith(w + "_") for w in words) for n in names)


def measure(top):
    code = includes = declared = named = 0
    length, sizes = [], []
    for folder in FOLDERS:
        for at, _, files in os.walk(os.path.join(top, folder)):
            for name in files:
                if not name.endswith((".c", ".h", ".cc", ".S")):
                    continue
                path = os.path.join(at, name)
                with open(path, encoding="utf-8") as f:
                    text = f.read()
                bare = without_comments(text)
                code += sum(bool(line.strip()) for line in bare.split("\n"))
                includes += len(re.findall(r"^#include", bare, re.M))
                if name.endswith(".c"):
                    sizes.append(text.count("\n"))
                    length += functions(text.split("\n"))
                elif name.endswith(".h"):
                    n, ok = prefixed(path, bare)
                    declared, named = declared + n, named + ok
    return [("lines of code", code), ("lines that include", includes), (".c files", len(sizes)),
            (".c file, lines, median", int(median(sizes))), (".c file, lines, 90th percentile", percentile(sizes, 0.9)),
            (".c files below %d lines" % SHORT, sum(s < SHORT for s in sizes)), ("functions", len(length)),
            ("function, lines, median", int(median(length))), ("function, lines, 90th percentile", percentile(length, 0.9)),
            ("functions in headers", declared), ("of these with the word of file or folder, %", 100 * named // max(declared, 1))]


trees = [measure(t) for t in sys.argv[1:] or [TOP]]
for row in zip(*trees):
    print("%-44s" % row[0][0] + "".join(" %9d" % value for _, value in row))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules about the source that no compiler checks (CONTRIBUTING.md):

* a directory includes headers only of itself and of what stands left of it in
  base <- {vmm, symbolizer} <- profile, each by its path from the top;
* a .c file includes its own header first, and each header compiles alone;
* what is not a command neither prints to stdout nor exits;
* each source begins with an SPDX line and has no more than 800 lines.

Prints one line for each break of a rule, as file:line: text.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LAYERS = {
    "base": {"base"},
    "vmm": {"base", "vmm"},
    "symbolizer": {"base", "symbolizer"},
    "profile": {"base", "vmm", "symbolizer", "profile"},
}
MAX_LINES = 800
SPDX = "SPDX-License-Identifier: GPL-2.0-or-later"
SOURCES = (".c", ".cc", ".h", ".S", ".lds", ".mk", ".sh", ".py", ".pl", ".config")
INCLUDE = re.compile(r'\s*#\s*include\s+(["<])([^">]+)[">]')
SPEAKS = re.compile(r"(?<![\w.>])(printf|puts|putchar|perror|exit|_exit|abort)\s*\(")
COMMANDS = re.compile(r"profile/(main|cmd_\w+)\.c$")

problems = []


def problem(path, line, text):
    problems.append("%s:%d: %s" % (path, line, text))


def sources():
    """Paths from the top, of all that people write."""
    for top, dirs, files in os.walk(TOP):
        at = os.path.relpath(top, TOP)
        dirs[:] = sorted(d for d in dirs if d != ".git" and d != "corpus" and
                         not (at == "." and d.startswith("build")))
        for name in sorted(files):
            path = os.path.normpath(os.path.join(at, name))
            if name.endswith(SOURCES) or path in ("Makefile", os.path.join(".ci", "run")):
                yield path


def without_comments(text):
    """Comments and strings become blanks; lines keep their numbers."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def check_includes(path, lines):
    layer = path.split("/")[0]
    if layer not in LAYERS:
        return
    first = True
    own = os.path.splitext(path)[0] + ".h"
    for number, line in enumerate(lines, 1):
        m = INCLUDE.match(line)
        if not m:
            continue
        kind, what = m.groups()
        if first and path.endswith((".c", ".cc")) and os.path.exists(os.path.join(TOP, own)) and what != own:
            problem(path, number, 'includes %s first, expected its own header "%s"' % (what, own))
        first = False
        if kind == "<":
            continue
        if not os.path.exists(os.path.join(TOP, what)):
            problem(path, number, '"%s" is not a path from the top directory' % what)
        elif what.split("/")[0] not in LAYERS[layer]:
            problem(path, number, '%s must not see "%s"' % (layer, what))


def check_header(path):
    compiler = os.environ.get("CC", "gcc").split()
    p = subprocess.run(compiler + ["-std=gnu11", "-D_GNU_SOURCE", "-I.", "-Wall", "-Wextra", "-Werror",
                                   "-fsyntax-only", "-include", path, "-x", "c", "/dev/null"],
                       cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return path, p.returncode, p.stdout.strip().split("\n")[0]


def main():
    headers, count = [], 0
    for path in sources():
        count += 1
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            text = f.read()
        lines = text.split("\n")
        head = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
        if SPDX not in head:
            problem(path, 1, "does not begin with an SPDX line")
        if text.count("\n") > MAX_LINES:
            problem(path, MAX_LINES, "%d lines, at most %d" % (text.count("\n"), MAX_LINES))
        if not path.endswith((".c", ".cc", ".h")):
            continue
        check_includes(path, lines)
        layer = path.split("/")[0]
        if layer in LAYERS and path.endswith(".h"):
            headers.append(path)
        if layer in LAYERS and not COMMANDS.search(path):
            for number, line in enumerate(without_comments(text).split("\n"), 1):
                m = SPEAKS.search(line)
                if m:
                    problem(path, number, "calls %s(): only commands print and exit" % m.group(1))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, status, message in pool.map(check_header, headers):
            if status:
                problem(path, 1, "does not compile alone: " + message)
    for p in problems:
        print(p)
    print("%d files, %d headers, %d problems" % (count, len(headers), len(problems)))
    return 1 if problems else 0


sys.exit(main())

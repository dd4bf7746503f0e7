#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""tests/check-source.py finds what breaks a rule: the changes below, in a copy of the tree."""

import os
import re
import shutil

import e2e
from e2e import check

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHECK = os.path.join(TOP, "tests", "check-source.py")
GATE = os.path.join("profile", "gate", "gate.c")


def problems():
    p = e2e.run(CHECK, "--includes-only", "copy")
    last = re.search(r"(\d+) files, \d+ headers, (\d+) problems\n$", p.out)
    if not check(last and int(last.group(1)) > 700, "check-source.py: " + p.out[-300:] + p.err):
        return []
    found = p.out.split("\n")[:-2]
    check(len(found) == int(last.group(2)) and p.status == (1 if found else 0),
          "%d problems, %s told, status %d" % (len(found), last.group(2), p.status))
    return found


def include(path, header):
    def change():
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:    # behind the own header
            f.write(re.sub(r'(#include "[^"]*"\n)', r'\1#include "%s"\n' % header, text, count=1))
    return change


def add(path):
    def change():
        with open(path, "w") as f:
            f.write("/* SPDX-License-Identifier: GPL-2.0-or-later */\n")
    return change


def edit(path, old, new):
    def change():
        with open(path) as f:
            text = f.read()
        check(old in text, "no %s in %s" % (old, path))
        with open(path, "w") as f:
            f.write(text.replace(old, new, 1))
    return change


CHANGES = [
    ("a page that no index names", "docs/lost.md", add("docs/lost.md"), "does not link to lost.md"),
    ("a link to a heading that is not there", "docs/README.md",
     edit("docs/README.md", "(faq.md)", "(faq.md#no-such-question)"), "is no heading of docs/faq.md"),
    ("a name that is not imported", "tests/e2e/exact_counts.py",
     edit("tests/e2e/exact_counts.py", "import subprocess\n", ""), "uses subprocess, which it does not have"),
    ("an import in vain", "tests/e2e/exact.py", edit("tests/e2e/exact.py", "import time\n", "import time\nimport uuid\n"),
     "imports uuid and does not use it"),
    ("a forbidden include", GATE, include(GATE, "vmm/vm.h"), "profile/gate must not see"),
    ("a header that is not public", GATE, include(GATE, "profile/stats/modes.h"), "is not public in"),
    ("a file in profile/", "profile/lost.c", add("profile/lost.c"), "is in no room"),
    ("a room without README", "profile/gate/README.md", lambda: os.unlink("profile/gate/README.md"), "missing"),
    ("a README of one line", "profile/gate/README.md",
     lambda: open("profile/gate/README.md", "w").write("# gate\n"), "1 lines"),
    ("a circle in the table", "docs/architecture.md",
     lambda: [edit("docs/architecture.md", "| `profile/stats` |  |", "| `profile/stats` | gate |")(),
              include("profile/stats/change.c", "profile/gate/gate.h")()], "reaches itself"),
    ("a room that must work without a machine", "docs/architecture.md",
     lambda: [edit("docs/architecture.md", "| `profile/stats` |  |", "| `profile/stats` | vmm |")(),
              include("profile/stats/change.c", "vmm/vm.h")()], "reaches vmm"),
    ("a function of 101 lines", GATE,
     edit(GATE, "\nint ", "\nvoid said(int *at);\nvoid said(int *at)\n{\n%s}\n\nint " % ("\t*at += 1;\n" * 101)),
     "a function of 101 lines"),
    ("a function of seven parameters", GATE,
     edit(GATE, "\nint ", "\nstatic void said(int (*a)(int, int), int b,\n\t\t int c, int d, int e, int f, int g)\n"
          "{\n}\n\nint "), "said() has 7 parameters"),
    ("a bare verb", GATE, edit(GATE, "\nint ", "\nstatic int take(void)\n{\n\treturn 0;\n}\n\nint "),
     "lacks the word"),
    ("a row that names a room in vain", "docs/architecture.md",
     edit("docs/architecture.md", "| `profile/stats` |  |", "| `profile/stats` | libvirt |"), "includes nothing of it"),
    ("a file that prints", GATE, edit(GATE, "\nint ", "\nvoid said(void);\nvoid said(void)\n{\n\tputs(\"\");\n}\n\nint "),
     "only commands print"),
    ("a comment that names a file that is gone", GATE, edit(GATE, "\nint ", "\n/* As vmm/lost.c has it. */\nint "),
     "names vmm/lost.c"),
    ("a link to a page that is gone", "docs/README.md", lambda: os.unlink("docs/tour.md"), "links to tour.md"),
]


def copy():
    shutil.rmtree("copy", ignore_errors=True)
    for at in ("base", "vmm", "guest", "symbolizer", "profile", "docs", "tests"):
        shutil.copytree(os.path.join(TOP, at), os.path.join("copy", at), ignore=shutil.ignore_patterns("corpus"))


copy()
check(problems() == [], "the tree itself: %s" % problems())
left = CHANGES
while left:
    # At once as many as do not change the same place; what goes into GATE stands one behind the other.
    together = {c[1]: c for c in reversed(left) if c[1] != GATE}
    batch = [c for c in left if c[1] == GATE or c is together[c[1]]]
    left = [c for c in left if c not in batch]
    copy()
    os.chdir("copy")
    for _, _, change, _ in batch:
        change()
    os.chdir("..")
    found = problems()
    for title, place, _, words in batch:
        check(any(words in line for line in found), "%s (%s) was not found: %s" % (title, place, found))
e2e.finish("%d broken rules found" % len(CHANGES))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 1 s
# tests: not svm, files
"""kvmprof scan on a directory with all that is in the way: what is no ELF file, cut short,
without an id, unreadable, a pipe, a loop of symbolic links, a name with a newline."""

import json
import os
import re
import shutil

import e2e
from e2e import check

e2e.need_tool("gcc")
os.makedirs("tree/deep/er")
with open("program.c", "w") as f:
    f.write("void _start(void) { for (;;) ; }\n")


def build(path, seed, *flags):
    p = e2e.run("gcc", "-nostdlib", "-static", "-Wl,--build-id=%s" % seed, *flags, "program.c", "-o", path)
    check(p.status == 0, "gcc: " + p.err)


build("tree/a", "0x" + "ab" * 20)
build("tree/deep/b c", "0x" + "0123456789abcdef")
build("tree/deep/er/too", "0x" + "ab" * 20)
build("tree/no-id", "none")
build("tree/long-id", "0x" + "cd" * 30)
build("tree/new\nline", "0x" + "ef" * 20)
shutil.copy("tree/a", "tree/headers-beyond")
with open("tree/headers-beyond", "r+b") as f:
    f.seek(32)
    f.write(b"\xff" * 16)
with open("tree/a", "rb") as f, open("tree/cut", "wb") as g:
    g.write(f.read(80))
with open("tree/text", "w") as f:
    f.write("hello\n")
with open("tree/empty", "w"):
    pass
with open("tree/magic", "wb") as f:
    f.write(b"\x7fELF")
os.mkfifo("tree/pipe")
os.symlink("..", "tree/deep/loop")
os.symlink("a", "tree/link")
os.symlink("/nowhere", "tree/dangling")
os.makedirs("outside")
build("outside/secret", "0x" + "99" * 20)
os.symlink(os.path.abspath("outside"), "tree/out")
deep = "tree/" + "d/" * 80
os.makedirs(deep)
build(deep + "x", "0x" + "77" * 20)
top = os.path.abspath("tree")
WANT = ["0123456789abcdef %s/deep/b c" % top, "%s %s/a" % ("ab" * 20, top), "%s %s/deep/er/too" % ("ab" * 20, top)]

p = e2e.kvmprof("scan", "tree")
check(p.status == 0 and p.out.splitlines() == WANT, "scan: status %d: %s%s" % (p.status, p.out, p.err))
check(re.search(r"\d+ files, 3 with a build id", p.err) and "2 left out" in p.err, "totals: " + p.err)
check("could not be read" not in p.err, "unreadable: " + p.err)

p = e2e.kvmprof("scan", "--json", "tree")
facts = json.loads(p.out)
check(p.status == 0 and not p.err and ["%(build_id)s %(path)s" % m for m in facts["map"]] == WANT and
      (facts["with_build_id"], facts["left_out"], facts["unreadable"], facts["first_unreadable"]) == (3, 2, 0, None) and
      facts["files"] > 3, "--json: %s%s" % (p.out, p.err))

# Twice the same, through a link, as a file: each path once, and the same text in a file.
os.symlink("tree", "way-in")
p = e2e.kvmprof("scan", "-o", "map", "-x", "tree", "way-in", "tree/a")
with open("map") as f:
    text = f.read()
check(p.status == 0 and text.splitlines() == WANT and "wrote map" in p.err, "scan -o: " + p.err + text)
check(not e2e.leftovers(), "left behind: %s" % e2e.leftovers())

# What can't be read is told, and is no failure; root reads everything.
if os.geteuid():
    os.chmod("tree/a", 0)
    p = e2e.kvmprof("scan", "tree")
    check(p.status == 0 and "1 could not be read; the first: %s/a: Permission denied" % top in p.err,
          "unreadable: " + p.err)
    os.chmod("tree/a", 0o755)

with open("map", "w") as f:
    f.write("old\n")
for wrong, status, words in ((["scan"], 2, "which directories"), (["scan", "--no"], 2, "unknown option"),
                             (["scan", "-o"], 2, "needs a value"), (["scan", "missing"], 1, "missing"),
                             (["scan", "-o", "map", "tree", "missing"], 1, "No such file"),
                             (["scan", "-o", "no/where", "tree"], 1, "no/where"),
                             (["scan", "tree/pipe"], 1, "neither")):
    p = e2e.kvmprof(*wrong)
    check(p.status == status and words in p.err and not p.out and p.err.count("\n") == 1,
          "%s: status %d: %s" % (wrong, p.status, p.err))
with open("map") as f:
    check(f.read() == "old\n", "a failed scan changed the map that was there")
check(not e2e.leftovers(), "left behind: %s" % e2e.leftovers())
e2e.finish("%d entries" % len(WANT))

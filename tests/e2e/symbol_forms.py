#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 9 s
# tests: not svm, disk
"""Names for a stripped kernel that is not Linux, from nm's output in its several forms;
and a file of another program is refused, before the guest is started."""

import os
import re

import e2e
from e2e import check

FORMS = [("nm -n", ["-n"]), ("nm -CS", ["-CS"]), ("nm -P", ["-P"])]

e2e.need_kvm()
e2e.need_tool("nm")
e2e.need_tool("strip")
demo = os.path.join(e2e.BUILD, "guest", "demo.elf")
e2e.run("strip", "-o", "stripped.elf", demo)


def write(name, text):
    with open(name, "w") as f:
        f.write(text)
    return name


def run(symbols):
    boot = e2e.Boot("stripped.elf", "-o", "out.data", "--append", "seconds=2", "--symbols", symbols).wait(90)
    return boot


files = [(what, write("demo%d" % i, e2e.run("nm", *(args + [demo])).out))
         for i, (what, args) in enumerate(FORMS)]
plain = re.findall(r"^([0-9a-f]+) \S (.*)$", e2e.run("nm", demo).out, re.M)
files.append(("a list", write("list", "".join("0x%s %s\n" % p for p in plain))))
for what, path in files:
    boot = run(path)
    if not check(boot.status == 0, "%s: status %d: %s" % (what, boot.status, boot.err)):
        continue
    got = {n for s in e2e.parse_script(e2e.kvmprof("script", "-i", "out.data").out)
           for n in s.stack.split(";")}
    missing = sorted(n for n in ("left_leaf", "demo_main", "tree_top") if n not in got)
    check(not missing, "%s: no %s among %s" % (what, missing, sorted(got)[:20]))

# Another program's; this one's, moved; and too little of it.
moved = "".join("%016x T %s\n" % (int(a, 16) + 0x20, n) for a, n in plain)
wrong = [("another program", write("other", e2e.run("nm", e2e.KVMPROF).out), "is not the symbol file"),
         ("moved", write("moved", moved), "is not the symbol file"),
         ("one line", write("one", "ffffffff81000000 _text\n"), "is not the symbol file"),
         ("no list", write("none", "hello world\n"), "expected \"address type name\"")]
for what, path, word in wrong:
    boot = run(path)
    check(boot.status not in (0, None) and word in boot.err, "%s: status %s: %s" % (what, boot.status, boot.err))
    check(len(boot.err.strip().split("\n")) == 1, "%s: more than a line: %s" % (what, boot.err))
    check(not boot.lines, "%s: the guest was started" % what)
e2e.finish("%d forms, %d refused" % (len(files), len(wrong)))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 2700 s: all
# tests: not svm, disk
"""Functions, files and lines of Python in a guest's program, which knows its own stacks
(python_program.py): what `run --python` shows of it, read by stock perf, has been one of them.

    python_frames.py KVMPROF SCRATCH [PYTHON...]     (/usr/bin/python3)
    python_frames.py KVMPROF SCRATCH debian13        Debian 13's (scripts/fetch-python.sh)
    python_frames.py KVMPROF SCRATCH all             both, and each CPython 3.11 to 3.13 of this machine;
                                                     one of them on Debian's kernel 6.12, too
"""
import glob
import os
import re
import shutil
import sys

import e2e
from e2e import check, say
from python_root import PROGRAM, make_root
from python_truth import debian13, judge

SECONDS = 8
PLACES = ("/usr/bin/python3.1[1-3]", "/usr/local/bin/python3.1[1-3]",
          "/root/.pyenv/versions/3.1[1-3].*/bin/python3.1[1-3]")


def try_python(kernel, python, there=None, of=""):
    """python: its path in the guest; there: a root directory that has it, else it is this machine's."""
    name = os.path.basename(python) + ("-debian13" if there else "") + of
    root = os.path.abspath("root-" + name)
    if there:
        shutil.copytree(there, root, symlinks=True)
        shutil.copy2(PROGRAM, root + "/program.py")
    else:
        make_root(python, root)
    boot = e2e.Boot(kernel, "-m", "1G", "--rootfs", root, "--python", "--cwd", "/", "-o", name + ".data", "--",
                    python, "/program.py", SECONDS).wait(700)
    shutil.rmtree(root)
    check(boot.status == 0, "%s: kvmprof ended with %s: %s" % (name, boot.status, boot.err[-1000:]))
    told = re.search(r"Python: (\d+) programs; (\d+) samples with (\d+) frames of (\d+) functions", boot.err)
    for line in re.findall(r"^.*Python.*$", boot.err, re.M):
        say(line)
    check(told and int(told.group(1)) == 1 and int(told.group(3)) > int(told.group(2)),
          "%s: the summary does not tell of Python: %s" % (name, boot.err))
    judge(name, name + ".data", boot.text())


e2e.need_kvm()
e2e.need_tool("perf")
asked = sys.argv[3:] or [os.path.realpath("/usr/bin/python3")]
roots = [debian13()] if asked in (["all"], ["debian13"]) else []
if asked == ["all"]:
    asked = [p for place in PLACES for p in sorted(glob.glob(place))]
asked = [p for p in asked if os.path.exists(p) and re.search(r"3\.1[1-3]$", p)]
roots = [r for r in roots if r]
if not asked and not roots:
    e2e.skip("no CPython 3.11 to 3.13 here")
vmlinux = os.path.join(e2e.built_kernel("full"), "vmlinux")
for one in asked:
    try_python(vmlinux, one)
for one in roots:
    try_python(vmlinux, "/usr/bin/python3.13", one)
tries = len(asked) + len(roots)
if sys.argv[3:] == ["all"]:
    image, why = e2e.fetched_kernel("6.12")
    if image and asked:
        try_python(image, asked[-1], None, "-6.12")
        tries += 1
    elif image:
        try_python(image, "/usr/bin/python3.13", roots[-1], "-6.12")
        tries += 1
    else:
        e2e.left_out("kernel 6.12: " + why)
e2e.finish("%d runs" % tries)

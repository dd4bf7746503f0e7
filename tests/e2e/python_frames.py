#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions, files and lines of Python in a guest's program, which knows its own stacks
(python_program.py): what `run --python` shows of it, read by stock perf, has been one of them.

    python_frames.py KVMPROF SCRATCH [PYTHON...]     (/usr/bin/python3)
    python_frames.py KVMPROF SCRATCH debian13        Debian 13's (scripts/fetch-python.sh)
    python_frames.py KVMPROF SCRATCH all             both, and each CPython 3.11 to 3.13 of this machine;
                                                     one of them on Debian's kernel 6.12, too
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys

import e2e
from e2e import check, say
from python_root import PROGRAM, make_root

SECONDS = 8
PLACES = ("/usr/bin/python3.1[1-3]", "/usr/local/bin/python3.1[1-3]",
          "/root/.pyenv/versions/3.1[1-3].*/bin/python3.1[1-3]")
# The last frames of a stack are the first ones of perf's list.
FRAME = re.compile(r"^\s+[0-9a-f]+ py::(.*)\+0x([0-9a-f]+) \(\[python\]\)$")
HEAD = re.compile(r"^python")


def truth(console):
    """Its own stacks, and the first line of each function by its name and file."""
    known, first = set(), {}
    for line in console.split("\n"):
        if line.startswith("known "):
            known.add(line[6:].replace("/program.py", "P"))
        m = re.match(r"first (.*) (\d+)$", line)
        if m:
            first[m.group(1).replace("/program.py", "P")] = int(m.group(2))
    return known, first


def stacks(text):
    """The frames of Python of each sample of the program, outermost first; [] where it has none."""
    for block in text.split("\n\n"):
        lines = block.strip("\n").split("\n")
        if HEAD.match(lines[0]):
            found = (FRAME.match(line) for line in lines[1:])
            yield [(m.group(1).replace("/program.py", "P"), int(m.group(2), 16)) for m in found if m][::-1]


def judge(name, data, console):
    known, first = truth(console)
    if not check("end of truth" in console and len(known) > 100, "%s: the guest tells %d stacks:\n%s" %
                 (name, len(known), console[-1500:])):
        return
    text = subprocess.run(["perf", "script", "-i", data, "-F", "comm,tid,time,ip,sym,symoff,dso"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode(errors="replace")
    wrong, seen = collections.Counter(), collections.Counter()
    lines, without = set(), 0
    for frames in stacks(text):
        at = [i for i, (function, _) in enumerate(frames) if function == "run_for:P"]
        if not at or frames[-1][0] in ("run_for:P",):
            without += not frames
            continue
        stack = ";".join("%s:%d" % (f, first.get(f, -1 << 20) + off) for f, off in frames[at[-1] + 1:])
        # The one run for which it was traced, and what tells of it.
        if any(w in stack for w in ("note:P", "chain:P", "name:P")):
            continue
        (seen if stack in known else wrong)[stack] += 1
        lines |= {w for w in stack.split(";")}
    total = sum(seen.values())
    say("%s: %d stacks as the program knows them, %d different ones of %d, %d places; %d wrong; %d samples without"
        " frames of Python" % (name, total, len(seen), len(known), len(lines), sum(wrong.values()), without))
    for stack, n in wrong.most_common(5):
        say("wrong, %d times: %s" % (n, stack))
    check(not wrong, "%s: %d stacks that the program never had" % (name, sum(wrong.values())))
    check(total > 300 and len(seen) > 40, "%s: only %d stacks, %d different ones" % (name, total, len(seen)))
    for function in ("deep", "Shape.inner", "by_c.<locals>.<lambda>", "made", "replaced", "n\u00e4me"):
        check(any(function + ":P:" in s for s in seen), "%s: %s() is in no stack" % (name, function))


def debian13():
    """A root directory with Debian 13's Python, or None where it cannot be had."""
    p = subprocess.run([os.path.join(e2e.TOP, "scripts", "fetch-python.sh")], stdout=subprocess.PIPE, check=False,
                       universal_newlines=True)
    if p.returncode == 3:
        e2e.left_out("Debian 13's Python cannot be fetched")
    else:
        check(p.returncode == 0, "fetch-python.sh ended with %d" % p.returncode)
    return p.stdout.strip() if p.returncode == 0 else None


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

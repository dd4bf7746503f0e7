# SPDX-License-Identifier: GPL-2.0-or-later
"""What a profile shows of python_program.py, against what that program told of itself; and Debian 13's Python."""
import collections
import os
import re
import subprocess

import e2e
from e2e import check, say

# The last frames of a stack are the first ones of perf's list.
FRAME = re.compile(r"^\s+[0-9a-f]+ py::(.*)\+0x([0-9a-f]+) \(\[python\]\)$")
HEAD = re.compile(r"^python")
FUNCTIONS = ("deep", "Shape.inner", "by_c.<locals>.<lambda>", "made", "replaced", "n\u00e4me")


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


def judge(name, data, console, least=(300, 40, FUNCTIONS)):
    """least: how many stacks there must be, how many different ones, and what is in one of them."""
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
    check(total > least[0] and len(seen) > least[1], "%s: only %d stacks, %d different ones" % (name, total, len(seen)))
    for function in least[2]:
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

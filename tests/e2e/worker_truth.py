# SPDX-License-Identifier: GPL-2.0-or-later
"""What the worker, a guest's program (guest/worker), says of itself, and samples held against it."""

import re
from collections import Counter

import e2e
from e2e import check, say

# Frames that lead from the program's first instruction to main() or a thread's function.
BELOW = {"main", "run_role", "start_thread", "clone3", "__clone3", "__libc_start_call_main",
         "__libc_start_main_impl", "__libc_start_main", "_start",
         "[unknown]"}


def told(text):
    """{tid: (pid, comm, [frames outermost first])} of the threads that told what they do."""
    truth = {}
    for m in re.finditer(r"worker: truth (\d+) (\d+) (\S+) (.*)", text):
        truth[int(m.group(2))] = (int(m.group(1)), m.group(3), m.group(4).strip().split(";"))
    return truth


def perf_samples(path):
    """(comm, pid, tid, [(symbol, dso), ...] innermost first) of each sample, as perf has them."""
    p = e2e.run("perf", "script", "-i", path, "-F", "comm,pid,tid,ip,sym,dso", timeout=300)
    check(p.status == 0, "perf script: " + p.err)
    head, frames = None, []
    for line in p.out.split("\n") + [""]:
        if not line.strip():
            if head:
                yield head + (frames,)
            head, frames = None, []
        elif not head:
            m = re.match(r"\s*(.*?)\s+(-?\d+)/(-?\d+)\s*$", line)
            head = (m.group(1), int(m.group(2)), int(m.group(3))) if m else None
        else:
            m = re.match(r"\s*[0-9a-f]+ (.*) \((.*)\)$", line)
            # A symbol's version is not part of the function's name: perf shows it where a debug file has it so.
            frames.append((re.sub(r"@@?GLIBC_[\d.]+$", "", m.group(1)), m.group(2)) if m else (line.strip(), "?"))


def check_stacks(truth, samples, least, what=""):
    """Of a profile, which `what` names: more than `least` stacks are there, one in 1,000 at most is not
    what the guest says, one in 20 ends early. (equal, short, wrong)"""
    good, short, bad = compare_stacks(truth, samples)
    check(good > least, "%sonly %d user stacks could be compared" % (what, good))
    check(bad * 1000 <= good, "%s%d of %d user stacks are not what the guest says" % (what, bad, good + bad))
    check(short * 20 <= good, "%s%d of %d user stacks end early" % (what, short, good + short))
    return good, short, bad


def check_tasks(truth, tasks):
    """`kvmprof ps --json` lists each thread that told what it does, by its name and process: {tid: task}."""
    tasks = {t["tid"]: t for t in tasks}
    for tid, (pid, comm, _) in truth.items():
        t = tasks.get(tid, {})
        check(t.get("comm") == comm and t.get("pid") == pid, "ps: thread %d (%s) is %s" % (tid, comm, t))
    return tasks


def compare_stacks(truth, samples):
    """Innermost frames of a thread that spins are known; so are those below its system calls.
    A stack may end early (in entry code the program's part is not always at hand), but what it
    has must be so."""
    good, short, wrong = 0, 0, Counter()
    for comm, pid, tid, frames in samples:
        if tid not in truth or truth[tid][0] != pid or truth[tid][1] != comm:
            continue
        want = [f for f in truth[tid][2] if f not in ("main", "jit_loop at line 7")]
        user = [s for s, dso in frames if "kernel.kallsyms" not in dso]
        if not user or not want or want[-1] not in user or "time_is_left" in user:
            continue  # starting, ending, or asking what time it is
        at = user.index(want[-1])
        got = user[at:at + len(want)]
        rest = set(user[at + len(want):])
        if got == want[::-1] and rest <= BELOW:
            good += 1
        elif got == want[::-1][:len(got)] and len(got) < len(want):
            short += 1
        else:
            wrong[" < ".join(user)] += 1
    for stack, n in wrong.most_common(5):
        say("%5d of %s" % (n, stack))
    return good, short, sum(wrong.values())

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 13 s
# tests: beside, 10 s: 5 saves
# tests: slow, at most 5400 s: 1000
# tests: slow, at most 5400 s: 1000 saves
# tests: not svm, files
"""Runs that are killed at any moment, from their first instruction to behind their end: what was written
is read, lacks a second at most, and lies in the one file that docs/perf-data.md names; nothing else is left.

    faults_kill.py KVMPROF SCRATCH [RUNS [saves]]

With `saves` a snapshot is written by each run, over one that is there: that one stays, or the new one is whole, and
nothing else is there (attach_stops.py has kills of attach)."""

import json
import os
import random
import shutil
import time

import e2e
from e2e import check, say

RUNS = int(e2e.EXTRA[0]) if e2e.EXTRA else 10
MOST_S = 2.5     # behind it the guest has ended
GUEST_S = 1.5
WAYS = ([], ["--single-file", "--buildid-dir", "ids"], ["--disk", "disk.img,overlay=over"])


def what_is_left(out):
    """The profile, complete or not, and its report; None where there is none."""
    left = sorted(f for f in os.listdir(".") if f.startswith(out))
    check(len(left) <= 1 and all(f == out or f.startswith(out + ".tmp-") for f in left), "left: %s" % left)
    if not left:
        return None, None
    data = os.path.join(left[0], "data")
    if os.path.isdir(left[0]) and (not os.path.exists(data) or not os.path.getsize(data)):
        return left[0], None    # killed before the file was made, or had its header
    p = e2e.kvmprof("report", "--json", "-i", left[0])
    # Killed before its first sample: that is an error of `report`, which says so. It is one of a temporary file alone, and
    # killed() checks that no sample is missed there.
    empty = p.status == 1 and left[0] != out and "there are no samples in it; PARTIAL" in p.err
    if not check(p.status == 0 or empty, "%s can't be read: %s" % (left, p.err)):
        return left[0], None
    r = json.loads(p.out)
    check((r["samples"] == 0) == empty and (r["partial"] or not empty), "%s: status %d with %d samples: %s" % (
        left, p.status, r["samples"], p.err))
    return left[0], r


def clean():
    for f in os.listdir("."):
        if f.startswith(("p", "over", "ids")):
            shutil.rmtree(f) if os.path.isdir(f) else os.remove(f)


def killed(moment, way):
    """Which of the cases it was."""
    clean()
    before, temporary = set(os.listdir(".")), set(os.listdir(os.environ["TMPDIR"]))
    boot = e2e.Boot("-o", "p", *way, *([] if "--single-file" in way else ["--no-buildid-cache"]),
                    "--append", "mode=default seconds=%d" % (GUEST_S + 1))
    while time.monotonic() - boot.start < moment and boot.process.poll() is None:
        time.sleep(0.005)
    ran = boot.process.poll() is None
    boot.process.kill()
    at = time.monotonic() - boot.start
    boot.wait(20)
    name, r = what_is_left("p")
    new = set(os.listdir(".")) - before - {name, "over", "ids"}
    check(not new, "%.2f s: there are %s, too" % (moment, new))
    check(set(os.listdir(os.environ["TMPDIR"])) == temporary, "%.2f s: something is left in TMPDIR" % moment)
    if not ran:
        check(name == "p" and r and not r["partial"], "%.2f s: it had ended, and left %s" % (moment, name))
        return "ended"
    started = boot.seen("demo: start")
    if name is None or (name != "p" and r is None and os.path.isdir(name)):
        check(started is None or at - started < 2, "%.2f s: nothing is left" % moment)
        return "nothing"
    if r and started is not None:
        # A second is promised; another one is for a host under load.
        span = (r["last_ns"] - r["first_ns"]) / 1e9 if r["samples"] else 0
        check(span > at - started - 2, "%.2f s: samples of %.2f s, %.2f s after the guest's start" % (
            moment, span, at - started))
    # Between its last byte and its name a file is whole already, but only behind the guest's end.
    check(name == "p" or (r and r["partial"]) or boot.seen("demo: done") is not None,
          "%.2f s: %s does not say that it is not whole" % (moment, name))
    return "cut"


def save(seconds):
    return e2e.Boot("-q", "-m", "64M", "-o", "p", "--no-buildid-cache", "--snapshot-save", "s.snap", "--snapshot-on",
                    "^demo: start", "--append", "seconds=%d" % seconds)


def restored(what):
    p = e2e.kvmprof("run", "--snapshot", "s.snap", "-o", "p", "--no-buildid-cache", timeout=120)
    check(p.status == 0 and "demo: done" in p.out, "%s: the snapshot that is left does not run: %s %s" % (
        what, p.status, p.err[-400:]))


def killed_saving(span, rng):
    clean()
    was = os.stat("s.snap")
    boot = save(1)
    # Half of them while it is most likely written.
    moment = rng.random() * span if rng.random() < 0.5 else span * (0.5 + 0.5 * rng.random())
    while time.monotonic() - boot.start < moment and boot.process.poll() is None:
        time.sleep(0.001)
    boot.process.kill()
    boot.wait(20)
    what = "killed after %.3f s" % moment
    left = {f for f in os.listdir(".") if f.startswith("s.snap")}
    # With its last name to come it has one for a moment: docs/snapshots.md.
    check(left <= {"s.snap", "s.snap.new.%d" % boot.process.pid} and "s.snap" in left, "%s: left: %s" % (what, left))
    for f in left - {"s.snap"}:
        os.remove(f)
    now = os.stat("s.snap")
    if (now.st_ino, now.st_mtime_ns, now.st_size) == (was.st_ino, was.st_mtime_ns, was.st_size):
        return "the old one"
    restored(what)
    return "a new one"


def killed_saves():
    boot = save(1)
    boot.wait(60)
    check(boot.status == 0 and os.path.exists("s.snap"), "no snapshot: " + boot.err)
    restored("at first")
    # From its start to a little behind the save: the guest ends soon then.
    span, rng, seen = 0, random.Random(4), {}
    for _ in range(2):
        was, boot = os.stat("s.snap").st_ino, save(1)
        while os.stat("s.snap").st_ino == was and boot.process.poll() is None:
            time.sleep(0.001)
        span = max(span, time.monotonic() - boot.start)
        boot.wait(60)
    for _ in range(RUNS):
        case = killed_saving(1.1 * span, rng)
        seen[case] = seen.get(case, 0) + 1
    restored("at last")
    check(seen.get("the old one"), "each run had written its snapshot: %s" % seen)
    clean()
    e2e.finish("%d saves within %.2f s were killed, and left: %s" % (
        RUNS, span, ", ".join("%d times %s" % (n, c) for c, n in sorted(seen.items()))))


TWO = ("p", "p.old")
AT_REMOVAL = ["run", "-q", "-m", "64M", "-o", "p", "--no-buildid-cache", "--append", "work=1"]


def make_two():
    """Two profiles, kept under other names. Which files a profile has depends on its samples, and so does the number of removals."""
    clean()
    for _ in range(2):
        p = e2e.kvmprof(*AT_REMOVAL)
        check(p.status == 0, "run: %d %s" % (p.status, p.err))
    for name in TWO:
        shutil.copytree(name, "kept." + name)


def traced(calls, *more):
    """A run over the same two profiles. What each of its processes did, in order: (pid, name of the call, whole line)."""
    clean()
    for name in TWO:
        shutil.copytree("kept." + name, name)
    p = e2e.run("strace", "-f", "-o", "trace.txt", "-e", "trace=" + calls, *more)
    with open("trace.txt") as f:
        lines = f.read().splitlines()
    os.remove("trace.txt")
    return p, [(line.split()[0], line.split()[1].split("(")[0], line) for line in lines]


def killed_at(call, when, argv, keeper):
    what = "%s %d%s" % (call, when, " of the keeper" if keeper else "")
    p, lines = traced(call, "-e", "inject=%s:signal=KILL:when=%d" % (call, when), e2e.KVMPROF, *argv)
    dead = {pid for pid, _, line in lines if "+++ killed by SIGKILL" in line}
    check(p.status != 0 and dead, "%s: it was not killed" % what)
    # A run whose keeper is lost ends by itself, and says so.
    check(not keeper or (p.status == 1 and "the process that renames results was ended by signal 9" in p.err),
          "%s: status %d: %s" % (what, p.status, p.err))
    r = e2e.kvmprof("report", "--json", "-i", "p")
    check(r.status == 0 and not json.loads(r.out)["partial"], "%s: no whole profile: %s" % (what, r.err))
    p = e2e.kvmprof(*argv)
    check(p.status == 0, "%s: the next run: %d %s" % (what, p.status, p.err))


def killed_at_removal():
    """At each exchange of names and each removal of the profile before the last: the next run finds nothing in its
    way. The keeper's process makes these calls, and ends with the run; without a sandbox the run makes them itself."""
    if not e2e.has_tool("strace"):
        e2e.left_out("no strace: kills at removals were not tried")
        return
    make_two()
    for call, when in (("unlink", 1), ("rmdir", 1), ("rmdir", 2), ("rmdir", 3)):
        killed_at(call, when, AT_REMOVAL + ["--sandbox=off"], False)
    # Calls are counted for each process: these are the keeper's, as it alone makes any.
    p, lines = traced("renameat2,unlinkat", e2e.KVMPROF, *AT_REMOVAL)
    names = [name for _, name, _ in lines]
    check(p.status == 0 and len({pid for pid, name, _ in lines if name in ("renameat2", "unlinkat")}) == 1 and
          names.count("renameat2") == 2 and names.count("unlinkat") > 3,
          "names are not exchanged and removed by one process: %s" % lines)
    for call in ("renameat2", "unlinkat"):
        for when in range(1, names.count(call) + 1):
            killed_at(call, when, AT_REMOVAL, True)
    for name in TWO:
        shutil.rmtree("kept." + name)
    clean()


e2e.need_kvm()
os.makedirs("tmp", exist_ok=True)
os.environ["TMPDIR"] = os.path.abspath("tmp")
with open("disk.img", "wb") as f:
    f.truncate(1 << 20)
if e2e.EXTRA[1:] == ["saves"]:
    killed_saves()
killed_at_removal()
rng = random.Random(3)
seen = {}
for i in range(RUNS):
    # One in three at the beginning, where files are made.
    case = killed(rng.random() * (0.3 if i % 3 == 0 else MOST_S), WAYS[i % len(WAYS)])
    seen[case] = seen.get(case, 0) + 1
clean()
check(seen.get("cut"), "no run was killed while it wrote: %s" % seen)
say("%s" % seen)
e2e.finish("%d runs: %s" % (RUNS, ", ".join("%d %s" % (n, c) for c, n in sorted(seen.items()))))

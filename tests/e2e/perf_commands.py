#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 15 s
# tests: slow, at most 900 s: all
# tests: not svm, files
"""Each command of stock perf that takes a profile with -i, on each form of kvmprof's profiles: with
the installed perf and with the newest one that Debian offers for Debian 13. No command may crash,
and those that can show something of such a profile must succeed. Without `all' each form is tried with one of the
two, in turn."""

import json
import os
import re
import shutil
import subprocess

import e2e
from e2e import check, say

# perf inject writes another profile, which must hold the same samples.
INJECT = ([], ["-b"], ["-B"], ["-s"], ["-j"], ["--itrace"], ["--buildid-all"], ["--mmap2-buildid-all"],
          ["--itrace", "--strip", "-f"])
STRIPS = "--strip"    # perf drops all samples that were not decoded from a trace
# Commands that show a profile of any events.
SHOW = (["report", "--stdio"], ["report", "--stdio", "--no-children", "-g", "caller"], ["report", "--stdio", "--header-only"],
        ["report", "--stats"], ["report", "--tasks"], ["report", "--mmaps"],
        ["report", "--stdio", "--sort", "comm,pid,tid,cpu,dso,sym,srcline"], ["script"], ["script", "--header-only"],
        ["script", "--show-mmap-events", "--show-task-events"], ["script", "-F", "+tid,+period"], ["script", "-D"],
        ["buildid-list"], ["evlist", "-v"], ["kvm", "--guest", "report", "--stdio"], ["mem", "report", "--stdio"])
# Commands for tracepoints and for records that our profiles do not have. They may refuse it.
OTHER = (["annotate", "--stdio"], ["script", "-F", "+addr"], ["data", "convert", "--force", "--to-json", "other.json"],
         ["sched", "latency"], ["sched", "map"], ["sched", "timehist"], ["kmem", "stat"],
         ["lock", "report"], ["kwork", "report"], ["kwork", "latency"], ["timechart", "-o", "chart.svg"], ["trace"],
         ["kvm", "stat", "report"], ["c2c", "report", "--stdio"], ["ftrace", "latency"], ["stat", "report"],
         ["kvm", "--guest", "annotate", "--stdio"], ["kvm", "--guest", "buildid-list"], ["buildid-cache", "-l"],
         ["inject", "--vm-time-correlation=dry-run"], ["inject", "--convert-callchain", "-o", "other.data"])


def perfs():
    """[(name, program)]"""
    found = [("perf", shutil.which("perf"))] if e2e.has_tool("perf") else []
    p = e2e.run(os.path.join(e2e.TOP, "scripts", "fetch-perf.sh"), timeout=600)
    if p.status == 3:
        e2e.left_out("the newest perf: " + p.err.strip().split("\n")[-1])
    elif check(p.status == 0, "fetch-perf.sh: status %d: %s" % (p.status, p.err)):
        found.append(("new perf", os.path.join(p.out.strip(), "bin", "perf")))
    return found


def samples_of(name):
    p = e2e.kvmprof("report", "-i", name, "--json", "-n", "0")
    return json.loads(p.out)["samples"] if p.status == 0 else p.err


def remove(name):
    for path in (name, name + ".old"):
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.exists(path):
            os.remove(path)


def crashed(p):
    return p.status < 0 or p.status in (132, 134, 135, 136, 139)


def run(who, perf, argv, profile):
    """None: this perf does not have the command or the option."""
    p = e2e.run(perf, "--buildid-dir", "cache", *argv, "-i", profile, timeout=300)
    if p.status == 129 and re.search(r"unknown (switch|option)|is not a perf-command|Usage", p.err):
        return None
    if crashed(p):
        # Of perf's own profile in the same form?
        own = e2e.run(perf, *argv, "-i", "own.pipe" if profile == "pipe.data" else "own.data", timeout=300)
        say("%s %s crashes at each profile" % (who, " ".join(argv))) if crashed(own) else check(
            False, "%s %s -i %s crashes: status %d" % (who, " ".join(argv), profile, p.status))
    return p


def inject(who, perf, profile, own_bug):
    want, tried = samples_of(profile), 0
    for options in INJECT:
        remove("injected.data")
        p = run(who, perf, ["inject", *options, "-o", "injected.data"], profile)
        if p is None:
            continue
        tried += 1
        what = "%s inject %s -i %s" % (who, " ".join(options), profile)
        if not check(p.status == 0, "%s: status %d: %s" % (what, p.status, p.err[-300:])) or own_bug or STRIPS in options:
            continue
        got = samples_of("injected.data")
        check(got == want, "%s: %s samples of %s" % (what, got, want))
    check(tried >= 5, "%s has %d of the options of inject" % (who, tried))
    return tried


def all_commands(who, perf, profile):
    tried = 0
    for argv in SHOW:
        p = run(who, perf, argv, profile)
        if p is None:
            continue
        tried += 1
        # Some say in time what they miss, and mem report shows events of memory alone.
        check(p.status == 0 or argv[0] == "mem", "%s %s -i %s: status %d: %s" % (
            who, " ".join(argv), profile, p.status, p.err[-300:]))
    for argv in OTHER:
        remove("other.data")
        tried += run(who, perf, argv, profile) is not None
    p = e2e.run(perf, "diff", profile, profile, timeout=300)
    check(not crashed(p), "%s diff %s crashes: %d" % (who, profile, p.status))
    return tried


def pipe_of_perf_is_lost(perf):
    """Whether this perf's inject loses the samples of its own record -o - (6.1 does)."""
    work = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=20000"]
    remove("own.data")
    with open("own.pipe", "wb") as f:
        for out in ("own.data", "-"):
            p = subprocess.run([perf, "record", "-e", "cpu-clock", "-g", "-o", out, "--", *work], stdin=subprocess.DEVNULL,
                               stdout=f, stderr=subprocess.DEVNULL)
    remove("injected.data")
    if p.returncode or e2e.run(perf, "inject", "-i", "own.pipe", "-o", "injected.data").status:
        return True
    return samples_of("injected.data") != samples_of("own.pipe")


e2e.need_kvm()
found = perfs()
if not found:
    e2e.skip("there is no perf")
os.mkdir("cache")
for name, options in (("dir.data", []), ("one.data", ["--single-file"]), ("mem.data", ["--mem"]),
                      ("two.data", ["-e", "wall,exit:io", "--mark-at", "demo_main"])):
    p = e2e.kvmprof("run", "-q", "-o", name, *options, "--append", "seconds=2")
    check(p.status == 0, "run -o %s: %s" % (name, p.err))
with open("pipe.data", "wb") as f:
    p = subprocess.run([e2e.KVMPROF, "run", "-o", "-", "--append", "seconds=2"], stdin=subprocess.DEVNULL, stdout=f,
                       stderr=subprocess.PIPE)
check(p.returncode == 0, "run -o -: %s" % p.stderr)
ran = 0
PROFILES = ("dir.data", "one.data", "mem.data", "two.data", "pipe.data")
for i, (who, perf) in enumerate(found):
    mine = PROFILES if e2e.EXTRA == ["all"] else PROFILES[i::len(found)]
    lost = "pipe.data" in mine and pipe_of_perf_is_lost(perf)
    for profile in mine:
        ran += inject(who, perf, profile, lost and profile == "pipe.data")
        ran += all_commands(who, perf, profile)
    say("%s: %s" % (who, e2e.run(perf, "--version").out.strip()))
# The profile's own totals are as they were, and report shows them.
p = e2e.kvmprof("report", "-i", "one.data", "--header", "-n", "1")
check("run_seconds" in p.out, "no totals in report --header of a single file")
e2e.finish("%d commands of %d perfs" % (ran, len(found)))

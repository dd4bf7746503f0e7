#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 600 s
# tests: not svm, host
"""exact_qemus.py KVMPROF SCRATCH: --engine exact with the oldest and the newest QEMU at hand, whose plugin interfaces
call the plugin in different ways; which of several QEMUs is taken; and what check says of them. Needs neither KVM nor
root."""

import os

import demo_judge
import e2e
from e2e import check, say
from exact_engine import exact, find_qemu, hash_of, one_line

POINTS = 0.05
# Releases of Debian, what the release of QEMU begins with, and the version of the plugin interface.
QEMUS = (("trixie", "10.", 3), ("trixie-backports", "11.", 7))


def script(path, text):
    """A program of this test at path/qemu-system-x86_64."""
    os.makedirs(path, exist_ok=True)
    path = os.path.join(path, "qemu-system-x86_64")
    with open(path, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return os.path.abspath(path)


def check_qemu(release, begin, interface):
    """Two runs give one profile with the guest's own shares; counts and places are there as well."""
    find_qemu(release)
    line = [x for x in e2e.kvmprof("check").out.split("\n") if "--engine exact" in x]
    check(len(line) == 1 and line[0].startswith("ok ") and "QEMU " + begin in line[0] and
          "loads the plugin (interface %d of" % interface in line[0], "check with %s: %s" % (release, line))
    sums = []
    for name in ("a.data", "b.data"):
        p = exact("-c", "1000", "--append", "seconds=1", "-o", name)
        if not check(p.status == 0, "%s: status %d: %s" % (release, p.status, p.err)):
            return
        sums.append(hash_of(name))
    check(sums[0] == sums[1], "%s: two runs differ" % release)
    truth, _ = e2e.parse_truth(p.out)
    inside = demo_judge.within(e2e.parse_script(e2e.kvmprof("script", "-i", "a.data").out), truth)
    worst = max(abs(100 * sum(1 for x in inside if x.stack == t.stack) / len(inside) - t.percent) for t in truth)
    check(worst <= POINTS, "%s: the worst share is off by %.3f points" % (release, worst))
    p = exact("-q", "--call-counts", "--append", "work=1", "-o", "c.data")
    counted = e2e.summary("c.data")["engine"]["instructions"]
    rows = e2e.kvmprof("report", "-i", "c.data", "-n", "0").out
    check(p.status == 0 and "left_leaf" in rows, "%s: counts: %s%s" % (release, p.err, rows[:300]))
    p = exact("-q", "--mark-at", "demo_main", "--append", "work=1", "-o", "m.data")
    marks = [m["name"] for m in e2e.summary("m.data")["markers"]]
    check(p.status == 0 and marks, "%s: places: %s %s" % (release, marks, p.err))
    say("%s: worst share off by %.3f points, %d instructions counted" % (release, worst, counted))


def check_choice():
    """The first QEMU that loads the plugin is taken; of the others each message says why not."""
    find_qemu("trixie")
    good = os.path.dirname(os.environ.pop("KVMPROF_QEMU"))
    old = script("old", "echo 'QEMU emulator version 7.2.22 (Debian)'\n")
    # A QEMU of the future, and one that was built without plugins.
    future = script("future", "case $1 in --version) echo 'QEMU emulator version 14.0.0';; *)\n"
                    "echo 'qemu-system-x86_64: Could not load plugin x.so: plugin requires API version 7, but this QEMU "
                    "supports only a minimum version of 9' >&2; exit 1;; esac\n")
    bare = script("bare", "case $1 in --version) echo 'QEMU emulator version 10.2.0';; *)\n"
                  "echo 'qemu-system-x86_64: -plugin: invalid option' >&2; exit 1;; esac\n")
    other = script("other", "case $1 in --version) echo 'QEMU emulator version 10.2.0';; *)\n"
                   "echo 'kvmprof-exact-plugin 3 5 aarch64'; exit 1;; esac\n")
    noise = script("noise", "echo hello\n")
    dirs = [os.path.dirname(x) for x in (old, future, bare, other, noise)]
    system = os.environ["PATH"]
    env = dict(os.environ, PATH=":".join(dirs + [good, system]))
    p = exact("-q", "--append", "work=1", "-o", "p.data", env=env)
    check(p.status == 0, "five that do not serve and one that does: %d %s" % (p.status, p.err))
    line = [x for x in e2e.kvmprof("check", env=env).out.split("\n") if "--engine exact" in x]
    check(len(line) == 1 and "QEMU 10.0" in line[0], "check with six: %s" % line)
    # None that serves: no system directory, and an empty cache.
    env = dict(os.environ, PATH=":".join(dirs), HOME="/nowhere", KVMPROF_CACHE="/nowhere")
    p = exact(env=env)
    one_line("none that serves", p, "7.2.22", "14.0.0 and does not load the plugin: plugin requires API version 7")
    check("note" in e2e.kvmprof("check", env=env).out, "check without one: status or text")
    for name, program, words in (("future", future, "minimum version of 9"), ("without plugins", bare, "invalid option"),
                                 ("another target", other, "aarch64"), ("no QEMU", noise, "is not QEMU")):
        one_line(name, exact(env=dict(os.environ, KVMPROF_QEMU=program)), "$KVMPROF_QEMU", words, "fetch-qemu.sh")


for qemu in QEMUS:
    check_qemu(*qemu)
check_choice()
e2e.finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 10 s
# tests: svm, at most 300 s
"""The ways `kvmprof run` can be ended and what becomes of its output."""

import json
import os
import signal
import subprocess

import e2e
from e2e import check, say

LONG = ["--append", "seconds=60"]


def complete(path, at_least):
    """A finished profile: not marked partial, and perf agrees."""
    p = e2e.kvmprof("report", "--json", "-i", path)
    if not check(p.status == 0, "report of %s: %s" % (path, p.err)):
        return
    r = json.loads(p.out)
    check(not r["partial"], path + " is marked partial")
    check(r["samples"] >= at_least, "%s: %d samples" % (path, r["samples"]))
    check(not e2e.leftovers(), "temporary files are left: %s" % e2e.leftovers())
    if e2e.has_tool("perf"):
        check(len(e2e.parse_script(e2e.perf_script(path))) == r["samples"],
              "perf script and kvmprof report differ on " + path)


def duration():
    p = e2e.kvmprof("run", "--duration", "1", "-o", "duration.data", *LONG)
    say("--duration 1: %.2f s, status %d" % (p.seconds, p.status))
    check(p.status == 0, "--duration: status %d: %s" % (p.status, p.err))
    check("kvmprof: duration reached after 1" in p.err, "--duration: no word about it: " + p.err)
    complete("duration.data", 100)


def signalled(number, name):
    path = name + ".data"
    boot = e2e.Boot("-o", path, *LONG)
    if check(boot.wait_for("demo: start", 30), name + ": the guest did not start"):
        e2e.time.sleep(0.7)
        boot.process.send_signal(number)
    boot.wait(20)
    check(boot.status == 0, "%s: status %d: %s" % (name, boot.status, boot.err))
    check("interrupted" in boot.err, "%s: no word about it: %s" % (name, boot.err))
    complete(path, 50)


def reboots():
    """With --reboot a reset begins anew: memory, vCPUs and devices are as after power-on."""
    boot = e2e.Boot("--reboot", "-o", "reboots.data", "--append", "seconds=1")
    until = e2e.time.monotonic() + 120
    while boot.text().count("demo: start") < 3 and e2e.time.monotonic() < until and boot.process.poll() is None:
        e2e.time.sleep(0.05)
    boot.process.send_signal(signal.SIGINT)
    boot.wait(20)
    starts, done = boot.text().count("demo: start"), boot.text().count("demo: done")
    check(boot.status == 0 and "interrupted" in boot.err, "--reboot: status %d: %s" % (boot.status, boot.err))
    check(starts >= 3 and done >= 2, "--reboot: %d boots, %d of them ended: %s" % (starts, done, boot.err))
    check("failures" not in boot.text(), "--reboot: the guest is not as after power-on: " + boot.text()[-600:])
    say("--reboot: %d boots" % starts)
    complete("reboots.data", 100)
    p = e2e.kvmprof("run", "--reboot", "--exec", "true", "bzImage")
    check(p.status == 2 and "--reboot" in p.err, "--reboot --exec: status %d: %s" % (p.status, p.err))


def old_is_kept():
    for i in range(3):
        p = e2e.kvmprof("run", "-q", "--duration", "0.%d" % (i + 2), "-o", "kept.data", *LONG)
        check(p.status == 0, "run %d: %s" % (i, p.err))
    seconds = [e2e.summary(x)["run_seconds"] for x in ("kept.data", "kept.data.old")]
    check(seconds[0] >= 0.4 and 0.3 <= seconds[1] < seconds[0],
          "kept.data and its .old last %s s" % seconds)
    check(not os.path.exists("kept.data.old.old"), "more than one .old")


def output_refused():
    os.mkdir("precious")
    open("precious/work", "w").close()
    open("file", "w").close()
    for where in ("file/below", "missing/dir/x", "precious"):
        p = e2e.kvmprof("run", "-o", where, *LONG, timeout=20)
        check(p.status == 1, "-o %s: status %d" % (where, p.status))
        check(not p.out, "-o %s: the guest was booted all the same" % where)
        check(p.err.count("\n") == 1 and where in p.err, "-o %s: %r" % (where, p.err))
    check(os.listdir("precious") == ["work"], "a directory that is no profile was touched")


def closed_stdout():
    """`kvmprof ... | head -1`: nobody reads on, and nothing comes of it."""
    for name, argv, wanted in (
            ("run", ["run", "--duration", "1", "-o", "pipe.data"] + LONG, (0,)),
            ("report", ["report", "-i", "pipe.data"], (0, -signal.SIGPIPE)),
            ("script", ["script", "-i", "pipe.data"], (0, -signal.SIGPIPE)),
            ("help", ["run", "--help"], (0, -signal.SIGPIPE))):
        p = subprocess.Popen([e2e.KVMPROF] + argv, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdout.readline()
        p.stdout.close()
        err = p.stderr.read().decode()
        status = p.wait(60)
        check(status in wanted, "%s | head -1: status %d: %s" % (name, status, err))
        if name != "run":
            check(not err, "%s | head -1: %s" % (name, err))
    complete("pipe.data", 100)


e2e.need_kvm()
duration()
signalled(signal.SIGINT, "sigint")
signalled(signal.SIGTERM, "sigterm")
reboots()
old_is_kept()
output_refused()
closed_stdout()
e2e.finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 11 s
# tests: slow, at most 600 s: 60
# tests: not svm, threads
"""selfcheck.py ... [SECONDS]: a guest that looks at all its registers finds no difference.

The demo guest keeps known values in its registers, in ring 3 and ring 0, and compares (mode=selfcheck).
Attached to in a real QEMU and sampled fast, then sampled by `kvmprof run`: 0 differences, in its text and
page tables neither; in a third machine both at once, as a `kvmprof run` can be attached to as well. A run
whose expectation is spoilt on purpose finds one in each ring.
"""

import os
import re
import signal
import subprocess

import attached
import e2e
import qemu
from e2e import check

SECONDS = int(e2e.EXTRA[0]) if e2e.EXTRA else 3
HZ = 1997

e2e.need_kvm()


def found(console):
    got = {m[0]: (int(m[1]), int(m[2])) for m in re.findall(
        r"^selfcheck (\w+) (?:turns|bytes) (\d+) differences (\d+)", console, re.M)}
    check(set(got) == {"ring3", "ring0", "memory"}, "no results on the console:\n" + console)
    return got


def none(what, console):
    got = found(console)
    for part, (looked, differ) in got.items():
        check(looked > 20, "%s: %s looked at %d times only" % (what, part, looked))
        check(differ == 0, "%s: %s differs %d times:\n%s" % (what, part, differ, console))
    return "%d + %d turns" % (got["ring3"][0], got["ring0"][0])


class Attach:
    def __init__(self, pid, technique, data):
        self.data, self.technique = data, technique
        self.process = subprocess.Popen(
            [e2e.KVMPROF, "attach", str(pid), "-F", str(HZ), "--technique", technique, "-o", data, "--no-buildid-cache",
             "--image", os.path.join(e2e.BUILD, "guest", "demo.elf")],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        err = self.process.communicate(timeout=60)[1]
        if not check(self.process.returncode == 0, "attach: status %d\n%s" % (self.process.returncode, err)):
            e2e.finish()
        s = e2e.summary(self.data)
        attached.check_technique(s["attach"], self.technique, 20)
        check(s["samples"] > SECONDS * 50, "only %d samples" % s["samples"])
        check(s["user_ns"] and s["kernel_ns"], "not sampled in both rings: %s" % s)
        return "%d + %d samples by BPF and ptrace" % (s["attach"]["samples_by_bpf"], s["attach"]["samples_by_ptrace"])


def attached_to_qemu(technique):
    q = qemu.Qemu("selfcheck-" + technique, *qemu.DEMO, "mode=selfcheck seconds=%d" % SECONDS)
    try:
        q.wait_for("demo: start", 60)
        a = Attach(q.pid, technique, "attached.data")
        q.wait_for("demo: done", SECONDS * 4 + 60)
        return "%s, %s" % (none("attach by " + technique, q.console()), a.end())
    finally:
        q.end()


def attached_to_run(technique):
    # On a busy host attach may take seconds to begin.
    boot = e2e.Boot("-o", "both.data", "--append", "mode=selfcheck seconds=%d" % (3 * SECONDS))
    boot.wait_for("demo: start", 60)
    a = Attach(boot.process.pid, technique, "attached_to_run.data")
    boot.wait(SECONDS * 12 + 60)
    check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
    return "%s, %s" % (none("attach to run", boot.text()), a.end())


def run(*more):
    boot = e2e.Boot("-o", "run.data", "-F", str(HZ), "--append",
                    " ".join(("mode=selfcheck seconds=%d" % (SECONDS if not more else 1),) + more)).wait(SECONDS * 4 + 60)
    check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
    return boot.text()


said = []
if e2e.has_tool("qemu-system-x86_64"):
    said += ["attached to QEMU by %s: %s" % (t, attached_to_qemu(t)) for t in attached.techniques()]
said.append("to run: " + attached_to_run(attached.techniques()[0]))
said.append("run: " + none("run", run()))
spoilt = found(run("spoil=2"))
check(spoilt["ring3"][1] == 1 and spoilt["ring0"][1] == 1, "a spoilt expectation is not found: %s" % spoilt)
e2e.finish("; ".join(said) + "; 0 differences")

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 18 s
# tests: slow, at most 1800 s: all
# tests: slow, at most 1800 s: kvm
# tests: not svm, disk
"""guest_panic.py KVMPROF SCRATCH [all | kvm]: a guest whose kernel panics: told with its reason and stack, kept in the profile, a status of its own, and what
a gate makes of it. The run of a guest that hangs after its panic (panic=0) ends by itself, that of one that reboots keeps its time; a run without
IMAGE says which guest runs. On the exact engine, without KVM. all: also without a console, with a reboot, and repeated. kvm: under KVM alone, which takes minutes where it interprets ring 0:
a panic without a console, and what `attach` and `stat` report."""

import json
import os
import re
import signal

import e2e
from e2e import check
from exact_engine import exact, find_qemu


def panicked(name, out, status, reason, *argv, may_lack=False):
    """A run that ends in a panic, with -q and --no-summary; kvmprof.json's member."""
    p = exact("-q", "--no-summary", "-m", "64M", "-o", out, *argv, timeout=900)
    check(p.status == status, "%s: status %d, not %d: %s" % (name, p.status, status, p.err[-1500:]))
    check(re.search(r"^kvmprof: the guest's kernel panicked: " + re.escape(reason), p.err, re.M), name + ": " + p.err)
    # A kernel that does not print its stack, and panics faster than a sample comes, leaves none.
    check("panic+0x" in p.err or may_lack and "its stack is not known" in p.err, name + ": no stack: " + p.err)
    kept = e2e.summary(out)["guest_panic"]
    check(kept and kept["text"].startswith(reason), "%s: kvmprof.json has %s" % (name, kept))
    return kept


def gate(base, head, status, words):
    with open("total.toml", "w") as f:
        f.write('[[rule]]\nname = "all"\nmetric = "instructions"\nthreshold = "1000 %"\n')
    for exact_gate in (["--exact", "-c", "total.toml"], []):
        p = e2e.kvmprof("gate", *exact_gate, "--base", base, "--head", head)
        check(p.status == status and words in p.out, "gate %s %s %s: status %d: %s%s" %
              (exact_gate, base, head, p.status, p.out[:800], p.err))


tiny = os.path.join(e2e.built_kernel("tiny"), "bzImage")
NO_INIT = "No working init found."


def under_kvm():
    """A guest that waits for its reboot is there for attach; one that hangs has no console, which only memory tells of."""
    boot = e2e.Boot("-m", "64M", "-o", "waits.data", "--append", "panic=9999", tiny)
    if not check(boot.wait_for("Kernel panic - not syncing", 300), "no panic within 300 s"):
        boot.process.kill()
        return
    p = e2e.kvmprof("attach", boot.process.pid, "--duration", "2", "--no-summary", "-o", "attached.data", timeout=120)
    check(p.status == 4 and "warning: the guest's kernel is in a panic" in p.err and
          re.search(r"^kvmprof: the guest's kernel panicked: " + re.escape(NO_INIT), p.err, re.M) and "panic+0x" in p.err,
          "attach: %d %s" % (p.status, p.err))
    check(e2e.summary("attached.data")["guest_panic"]["text"].startswith(NO_INIT), "attach: kvmprof.json")
    check(boot.process.poll() is None, "panic=9999: the run has ended: " + boot.err)
    boot.process.send_signal(signal.SIGINT)
    boot.wait(60)
    check(boot.status == 4 and "in a panic, and reboots in 9999 s" in boot.err, "panic=9999: %d %s" % (boot.status, boot.err))
    for command, argv in (("run", ["--append", "panic=0 console=none", "--no-summary", "-o", "mute.data"]), ("stat", ["--append", "panic=0"])):
        p = e2e.kvmprof(command, "-q", "-m", "64M", *argv, tiny, timeout=400)
        check(p.status == 4 and "panicked: " + NO_INIT in p.err, "%s %s: %d %s" % (command, argv, p.status, p.err))
    check(e2e.summary("mute.data")["end"] == "guest panicked and hangs", "without a console: " + e2e.summary("mute.data")["end"])


if "kvm" in e2e.EXTRA:
    e2e.need_kvm()
    under_kvm()
    e2e.finish()
find_qemu()
panicked("no init", "init.data", 4, NO_INIT, tiny)
ALL = "all" in e2e.EXTRA
panicked("panic=0", "hangs.data", 4, NO_INIT, *(["--repeat", "2"] if ALL else []), "--append", "panic=0", tiny)
check(e2e.summary("hangs.data")["end"] == "guest panicked and hangs", "panic=0: " + e2e.summary("hangs.data")["end"])
if ALL:
    panicked("no serial console", "mute.data", 4, NO_INIT, "--append", "console=none", tiny, may_lack=True)
    panicked("panic=1", "reboots.data", 4, NO_INIT, "--append", "panic=1", tiny)
    check(e2e.summary("reboots.data")["end"] == "guest reset", "panic=1: " + e2e.summary("reboots.data")["end"])
p = exact("-q", "-m", "64M", "-o", "good.data", "--initrd", e2e.INITRAMFS, "--append", "work=1", tiny, timeout=900)
check(p.status == 0 and "panicked" not in p.err and e2e.summary("good.data")["guest_panic"] is None,
      "a guest that does not panic: %d, %s" % (p.status, p.err))
gate("good.data", "init.data", 1, "the head's guest panicked: " + NO_INIT)
gate("init.data", "good.data", 3, "the base's guest panicked: " + NO_INIT)
p = exact("-q", "--append", "work=1", "-o", "demo.data")
check(p.status == 0 and p.err.count("no IMAGE: the embedded demo guest runs\n") == 1, "without IMAGE: " + p.err)
for argv, words in ((["report", "-i", "demo.data"], ", embedded demo guest\n"), (["diff", "demo.data", "demo.data"], ", embedded demo guest\n"),
                    (["gate", "--base", "demo.data", "--head", "demo.data"], "guest: embedded demo guest")):
    p = e2e.kvmprof(*argv)
    check(words in p.out, "%s does not name the guest: %s" % (argv[0], p.out[:600]))
check(json.loads(e2e.kvmprof("report", "--json", "-i", "demo.data").out)["guest"] == "embedded demo guest", "report --json")
for argv in (["--initrd", "x"], ["--root", "/dev/vda"], ["--disk", "x"], ["--modules", "x"], ["--share", "x"], ["--symbols", "x"],
             ["--append", "quiet root=/dev/vda"], ["--engine", "exact", "--initrd", "x"]):
    p = e2e.kvmprof("run", "-o", "x.data", *argv)
    check(p.status == 2 and "demo guest" in p.err, "%s without IMAGE: %d, %s" % (argv, p.status, p.err))
e2e.finish()

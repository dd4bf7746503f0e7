#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: svm, at most 600 s
"""A Linux guest with KASLR that reboots in another process's machine: attach follows it, by BPF where that works, and by ptrace.

The VMM is a `kvmprof run --reboot`. The judge is that of epochs.py: the names that the kernel's image has, and arithmetic."""

import os
import signal
import subprocess
import sys
import time

import compiled
import e2e
from e2e import check, say
from epoch_judge import judge_all, symbols_of

BOOTS = 3
# The kernel is read out of its memory in 0.1 s, and in 3 s on the emulated host: a boot has to last longer.
SECONDS = 10

e2e.need_kvm()
image = os.path.join(e2e.built_kernel("tiny"), "bzImage")
compiled.cc("-O1", "-static", "-o", "init", os.path.join(e2e.TOP, "tests", "e2e", "epochs_init.c"))
p = e2e.run(sys.executable, os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), "init", "init.cpio")
check(p.status == 0, "mkinitramfs: " + p.err)
boot = e2e.Boot(image, "--boot", "bzimage", "--initrd", "init.cpio", "-m", "128M", "--reboot", "--no-output", "--append",
                "work=%d next=reboot" % SECONDS)


def boots():
    return boot.text().count("epoch: Linux")


def wait_for_boots(n, seconds=900):
    until = time.monotonic() + seconds
    while boots() < n and boot.process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    return check(boots() >= n, "the guest booted %d times: %s %s" % (boots(), boot.text()[-600:], boot.err))


def attach(technique):
    """From one boot into the third one after it."""
    # A boot that is about to end has no samples to judge by, as its kernel is not read in time.
    wait_for_boots(boots() + 1)
    first, data = boots(), technique + ".data"
    a = subprocess.Popen([e2e.KVMPROF, "attach", str(boot.process.pid), "--technique", technique, "--no-buildid-cache", "-o", data],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_boots(first + BOOTS)
    a.send_signal(signal.SIGINT)
    err = a.communicate(timeout=120)[1].decode(errors="replace")
    check(a.returncode == 0, "attach, %s: status %d: %s" % (technique, a.returncode, err))
    if a.returncode:
        return
    release = boot.text().split("epoch: Linux ", 1)[1].split()[0]
    kernels = len([d for d in os.listdir(data) if d.startswith("epoch-")]) + 1
    check(BOOTS <= kernels <= BOOTS + 2, "%s: %d kernels in %d boots: %s" % (technique, kernels, BOOTS, err))
    slides = judge_all("reboot, " + technique, data, [release] * kernels, {release: known})
    check(len(set(slides)) > 1, "the kernels were at the same place: %s" % slides)


known = symbols_of(image)
try:
    if wait_for_boots(1):
        for way in ("auto", "ptrace"):
            attach(way)
finally:
    boot.process.send_signal(signal.SIGINT)
    boot.wait(60)
check(boot.status == 0, "run --reboot: status %d: %s" % (boot.status, boot.err))
say("the guest booted %d times" % boots())
e2e.finish("0 wrong names")

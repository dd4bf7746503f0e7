#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 120 s
# tests: not svm, threads
"""`kvmprof top PID|DOMAIN` shows a machine that another VMM runs, and leaves it as it was. Shells complete the
machines of attach, ps and top."""

import os
import re
import shutil
import subprocess

import e2e
import microvm
from e2e import check, say

IMAGE = ("--image", microvm.DEMO)


def views(vm):
    for words in ([str(vm.pid)], ["--pid", str(vm.pid), "--"], ["--name", "vm-to-top", "--"]):
        p = e2e.kvmprof("top", "-n", "3", "--stdio", *words, *IMAGE, timeout=120)
        check(p.status == 0, "top %s: status %d: %s" % (words, p.status, p.err))
        rows = re.findall(r"^ +([\d.]+)% +([\d.]+)% +(\S+) +(\S+) +(\S+)$", p.out, re.M)
        names = {x[4] for x in rows}
        check("demo_main" in names or "user_main" in names, "top %s: %s" % (words, p.out[:1000] + p.err))
        check("attached to process %d" % vm.pid in p.err, "top %s does not say what it was attached to: %s" % (words, p.err))
    say("top: %d functions" % len(names))
    check(vm.goes_on(), "the VMM does not go on")


def usage(vm):
    for argv, status, words in ((["--pid", str(vm.pid), "--name", "x"], 2, "give one machine only"),
                                (["--control", "x", str(vm.pid)], 2, "--control watches"),
                                (["--control", "x", "--pid", str(vm.pid)], 2, "--control watches"),
                                (["--connect", "qemu:///session"], 2, "--connect is for a domain"),
                                (["--", str(vm.pid)], 1, "cannot open"),
                                (["./nothing"], 1, "./nothing: cannot open"),
                                (["--pid", str(os.getpid())], 1, "runs no virtual machine")):
        p = e2e.kvmprof("top", "-n", "1", "--stdio", *argv, timeout=60)
        check(p.status == status and words in p.err, "top %s: status %d: %s" % (argv, p.status, p.err))
    check(not e2e.leftovers(), "temporary files: %s" % e2e.leftovers())


def complete(*words):
    """What bash offers for the last of the words."""
    script = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kvmprof; printf "%s\\n" "${COMPREPLY[@]}"'
    p = subprocess.run(["bash", "-c", script, "bash", os.path.join(e2e.TOP, "configs", "completion", "kvmprof.bash"), e2e.KVMPROF, *words],
                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True)
    return p.stdout.split()


def completion(vm):
    for command in ("attach", "ps", "top"):
        check(str(vm.pid) in complete(command, ""), "%s: PIDs are not completed: %s" % (command, complete(command, "")))
        check(complete(command, "--pid", "") and str(vm.pid) in complete(command, "--pid", ""), command + " --pid")
        check("vm-to-top" in complete(command, "--name", "vm-to"), command + " --name: %s" % complete(command, "--name", "vm-to"))
    check("rules.txt" in complete("top", "rul"), "top: images are not completed: %s" % complete("top", "rul"))


e2e.need_kvm()
microvm.build()
with open("rules.txt", "w", encoding="utf-8"):
    pass
with microvm.MicroVM(name="vm-to-top") as machine:
    check(machine.wait_for("demo: start"), "the guest does not start: " + machine.text())
    views(machine)
    usage(machine)
    if shutil.which("bash"):
        completion(machine)
e2e.finish("top of a machine by PID and by name")

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 300 s
# tests: not svm, threads
"""vCPUs that a machine gets while `kvmprof attach` samples it (tests/e2e/microvmm.c, "plug") are sampled, too, from
soon after their start, with each technique, by PID and with a VMM that kvmprof starts."""

import json
import os
import re
import shutil
import subprocess
import time

import e2e
import microvm
from e2e import check, say

SECONDS = 6
SPIN = "ffffffff80009"      # where the new vCPU spins
PLUG_S = 2
# A new vCPU is sampled after the search for its thread, and on a busy host later.
LATE_S = 1.5
ARGV = ("--image", microvm.DEMO, "--no-status", "--no-buildid-cache", "--json", "--duration", SECONDS, "-F", 499)
HOW = {"auto": (), "ptrace": ("--technique", "ptrace"), "host": ("-e", "host")}


def attach(out, *argv):
    shutil.rmtree(out, ignore_errors=True)
    return subprocess.Popen([e2e.KVMPROF, "attach", "-o", out, *map(str, ARGV), *map(str, argv)], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def samples(out):
    """CPU, time and weight in s, and addresses of each."""
    for text in e2e.kvmprof("script", "-i", out).out.split("\n\n"):
        head = re.search(r"\[(\d+)\] +([0-9.]+): +(\d+) \S", text)
        if head:
            yield int(head[1]), float(head[2]), int(head[3]) / 1e9, re.findall(r"^\s+([0-9a-f]+) ", text, re.M)


def judge(name, out, p, added, plugged=None):
    """plugged: when the only vCPU was added, in s of CLOCK_MONOTONIC."""
    p.wait(120)
    text, err = p.stdout.read(), p.stderr.read()
    if not check(p.returncode == 0, "%s: status %s: %s" % (name, p.returncode, err)):
        return
    facts = json.loads(text.splitlines()[-1])
    at = facts["attach"]
    weight, spins, end = [0] * 64, [0] * 64, 0
    for cpu, now, value, ips in samples(out):
        weight[cpu] += value
        spins[cpu] += value if any(ip.startswith(SPIN) for ip in ips) else 0
        end = max(end, now)
    say("%s: %d vCPUs, %d added (%s); weights %.2f and %.2f s, of the new one's code %.2f s"
        % (name, at["vcpus"], at["vcpus_added"], at.get("vcpus_added_ids"), weight[0], weight[1], spins[1]))
    check(at["vcpus"] == 2 and facts["vcpus"] == 2, "%s: %s vCPUs" % (name, at["vcpus"]))
    check(at["vcpus_added"] == added and at.get("vcpus_added_ids") == ", ".join(["1"] * added),
          "%s: added %s" % (name, at.get("vcpus_added_ids")))
    check(not spins[0] and not sum(weight[2:]), "%s: the new one's code is on other CPUs: %s %s" % (name, spins, weight))
    check(spins[1] > 0, "%s: no sample of the new one's code" % name)
    if plugged:
        check(end - plugged - LATE_S < weight[1] < end - plugged + 0.1, "%s: vCPU 1 has %.2f s of %.2f s" % (name, weight[1], end - plugged))


def by_pid(name, argv):
    with microvm.MicroVM() as vm:
        check(vm.wait_for("demo: start"), "the guest does not start: " + vm.text())
        p = attach("at.data", *argv, vm.pid)
        time.sleep(PLUG_S)
        plugged = time.monotonic()
        check(vm.tell("plug") == "ok", "plug")
        judge(name, "at.data", p, 1, plugged)
        check(vm.goes_on(), name + ": the VMM does not go on")


def again():
    """The vCPU ends, and one with the same number takes its place."""
    with microvm.MicroVM() as vm:
        check(vm.wait_for("demo: start"), "the guest does not start: " + vm.text())
        p = attach("at.data", vm.pid)
        time.sleep(PLUG_S / 2)
        for command in ("plug", "unplug", "plug"):
            check(vm.tell(command) == "ok", command)
            time.sleep(LATE_S)
        judge("plugged twice", "at.data", p, 2)
        check(vm.goes_on(), "plugged twice: the VMM does not go on")


def started(name, argv):
    """A VMM that kvmprof starts, whose threads are followed. Its standard input stays open, as it ends with that."""
    p = attach("at.data", *argv, "--", "./microvmm", "--kernel", microvm.DEMO, "--append", "seconds=600", "--names", "cloud-hypervisor",
               "--filter", "cloud-hypervisor", "--plug-ms", 1000 * PLUG_S)
    judge("started, " + name, "at.data", p, 1)


e2e.need_kvm()
microvm.build()
for how_name, how in HOW.items():
    by_pid(how_name, how)
for how_name in ("auto", "host"):
    started(how_name, HOW[how_name])
again()
check(not os.path.exists("core"), "a VMM was killed")
e2e.finish("vCPUs that are added: by PID with %d techniques, and after attach --" % len(HOW))

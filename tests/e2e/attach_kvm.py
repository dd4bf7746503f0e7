#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 5 s
# tests: svm, at most 400 s
# tests: svm, at most 1800 s: large
"""attach_kvm.py KVMPROF SCRATCH [large]: a Linux guest of a real QEMU under KVM, as attach finds it.

Where KVM interprets the guest's kernel, QEMU cannot boot a Linux (docs/attach.md), so this runs on
other hosts: on the emulated one by `svm_host.py KVMPROF SCRATCH suite attach_kvm`. At 97 and at 997
samples a second: tasks, names and stacks are what the guest's program says of itself; what a sample
costs the guest, and how many stops gave no sample, is printed. large: with two vCPUs, and memory on
both sides of the hole below 4 GiB.
"""

import json
import os

import attached
import e2e
import worker_truth
from e2e import check, say
from qemu import Qemu

SECONDS = 6
ROLES = ["w-lib", "w-alpha", "w-beta", "w-vdso", "w-sys", "w-child"]

e2e.need_kvm()
e2e.need_tool("perf")
e2e.need_tool("qemu-system-x86_64")
if "interpreted" in e2e.kvmprof("check").out:
    e2e.skip("this host's KVM interprets the guest's kernel: QEMU cannot boot a Linux on it")
LARGE = e2e.EXTRA[:1] == ["large"]
MIB = 3584 if LARGE else 512
kernel = e2e.built_kernel("full")


def boot():
    return Qemu("guest", "-accel", "kvm", "-cpu", "host",
                "-M", "microvm,acpi=off", *(("-smp", "2") if LARGE else ()), "-m", str(MIB),
                "-kernel", os.path.join(kernel, "vmlinux"),
                "-initrd", os.path.join(e2e.BUILD, "guest", "worker.cpio"), "-append",
                "console=ttyS0 panic=-1 worker.seconds=9999 worker.roles=" + ",".join(ROLES))


def attach(machine, hz):
    return e2e.kvmprof("attach", str(machine.pid), "-F", str(hz), "--duration", str(SECONDS),
                       "-o", "at%d.data" % hz, timeout=600)


def judge(hz, p, truth):
    """One profile; what it cost."""
    path = "at%d.data" % hz
    if not check(p.status == 0, "attach at %d Hz: status %d: %s" % (hz, p.status, p.err)):
        return "%d Hz: failed" % hz
    s = e2e.check_lost(path)
    a = s["attach"]
    check(a["technique"] == "ptrace", "not by ptrace: %s" % a)
    if attached.takes_programs():
        check(a["memory_from"] == "kvm" and a["memory"] >= MIB << 20, "memory not as KVM has it: %s" % a)
    check(s["vcpus"] == 1 + LARGE, "%s vCPUs" % s["vcpus"])
    samples = list(worker_truth.perf_samples(path))
    good, short, bad = worker_truth.check_stacks(truth, samples, 50, "%d Hz: " % hz)
    names = {c for c, *_ in samples}
    check(not any(c.startswith(":") for c in names), "%d Hz: processes without a name: %s" % (hz, names))
    check(all(comm in names for _, comm, _ in truth.values()), "%d Hz: a command is missing in %s" % (hz, names))
    ends = s["kernel_stack_end"]
    whole, total = ends["root"] + ends["user-entry"], sum(ends.values())
    check(whole * 100 >= total * 99, "%d Hz: %d of %d kernel stacks are complete" % (hz, whole, total))
    stops = s["samples"] + a["stops_too_soon"]
    failed = 100 * a["stops_too_soon"] / stops
    cost = s["cost"][0]
    say("%d Hz: %s" % (hz, p.err.strip().replace("\n", "\n    ")))
    return ("%d Hz: %d samples, %d stacks equal, %d short, %d wrong, %.1f %% of %d stops without a sample, "
            "%.0f us each, %.1f %% of the guest's time" %
            (hz, s["samples"], good, short, bad, failed, stops, cost["stopped_total_ns"] / stops / 1e3,
             100 * cost["stopped_total_ns"] / 1e9 / s["run_seconds"]))


machine = boot()
figures = []
try:
    if machine.wait_for("worker: steady", 600):
        done = {hz: attach(machine, hz) for hz in (97, 997)}
        # They tell as they come to it.
        truth = worker_truth.told(machine.console())
        check(len(truth) >= 3, "only %d threads told what they do" % len(truth))
        figures = [judge(hz, p, truth) for hz, p in done.items()]
        ps = e2e.kvmprof("ps", str(machine.pid), "--json", "--interval", "0.2", timeout=300)
        if check(ps.status == 0, "ps: status %d: %s" % (ps.status, ps.err)):
            tasks = worker_truth.check_tasks(truth, json.loads(ps.out)["tasks"])
            figures.append("%d tasks" % len(tasks))
        check(machine.process.poll() is None, "the machine has ended")
finally:
    machine.end()
e2e.finish("; ".join(figures))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 300 s
# tests: not svm, threads
"""`kvmprof attach -- VMM` profiles tests/e2e/microvmm.c from its first KVM_RUN, directly and through what starts it.

    attach_launch.py KVMPROF SCRATCH [reboots]

reboots: only machines that the VMM makes after one another in its process."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import time

import e2e
import microvm
import qemu
from e2e import check, say

END_S = 60
VMM = ["./microvmm", "--kernel", microvm.DEMO, "--append", "seconds=600", "--names", "cloud-hypervisor", "--filter", "cloud-hypervisor"]
# What stands in front of the VMM, each as a jailer does it: exec, fork, another pid name space.
SHAPES = {
    "directly": VMM,
    "exec": ["sh", "-c", "exec " + shlex.join(VMM)],
    "fork": ["sh", "-c", shlex.join(VMM) + "; exit 7"],
    "twice": ["sh", "-c", "(" + shlex.join(VMM) + "; true); exit 7"],
    "several vCPUs": VMM + ["--vcpus", "3"],
    "copies of descriptors": VMM + ["--dups", "1"],
    "memfd": VMM + ["--memory", "memfd"],
    "userfaultfd": VMM + ["--memory", "uffd"],
    "no filter": VMM[:-1] + ["none"],
    "QEMU": ["qemu-system-x86_64", "-display", "none", "-nodefaults", "-serial", "stdio", *qemu.DEMO, "seconds=600"],
    "QEMU, several vCPUs": ["qemu-system-x86_64", "-smp", "2", "-display", "none", "-nodefaults", "-serial", "stdio", *qemu.DEMO,
                            "seconds=600"],
}
if os.geteuid() == 0:
    SHAPES["name spaces of processes and mounts"] = ["unshare", "--fork", "--pid", "--mount", *VMM]


class Attach:
    """Standard input stays open, as the VMM ends with it."""

    def __init__(self, *argv, out="at.data", image=("--image", microvm.DEMO)):
        self.out = out
        subprocess.run(["rm", "-rf", out], check=True)
        self.process = subprocess.Popen([e2e.KVMPROF, "attach", *image, "--no-buildid-cache", "-o", out, *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)

    def end(self, close=False):
        try:
            if close:
                return self.process.communicate(timeout=END_S)
            self.process.wait(END_S)
            return self.process.stdout.read(), self.process.stderr.read()
        except subprocess.TimeoutExpired:
            self.process.kill()
            check(False, "no end: " + self.process.stderr.read())
            return "", ""


def vmms():
    """PIDs of this test's VMM."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink("/proc/%s/exe" % pid) == os.path.realpath("microvmm"):
                found.append(int(pid))
        except OSError:
            pass
    return found


def first_sample(out):
    """Its time in ns."""
    text = subprocess.run([e2e.KVMPROF, "script", "-i", out], stdout=subprocess.PIPE, check=True, text=True).stdout
    line = next(x for x in text.splitlines() if "wall:" in x)
    seconds, fraction = line.split("] ")[1].split(":")[0].split(".")
    return int(seconds) * 1000000000 + int(fraction.ljust(9, "0"))


def shape(name, argv):
    # Not for a second: on a busy host a VMM may get no processor in that, and so no sample.
    at = Attach("--json", "-F", "99", "--samples", "80", "--timeout", "55", "--", *argv)
    out, err = at.end()
    if not check(at.process.returncode == 0, "%s: status %s: %s" % (name, at.process.returncode, err)):
        return
    facts = json.loads(out.splitlines()[-1])
    start = facts["attach"]["start"]
    parts = [start[x] for x in ("vmm_ns", "kvm_ns", "held_ns", "guest_ns")]
    period = facts["events"][0]["period"]
    late = first_sample(at.out) - facts["first_entry_ns"]
    waited = [start[x] for x in ("first_sample_waited_ns", "first_sample_own_waited_ns")]
    say("%s: VMM %.1f ms, KVM set-up %.1f ms, held %.1f ms; first sample after %.2f ms, in which the vCPU waited %.2f ms and "
        "kvmprof %.2f ms for a processor, period %.2f ms; %d samples; the phases add up to %.3f %% of the elapsed time"
        % (name, *(x / 1e6 for x in parts[:3]), late / 1e6, *(x / 1e6 for x in waited), period / 1e6, facts["samples"],
           100 * sum(parts) / start["elapsed_ns"]))
    check(abs(sum(parts) - start["elapsed_ns"]) <= start["elapsed_ns"] / 100, "%s: parts %s" % (name, start))
    check(0 <= late, "%s: a sample before the first KVM_RUN" % name)
    # Its deadline is in the first period. A tenth is for the stop.
    check(late - sum(waited) <= 1.1 * period, "%s: first sample after %.2f ms, of which %s ns were waits for a processor" % (
        name, late / 1e6, waited))
    check(facts["samples"] > 0 and facts["attach"]["memory_from"] == "kvm", "%s: %s" % (name, facts["attach"]))
    check("demo: start" in err, "%s: the console does not pass through: %s" % (name, err))
    check(not vmms(), "%s: the VMM was not ended" % name)


def statuses():
    at = Attach("--", *VMM)
    until = time.monotonic() + END_S
    while not vmms() and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(1)
    err = at.end(close=True)[1]      # the end of its standard input is the VMM's
    check(at.process.returncode == 0 and "the machine has ended" in err, "an end by itself: %s" % err)
    at = Attach("--", *VMM)
    time.sleep(2)
    for pid in vmms():
        os.kill(pid, signal.SIGTERM)
    err = at.end()[1]
    check(at.process.returncode == 128 + signal.SIGTERM, "a signal: status %s: %s" % (at.process.returncode, err))
    for argv, status, words in ((["--", "./nothing"], 1, "cannot execute ./nothing"),
                                (["--", "true"], 1, "has ended before"),
                                (["--timeout", "1", "--", "sleep", "60"], 124, "--timeout"),
                                (["--timeout", "1", "--wait", "no-such-vmm"], 124, "no VMM called no-such-vmm"),
                                (["--until", "console:x", "--pid", "1"], 2, "--until is for"),
                                (["--timeout", "1", "--pid", "1"], 2, "--timeout is for"),
                                (["--until", "x", "--", "true"], 2, "console:REGEX")):
        at = Attach(*argv)
        err = at.end()[1]
        check(at.process.returncode == status and words in err, "%s: status %s: %s" % (argv, at.process.returncode, err))


def left(what):
    """Processes with this argument that are there two seconds later."""
    until = time.monotonic() + 10
    while True:
        n = subprocess.run(["pgrep", "-f", what], stdout=subprocess.PIPE).stdout
        if not n or time.monotonic() > until:
            return n.decode().split()
        time.sleep(0.05)


def no_machine():
    """A command that never runs a guest is ended, with all that it started."""
    for n, argv in enumerate((["sleep"], ["sh", "-c", 'sleep "$0"; true'], ["sh", "-c", 'setsid sleep "$0" & wait'])):
        for how in (signal.SIGINT, signal.SIGTERM, None):
            seconds = "%d.%d" % (9000 + n, os.getpid())
            at = Attach(*(() if how else ("--timeout", "1")), "--", *argv, seconds)
            if how:
                time.sleep(1)
                at.process.send_signal(how)
            err = at.end()[1]
            words = "interrupted before the VMM ran a guest" if how else "--timeout"
            check(at.process.returncode == (1 if how else 124) and words in err,
                  "%s, %s: status %s: %s" % (argv, how, at.process.returncode, err))
            check(not left("sleep " + seconds), "%s, %s: processes are left" % (argv, how))
    os.mkdir("kvmprof")
    subprocess.run(["cp", "-L", shutil.which("sleep"), "kvmprof/sleeper"], check=True)
    at = Attach("--timeout", "4", "--wait", "sleeper")
    time.sleep(1)
    with subprocess.Popen(["./kvmprof/sleeper", "600"]) as sleeper:
        err = at.end()[1]
        sleeper.kill()
    check(at.process.returncode == 124 and "there was no guest" in err, "a path with kvmprof in it: %s" % err)


def until():
    at = Attach("--until", "console:^demo: start", "--timeout", "50", "--", "sh", "-c", shlex.join(VMM) + " 2>&1")
    out, err = at.end()
    check(at.process.returncode == 0 and "stop marker reached" in err, "until: %s" % err)
    check("demo: start" in out, "until: the output is not passed on: %s" % out)
    check(not vmms(), "until: the VMM was not ended")


def waited_for():
    at = Attach("--json", "--duration", "1", "--timeout", "50", "--wait", "vm-of-others")
    time.sleep(1)
    with microvm.MicroVM(name="vm-of-others") as vm:
        out, err = at.end()
        check(at.process.returncode == 0, "wait: %s" % err)
        start = json.loads(out)["attach"].get("start", {})
        check(start.get("guest_ns", 0) > 0, "wait: not from the first KVM_RUN: %s" % start)
        check(vm.goes_on(), "wait: the VMM does not go on")


def reboots(how, more, seconds=5):
    """Attaches to a VMM whose guest reboots. Returns the machines that it made meanwhile, the summary, and how long samples stand for."""
    with microvm.MicroVM(append="seconds=1", remake=1) as vm:
        check(vm.wait_for("demo: start"), "the guest does not start: " + vm.text())
        before = vm.stats()["reboots"]
        at = Attach("--json", "--duration", str(seconds), *more, str(vm.pid))
        out, err = at.end()
        after = vm.stats()["reboots"]
    if at.process.returncode:
        return after - before, {"end": err, "attach": {"further_machines": 0}}, 0
    facts = json.loads(out)
    return after - before, facts, facts["kernel_ns"] + facts["user_ns"]


def other_machines():
    """A reboot makes another machine in the same process, as in Cloud Hypervisor. A machine that gets no processor for its second has no
    sample, so that on a busy host the best of some tries counts."""
    seconds = 5
    for how, more in (("auto", ()), ("ptrace", ("--technique", "ptrace")), ("host", ("-e", "host"))):
        for _ in range(4):
            made, facts, taken = reboots(how, more, seconds)
            sampled = facts["attach"]["further_machines"]
            say("reboots, %s: %d machines made, %d sampled; samples stand for %.1f s of %d s" % (how, made, sampled, taken / 1e9, seconds))
            # One may be made while attach begins or ends.
            if made - 2 <= sampled >= 2 and facts["end"] == "duration reached" and taken > seconds * 1e9 / 3:
                break
        else:
            check(False, "reboots, %s: %d of %d machines, %d ns: %s" % (how, sampled, made, taken, facts["end"]))


def without_kvm():
    """attach makes no machine, and needs no /dev/kvm."""
    if os.geteuid() != 0:
        e2e.left_out("without root no /dev without kvm can be made")
        return
    with microvm.MicroVM() as vm:
        check(vm.wait_for("demo: start"), "the guest does not start: " + vm.text())
        argv = [e2e.KVMPROF, "attach", "--image", microvm.DEMO, "--no-buildid-cache", "--json", "--duration", "1", "-o", "n.data",
                str(vm.pid)]
        hide = "mkdir -p devs; mount -t tmpfs none devs; for x in null urandom; do touch devs/$x; mount --bind /dev/$x devs/$x; done; "
        p = subprocess.run(["unshare", "-m", "sh", "-c", hide + "mount --move devs /dev; exec " + shlex.join(argv)],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=END_S)
    if check(p.returncode == 0, "without /dev/kvm: " + p.stderr):
        say("without /dev/kvm: %d samples" % json.loads(p.stdout)["samples"])


def linux(kernel):
    """A boot of Linux: samples before its symbols are known have names, and the phases are there."""
    at = Attach("--json", "--samples", "2500", "--timeout", "55", "--", e2e.KVMPROF, "run", "-q", "--sandbox=off", "-F", "1", "-o", "own.data",
                "--no-buildid-cache", "--duration", "60", os.path.join(kernel, "vmlinux"), image=())
    out, err = at.end()
    if not check(at.process.returncode == 0, "Linux: " + err):
        return
    facts = json.loads(out.splitlines()[-1])
    rows = subprocess.run([e2e.KVMPROF, "report", "-i", at.out], stdout=subprocess.PIPE, check=True, text=True).stdout
    phases = subprocess.run([e2e.KVMPROF, "report", "--phase", "-i", at.out], stdout=subprocess.PIPE, check=True, text=True).stdout
    named = next(float(x.split("%")[0]) for x in rows.splitlines() if "secondary_startup_64" in x)
    say("Linux: %d samples, %.1f %% below its entry, first sample after %.2f ms"
        % (facts["samples"], named, (first_sample(at.out) - facts["first_entry_ns"]) / 1e6))
    check(named > 90, "Linux: %.1f %% are below its entry: %s" % (named, rows[:2000]))
    check("first instruction" in phases and "start_kernel" in phases, "Linux: phases: " + phases)


e2e.need_kvm()
microvm.build()
if e2e.EXTRA:
    other_machines()
    e2e.finish("another machine in the process is followed")
e2e.need_tool("qemu-system-x86_64")
for shape_name, command in SHAPES.items():
    shape(shape_name, command)
statuses()
no_machine()
until()
waited_for()
other_machines()
without_kvm()
linux(e2e.built_kernel("tiny"))
e2e.finish("a VMM that kvmprof starts, in %d shapes; statuses, --until, --wait, another machine in the process" % len(SHAPES))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 9 s
# tests: slow, at most 300 s: starved
# tests: not svm, threads
"""`kvmprof attach` in two processes: the one that reads guest memory has no rights over the VMM, and the machine goes on,
and attach ends, whichever of them is stopped or killed.

    attach_split.py KVMPROF SCRATCH [starved]

starved: a tracer that gets no processor for seconds is not stuck, though its guard, in a session of its own, gets one.
"""

import glob
import os
import re
import shutil
import signal
import subprocess
import time

import e2e
import microvm
from e2e import check, say

END_S = 30     # nothing takes so long, unless it hangs
TRACER, GUARD = "kvmprof-tracer", "kvmprof-guard"
# Of the capabilities: those that reach other processes. include/uapi/linux/capability.h
REACH = 1 << 19 | 1 << 21 | 1 << 38 | 1 << 39    # SYS_PTRACE, SYS_ADMIN, PERFMON, BPF


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def status(path):
    return dict(line.split(":\t", 1) for line in read(path + "/status").splitlines() if ":\t" in line)


def children(pid):
    found = {}
    for path in glob.glob("/proc/[0-9]*"):
        try:
            s = status(path)
        except OSError:
            continue
        if int(s["PPid"]) == pid:
            found[s["Name"]] = int(os.path.basename(path))
    return found


ATTACH = ["attach", "--image", microvm.DEMO, "--no-status", "-F", "997", "--no-buildid-cache", "-o", "at.data"]


class Attach:
    def __init__(self, vm, argv):
        shutil.rmtree("at.data", ignore_errors=True)
        self.vm = vm
        self.process = subprocess.Popen([e2e.KVMPROF, *argv, str(vm.pid)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.tracer = self.guard = 0
        until = time.monotonic() + END_S
        while not self.is_bound() and time.monotonic() < until and self.process.poll() is None:
            time.sleep(0.02)

    def is_bound(self):
        """Whether it samples: then its main thread is bound, too."""
        self.tracer = children(self.pid).get(TRACER, 0)
        self.guard = children(self.tracer).get(GUARD, 0) if self.tracer else 0
        return self.guard and status("/proc/%d" % self.pid)["Seccomp"] == "2" and self.traced() == self.tracer

    def has_sampled(self, n=60):
        """Waits until the threads of the process that samples have slept n times, which each sample makes them do."""
        until = time.monotonic() + END_S

        def slept():
            return sum(int(status(task)["voluntary_ctxt_switches"]) for task in glob.glob("/proc/%d/task/*" % self.tracer))
        first = slept()
        while time.monotonic() < until:
            if slept() >= first + n:
                return
            time.sleep(0.02)
        check(False, "it does not sample: %d, %d" % (first, slept()))

    def traced(self):
        """Who traces the machine's vCPU."""
        tid = self.vm.stats()["tid"][0]
        by = int(status("/proc/%d/task/%d" % (self.vm.pid, tid))["TracerPid"])
        return int(status("/proc/%d" % by)["Tgid"]) if by else 0

    def end(self, what, code):
        try:
            err = self.process.communicate(timeout=END_S)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return check(False, "%s: no end: %s" % (what, self.process.communicate()[1]))
        check(self.process.returncode == code, "%s: status %s: %s" % (what, self.process.returncode, err))
        return err

    def is_gone(self, what):
        """The machine is on its own, and no process of ours is left."""
        until = time.monotonic() + END_S
        while time.monotonic() < until and any(os.path.exists("/proc/%d" % p) and status("/proc/%d" % p)["State"][0] != "Z"
                                               for p in (self.tracer, self.guard)):
            time.sleep(0.02)
        left = [p for p in (self.tracer, self.guard)
                if os.path.exists("/proc/%d" % p) and status("/proc/%d" % p)["State"][0] != "Z"]
        check(not left, "%s: processes are left: %s" % (what, left))
        check(self.traced() == 0, "%s: the machine is still traced" % what)
        check(self.vm.alive() and self.vm.goes_on(), "%s: the machine does not go on: %s" % (what, self.vm.process.poll()))


def has_samples(what):
    p = e2e.kvmprof("report", "-i", "at.data", "-n", "1")
    check(p.status == 0 and p.out, "%s: its profile: %s" % (what, p.err))
    return check(e2e.summary("at.data")["samples"] > 0, "%s: no samples" % what)


def rights_are_split(vm):
    a = Attach(vm, ATTACH)
    if not check(a.tracer and a.traced() == a.tracer, "another process traces: %s" % children(a.pid)):
        a.process.kill()
        return
    threads = {}
    for pid in (a.pid, a.tracer):
        for task in glob.glob("/proc/%d/task/*" % pid):
            s = status(task)
            if s["Name"].startswith("kvm-"):    # the kernel's own
                continue
            threads.setdefault(pid, set()).add(s["Name"])
            check(s["Seccomp"] == "2" and s["NoNewPrivs"] == "1", "%s of %d is not filtered: %s" % (s["Name"], pid, s["Seccomp"]))
            if pid == a.pid:
                check(not (int(s["CapEff"], 16) | int(s["CapPrm"], 16)) & REACH, "%s has %s" % (s["Name"], s["CapPrm"]))
    guard = status("/proc/%d" % a.guard)
    check(guard["Seccomp"] == "2" and guard["NoNewPrivs"] == "1" and guard["Threads"] == "1" and
          not int(guard["CapPrm"], 16) | int(guard["CapEff"], 16), "the guard is not bound: %s" % guard)
    # Standard error; the pipe at whose end it ends; what it reads and ends.
    open_files = sorted(re.sub(r"\d+", "N", os.readlink(p)) for p in glob.glob("/proc/%d/fd/*" % a.guard)
                        if not p.endswith("/2"))
    check(open_files in (["/proc/N/task/N/schedstat", "/proc/N/task/N/stat", pidfd, "pipe:[N]"] for pidfd in ("anon_inode:[pidfd]", "pidfd:[N]")),
          "descriptors of the guard: %s" % open_files)
    check({"consumer", "attach-link"} <= threads[a.pid], "threads: %s" % threads)
    check({"tracer", "attach-serve"} <= threads[a.tracer], "threads: %s" % threads)
    check("consumer" not in threads[a.tracer], "the process that traces parses: %s" % threads)
    # No descriptor leads to the machine, and no memory of the machine is mapped.
    own = [os.readlink(p) for p in glob.glob("/proc/%d/fd/*" % a.pid)]
    machine = [x for x in own if re.search(r"pidfd|bpf|perf_event|kvm-v|^/dev/kvm|^/proc/%d/" % vm.pid, x)]
    check(own and not machine, "descriptors of the process that parses: %s" % machine)
    check("kvm-vcpu" not in read("/proc/%d/maps" % a.pid), "a vCPU's page is mapped")
    tracer = [os.readlink(p) for p in glob.glob("/proc/%d/fd/*" % a.tracer)]
    check(not [x for x in tracer if "at.data" in x], "the process that traces has the profile open: %s" % tracer)
    a.process.send_signal(signal.SIGINT)
    a.end("SIGINT", 0)
    has_samples("SIGINT")
    a.is_gone("SIGINT")


def either_may_end(vm):
    for what, who, signo, code in (("SIGTERM", "pid", signal.SIGTERM, 0), ("the tracing process is killed", "tracer", signal.SIGKILL, 1),
                                   ("the parsing process is killed", "pid", signal.SIGKILL, -9),
                                   ("the tracing process is stopped", "tracer", signal.SIGSTOP, 1)):
        a = Attach(vm, ATTACH)
        if not check(a.tracer and a.guard, "%s: no two processes" % what):
            a.process.kill()
            continue
        a.has_sampled()
        start = time.monotonic()
        os.kill(getattr(a, who), signo)
        err = a.end(what, code)
        say("%s: attach ends after %.2f s" % (what, time.monotonic() - start))
        if code >= 0:
            has_samples(what)
        if code == 1:
            check(err and "the machine goes on, and the profile ends here" in err, "%s: %s" % (what, err))
        a.is_gone(what)


def a_look_says_why_it_ends(vm):
    """`ps` looks for Linux, which is not there. The end of its tracer is not that of the machine."""
    a = Attach(vm, ["ps"])
    if check(a.tracer and a.guard, "ps: no two processes"):
        os.kill(a.tracer, signal.SIGKILL)
        err = a.end("ps", 1)
        check(err and "the machine goes on" in err, "ps without its tracer: %s" % err)
        a.is_gone("ps")
    else:
        a.process.kill()


def a_stop_of_the_parser_stops_nothing_else(vm):
    a = Attach(vm, ATTACH)
    os.kill(a.pid, signal.SIGSTOP)
    time.sleep(1.5)
    check(vm.alive() and vm.goes_on(), "SIGSTOP: the machine does not go on")
    os.kill(a.pid, signal.SIGCONT)
    time.sleep(0.2)
    a.process.send_signal(signal.SIGTERM)
    a.end("SIGSTOP, SIGCONT", 0)
    has_samples("SIGSTOP, SIGCONT")
    a.is_gone("SIGSTOP, SIGCONT")


def without_a_processor(vm):
    """Returns how long the tracer has waited for one."""
    a = Attach(vm, ATTACH)
    if not check(a.tracer and a.guard, "starved: no two processes"):
        a.process.kill()
        return 0
    for tid in os.listdir("/proc/%d/task" % a.tracer):
        os.setpriority(os.PRIO_PROCESS, int(tid), 19)
    # In the session of the tracer (sched(7), autogroup).
    hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]
    try:
        for p in hogs:
            os.setpriority(os.PRIO_PROCESS, p.pid, -20)
        time.sleep(15)
        waited = max(int(read("/proc/%d/task/%s/schedstat" % (a.tracer, tid)).split()[1]) for tid in os.listdir("/proc/%d/task" % a.tracer))
    except (PermissionError, FileNotFoundError) as why:
        check(isinstance(why, PermissionError), "starved: the tracer has ended: %s" % why)
        waited = 0
    finally:
        for p in hogs:
            p.kill()
            p.wait()
    a.process.send_signal(signal.SIGTERM)
    a.end("starved", 0)
    has_samples("starved")
    a.is_gone("starved")
    return waited / 1e9


e2e.need_kvm()
microvm.build()
if e2e.EXTRA:
    with microvm.MicroVM() as machine:
        check(machine.wait_for("demo: start"), "the guest does not start: " + machine.text())
        rounds = [without_a_processor(machine) for _ in range(3)]
    e2e.finish("a tracer without a processor for " + ", ".join("%.1f s" % x for x in rounds))
with microvm.MicroVM() as machine:
    check(machine.wait_for("demo: start"), "the guest does not start: " + machine.text())
    rights_are_split(machine)
    either_may_end(machine)
    a_look_says_why_it_ends(machine)
    a_stop_of_the_parser_stops_nothing_else(machine)
e2e.finish("two processes: one traces, one parses; killed, stopped and ended: the machine goes on")

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 30 s
# tests: slow, at most 3600 s: 1000
# tests: not svm, threads
"""`kvmprof attach` neither kills nor freezes a VMM: tests/e2e/microvmm.c with the filter of Cloud Hypervisor.

    attach_vmm.py KVMPROF SCRATCH [CYCLES]

It is attached to while it is paused, while its guest reboots, while pages of its memory never come, and while attach itself
is stopped or frozen. With CYCLES so many attaches are made to machines whose guests reboot in a loop, and reboots are
counted of the machine that is attached to and of another one."""

import os
import random
import shutil
import signal
import subprocess
import time

import e2e
import fuse_memory
import microvm
from e2e import check, say

CYCLES = int(e2e.EXTRA[0]) if e2e.EXTRA else 0
END_S = 30    # nothing takes so long, unless it hangs
TECHNIQUES = ("auto", "ptrace")


class Attach:
    def __init__(self, vm, *argv, out="at.data"):
        shutil.rmtree(out, ignore_errors=True)
        self.out = out
        self.process = subprocess.Popen([e2e.KVMPROF, "attach", str(vm.pid), "--image", microvm.DEMO, "--no-status",
                                         "--no-buildid-cache", "-o", out, *map(str, argv)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def end(self, what, status=0):
        try:
            err = self.process.communicate(timeout=END_S)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return check(False, "%s: no end: %s" % (what, self.process.communicate()[1]))
        check(self.process.returncode == status, "%s: status %s: %s" % (what, self.process.returncode, err))
        return err

    def traces(self, vm):
        """Waits until it traces the machine's vCPU."""
        path, until = "/proc/%d/task/%d/status" % (vm.pid, vm.stats()["tid"][0]), time.monotonic() + END_S
        while time.monotonic() < until and self.process.poll() is None:
            with open(path, encoding="ascii") as f:
                if "TracerPid:\t0" not in f.read():
                    return True
            time.sleep(0.01)
        return check(False, "it traces nothing")


def begun(vm):
    return check(vm.wait_for("demo: start"), "the guest does not start: " + vm.text())


def check_paused():
    """A pause is told as one, and breaks off no wait of the VMM."""
    for kind in ("nanosleep", "poll", "futex", "epoll"):
        with microvm.MicroVM() as vm:
            begun(vm)
            a = Attach(vm, "-F", 997, "--duration", 1.6, "--technique", "ptrace")
            a.traces(vm)
            time.sleep(0.3)
            vm.tell("pause " + kind)
            time.sleep(0.8)
            vm.tell("resume")
            a.end("paused in " + kind)
            if not check(vm.alive(), "paused in %s: the VMM has ended: %s" % (kind, vm.process.poll())):
                continue
            eintr = vm.stats()["eintr"]
            # A stop may come between the look at a thread and its sleep; one such sleep of many may see it.
            check(eintr["epoll"] <= 1 and eintr["nanosleep"] + eintr["poll"] + eintr["futex"] == 0,
                  "paused in %s: interrupted: %s" % (kind, eintr))
            s = e2e.summary("at.data")
            check(s["attach"]["periods_paused"] > 100, "paused in %s: %s" % (kind, s["attach"]))
            # Samples stand for what is left of the time.
            stands = s["kernel_ns"] + s["user_ns"] + s["idle_ns"]
            check(stands < 1.3e9, "paused in %s: samples stand for %d ns of 1.6 s with a pause of 0.8 s" % (kind, stands))
            check(vm.goes_on(), "paused in %s: it does not go on" % kind)


def check_unstarted():
    """A vCPU that was never started is no time of the kernel."""
    with microvm.MicroVM(vmm="firecracker", vcpus=2) as vm:
        begun(vm)
        a = Attach(vm, "--duration", 1)
        a.end("a vCPU that was never started")
        s = e2e.summary("at.data")
        check(s["offline_periods"] > 100, "offline: %d" % s["offline_periods"])
        p = e2e.kvmprof("report", "-i", "at.data", "--no-children", "-n", "0")
        check("pvh" not in p.out and s["samples"] > 0, "shown: " + p.out)


def check_halted():
    """A vCPU that sleeps because its guest is halted is not stopped for each sleep, and its samples are at the right place."""
    with microvm.MicroVM(append="mode=idle seconds=600") as vm:
        begun(vm)
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            Attach(vm, "-F", 997, "--duration", 1, "--technique", "ptrace").end("a guest that halts")
            s = e2e.summary("at.data")["attach"]
            if s["samples_of_sleeping"] > 50:
                break
        p = e2e.kvmprof("report", "-i", "at.data", "--no-children", "-n", "0")
        idle = {f[3]: int(f[1]) for f in map(str.split, p.out.splitlines()) if len(f) > 4 and f[2] == "idle"}
        total, there = sum(idle.values()), idle.get("idle_wait", 0)
        check(there >= 0.9 * total, "halted elsewhere: " + p.out)
        # A vCPU that was woken up and waits for a processor is stopped behind its halt.
        check(s["samples_of_sleeping"] > max(50, 0.3 * total), "stopped while halted: %s, %d samples are idle" % (s, total))


def check_reboots(cycles):
    with microvm.MicroVM(append="work=1") as vm:
        begun(vm)
        for i in range(cycles):
            a = Attach(vm, "-F", 4999, "--duration", 0.3, "--technique", TECHNIQUES[i % 2])
            a.end("reboots, cycle %d" % i)
            if not check(vm.alive(), "cycle %d killed the VMM: %s" % (i, vm.process.poll())):
                return
        before = vm.stats()["reboots"]
        time.sleep(1)
        check(vm.stats()["reboots"] > before, "it does not reboot any more")


def check_absent_pages():
    """A page server that is dead: the guest needs none of its pages, and must not wait for any that attach wants."""
    # Short rounds: all that the guest works with is there soon.
    with microvm.MicroVM(append="work=1000000", memory="uffd") as vm:
        begun(vm)
        time.sleep(1)
        vm.tell("drop")
        time.sleep(2)
        vm.tell("dead")
        for i, technique in enumerate(TECHNIQUES):
            a = Attach(vm, "-F", 997, "--technique", technique, *(() if i else ("--duration", 1)))
            if a.traces(vm):
                check(vm.goes_on(), "%s: the guest waits for pages that attach wants" % technique)
            if i:
                time.sleep(1)
                a.process.send_signal(signal.SIGTERM)
            a.end("dead page server, " + technique)
            stats = vm.stats()
            check(stats["asked_by_others"] == 0, "%s: attach asked the page server: %s" % (technique, stats))
            s = e2e.summary("at.data")
            check(s["samples"] > 0 and s["attach"]["samples_not_in_memory"] > 0, "%s: %s" % (technique, s["attach"]))
        # Now the guest itself waits for a page.
        vm.tell("drop")
        time.sleep(0.2)
        for signo in (signal.SIGINT, signal.SIGTERM):
            a = Attach(vm, "-F", 997)
            time.sleep(1.5)
            a.process.send_signal(signo)
            try:
                a.process.communicate(timeout=END_S)
            except subprocess.TimeoutExpired:
                a.process.kill()
                check(False, "a vCPU that waits for a page: %s does not end attach: %s" % (signo, a.process.communicate()[1]))
        check(vm.stats()["asked_by_others"] == 0, "attach asked the page server: %s" % vm.stats())
        vm.tell("alive")
        check(vm.goes_on(), "the guest does not go on when its pages come")


def ends_soon(a, what):
    """SIGTERM ends it within two seconds; its summary."""
    time.sleep(0.7)
    stop_soon(a, what)
    a.end(what)
    return e2e.summary(a.out)


def stop_soon(a, what):
    start = time.monotonic()
    a.process.send_signal(signal.SIGTERM)
    try:
        a.process.wait(END_S)
    except subprocess.TimeoutExpired:
        a.process.kill()
    took = time.monotonic() - start
    check(took < 2, "%s: over %.1f s after SIGTERM" % (what, took))


def check_fuse():
    """The memory is a file on FUSE whose server stops answering: no page of it is asked for, and the machine goes on."""
    fuse = fuse_memory.FuseFile(64 << 20)
    if fuse.why:
        return e2e.left_out("no file system in user space: " + fuse.why)
    try:
        with microvm.MicroVM(append="work=1000000", memory=fuse.path) as vm:
            begun(vm)
            time.sleep(0.5)
            vm.tell("drop")
            time.sleep(1)
            check(fuse.tell("asked"), "the machine reads no page from its file")
            fuse.tell("dead")
            for technique in TECHNIQUES:
                a = Attach(vm, "-F", 997, "--technique", technique)
                if a.traces(vm):
                    check(vm.goes_on(), "%s: the guest waits for pages that attach wants" % technique)
                s = ends_soon(a, "dead FUSE server, " + technique)
                check(s["samples"] > 0 and s["attach"]["samples_not_in_memory"] > 0, "%s: %s" % (technique, s["attach"]))
                others = fuse.asked_by_others(vm.pid)
                check(not others, "%s: other processes asked the server: %s" % (technique, others))
            check(vm.goes_on(), "the machine does not go on")
            # Now the guest itself waits for a page.
            fuse.tell("alive")
            vm.tell("drop")
            fuse.tell("dead")
            a = Attach(vm, "-F", 997, "--technique", "ptrace")
            time.sleep(0.5)
            stop_soon(a, "a vCPU that waits for FUSE")
            # Its other process holds standard error open as long as it looks for a vCPU that stops.
            start = time.monotonic()
            a.process.communicate()
            check(time.monotonic() - start < 2, "the tracer goes on for %.1f s" % (time.monotonic() - start))
            check(not fuse.asked_by_others(vm.pid), "attach asked the server")
            fuse.tell("alive")
            check(vm.alive() and vm.goes_on(), "the guest does not go on when its pages come")
            say("memory on FUSE: ran")
    finally:
        fuse.end()


def swapped_kib(vm):
    with open("/proc/%d/status" % vm.pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmSwap:"))


def check_swap():
    """Pages that are swapped out stay there: a read of attach's would wait for a disk, with a vCPU stopped."""
    path = os.path.abspath("swapfile")
    with open(path, "wb") as f:
        os.chmod(path, 0o600)
        f.write(bytes(16 << 20))    # without holes
        os.fsync(f.fileno())    # or what is swapped out waits for it
    if e2e.run("mkswap", path).status or e2e.run("swapon", "-p", "0", path).status:
        os.unlink(path)
        return e2e.left_out("no swap file can be made: " + e2e.run("swapon", path).err.strip())
    try:
        with microvm.MicroVM(append="work=1000000") as vm:
            begun(vm)
            time.sleep(0.5)
            vm.tell("drop")
            time.sleep(0.5)
            before = swapped_kib(vm)
            if not check(before > 0, "nothing is swapped out"):
                return
            for technique in TECHNIQUES:
                a = Attach(vm, "-F", 997, "--technique", technique)
                a.traces(vm)
                check(vm.goes_on(), "%s: the machine does not go on" % technique)
                s = ends_soon(a, "swapped out, " + technique)
                check(s["samples"] > 0 and s["attach"]["samples_not_in_memory"] > 0, "%s: %s" % (technique, s["attach"]))
            say("swap: ran; %d KiB were swapped out, %d KiB are still" % (before, swapped_kib(vm)))
    finally:
        e2e.run("swapoff", path)
        os.unlink(path)


def tracer_of(pid):
    """The process of attach that traces, and its guard."""
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
        found = [int(x) for x in f.read().split()]
    for p in list(found):
        with open("/proc/%d/task/%d/children" % (p, p), encoding="ascii") as f:
            found += [int(x) for x in f.read().split()]
    return found


def check_stopped(freeze):
    """SIGSTOP of the process that traces, or a frozen cgroup with both, at a random moment: the machine is released."""
    what = "frozen" if freeze else "SIGSTOP"
    with microvm.MicroVM() as vm:
        begun(vm)
        for i in range(2 if freeze else 4):
            a = Attach(vm, "-F", 4999, "--technique", TECHNIQUES[i % 2])
            a.traces(vm)
            ours = tracer_of(a.process.pid)
            if not check(len(ours) == 2, "%s: processes of attach: %s" % (what, ours)):
                a.process.kill()
                return
            if freeze:
                # The guard has left its cgroup before.
                freeze.enter(a.process.pid)
                freeze.enter(ours[0])
            time.sleep(0.5 + 0.3 * random.random())
            if freeze:
                freeze.set(1)
            else:
                os.kill(ours[0], signal.SIGSTOP)
            # Also when it sleeps with a time limit while nobody attends to it.
            vm.tell("pause nanosleep")
            if freeze:
                until = time.monotonic() + END_S
                while os.path.exists("/proc/%d/task/%d/children" % (ours[1], ours[1])) and time.monotonic() < until:
                    time.sleep(0.05)
                vm.tell("resume")
                check(vm.alive() and vm.goes_on(), "frozen, round %d: the machine: %s" % (i, vm.process.poll()))
                freeze.set(0)
            err = a.end("%s, round %d" % (what, i), 1)
            check(err and "its guard has ended it" in err, "%s: nothing is said: %s" % (what, err))
            vm.tell("resume")
            if not check(vm.alive() and vm.goes_on(), "%s, round %d: the machine: %s" % (what, i, vm.process.poll())):
                return
            # The process that writes the profile was not harmed.
            p = e2e.kvmprof("report", "-i", "at.data", "-n", "1")
            check(p.status == 0 or "there are no samples in it" in p.err,    # stopped before the first one
                  "%s: its profile is not read: %s" % (what, p.err))


class Freezer:
    """A cgroup of version 2 that can be frozen; made() says whether there can be one."""

    def __init__(self):
        self.path = next((p for p in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if os.path.exists(p + "/cgroup.controllers")), "")
        self.path += "/kvmprof-test-%d" % os.getpid()

    def made(self):
        try:
            os.mkdir(self.path)
            return os.path.exists(self.path + "/cgroup.freeze")
        except OSError:
            return False

    def write(self, name, text):
        with open(os.path.join(self.path, name), "w", encoding="ascii") as f:
            f.write(str(text))

    def enter(self, pid):
        self.write("cgroup.procs", pid)

    def set(self, frozen):
        self.write("cgroup.freeze", frozen)

    def remove(self):
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            try:
                return os.rmdir(self.path)
            except OSError:
                time.sleep(0.05)


def many_cycles(n, append, **memory):
    """Attaches to two machines in turns, ten times each: reboots of that which is attached to, and of the other one meanwhile.
    Both bear the load of kvmprof itself and of the host."""
    seen, died, asked, seconds = {True: 0, False: 0}, 0, 0, 0
    vms = [microvm.MicroVM(append=append, console="console.%d" % k, **memory) for k in range(2)]
    for vm in vms:
        begun(vm)
    for i in range(0, n, 10):
        before, start = [vm.stats()["reboots"] for vm in vms], time.monotonic()
        at = i // 10 % 2
        for k in range(10):
            Attach(vms[at], "-F", 4999, "--duration", 0.3, "--technique", TECHNIQUES[k % 2]).end("cycle %d" % (i + k))
        seconds += time.monotonic() - start
        for k, vm in enumerate(vms):
            stats = vm.stats()
            if stats:
                seen[k == at] += stats["reboots"] - before[k]
                continue
            died += 1
            vm.__exit__()
            vms[k] = microvm.MicroVM(append=append, console="console.%d" % k, **memory)
            begun(vms[k])
    for vm in vms:
        asked += vm.stats()["asked_by_others"]
        vm.__exit__()
    share = seen[True] / max(seen[False], 1)
    figures = "%s, %d cycles in %.0f s: %d VMMs killed; %d reboots attached, %d of the other machine meanwhile (%.1f %%); %d requests of attach to the page server" % (
        append, n, seconds, died, seen[True], seen[False], 100 * share, asked)
    say("%s: %s" % (memory.get("memory", "anon"), figures))
    check(not died, "%d VMMs were killed" % died)
    check(asked == 0, "attach asked the page server %d times" % asked)
    return figures, share


e2e.need_kvm()
microvm.build()
random.seed(36)
if CYCLES:
    # Each boot of a guest takes a second of the clock: sampling at 4999 Hz must not add to the VMM's waits.
    timed, share = many_cycles(CYCLES, "seconds=1")
    check(share >= 0.9, "fewer reboots: " + timed)
    served, share = many_cycles(max(CYCLES // 10, 10), "seconds=1", memory="uffd")
    check(share >= 0.9, "fewer reboots: " + served)
    # Here the guest's own work is what a reboot takes, so that what each stop costs is seen in the figures.
    busy, _ = many_cycles(max(CYCLES // 10, 10), "work=1")
    e2e.finish("%s; with a page server: %s; a guest that computes: %s" % (timed, served, busy))
check_paused()
check_unstarted()
check_halted()
check_reboots(6)
check_absent_pages()
check_fuse()
check_swap()
check_stopped(None)
freezer = Freezer()
if os.geteuid() == 0 and freezer.made():
    check_stopped(freezer)
    freezer.remove()
else:
    e2e.left_out("no cgroup of version 2 can be made")
e2e.finish("paused in 4 ways, rebooted, without pages, stopped and frozen: every machine goes on")

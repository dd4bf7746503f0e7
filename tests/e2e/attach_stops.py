#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 18 s
# tests: slow, at most 3600 s: 500 kills
# tests: slow, at most 3600 s: 100
# tests: not svm, threads
"""attach_stops.py ... [ROUNDS [kills]]: what `kvmprof attach` leaves of somebody else's machine alone.

* With SIGCHLD ignored, which is inherited, no vCPU stays stopped.
* While attach itself is stopped by Ctrl-Z, at whatever moment that comes, it traces no thread of the
  machine and none is stopped; it goes on afterwards, and ends well.
* Killed at random moments it leaves no thread stopped; the next one takes back what it asked KVM for.
* Threads that wait in another system call than KVM_RUN are not interrupted.

kills: only the kills, two a round.
"""

import ctypes
import mmap
import os
import random
import re
import signal
import struct
import subprocess
import time

import e2e
import qemu
from e2e import check

ROUNDS = int(e2e.EXTRA[0]) if e2e.EXTRA else 5
SYS_PIDFD_GETFD = 438
VALID_REGS = 288  # offsetof(struct kvm_run, kvm_valid_regs)
STUCK_LOOKS = 25  # the same stop, seen so often in a row, LOOK_S apart
LOOK_S = 0.02

e2e.need_kvm()
e2e.need_tool("qemu-system-x86_64")
random.seed(11)
DEMO_ELF = os.path.join(e2e.BUILD, "guest", "demo.elf")


def read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def threads(pid):
    """Of each thread: its state's letter, who traces it, and how often it was switched to."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        status = read("/proc/%d/task/%s/status" % (pid, tid))
        state, tracer = re.search(r"^State:\t(\w)", status, re.M), re.search(r"^TracerPid:\t(\d+)", status, re.M)
        if state and tracer:
            switches = re.findall(r"ctxt_switches:\t(\d+)", status)
            found[int(tid)] = (state.group(1), int(tracer.group(1)), sum(int(n) for n in switches))
    return found


def vcpu_fd(pid):
    for fd in os.listdir("/proc/%d/fd" % pid):
        if os.readlink("/proc/%d/fd/%s" % (pid, fd)).startswith("anon_inode:kvm-vcpu:"):
            return int(fd)
    raise RuntimeError("no vCPU")


def vcpu_thread(pid):
    """The one that has run a guest (proc(5), field 43), which is known once it was seen at a tick."""
    def guest_time(tid):
        return int(read("/proc/%d/task/%s/stat" % (pid, tid)).rsplit(")", 1)[1].split()[40])
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for tid in os.listdir("/proc/%d/task" % pid):
            if guest_time(tid):
                return int(tid)
        time.sleep(0.01)
    raise RuntimeError("no thread runs a guest")


def valid_regs(pid):
    """What KVM is asked to store at each exit of the vCPU."""
    pidfd = os.pidfd_open(pid)
    fd = ctypes.CDLL(None, use_errno=True).syscall(SYS_PIDFD_GETFD, pidfd, vcpu_fd(pid), 0)
    os.close(pidfd)
    with mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ) as page:
        os.close(fd)
        return struct.unpack_from("<Q", page, VALID_REGS)[0]


class Attach:
    def __init__(self, pid, *more, before=lambda: None):
        def prepare():
            os.setpgid(0, 0)  # as a shell does it: an orphaned group can't be stopped
            before()
        self.process = subprocess.Popen(
            [e2e.KVMPROF, "attach", str(pid), "--image", DEMO_ELF, "--no-buildid-cache", "--no-status",
             "-o", "attached.data", *[str(m) for m in more]],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            preexec_fn=prepare)
        self.pid = self.process.pid

    def end(self, what):
        try:
            err = self.process.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            check(False, what + ": attach does not end")
            return
        check(self.process.returncode == 0, "%s: status %d: %s" % (what, self.process.returncode, err))

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def kill_tracer(self):
        """Kills the process that has asked for registers, or is about to; the other one ends by that."""
        children, until = [], time.monotonic() + 60
        while not children and time.monotonic() < until and self.process.poll() is None:
            children = [int(x) for x in read("/proc/%d/task/%d/children" % (self.pid, self.pid)).split()]
        for child in children:
            os.kill(child, signal.SIGKILL)
        self.process.communicate(timeout=60)


def stops_that_nobody_tells_of(q):
    """One processor for the vCPU and a busy neighbour: stops come late, long after the sampler has looked."""
    tid, cpus = vcpu_thread(q.pid), os.sched_getaffinity(0)
    hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)]
    stuck = longest = 0
    try:
        for p in [tid] + [h.pid for h in hogs]:
            os.sched_setaffinity(p, {max(cpus)})
        a = Attach(q.pid, "--technique", "ptrace", "--duration", 3,
                   before=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        last = None
        while a.process.poll() is None:
            now = threads(q.pid).get(tid)
            stuck = stuck + 1 if now and now[0] == "t" and now == last else 0
            longest, last = max(longest, stuck), now
            time.sleep(LOOK_S)
        a.end("with SIGCHLD ignored")
    finally:
        for h in hogs:
            h.kill()
            h.wait()
        os.sched_setaffinity(tid, cpus)
    check(longest < STUCK_LOOKS, "with SIGCHLD ignored the vCPU was in one and the same stop at %d looks in a row" % longest)
    s = e2e.summary("attached.data")
    check(s["samples"] > 4, "with SIGCHLD ignored: only %d samples" % s["samples"])
    return "%d samples, at most %d looks in one stop" % (s["samples"], longest)


def wait_stopped(process):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        state = re.search(r"^State:\t(\w)", read("/proc/%d/status" % process.pid), re.M)
        if state and state.group(1) in "TZ":
            return state.group(1) == "T"
        time.sleep(0.002)
    return False


def free(q, what):
    for _ in range(5):
        now = threads(q.pid)
        if not check(all(state not in "tT" and tracer == 0 for state, tracer, _ in now.values()),
                     "%s: threads (state, tracer, switches): %s" % (what, now)):
            return False
        time.sleep(0.01)
    return True


def goes_on(q):
    """Does the vCPU's thread get processor time?"""
    path = "/proc/%d/task/%d/schedstat" % (q.pid, vcpu_thread(q.pid))
    before, until = read(path).split()[0], time.monotonic() + 20
    while time.monotonic() < until:
        if read(path).split()[0] != before:
            return True
        time.sleep(0.005)
    return False


def is_traced(q, a):
    """After it goes on: it may still have to begin."""
    until = time.monotonic() + 60
    while time.monotonic() < until and a.process.poll() is None:
        if any(tracer for _, tracer, _ in threads(q.pid).values()):
            return True
        time.sleep(0.005)
    return False


def control_z(q):
    """The first stop of each round while it begins, some before it has read its own image."""
    stops = 0
    for i in range(ROUNDS):
        a = Attach(q.pid, "-F", 5000, "--technique", "auto" if i % 2 else "ptrace")
        for k in range(4):
            time.sleep(random.uniform(0, 0.4))
            a.process.send_signal(signal.SIGTSTP)
            if not check(wait_stopped(a.process), "round %d: SIGTSTP does not stop it" % i):
                break
            stops += 1
            if not free(q, "round %d, stop %d" % (i, k)):
                a.kill()
                return stops
            check(goes_on(q), "round %d: the vCPU does not run while attach is stopped" % i)
            a.process.send_signal(signal.SIGCONT)
        check(is_traced(q, a), "round %d: attach holds no thread after SIGCONT" % i)
        time.sleep(0.2)
        a.process.send_signal(signal.SIGINT)
        a.end("round %d" % i)
        s = e2e.summary("attached.data")
        check(s["samples"] > 0, "round %d: %d samples" % (i, s["samples"]))
        free(q, "after round %d" % i)
    return stops


def ends_meanwhile():
    """The machine ends while attach is stopped: its threads are not there any more, or others are."""
    q = qemu.Qemu("ends", *qemu.DEMO, "seconds=600")
    try:
        q.wait_for("demo: tsc", 30)
        a = Attach(q.pid)
        time.sleep(0.7)
        a.process.send_signal(signal.SIGTSTP)
        check(wait_stopped(a.process), "SIGTSTP does not stop it")
    finally:
        q.end()
    a.process.send_signal(signal.SIGCONT)
    a.end("the machine has ended meanwhile")


def killed(q):
    """SIGKILL of the tracer leaves the request for registers behind, and nothing else; the next one removes it. One
    of two is killed while it begins, or soon after, the others' tracers once they have asked for registers. A tracer whose
    other process is killed lets go in order."""
    left = 0
    for i in range(2 * ROUNDS):
        a = Attach(q.pid, "-F", 5000)
        until = time.monotonic() + 60
        while i % 2 and not valid_regs(q.pid) and time.monotonic() < until and a.process.poll() is None:
            time.sleep(0.005)
        time.sleep(random.uniform(0, 0.4))
        if i % 2:
            a.kill_tracer()
        else:
            a.kill()
        time.sleep(0.02)
        if not free(q, "after kill %d" % i):
            time.sleep(0.5)
            free(q, "half a second after kill %d" % i)
        left += valid_regs(q.pid) != 0
    a = Attach(q.pid, "--duration", 0.2)
    a.end("after the kills")
    check(valid_regs(q.pid) == 0, "KVM is still asked for registers: %#x" % valid_regs(q.pid))
    check(left, "no kill left a request for registers: nothing was tested")
    return "%d kills, %d of them left a request for registers" % (2 * ROUNDS, left)


def bystanders():
    """A machine with one thread more, which counts what interrupts it."""
    p = e2e.run("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", "eintr_count.so",
                os.path.join(e2e.TOP, "tests", "e2e", "eintr_count.c"), "-lpthread")
    check(p.status == 0, "eintr_count.so does not build: " + p.err)
    counted = os.path.abspath("eintr")
    with open(counted, "w", encoding="ascii"):
        pass
    os.environ.update(LD_PRELOAD=os.path.abspath("eintr_count.so"), EINTR_COUNT=counted)
    try:
        q = qemu.Qemu("bystanders", *qemu.DEMO, "seconds=600")
    finally:
        del os.environ["LD_PRELOAD"], os.environ["EINTR_COUNT"]
    try:
        q.wait_for("demo: tsc", 30)
        before = len(read(counted).splitlines())
        for _ in range(4):
            a = Attach(q.pid, "--duration", 0.2)
            a.end("beside other threads")
        n = len(read(counted).splitlines()) - before
        check(n == 0, "a thread that waits in epoll_wait got EINTR %d times" % n)
        # That it counts at all.
        others = [t for t in threads(q.pid) if "232 " in read("/proc/%d/task/%d/syscall" % (q.pid, t))[:4]]
        check(others, "no thread waits in epoll_wait")
    finally:
        q.end()


KILLS_ONLY = e2e.EXTRA[1:] == ["kills"]
machine = qemu.Qemu("stops", *qemu.DEMO, "seconds=3600")
try:
    machine.wait_for("demo: tsc", 30)
    if not KILLS_ONLY:
        ignored = stops_that_nobody_tells_of(machine)
        stopped = control_z(machine)
        ends_meanwhile()
    kills = killed(machine)
    check(machine.process.poll() is None, "QEMU has ended")
    check("FAULT" not in machine.console().upper(), "the guest faulted: " + machine.console())
finally:
    machine.end()
if KILLS_ONLY:
    e2e.finish(kills)
bystanders()
e2e.finish("SIGCHLD ignored: %s; %d stops by Ctrl-Z; %s" % (ignored, stopped, kills))

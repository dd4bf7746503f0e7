#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 52 s
# tests: slow, at most 900 s: all
# tests: not svm, threads
"""`attach -e host`: where the time of another process's vCPU went, against what its guest says; and no signal of ours
stops or changes that process, also when the profiler is killed.

    attach_host.py KVMPROF SCRATCH [all]

all: also with a VMM that does not block that signal, and with more kills."""

import json
import os
import random
import signal
import subprocess
import time

import compiled
import e2e
import qemu
from e2e import check, say
from where_judge import truth

DEMO = os.path.join(e2e.BUILD, "guest", "demo.elf")
ALL = e2e.EXTRA == ["all"]
KILLS = 20 if ALL else 6
# Points.
OFF_BY = 2.5

e2e.need_kvm()
e2e.need_tool("qemu-system-x86_64")
random.seed(23)


def attach(pid, *argv, **more):
    return e2e.kvmprof("attach", "-e", "host", "--image", DEMO, "--no-buildid-cache", *argv, str(pid), **more)


def shares(path):
    t = json.loads(e2e.kvmprof("report", "-i", path, "--sort", "where", "--no-children", "-n", "0", "--json").out)
    return {r["where"]: 100 * r["self"] / t["weight"] for r in t["symbols"]}, t


def closes(path, what):
    s = e2e.summary(path)
    got, t = shares(path)
    say("%s: %s; %d samples" % (what, ", ".join("%s %.2f" % x for x in sorted(got.items())), s["samples"]))
    check(s["lost"] == 0 and s["unsymbolized"] == 0, "%s: lost %d, without a name %d" % (what, s["lost"], s["unsymbolized"]))
    elapsed = t["last_ns"] - t["first_ns"]
    # The first and the last period may be cut, and a sleep that was never seen is not told.
    check(abs(t["weight"] - elapsed) < 0.02 * elapsed + 2e7, "%s: samples stand for %d of %d ns" % (what, t["weight"], elapsed))
    return got


def stacks(path):
    return e2e.kvmprof("export", "-F", "folded", "--no-marks", "-i", path, "-o", "-").out.split("\n")


def check_truth():
    """Our own VMM as the other process: its guest measures where its time goes."""
    # The guest measures all of it, also while attach begins, which takes processors: that is to be a small part.
    boot = e2e.Boot("-F", "1", "-o", "own.data", "--no-buildid-cache", "--append", "seconds=24 mode=where")
    boot.wait_for("demo: start", 60)
    p = attach(boot.process.pid, "-F", "1999", "-o", "truth.data", timeout=120)
    if "event host: " in p.err and "stands in" in p.err:
        boot.process.kill()
        boot.wait(60)
        e2e.skip("no samples of the host here: " + p.err)
    boot.wait(120)
    check(p.status == 0 and boot.status == 0, "attach: %d %s; the machine: %d" % (p.status, p.err, boot.status))
    was = truth("\n".join(x for _, x in boot.lines))
    check(len(was) == 5, "no truth on the console: %s" % boot.lines)
    got = closes("truth.data", "our own VMM")
    say("the guest says " + ", ".join("%s %.2f" % x for x in was.items()))
    get = lambda *rows: sum(got.get(r, 0) for r in rows)
    # Gaps too short for the guest to see, each stop of ours among them, are time of what it did there.
    gaps = get("halted", "runnable", "stopped", "waiting", "untold") - was["halted"] - was["stolen"]
    check(-OFF_BY < gaps < get("runnable", "stopped", "waiting", "untold") + OFF_BY, "off the processor: %s; %s" % (got, was))
    for rows, told in ((("guest",), was["user"]), (("kvm", "vmm"), was["ports"] + was["other"])):
        check(told - gaps - OFF_BY < get(*rows) < told + OFF_BY, "%s: %s; %s" % (rows, got, was))
    # A wait for a processor at its end is part of a halt, to the guest.
    check(was["halted"] - get("runnable", "stopped") - OFF_BY < get("halted") < was["halted"] + OFF_BY, "halted: %s; %s" % (got, was))
    seen = stacks("truth.data")
    for part in ("where_ports;where_port;[exit: io port 0x3ff]", "where_port;[kvm];", "idle_wait;[halted]"):
        check(any(part in x for x in seen), "no stack with %s" % part)
    check(not any("[exit" in x and "[kvm]" in x for x in seen), "in KVM and in the VMM at once")
    halted = [x.rsplit(" ", 1) for x in seen if "[halted]" in x]
    there = sum(int(n) for x, n in halted if "idle_wait" in x)
    check(there > 0.9 * sum(int(n) for _, n in halted), "halted elsewhere: %s" % halted[:5])


# A VMM whose threads leave SIGURG open, as those that block none do.
OPEN = r"""
#include <dlfcn.h>
#include <signal.h>
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	int (*next)(int, const sigset_t *, sigset_t *) = dlsym(RTLD_NEXT, "pthread_sigmask");
	sigset_t less;

	if (set && how != SIG_UNBLOCK) {
		less = *set;
		sigdelset(&less, SIGURG);
		set = &less;
	}
	return next(how, set, old);
}
"""


def attach_qemu(name, what, seconds):
    q = qemu.Qemu(name, *qemu.DEMO, "seconds=%d" % seconds)
    q.wait_for("demo: start", 60)
    p = attach(q.pid, "-F", "997", "--duration", "4", "-o", name + ".data", timeout=120)
    check(p.status == 0, "%s: attach: %d %s" % (what, p.status, p.err))
    got = closes(name + ".data", what)
    # Of what others have left it.
    check(got.get("guest", 0) + got.get("kvm", 0) > 0.4 * (100 - got.get("runnable", 0)), "%s hardly ran: %s" % (what, got))
    check(any("user_main" in x and "[" not in x for x in stacks(name + ".data")), "%s: no sample in the guest" % what)
    check_main_loop(name + ".data", what)
    qemu.goes_on(q.pid, "%s: after attach -e host" % what)
    return q


def check_main_loop(path, what):
    """QEMU's other threads."""
    t = e2e.summary(path)["host_threads"]
    rows = json.loads(e2e.kvmprof("report", "-i", path, "--event", "host-threads", "--sort", "comm", "--no-children", "-n", "0",
                                  "--json").out)["symbols"]
    got = {x["comm"]: x["self"] for x in rows}
    say("%s: other threads: %s; %s" % (what, t, got))
    check(t["threads"] >= 1 and t["lost"] == 0 and abs(t["sampled_ns"] - t["ns"]) < 0.05 * t["ns"] + 2e6 * t["threads"],
          "%s: samples of its threads stand for %d of %d ns" % (what, t["sampled_ns"], t["ns"]))
    check(not any(x.startswith((":", "CPU ")) for x in got), "%s: vCPUs, or threads without a name: %s" % (what, got))
    check("qemu-system-x86" in got or t["ns"] < 2e6, "%s: no main loop: %s" % (what, got))


def open_to(pid, signo):
    """Threads that do not block this signal."""
    n = 0
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid), encoding="ascii", errors="replace") as f:
            mask = next(int(x.split()[1], 16) for x in f if x.startswith("SigBlk"))
        n += not mask >> (signo - 1) & 1
    return n


def check_silent():
    """By a signal that the VMM does not see, as it does nothing."""
    with open("open.c", "w", encoding="ascii") as f:
        f.write(OPEN)
    compiled.cc("-D_GNU_SOURCE", "-shared", "-fPIC", "-o", "open.so", "open.c", "-ldl")
    os.environ["LD_PRELOAD"] = os.path.abspath("open.so")
    try:
        q = attach_qemu("silent", "QEMU with SIGURG open", 12)
    finally:
        del os.environ["LD_PRELOAD"]
    check(open_to(q.pid, signal.SIGURG) >= 3, "its threads block SIGURG all the same")
    q.wait_for("demo: done", 120)
    q.end()


def check_qemu():
    q = attach_qemu("host", "QEMU", 40 if ALL else 24)
    check(open_to(q.pid, signal.SIGURG) < 3, "QEMU's vCPU does not block SIGURG: its kick was not tried")
    for _ in range(KILLS):
        victim = subprocess.Popen([e2e.KVMPROF, "attach", "-e", "host", "-F", "5000", "-o", "killed.data",
                                   "--no-buildid-cache", "--image", DEMO, str(q.pid)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.2 + 0.6 * random.random())
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        qemu.goes_on(q.pid, "after kill -9")
    check(q.process.poll() is None, "QEMU has ended: %s" % q.process.poll())
    q.wait_for("demo: done", 120)
    q.end()


def check_usage():
    for argv, says in ((["-e", "cycles", "1"], "wall or host"), (["-e", "wall,host", "1"], "wall or host"),
                       (["-e", "host", "--gdb", "127.0.0.1:1"], "--gdb"),
                       (["-e", "host", "--technique", "bpf", "1"], "--technique bpf")):
        p = e2e.kvmprof("attach", *argv)
        check(p.status == 2 and says in p.err, "%s: %d %s" % (argv, p.status, p.err))


check_usage()
check_truth()
if ALL:
    check_silent()
check_qemu()
e2e.finish("time of another VMM's vCPU is told, by the moment and by what it was; %d kills did no harm" % KILLS)

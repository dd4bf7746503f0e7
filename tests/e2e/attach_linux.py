#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s: full
# tests: together, 35 s: tiny
# tests: slow, at most 1200 s: kaslr
# tests: slow, at most 1800 s: smp
# tests: svm, at most 900 s: tiny
"""A Linux guest of another process's machine, profiled by `attach` with nothing but its PID: the
same names, tasks and stacks as the guest tells of itself, and the same shares as the VMM's own
sampler had in that time.

    attach_linux.py KVMPROF SCRATCH [tiny|full|kaslr|smp]

The VMM is a `kvmprof run`: QEMU can't boot a Linux where KVM refuses int3 (docs/attach.md)."""

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter

import e2e
import worker_truth
from e2e import check

WHAT = e2e.EXTRA[0] if e2e.EXTRA else "full"
KERNELS = {"smp": "full", "kaslr": "tiny"}
SECONDS = {"smp": 30}.get(WHAT, 12)
ROLES = ["w-lib", "w-alpha", "w-beta", "w-vdso", "w-sys", "w-child"]
POINTS = 3.0


def traced(pid):
    """Does anybody trace a thread of the process?"""
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid), encoding="ascii") as f:
            if not re.search(r"^TracerPid:\s+0$", f.read(), re.M):
                return True
    return False


e2e.need_kvm()
e2e.need_tool("perf")
e2e.prefer_us()
kernel = e2e.built_kernel(KERNELS.get(WHAT, WHAT))
boot = e2e.Boot(os.path.join(kernel, "bzImage"), *(["--boot", "bzimage"] if WHAT == "kaslr" else []),
                "--initrd", os.path.join(e2e.BUILD, "guest", "worker.cpio"),
                "--vcpus", "2" if WHAT == "smp" else "1", "-o", "inside.data", "--append",
                "worker.seconds=9999 worker.roles=" + ",".join(ROLES))
if not check(boot.wait_for("worker: steady", 600), "the guest's program does not run"):
    boot.process.kill()
    e2e.finish()
pid = boot.process.pid
attach = subprocess.Popen([e2e.KVMPROF, "attach", str(pid), "--duration", str(SECONDS), "-o", "attached.data"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
# Once it holds the thread for good, and so writes a profile, a second one is told who does.
until = time.monotonic() + 120
while not (traced(pid) and any(f.startswith("attached.data") for f in e2e.leftovers())):
    if attach.poll() is not None or time.monotonic() > until:
        break
    time.sleep(0.1)
if attach.poll() is not None:
    check(False, "attach has ended: status %d: %s" % (attach.returncode, attach.communicate()[1].decode()))
    boot.process.kill()
    e2e.finish()
# Its tracer is a process of its own.
with open("/proc/%d/task/%d/children" % (attach.pid, attach.pid)) as f:
    tracers = f.read().split()
second = e2e.kvmprof("attach", str(pid), "--duration", "1", "-o", "second.data", timeout=60)
check(second.status == 1 and any("process %s traces it" % t in second.err for t in tracers) and
      second.err.count("\n") == 1, "a second attach: status %d: %s" % (second.status, second.err))
out, err = attach.communicate(timeout=240)
ps = e2e.kvmprof("ps", str(pid), "--json", "--interval", "0.2", "--stacks")
# The guest would work on for hours.
boot.process.send_signal(signal.SIGINT)
boot.wait(120)
ok = check(boot.status == 0, "run: status %d: %s" % (boot.status, boot.err))
ok &= check(attach.returncode == 0, "attach: status %d: %s" % (attach.returncode, err.decode()))
ok &= check(ps.status == 0, "ps: status %d: %s" % (ps.status, ps.err))
if not ok:
    e2e.finish()
truth = worker_truth.told(boot.text())
check(len(truth) >= 3, "only %d threads told what they do" % len(truth))

tasks = worker_truth.check_tasks(truth, json.loads(ps.out)["tasks"])
waiting = [t for t in tasks.values() if t.get("state") in "SD" and t.get("stack")]
check(len(waiting) >= 5, "ps: stacks of %d tasks only" % len(waiting))

samples = list(worker_truth.perf_samples("attached.data"))
good, short, bad = worker_truth.check_stacks(truth, samples, 100)
strange = {c for c, _, _, _ in samples if c.startswith(":")}
check(not strange, "processes without a name: " + " ".join(strange))
s = e2e.summary("attached.data")
ends = s["kernel_stack_end"]
whole, total = ends["root"] + ends["user-entry"], sum(ends.values())
check(whole * 1000 >= total * 990, "%d of %d kernel stacks are complete" % (whole, total))


def shares(path, span=None):
    """Percent of time by command and by command and the program's function, the span of the samples'
    times, and the doubt about all of it."""
    p = e2e.run("perf", "script", "-i", path, timeout=300)
    check(p.status == 0, "perf script: " + p.err)
    weight, first, last = Counter(), None, None
    samples = [x for x in e2e.parse_script(p.out) if not span or span[0] <= x.seconds <= span[1]]
    if not span:
        # Until it has read the kernel, attach can't ask for tasks: longer where the host is busy.
        known = next(i for i, x in enumerate(samples) if x.comm != "(unknown)")
        check(samples[known].seconds - samples[0].seconds < SECONDS / 4, "the first %d samples of %d "
              "are before the kernel was read" % (known, len(samples)))
        samples = samples[known:]
    for x in samples:
        first, last = first or x.seconds, x.seconds
        # In the kernel the run's own sampler sees its work-arounds where they are entered.
        leaf = "the kernel" if "kernel" in x.dsos else x.stack.rsplit(";", 1)[-1] or "?"
        for key in (x.comm, x.comm + " in " + leaf):
            weight[key] += x.period
    all_of = sum(v for k, v in weight.items() if " in " not in k)
    return {k: 100.0 * v / all_of for k, v in weight.items()}, (first, last), e2e.doubt(samples)


outside, span, doubt = shares("attached.data")
check(span[1] - span[0] > 0.7 * SECONDS, "of %d s the samples cover %.1f" % (SECONDS, span[1] - span[0]))
inside, _, _ = shares("inside.data", span)
apart = {k: abs(outside.get(k, 0) - inside.get(k, 0)) for k in set(outside) | set(inside)}
worst = max((v, k) for k, v in apart.items())
# And four sigma where attach missed periods.
for k, points in apart.items():
    check(points <= POINTS + 400 * e2e.sigma(inside.get(k, 0) / 100, doubt),
          "%s: attach has %.2f %%, the run itself %.2f %%" % (k, outside.get(k, 0), inside.get(k, 0)))
check(all(any(c == comm for c, _, _, _ in samples) for _, comm, _ in truth.values()), "a command is missing")
e2e.finish("%d samples over %.0f s, %d user stacks equal, %d shorter, %d wrong; kernel stacks %.2f %% "
           "complete; shares within %.2f points of the VMM's own" %
           (len(samples), span[1] - span[0], good, short, bad, 100.0 * whole / total, worst[0]))

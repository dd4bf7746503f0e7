#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 9 s
# tests: svm, at most 120 s
"""Time that the VMM spends in the guest's place is shown as [vmm] frames.

guest/blk reads its disk in requests that are small enough for its vCPU's own thread. kvmprof
measures the time that takes with a clock; the samples must agree with it, and the frame must lie
on top of the guest's stack, in our tools and in perf.
"""

import json
import os
import re

import blk_guest
import e2e
from e2e import check, say

FRAME = "[vmm] vda"
BELOW = "user_main;kick"
SECTORS = 131072


def record(path, *options):
    # With no processor to spare no other thread takes the requests (vmm/dev/virtio_poll.h): the vCPU's own has to. The
    # other vCPUs are never started.
    p = e2e.kvmprof("run", blk_guest.ELF, "-m", "64M", "--disk", "img", "-o", path, *options,
                    "--vcpus", str(len(os.sched_getaffinity(0))), "--cpu", "0", "--append", "ms=900")
    check(p.status == 0, "status %d: %s" % (p.status, p.err))
    return p.err


def measure(i):
    """While the vCPU waits for a processor nothing is sampled, and the clock of its device may go on."""
    path = "disk%d.data" % i
    err = record(path)
    s = e2e.summary(path)
    return e2e.waited(s["stat"]), (path, err, s)


def share(samples, what):
    total = sum(s.period for s in samples)
    return 100 * sum(s.period for s in samples if what(s)) / total


def judge(title, text, clock):
    samples = e2e.parse_script(text)
    device = [s for s in samples if s.stack.endswith(";" + FRAME)]
    got = share(samples, lambda s: FRAME in s.stack)
    say("%s: %d of %d samples, %.1f %% of the time; by our clock %.1f %%" %
        (title, len(device), len(samples), got, clock))
    # How long the guest takes beside its disk depends on the host: what is allowed is mostly relative.
    check(abs(got - clock) < 0.4 + 0.06 * clock, "%s: %.2f %% in %s, by the clock %.2f %%" %
          (title, got, FRAME, clock))
    for s in device:
        if not check(s.stack.startswith(("demo_main", "user_main")) and s.stack.count("[vmm]") == 1 and
                     s.dsos == "[vmm]", "%s: %s in %s" % (title, s.stack, s.dsos)):
            break
    writer = share(samples, lambda s: s.stack == BELOW + ";" + FRAME)
    check(writer > 0.8 * got, "%s: only %.1f of %.1f %% below %s" % (title, writer, got, BELOW))
    return got


def main():
    e2e.need_kvm()
    e2e.prefer_us()
    blk_guest.write_image("img", SECTORS)
    _, (path, err, s) = e2e.quietest(measure, e2e.WAITED)
    counters = s["stat"]["counters"]
    clock = 100 * counters["vmm:vda:time"]["sum"] / s["stat"]["elapsed_ns"]
    check(clock > 1, "the device was busy for %.1f %% of the time: no test" % clock)
    exits = sum(counters[k]["sum"] for k in ("exit:io", "exit:mmio") if k in counters)
    check(counters["vmm:vda"]["sum"] <= exits, "more accesses than exits")
    check(re.search(r"time in the VMM, as \[vmm\] frames: .*\bvda [0-9.]+ %", err), "the summary does not tell: " + err)

    p = e2e.kvmprof("script", "-i", path)
    check(p.status == 0, p.err)
    got = judge("kvmprof script", p.out, clock)
    p = e2e.kvmprof("report", "-i", path, "--json")
    rows = [r for r in json.loads(p.out)["symbols"] if r.get("symbol") == FRAME]
    check(len(rows) == 1 and rows[0]["dso"] == "[vmm]", "kvmprof report: %s" % rows)
    p = e2e.kvmprof("flamegraph", "-i", path, "-o", "vmm.svg")
    check(p.status == 0 and FRAME in open("vmm.svg").read(), "flamegraph: " + p.err)
    p = e2e.kvmprof("export", "--format", "folded", "--no-marks", "-i", path, "-o", "-")
    check(p.status == 0 and any((BELOW + ";" + FRAME) in line for line in p.out.split("\n")),
          "export --format folded: " + p.err)
    if e2e.shutil.which("perf"):
        judge("perf script", e2e.perf_script(path), clock)
        p = e2e.run("perf", "report", "-i", path, "--stdio", "--no-children", "-g", "none")
        check(any("[vmm]" in line.split(FRAME)[0] for line in p.out.split("\n") if FRAME in line),
              "perf report does not show it: " + p.out[:1500])
        # One file, whose names are in the build-id cache: those of the kernel, too.
        record("one.data", "--single-file")
        p = e2e.run("perf", "report", "-i", "one.data", "--stdio", "--no-children", "-g", "none")
        for name in (FRAME, "kick"):
            check(name in e2e.perf_script("one.data"), "perf on a single file: no " + name)
        check("[unknown]" not in p.out, "perf on a single file: " + p.out[:1500])
    e2e.finish("disk %.1f %% by the clock, %.1f %% by samples" % (clock, got))


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Time that the VMM spends in the guest's place is shown as [vmm] frames.

The demo guest writes lines to a console whose reader is slow, so that its vCPU waits in the
serial device. kvmprof measures that time with a clock; the samples must agree with it, and the
frame must lie on top of the guest's stack, in our tools and in perf.
"""

import fcntl
import json
import os
import subprocess
import threading
import time

import e2e
from e2e import check, say

SECONDS = 6
FRAME = "[vmm] serial"
BELOW = "demo_main;mode_run;serial_writer;put_string"


def slow_reader(pipe, stop):
    """A little at a time, with rests, slower than any guest: so the pipe is full. It is a page, and a
    writer waits until all of that is read: 0.64 s. When the guest's time is over what is left goes fast."""
    end = time.monotonic() + SECONDS + 1
    while os.read(pipe, 512 if time.monotonic() < end else 65536):
        if time.monotonic() < end and not stop.is_set():
            time.sleep(0.08)


def record(path, *options):
    r, w = os.pipe()
    fcntl.fcntl(w, 1031, 4096)    # F_SETPIPE_SZ: a page, the least there is
    stop = threading.Event()
    reader = threading.Thread(target=slow_reader, args=(r, stop))
    p = subprocess.Popen([e2e.KVMPROF, "run", "-o", path, *options, "--append",
                          "mode=serial seconds=%d" % SECONDS], stdin=subprocess.DEVNULL,
                         stdout=w, stderr=subprocess.PIPE)
    os.close(w)
    reader.start()
    try:
        err = p.communicate(timeout=120)[1].decode()
    finally:
        stop.set()
        if p.poll() is None:
            p.kill()
            p.wait()
        reader.join()
        os.close(r)
    check(p.returncode == 0, "status %d: %s" % (p.returncode, err))
    return err


def share(samples, what):
    total = sum(s.period for s in samples)
    return 100 * sum(s.period for s in samples if what(s)) / total


def judge(title, text, clock):
    samples = e2e.parse_script(text)
    device = [s for s in samples if s.stack.endswith(";" + FRAME)]
    got = share(samples, lambda s: FRAME in s.stack)
    say("%s: %d of %d samples, %.1f %% of the time; by our clock %.1f %%" %
        (title, len(device), len(samples), got, clock))
    check(abs(got - clock) < 3, "%s: %.2f %% in %s, by the clock %.2f %%" %
          (title, got, FRAME, clock))
    for s in device:
        if not check(s.stack.startswith("demo_main;") and s.stack.count("[vmm]") == 1 and
                     s.dsos == "[vmm]", "%s: %s in %s" % (title, s.stack, s.dsos)):
            break
    # The guest's first words come from elsewhere.
    writer = share(samples, lambda s: s.stack == BELOW + ";" + FRAME)
    check(writer > 0.8 * got, "%s: only %.1f of %.1f %% below %s" % (title, writer, got, BELOW))
    return got


def main():
    e2e.need_kvm()
    err = record("serial.data")
    s = e2e.summary("serial.data")
    counters = s["stat"]["counters"]
    clock = 100 * counters["vmm:serial:time"]["sum"] / s["stat"]["elapsed_ns"]
    check(clock > 20, "the device was busy for %.1f %% of the time: no test" % clock)
    check(counters["vmm:serial"]["sum"] <= counters["exit:io"]["sum"], "more accesses than exits")
    check("time in the VMM, as [vmm] frames: serial" in err, "the summary does not tell: " + err)

    p = e2e.kvmprof("script", "-i", "serial.data")
    check(p.status == 0, p.err)
    got = judge("kvmprof script", p.out, clock)
    p = e2e.kvmprof("report", "-i", "serial.data", "--json")
    rows = [r for r in json.loads(p.out)["symbols"] if r.get("symbol") == FRAME]
    check(len(rows) == 1 and rows[0]["dso"] == "[vmm]", "kvmprof report: %s" % rows)
    p = e2e.kvmprof("flamegraph", "-i", "serial.data", "-o", "serial.svg")
    check(p.status == 0 and FRAME in open("serial.svg").read(), "flamegraph: " + p.err)
    p = e2e.kvmprof("export", "--format", "folded", "-i", "serial.data", "-o", "-")
    check(p.status == 0 and any((BELOW + ";" + FRAME) in line for line in p.out.split("\n")),
          "export --format folded: " + p.err)
    if e2e.shutil.which("perf"):
        judge("perf script", e2e.perf_script("serial.data"), clock)
        p = e2e.run("perf", "report", "-i", "serial.data", "--stdio", "--no-children", "-g", "none")
        check(any("[vmm]" in line.split(FRAME)[0] for line in p.out.split("\n") if FRAME in line),
              "perf report does not show it: " + p.out[:1500])
        # One file, whose names are in the build-id cache: those of the kernel, too.
        record("one.data", "--single-file")
        p = e2e.run("perf", "report", "-i", "one.data", "--stdio", "--no-children", "-g", "none")
        for name in (FRAME, "serial_writer"):
            check(name in e2e.perf_script("one.data"), "perf on a single file: no " + name)
        check("[unknown]" not in p.out, "perf on a single file: " + p.out[:1500])
    e2e.finish("serial device %.1f %% by the clock, %.1f %% by samples" % (clock, got))


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_view.py KVMPROF SCRATCH [SAMPLES [RUNS]]: the page of `kvmprof view` for a million samples of
20,000 different stacks: time to write it, its size, and in headless Chromium the time from the
start of loading until all views are there, and of a search, a selected span and callers first.

Prints medians with (min-max), by the clock and by the CPU time of the page's thread; the latter does
not depend on what else the machine does. Asserts nothing."""

import os
import statistics
import subprocess
import sys
import time

import bench

sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import browser    # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STACKS = "20000"
STEPS = (("search", "kvmprof.set({q: 'guest_func_01'})"), ("end of the search", "kvmprof.set({q: ''})"),
         ("span selected", "kvmprof.setSpan([kvmprof.timeline.to / 4, kvmprof.timeline.to / 2])"),
         ("whole time", "kvmprof.setSpan(null)"), ("callers first", "kvmprof.set({callers: true})"),
         ("functions", "kvmprof.set({callers: false, tab: 'functions'})"))


def make_profile(samples):
    program = os.path.join(bench.SCRATCH, "mkprofile")
    build = os.path.dirname(bench.KVMPROF)
    libs = os.environ.get("LIBS") or subprocess.run(["make", "-s", "-C", TOP, "print-libs"], stdout=subprocess.PIPE,
                                                    universal_newlines=True, check=True).stdout
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I" + TOP, "-o", program,
                    os.path.join(TOP, "tests", "e2e", "mkprofile.c"), os.path.join(build, "libkvmprof.a"),
                    *libs.split()], check=True)
    path = os.path.join(bench.SCRATCH, "many.data")
    subprocess.run([program, "-n", str(samples), "-b", STACKS, path], check=True, stdout=subprocess.DEVNULL)
    return path


def cpu(b):
    return 1000 * {m["name"]: m["value"] for m in b.call("Performance.getMetrics")["metrics"]}["ThreadTime"]


def row(what, clock, of_cpu=()):
    text = "%-20s %8.0f ms %s" % (what, statistics.median(clock), bench.spread(clock))
    print(text + ("   CPU %6.0f ms" % statistics.median(of_cpu) if of_cpu else ""))


def main():
    samples, runs = bench.argument(0, 1000000), bench.argument(1, 5)
    if not browser.program():
        bench.skip("chromium is not installed")
    profile, page, took, opened, opened_cpu = make_profile(samples), os.path.join(bench.SCRATCH, "many.html"), [], [], []
    steps, steps_cpu = {name: [] for name, _ in STEPS}, {name: [] for name, _ in STEPS}
    for _ in range(runs):
        began = time.monotonic()
        bench.command("view", profile, "-o", page)
        took.append(1000 * (time.monotonic() - began))
    print("%d samples, %s stacks: the page has %.1f MB" % (samples, STACKS, os.path.getsize(page) / 1e6))
    row("written", took)
    for _ in range(runs):
        with browser.Browser() as b:
            b.call("Performance.enable", timeDomain="threadTicks")
            before = cpu(b)
            b.call("Page.navigate", url="file://" + page)
            b.until("document.body && document.body.dataset.ready && window.kvmprof && kvmprof.opened")
            opened.append(b.js("kvmprof.opened"))
            opened_cpu.append(cpu(b) - before)
            for name, step in STEPS:
                before = cpu(b)
                steps[name].append(b.js("(function () { var t = performance.now(); %s; return performance.now() - t; })()" % step))
                steps_cpu[name].append(cpu(b) - before)
    row("opened", opened, opened_cpu)
    for name, _ in STEPS:
        row(name, steps[name], steps_cpu[name])


main()

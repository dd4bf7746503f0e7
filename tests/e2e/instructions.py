#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 44 s
# tests: slow, at most 1800 s: repeat
# tests: not svm, host
"""instructions.py KVMPROF SCRATCH [renew | repeat [N]]: what kvmprof costs, in instructions.

On the emulated SVM host each instruction takes 2 ns (emulated.py), so that times there are counts of
instructions, of all that runs: kvmprof, the host's kernel and the guest. They do not depend on this
machine or on what else it does, and repeat to the last digit; what they say of speed on a real
processor is little, but a change of our own that makes work shows. Each is a difference of two runs,
so that the guest's own work is not in it:

    sample  a sample beyond the bare trip: registers, stack, unwinding, writing
    trip    a period's end: the signal that ends KVM_RUN, and entering again, without a sample
    pio     a write to a port, from the guest's instruction to its next one
    mmio    a read where no device is, the same way
    start   from the start of the program to the guest's first instruction
    boot    the same to the first line of the demo on the console. Not from there on: with one CPU it is
            chance on which side of that instruction the other threads begin

A figure that is more than its LIMIT above that in svm_instructions.txt fails; the file names the versions
that it holds for, and with others nothing is compared. renew writes it anew. repeat: N (10) runs,
every other one with this machine's CPUs busy, have the same figures.
"""

import os
import re
import shlex
import subprocess

import compiled
import e2e
import emulated
from e2e import check, say

FILE = os.path.join(e2e.TOP, "tests", "e2e", "svm_instructions.txt")
# A change in what is not measured moves the moments at which threads take turns: a sample's figure
# was seen to move by 2.5 % when the guest's work was another, the others by less than 1 %.
LIMIT = {"sample": 1.06}
OTHER_LIMIT = 1.03
NS = 2    # of an instruction: -icount shift=1
EXITS = 20000
WORK = 24000
RARE, OFTEN = 499, 3989    # Hz
NEVER = "--delay 1000"    # periods end, and no sample is taken
FIGURES = ("sample", "trip", "pio", "mmio", "start", "boot")

RUN = "kvmprof run -q -o /tmp/%(name)s.data %(options)s >/tmp/console 2>&1; s=$?; " \
      "mkdir /out/%(name)s.data; cp /tmp/%(name)s.data/kvmprof.json /out/%(name)s.data; [ $s = %(status)d ]"
RUNS = {
    # Without samples the status is 1.
    "none": dict(options="-F 1 %s /g-none" % NEVER, status=1),
    "pio": dict(options="-F 1 %s /g-pio" % NEVER, status=1),
    "mmio": dict(options="-F 1 %s /g-mmio" % NEVER, status=1),
    "trips-rare": dict(options="-F %d %s --append work=%d" % (RARE, NEVER, WORK), status=1),
    "trips-often": dict(options="-F %d %s --append work=%d" % (OFTEN, NEVER, WORK), status=1),
    "samples-rare": dict(options="-F %d --append work=%d" % (RARE, WORK), status=0),
    "samples-often": dict(options="-F %d --append work=%d" % (OFTEN, WORK), status=0),
}
STEPS = {name: RUN % dict(row, name=name) for name, row in RUNS.items()}
# What else the host's kernel does now and then falls into some and not into others: the least counts.
BOOTS = 5
for boot in range(BOOTS):
    STEPS["boot%d" % boot] = (
        "sleep 0.00%d\n"
        "started kvmprof run -q -F 1 -o /tmp/boot.data --append work=1 --mark '^demo: ' >/tmp/console 2>&1\n"
        "mkdir /out/boot%d.data; cp /tmp/boot.data/kvmprof.json /out/boot%d.data; grep '^started' /tmp/console" %
        (boot, boot, boot))
STEPS["version"] = "uname -srv"


def built():
    """Arguments for the host: the guests and the program that it needs."""
    argv = []
    for name, define in (("none", "-DNONE"), ("pio", "-DPIO=%d" % EXITS), ("mmio", "-DMMIO=%d" % EXITS)):
        out = os.path.abspath("g-" + name)
        compiled.cc("-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x1000000", "-Wl,--build-id=none", "-Wl,-n",
                    define, "-o", out, os.path.join(e2e.TOP, "tests", "e2e", "exit_guest.S"))
        argv += ["--file", "g-%s=%s" % (name, out)]
    compiled.cc("-O2", "-static", "-D_GNU_SOURCE", "-o", "started", os.path.join(e2e.TOP, "tests", "e2e", "started.c"))
    return argv + ["--program", os.path.abspath("started")]


def first_line(*argv):
    return e2e.run(*argv).out.split("\n")[0].strip()


def measured(host, argv):
    """({figure: instructions}, {what the figures depend on: version})"""
    done = host.steps(STEPS, *argv)
    for name, d in done.items():
        if not check(d.status == 0, "%s: status %d:\n%s" % (name, d.status, d.out)):
            e2e.finish()
    s = {name: e2e.summary(os.path.join(host.out, name + ".data")) for name in STEPS if name != "version"}
    ns = {name: s[name]["stat"]["elapsed_ns"] for name in RUNS}

    def slope(what, key):
        """ns for one more, so that what comes once in a run (the first sample reads files) is left out."""
        n = [s["%s-%s" % (what, rate)][key] for rate in ("rare", "often")]
        check(n[1] - n[0] > 500, "%s: %d and %d" % (what, *n))
        return (ns[what + "-often"] - ns[what + "-rare"]) / (n[1] - n[0])

    for name, exits in (("pio", "2_IO"), ("mmio", "6_MMIO")):
        more = s[name]["exits"].get(exits, 0) - s["none"]["exits"].get(exits, 0)
        check(more == EXITS, "%s: %d exits, not %d" % (name, more, EXITS))
    check(all(x["lost"] == 0 for x in s.values()), "samples were lost")
    trip = slope("trips", "uncollected_periods")
    starts, boots = [], []
    for name in ("boot%d" % boot for boot in range(BOOTS)):
        mark = s[name]["markers"][0]
        started = int(re.search(r"^started (\d+)$", done[name].out, re.M)[1])
        starts.append(mark["mono_ns"] - mark["time_ns"] - started)
        boots.append(mark["mono_ns"] - started)
    found = {
        "sample": slope("samples", "samples") - trip,
        "trip": trip,
        "pio": (ns["pio"] - ns["none"]) / EXITS,
        "mmio": (ns["mmio"] - ns["none"]) / EXITS,
        "start": min(starts),
        "boot": min(boots),
    }
    versions = {
        "host": done["version"].out.strip(),
        "emulator": first_line(host.qemu, "--version"),
        "compiler": first_line(*shlex.split(os.environ.get("CC") or "gcc"), "--version"),
        "libc": os.confstr("CS_GNU_LIBC_VERSION"),
    }
    return {name: round(found[name] / NS) for name in FIGURES}, versions


def recorded():
    """The file's figures and versions."""
    with open(FILE) as f:
        rows = dict(line.strip().split(": ", 1) for line in f if line.strip() and line[0] != "#")
    return {name: int(rows.pop(name)) for name in FIGURES}, rows


def renew(figures, versions):
    with open(FILE) as f:
        head = [line for line in f if line.startswith("#")]
    with open(FILE, "w") as f:
        f.writelines(head)
        f.writelines("%s: %s\n" % pair for pair in [*versions.items(), *figures.items()])


def shown(figures):
    return ", ".join("%s %d" % (name, figures[name]) for name in FIGURES)


def compare(figures, versions):
    was, for_versions = recorded()
    for name in FIGURES:
        say("%-8s %9d instructions, %+.1f %%" % (name, figures[name], 100 * (figures[name] / was[name] - 1)))
    other = ["%s: %s, not %s" % (k, versions.get(k), v) for k, v in for_versions.items() if versions.get(k) != v]
    if other:
        e2e.skip("nothing was compared (%s): %s" % (shown(figures), "; ".join(other)))
    for name in FIGURES:
        limit = LIMIT.get(name, OTHER_LIMIT)
        check(figures[name] <= limit * was[name],
              "%s: %d instructions, %d in %s: more than %.0f %% above. If that is meant, renew the file"
              % (name, figures[name], was[name], os.path.relpath(FILE, e2e.TOP), 100 * (limit - 1)))
        if figures[name] * limit < was[name]:
            say("%s: better by more than that: renew the file" % name)


def repeat(host, argv, times):
    found = set()
    for i in range(times):
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"])
                for _ in range(os.cpu_count() if i % 2 else 0)]
        try:
            figures = shown(measured(host, argv)[0])
        finally:
            for p in busy:
                p.kill()
                p.wait()
        say("%-9s %s" % ("busy:" if i % 2 else "not busy:", figures))
        found.add(figures)
    check(len(found) == 1, "%d runs had %d results" % (times, len(found)))
    e2e.finish("%d runs, every other one with busy CPUs: %s" % (times, "; ".join(sorted(found))))


HOST = emulated.Host()
WHAT = e2e.EXTRA[0] if e2e.EXTRA else "compare"
if WHAT == "repeat":
    repeat(HOST, built(), int(e2e.EXTRA[1]) if len(e2e.EXTRA) > 1 else 10)
FOUND, VERSIONS = measured(HOST, built())
if e2e.failures:
    e2e.finish()
if WHAT == "renew":
    renew(FOUND, VERSIONS)
elif WHAT == "compare":
    compare(FOUND, VERSIONS)
else:
    e2e.sys.exit("instructions.py: no such part: " + WHAT)
e2e.finish(shown(FOUND))

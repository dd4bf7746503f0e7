#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""bench_accuracy.py KVMPROF SCRATCH [PART...]: how far samples are from the truth, and how far chance alone would be.

PART: a Debian kernel's series (5.10 6.1 6.12 6.18 7.3), a workload (processes files memory sockets numbers),
demo or svm; by default all of them.

A series: Debian's cloud kernel from the firmware to its end, with the tests' RAM disk, on the exact engine. The
truth are its counts of all instructions (--call-counts); samples each 100,000 and each 10,000 instructions are
held against them. Both are of the same run, instruction by instruction, so that nothing but sampling and
unwinding is between them.
A workload: what a program does on Debian's 6.12, from its /init on (accuracy_init.c), likewise.
demo, svm: the demo guest under KVM, on this machine and on an emulated host with SVM (scripts/emulated-host.py),
where an instruction is a unit of time. The truth is the guest's own table of its time.

Columns: the number of samples; TVD, half the sum of all differences of functions' own shares, in points, with what
random samples of that number have (median, and 95 of 100 less than); the worst function's own share, likewise;
for series the part of the kernel's samples whose stack is whole, and a line of the largest differences of shares
with callees. docs/sampling.md says what these can tell."""

import json
import os
import random
import statistics
import subprocess
import sys

import bench

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
import compiled  # noqa: E402
import e2e  # noqa: E402

SERIES = ("5.10", "6.1", "6.12", "6.18", "7.3")
PERIODS = (100000, 10000)
# By accuracy_init.c's numbers: rounds that make some hundred million instructions.
WORKLOADS = {"processes": 2000, "files": 4000, "memory": 6000, "sockets": 8000, "numbers": 3000}
WORKLOAD_SERIES = "6.12"
DRAWS = 40
SHOWN = 6
CMDLINE = "console=ttyS0 reboot=k panic=-1 quiet"
DEMO_SECONDS = 10
SVM_SECONDS = 4


# -- numbers ------------------------------------------------------------------------------------------

def distance(truth, seen):
    """(TVD, worst difference, whose) of two tables of shares, in points."""
    off = {k: abs(truth.get(k, 0) - seen.get(k, 0)) for k in set(truth) | set(seen)}
    worst = max(off, key=off.get)
    return 50 * sum(off.values()), 100 * off[worst], worst


def chance(truth, n):
    """Of DRAWS profiles of n independent samples: TVD and worst difference, each as (median, 95 of 100)."""
    keys = list(truth)
    rng = random.Random(1)
    cumulative, total = [], 0
    for k in keys:
        total += truth[k]
        cumulative.append(total)
    found = []
    for _ in range(DRAWS):
        seen = dict.fromkeys(keys, 0)
        for k in rng.choices(keys, cum_weights=cumulative, k=n):
            seen[k] += 1 / n
        found.append(distance(truth, seen)[:2])
    return [(statistics.median(x), sorted(x)[int(0.95 * DRAWS)]) for x in zip(*found)]


def print_row(what, n, truth, seen, more=""):
    tvd, worst, whose = distance(truth, seen)
    (t_mid, t_high), (w_mid, w_high) = chance(truth, n)
    print("%-22s %7d  %5.2f (chance %5.2f, %5.2f)  %5.2f (chance %5.2f, %5.2f)%s  %s" %
          (what, n, tvd, t_mid, t_high, worst, w_mid, w_high, more, whose), flush=True)


# -- kernels on the exact engine ------------------------------------------------------------------------

def shares(profile):
    """(own shares, shares with callees) by function; code without a name is one."""
    report = json.loads(bench.command("report", "-i", profile, "--json", "-n", "0", "--sort", "mode,sym,dso")[0])
    own, children = {}, {}
    for r in report["symbols"]:
        key = "%s %s" % (r["symbol"], r["dso"]) if r["named"] else "[unnamed]"
        own[key] = own.get(key, 0) + r["self"] / report["weight"]
        if r["named"]:
            children[key] = children.get(key, 0) + r["children"] / report["weight"]
    return own, children


def exact(profile, kernel, initrd, *options):
    bench.command("run", "--engine", "exact", "-q", "--no-buildid-cache", "-o", profile, kernel, "--initrd", initrd,
                  "--cmdline", CMDLINE, *options, timeout=1800)
    with open(os.path.join(bench.SCRATCH, profile, "kvmprof.json"), encoding="utf-8") as f:
        return json.load(f)


def series(name):
    compare(name, e2e.debian_kernel(name), e2e.INITRAMFS)


def workload(name):
    init = os.path.join(bench.SCRATCH, name)
    compiled.freestanding("../bench/accuracy_init.c", init, "-DWORK=%d" % list(WORKLOADS).index(name),
                          "-DROUNDS=%d" % WORKLOADS[name])
    p = e2e.run(sys.executable, os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), init, init + ".cpio")
    if p.status:
        sys.exit(p.err)
    compare("%s, %s" % (WORKLOAD_SERIES, name), e2e.debian_kernel(WORKLOAD_SERIES), init + ".cpio",
            "--start-at", "run_init_process")


def compare(name, kernel, initrd, *options):
    counted = exact("counts", kernel, initrd, "--call-counts", *options)
    truth, with_callees = shares("counts")
    for period in PERIODS:
        s = exact("samples", kernel, initrd, "-c", str(period), *options)
        if s["engine"]["instructions"] // 1000 != counted["engine"]["instructions"] // 1000:
            print("# %s: sampling and counting cut blocks otherwise: %d and %d instructions" %
                  (name, s["engine"]["instructions"], counted["engine"]["instructions"]))
        own, children = shares("samples")
        ends = s["kernel_stack_end"]
        whole = 100 * (ends["root"] + ends["user-entry"] + ends["start-code"]) / max(1, sum(ends.values()))
        print_row("%s, each %d" % (name, period), s["samples"], truth, own,
                  "  %5.1f %%" % whole)
        off = {k: 100 * (children.get(k, 0) - with_callees.get(k, 0)) for k in set(children) | set(with_callees)}
        print("#   with callees: %s" % ", ".join("%s %+.2f" % (k.split()[0], off[k]) for k in
                                                 sorted(off, key=lambda k: -abs(off[k]))[:SHOWN]))


# -- the demo guest under KVM -----------------------------------------------------------------------------

def demo_row(what, console, profile):
    truth, _ = e2e.parse_truth(console)
    if not truth:
        sys.exit("%s: the guest printed no truth table: %s" % (what, console[-500:]))
    samples = [x for x in e2e.parse_script(e2e.kvmprof("script", "-i", profile).out)]
    known = {t.stack: t.percent for t in truth}
    inside = [x for x in samples if x.stack in known]
    weight, seen = sum(x.period for x in inside), {}
    for x in inside:
        seen[x.stack] = seen.get(x.stack, 0) + x.period / weight
    whole = sum(known.values())
    print_row(what, len(inside), {k: v / whole for k, v in known.items()}, seen)


def demo():
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        print("# demo: no /dev/kvm")
        return
    p = e2e.kvmprof("run", "--append", "seconds=%d" % DEMO_SECONDS, "-o", "demo.data", timeout=600)
    demo_row("demo, KVM here", p.out, "demo.data")
    print("# demo: %.1f %% of the timer's periods were missed" % (100 * e2e.summary("demo.data")["missed_share"]))


def svm():
    import emulated  # pylint: disable=import-outside-toplevel
    host = emulated.Host()
    done = host.run("kvmprof run -o /tmp/demo.data --append seconds=%d; s=$?; cp -r /tmp/demo.data /out; exit $s" % SVM_SECONDS)
    demo_row("demo, KVM on emulated SVM", done.out, os.path.join(host.out, "demo.data"))


def main():
    parts = {name: (lambda name=name: series(name)) for name in SERIES}
    parts.update({name: (lambda name=name: workload(name)) for name in WORKLOADS})
    parts.update(demo=demo, svm=svm)
    asked = sys.argv[3:] or list(parts)
    if set(asked) - set(parts):
        sys.exit("parts are %s" % " ".join(parts))
    if set(asked) & {*SERIES, *WORKLOADS}:
        p = subprocess.run([os.path.join(e2e.TOP, "scripts", "fetch-qemu.sh")], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, universal_newlines=True)
        if p.returncode:
            bench.skip(p.stderr.strip().split("\n")[-1])
        os.environ["KVMPROF_QEMU"] = os.path.join(p.stdout.strip(), "bin", "qemu-system-x86_64")
    print("%-22s %7s  TVD, points; chance: median, 95 %%  worst function; chance  [whole stacks]  whose" %
          ("what", "samples"))
    for name in asked:
        parts[name]()


main()

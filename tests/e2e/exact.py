#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 22 s
# tests: slow, at most 7200 s: repeats
# tests: not svm, host
"""kvmprof run --engine exact: the same profile each time, byte for byte; the demo guest's shares as
it counts them itself (its clock is a count of instructions there); the console's moments; ends; and
what goes wrong, each in one line. Needs neither KVM nor root.

exact.py KVMPROF SCRATCH [repeats [KERNEL]]: 20 runs each of demo guest, tiny kernel and Debian's, with one
and with two vCPUs, some of them beside a busy loop: one hash each."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import demo_judge
import e2e
import high_kernel
from e2e import check, say
from exact_engine import exact, find_qemu, hash_of, one_line

# Of samples each 1000 instructions: what a leaf is off by is a few samples of 130,000 and more.
POINTS = 0.05
RUNS = 20
SERIES = ("6.1", "6.12", "7.3")
APPEND = "console=ttyS0 reboot=k panic=-1 quiet"


# One of this test's own, by which its QEMUs are known: they have none of our environment.
PLUGIN = os.path.abspath("kvmprof-exact.so")
shutil.copy(os.path.join(e2e.BUILD, "kvmprof-exact.so"), PLUGIN)
os.environ["KVMPROF_PLUGIN"] = PLUGIN


def qemus():
    """Processes that run our plugin for this test, and not for one beside it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if PLUGIN.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def check_truth():
    """Two runs, one hash; shares as the guest has counted them."""
    sums = []
    for name in ("a.data", "b.data"):
        p = exact("-c", "1000", "--append", "seconds=1", "-o", name)
        if not check(p.status == 0, "%s: status %d: %s" % (name, p.status, p.err)):
            return
        sums.append(hash_of(name))
    check(sums[0] == sums[1], "two runs of the demo guest differ")
    truth, _ = e2e.parse_truth(p.out)
    if not check(truth, "no truth table: " + p.out):
        return
    samples = e2e.parse_script(e2e.kvmprof("script", "-i", "a.data").out)
    s = e2e.summary("a.data")
    engine = s["engine"]
    check(s["samples"] == len(samples) == engine["instructions"] // 1000,
          "%d samples, %d of them printed, for %d instructions" % (s["samples"], len(samples),
                                                                    engine["instructions"]))
    check(all(x.period == 1000 for x in samples), "a sample does not stand for 1000 instructions")
    # What the guest's table is of: firmware and set-up have no truth.
    inside = demo_judge.within(samples, truth)
    worst = 0
    for t in truth:
        n = sum(1 for x in inside if x.stack == t.stack)
        off = abs(100 * n / len(inside) - t.percent)
        worst = max(worst, off)
        check(off <= POINTS, "%s: %.3f %%, the guest says %.2f" % (t.stack, 100 * n / len(inside), t.percent))
    say("demo guest: %d instructions, worst share off by %.3f points" % (engine["instructions"], worst))
    return "%d instructions, shares off by %.3f points at most" % (engine["instructions"], worst)


def check_moments():
    """Console and virtual time say when: the same each time, and exactly."""
    options = ("-q", "-c", "50000", "--append", "seconds=3", "--start-on", "demo: start",
               "--mark", "tsc=tsc ", "--duration", "0.5")
    a, b = exact(*options, "-o", "m1.data"), exact(*options, "-o", "m2.data")
    check(a.status == 0 and b.status == 0, "moments: %s %s" % (a.err, b.err))
    check(hash_of("m1.data") == hash_of("m2.data"), "two runs with moments differ")
    s = e2e.summary("m1.data")
    # 0.5 s of 8 ns are 62.5 million instructions: 1250 samples, give or take those at its ends.
    check(s["end"] == "duration reached" and 1248 <= s["samples"] <= 1251,
          "%s after %d samples" % (s["end"], s["samples"]))
    check([m["name"] for m in s["markers"]].count("tsc") == 1, "markers: %s" % s["markers"])
    for jitter, least in (((), 4950001), (("--no-jitter",), 5000000)):
        p = exact("-q", "-c", "50000", "--samples", "100", *jitter, "--append", "seconds=3", "-o", "n.data")
        s = e2e.summary("n.data")
        check(p.status == 0 and s["samples"] == 100 and s["end"] == "number of samples reached" and
              least <= s["engine"]["instructions"] <= 5000000, "--samples 100: %s" % s["engine"])
        # Seconds with six digits; an instruction is 8 ns.
        times = [round(float(t) * 1e9 / 8) for t in
                 re.findall(r"^\S.* (\d+\.\d+): +\d+ instructions", e2e.kvmprof("script", "-i", "n.data").out, re.M)]
        steps = {b - a for a, b in zip(times, times[1:])}
        check((steps == {50000}) if jitter else (len(steps) > 50 and max(steps) < 100000),
              "distances of samples: %s" % sorted(steps)[:5])


def check_repeat():
    p = exact("--repeat", "2", "-q", "--append", "seconds=1", "-o", "r.data")
    check(p.status == 0 and "2 runs gave the same profile" in p.err, "--repeat: %d %s" % (p.status, p.err))
    plain = exact("-q", "--append", "seconds=1", "-o", "elsewhere.data")
    check(plain.status == 0 and hash_of("r.data") == hash_of("elsewhere.data"),
          "a profile depends on where it goes, or on --repeat")
    # A wrapper whose second run has another clock, by which the guest tells how long it works.
    if os.path.exists("count"):
        os.remove("count")
    with open("other.sh", "w") as f:
        f.write("#!/bin/sh\nreal='%s'\ncase $* in --version|*versions=on) exec \"$real\" \"$@\";; esac\n"
                "n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) >count\n"
                "if [ $n = 0 ]; then exec \"$real\" \"$@\"; fi\nexec \"$real\" \"$@\" -icount shift=4,sleep=off,align=off\n"
                % os.environ["KVMPROF_QEMU"])
    os.chmod("other.sh", 0o755)
    # It sees no more of the host than a QEMU does, unless it is not confined.
    p = exact("--repeat", "2", "-q", "--sandbox", "off", "--append", "seconds=1", "-o", "d.data",
              env=dict(os.environ, KVMPROF_QEMU=os.path.abspath("other.sh")))
    check(p.status == 1 and "differs from the first" in p.err and "the first sample that differs" in p.err and
          os.path.isdir("d.data.differs"), "runs that differ: %d %s" % (p.status, p.err))


def check_compare():
    """Profiles of different machines are compared with a word about it."""
    p = exact("-q", "-m", "128M", "--append", "seconds=1", "-o", "small.data")
    check(p.status == 0, "128M: " + p.err)
    d = e2e.kvmprof("diff", "r.data", "small.data")
    check(d.status == 0 and "memory" in d.err and "was not made like" in d.err, "diff: %s" % d.err)
    same = e2e.kvmprof("diff", "r.data", "elsewhere.data")
    check(same.status == 0 and "was not made like" not in same.err, "diff of equals: " + same.err)


def check_ends():
    crash = exact("-q", "--append", "seconds=3 crash=triple", "-o", "c.data")
    check(crash.status == 1 and "triple fault" in crash.err and "crash" in crash.err + crash.out or
          "demo_main" in crash.err, "a triple fault: %d %s" % (crash.status, crash.err))
    halt = exact("-q", os.path.join(e2e.BUILD, "guest", "mb.elf"), "-o", "h.data", timeout=300)
    check(halt.status == 0 and "halted for good" in halt.err, "a guest that stands: %d %s" % (halt.status, halt.err))
    for how in ("Ctrl-C", "QEMU killed", "kvmprof killed"):
        b = e2e.Boot("--engine", "exact", "--append", "seconds=10000", "-o", "x.data")
        b.wait_for("demo: start", 60)
        mine = [q for q in qemus() if os.path.exists("/proc/%d" % q)]
        if how == "Ctrl-C":
            b.process.send_signal(signal.SIGINT)
        else:
            os.kill(mine[-1] if how == "QEMU killed" else b.process.pid, signal.SIGKILL)
        b.wait(60)
        wanted = {"Ctrl-C": (0, "interrupted"), "QEMU killed": (1, "ended by signal 9"),
                  "kvmprof killed": (-9, "")}[how]
        check(b.status == wanted[0] and wanted[1] in b.err, "%s: %d %s" % (how, b.status, b.err))
        end = time.monotonic() + 20
        while qemus() and time.monotonic() < end:
            time.sleep(0.1)
        check(not qemus(), "%s: QEMU is still there" % how)
    for left in e2e.leftovers():
        check(left.startswith("x.data.tmp"), "left behind: " + left)


def check_inputs():
    env = lambda **kw: dict(os.environ, **kw)
    with open("text", "w") as f:
        f.write("no kernel\n")
    with open("old", "w") as f:
        f.write("#!/bin/sh\necho 'QEMU emulator version 7.2.22 (Debian)'\n")
    os.chmod("old", 0o755)
    one_line("no image", exact("nowhere"), "nowhere", "No such file")
    one_line("text", exact("text"), "text", "not a kernel")
    one_line("no QEMU", exact(env=env(KVMPROF_QEMU="/nowhere")), "fetch-qemu.sh")
    one_line("old QEMU", exact(env=env(KVMPROF_QEMU=os.path.abspath("old"))), "7.2.22", "9.1", "fetch-qemu.sh")
    one_line("no QEMU in any place", exact(env={"PATH": "/nowhere", "HOME": "/nowhere"}), "fetch-qemu.sh")
    one_line("no plugin", exact(env=env(KVMPROF_PLUGIN="/nowhere")), "KVMPROF_PLUGIN")
    one_line("bad plugin", exact(env=env(KVMPROF_PLUGIN="/etc/passwd")), "does not load the plugin", "/etc/passwd")
    one_line("little memory", exact("-m", "16M"), "-m")
    for option in ("-F99", "--writable", "--net=user", "--share=.", "--rng", "--no-tune", "--overwrite"):
        one_line(option, exact(option), "cannot be combined with --engine exact")
    one_line("cycles", exact("-e", "cycles"), "instructions")
    one_line("--boot", exact("--boot", "linux32"), "linux32")
    one_line("--repeat alone", e2e.kvmprof("run", "--repeat", "2"), "--engine exact")
    one_line("--repeat without a profile", exact("--repeat", "2", "--no-output"), "-o")


def check_plugin_path():
    """The plugin may lie anywhere: a path may contain what separates QEMU's options, and be long."""
    top = "a,,b=c,"
    folder = os.path.abspath(os.path.join(top, *(200 * letter for letter in "fgh")))
    os.makedirs(folder)
    path = shutil.copy(PLUGIN, folder)
    p = exact("-c", "100000", "--append", "seconds=1", "--no-output", env=dict(os.environ, KVMPROF_PLUGIN=path))
    check(p.status == 0, "a plugin with a long path: status %d: %s" % (p.status, p.err))
    shutil.rmtree(top)


def check_boot_code(what, report, decompressor=True):
    """Firmware and decompressor have names, wherever they run."""
    by, all_of = {}, 0
    for r in report["symbols"]:
        if r["mode"] != "kernel":
            continue
        by[r["dso"]] = by.get(r["dso"], 0) + r["self"]
        all_of += r["self"]
    check(by.get("[firmware]", 0) > 0, "%s: no firmware: %s" % (what, by))
    check(by.get("[decompressor]", 0) > 0 or not decompressor, "%s: no decompressor: %s" % (what, by))
    check(by.get("[unknown]", 0) <= all_of / 2000, "%s: %s of %d have no name" % (what, by, all_of))


def check_linked_high():
    """FreeBSD's shape: a virtual ELF entry beside a PVH note."""
    if not high_kernel.make("high.elf"):
        return
    p = exact("-q", "-c", "10000", "high.elf", "-o", "high.data")
    check(p.status == 0, "a kernel linked high: %d %s" % (p.status, p.err))
    rows = json.loads(e2e.kvmprof("report", "-i", "high.data", "-n", "0", "--json").out)["symbols"]
    share = sum(r["self"] for r in rows if r["symbol"] == "hot_loop") / sum(r["self"] for r in rows)
    check(share > 0.8, "a kernel linked high: hot_loop has %.3f" % share)
    p = e2e.kvmprof("symbols", "high.elf", "hot_loop")
    check(p.status == 0 and "hot_loop" in p.out, "symbols of it: %d %s" % (p.status, p.err))


def check_tiny():
    """A Linux, twice, from its bzImage to its end."""
    kernel = os.path.join(e2e.built_kernel("tiny"), "bzImage")
    p = exact("--repeat", "2", "-q", kernel, "--initrd", e2e.INITRAMFS, "-o", "t.data", timeout=300)
    check(p.status == 0 and "2 runs gave the same profile" in p.err, "tiny: %d %s" % (p.status, p.err))
    rows = e2e.kvmprof("report", "-i", "t.data", "-n", "0").out
    check("start_kernel" in rows, "no start_kernel in the tiny kernel's boot")
    dsos = e2e.kvmprof("report", "-i", "t.data", "-n", "0", "--json").out
    check_boot_code("tiny", json.loads(dsos))
    return e2e.summary("t.data")["engine"]["instructions"]


def repeats(only):
    """RUNS runs of each guest, half of them beside busy loops; one hash each."""
    tiny = os.path.join(e2e.built_kernel("tiny"), "bzImage")
    guests = [("demo", ["--append", "seconds=1"], (1,)), ("tiny", [tiny, "--initrd", e2e.INITRAMFS], (1,))]
    guests += [(s, None, (1, 2)) for s in SERIES]
    for name, options, vcpus in guests:
        if only and name != only:
            continue
        if options is None:
            options = [e2e.debian_kernel(name), "--initrd", e2e.INITRAMFS, "--cmdline", APPEND]
        for n in vcpus:
            sums, took = set(), []
            for i in range(RUNS):
                busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2)] if i % 2 else []
                p = exact("-q", "--vcpus", str(n), *options, "-o", "x.data", timeout=900)
                for b in busy:
                    b.kill()
                    b.wait()
                if check(p.status == 0, "%s, %d vCPUs, run %d: %s" % (name, n, i, p.err)):
                    sums.add(hash_of("x.data"))
                    took.append(p.seconds)
            engine = e2e.summary("x.data")["engine"]
            say("%s, %d vCPUs: %d runs, %d hash, %d instructions, %.1f s (%.1f-%.1f)" %
                (name, n, len(took), len(sums), engine["instructions"],
                 sorted(took)[len(took) // 2], min(took), max(took)))
            check(len(sums) == 1, "%s, %d vCPUs: %d different profiles" % (name, n, len(sums)))


def main():
    find_qemu()
    if e2e.EXTRA[:1] == ["repeats"]:
        repeats(e2e.EXTRA[1] if len(e2e.EXTRA) > 1 else None)
        e2e.finish()
    check_inputs()
    check_plugin_path()
    figures = check_truth()
    check_moments()
    check_repeat()
    check_compare()
    check_ends()
    check_linked_high()
    tiny = check_tiny()
    e2e.finish("%s; tiny boots in %s instructions" % (figures, tiny))


main()

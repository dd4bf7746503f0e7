#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`kvmprof export`: each format as its readers read it, on profiles whose contents are
known (mkprofile.c, mktasks.c). In each the weights add up to the profile's."""

import json
import os
import shlex
import subprocess
import tempfile
from collections import Counter

import e2e
from e2e import check

CC = os.environ.get("CC", "gcc").split()
# Each profile: (path, its samples as `kvmprof script` tells them, the table printed by its maker)
USER = "void demo_leaf(void){__asm__ volatile(\"nop;nop\");} void demo_loop(void){for(;;)demo_leaf();}" \
       "void demo_start(void){demo_loop();}"
PROG = "void prog_work(void){__asm__ volatile(\"nop;nop;nop\");} void prog_main(void){for(;;)prog_work();}"
LIB = "void lib_work(void){__asm__ volatile(\"nop;nop\");} void lib_entry(void){lib_work();}"
VDSO = "long vdso_time(void){__asm__ volatile(\"nop;nop\"); return 5;}"


def cc(*argv):
    p = e2e.run(*CC, *argv)
    if p.status:
        raise SystemExit("cc failed: " + p.err)


def elf(name, text, *flags):
    with open(name + ".c", "w") as f:
        f.write(text)
    cc("-O0", "-fno-omit-frame-pointer", "-nostdlib", "-Wl,--build-id=sha1", *flags, "-o", name, name + ".c")


def tool(name):
    """One of the makers of profiles, linked with what kvmprof is made of."""
    cc("-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I" + e2e.TOP, *shlex.split(os.environ.get("CFLAGS", "")),
       "-o", name, os.path.join(e2e.TOP, "tests", "e2e", name + ".c"), os.path.join(e2e.BUILD, "libkvmprof.a"),
       *shlex.split(os.environ.get("LIBS", LIBS)))


LIBS = "-lcapstone -ldw -lelf -liberty -lzstd -llzma -llz4 -lbz2 -lprotobuf-c -lz -lm -pthread"


class Profile:
    def __init__(self, path):
        self.path = path
        self.script = e2e.kvmprof("script", "-i", path).out
        self.samples = e2e.parse_script(self.script)
        self.weight = sum(s.period for s in self.samples)
        self.self_weight, self.children = Counter(), Counter()
        for s in self.samples:
            names = s.stack.split(";")
            self.self_weight[names[-1]] += s.period
            for n in set(names):
                self.children[n] += s.period

    def export(self, fmt, *argv, out=None):
        p = e2e.kvmprof("export", "--format", fmt, "-i", self.path, *argv, *(["-o", out] if out else []))
        check(p.status == 0, "export %s: status %d: %s" % (fmt, p.status, p.err))
        check(not p.err, "export %s says: %s" % (fmt, p.err))
        return p.out


def make_profiles():
    tool("mkprofile")
    tool("mktasks")
    elf("user.elf", USER, "-static", "-no-pie", "-Wl,-e,demo_start")
    elf("prog.elf", PROG, "-static", "-no-pie", "-Wl,-e,prog_main")
    elf("lib.so", LIB, "-fPIC", "-fvisibility=hidden", "-shared")
    elf("vdso.so", VDSO, "-fPIC", "-shared")
    made = []
    for argv in (["mkprofile", "plain.data", "user.elf"],
                 ["mktasks", "tasks.data", "prog.elf", "lib.so", "vdso.so"]):
        p = e2e.run("./" + argv[0], *argv[1:])
        check(p.status == 0, "%s: %s" % (argv[0], p.err))
        total = next(int(x.split()[1]) for x in p.out.split("\n") if x.startswith("total "))
        profile = Profile(argv[1])
        check(len(profile.samples) == total, "%s: %d samples of %d" % (argv[1], len(profile.samples), total))
        made.append(profile)
    return made


def folded_lines(text):
    got = {}
    for line in text.splitlines():
        stack, weight = line.rsplit(" ", 1)
        check(stack not in got, "folded: twice: " + stack)
        got[stack] = int(weight)
    return got


def folded(p):
    want = e2e.fold(p.script)
    check(folded_lines(p.export("folded", "--samples")) == want,
          "%s: folded differs from what stackcollapse-perf.pl makes of the script" % p.path)
    got = folded_lines(p.export("folded"))
    check(sum(got.values()) == p.weight and got.keys() == want.keys(), "%s: folded: weights" % p.path)
    by_thread = folded_lines(p.export("folded", "--per-thread"))
    check(sum(by_thread.values()) == p.weight, "%s: folded --per-thread" % p.path)
    check(all("/" in s.split(";")[0] for s in by_thread), "--per-thread without a tid")
    both, off = (folded_lines(p.export("folded", "--names", n)) for n in ("both", "offset"))
    check(sum(both.values()) == sum(off.values()) == p.weight and len(off) >= len(got),
          "%s: --names: weights" % p.path)
    check(any("+0x" in s for s in off) and not any("+0x" in s for s in got), "--names offset has no offsets")
    check({tuple(s.split(";")[::2]) for s in both} != set(), "--names both")
    for s in both:
        frames = s.split(";")[1:]
        check(len(frames) % 2 == 0 and all(b.startswith(a + "+0x") or b.startswith("0x") and a[0] == "["
                                           for a, b in zip(frames[::2], frames[1::2])),
              "--names both: " + s)
    check(p.export("perf-script") == p.script, "%s: perf-script differs from `kvmprof script`" % p.path)


def filters(p):
    comm = Counter()
    for s in p.samples:
        comm[s.comm] += s.period
    for name, weight in comm.items():
        got = folded_lines(p.export("folded", "--comm", name))
        check(sum(got.values()) == weight, "--comm %s: %d of %d" % (name, sum(got.values()), weight))
    first, last = p.samples[0].seconds, p.samples[-1].seconds
    middle = (last - first) / 2
    parts = [p.export("folded", "--samples", "--time", t) for t in (",%.6f" % middle, "%.6f," % middle)]
    check(sum(sum(folded_lines(x).values()) for x in parts) == len(p.samples), "--time: two halves are not the whole")
    kernel = folded_lines(p.export("folded", "--kernel-only"))
    check(kernel and not any(n in s for s in kernel for n in ("demo_", "prog_", "lib_")), "--kernel-only: " + str(kernel)[:200])


def refusals(p):
    for argv in ([], ["--format", "nonsense"], ["--format", "folded", "--names", "x"], ["--format", "folded", "extra"],
                 ["--format", "folded", "--pid", "-1"], ["--format", "folded", "--time", "3,1"], ["--format"],
                 ["--format", "perf-script", "--names", "offset"]):
        r = e2e.kvmprof("export", "-i", p.path, *argv)
        check(r.status == 2 and r.err.count("\n") == 1 and not r.out, "export %s: %d %s" % (argv, r.status, r.err))
    for argv in (["-i", "missing"], ["-i", p.path, "--comm", "nobody"], ["-i", p.path, "-o", "no/such/place"]):
        r = e2e.kvmprof("export", "--format", "folded", *argv)
        check(r.status == 1 and r.err.count("\n") == 1 and not r.out, "export %s: %d %s" % (argv, r.status, r.err))
    check(not e2e.leftovers(), "temporary files are left: " + str(e2e.leftovers()))
    listed = [x.split()[0] for x in e2e.kvmprof("export", "--list").out.splitlines()]
    check("folded" in listed and len(listed) == len(set(listed)), "--list: %s" % listed)
    return listed


profiles = make_profiles()
for profile in profiles:
    folded(profile)
    filters(profile)
listed = refusals(profiles[0])
e2e.finish("%d formats" % len(listed))

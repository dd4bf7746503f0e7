#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s: quick
# tests: slow, at most 10800 s
# tests: not svm, disk
"""debian13.py KVMPROF SCRATCH: from a bare Debian 13 to `make demo`, to the unit tests, to the
boot of a kernel made of its own sources. scripts/deps.sh installs all that is needed, but for make.

KVMPROF is not used: the program is built in there. The other compilers are compilers.py's.

    debian13.py KVMPROF SCRATCH quick      `make demo` alone: one build by its own compiler, and the demo"""

import json
import os
import re

import debian_root
import demo_judge
import e2e
from e2e import check, say

POINTS = 3.0
QUICK = "quick" in e2e.EXTRA


def quiet(what, p):
    """A satisfied deps.sh neither installs nor asks."""
    check("installing" not in p.err and "asked for these again" not in p.err,
          "%s: asks apt again: %s" % (what, p.err))


def demo(root):
    p = root.must("make demo", "make demo")
    if p.status:
        e2e.finish()
    check("warning:" not in p.out + p.err, "make demo: warnings: " + p.err[-2000:])
    check(root.run("command -v perf").status != 0, "make demo has installed perf")
    quiet("make demo again", root.must("scripts/deps.sh build", "deps.sh build"))
    truth, outside = e2e.parse_truth(p.out)
    script = root.must("build/kvmprof script -i build/demo.data", "kvmprof script")
    if check(truth, "the demo printed no truth table: " + p.out):
        demo_judge.judge("make demo", e2e.parse_script(script.out), truth, outside, POINTS)
    check("left_leaf" in p.out.split("truth-end")[-1], "make demo shows no report: " + p.out)


def tests(root, pattern, timeout=3600):
    """Passed, failed, skipped."""
    p = root.run("tests/run.py --build build/gcc " + pattern, timeout)
    m = re.search(r"(\d+) passed, (\d+) failed, (\d+) skipped\s*$", p.out)
    if not check(m, "%s: no result: %s" % (pattern, (p.out + p.err)[-2000:])):
        return 0, 0, 0
    if not check(p.status == 0, "tests %s: %s" % (pattern, m.group(0).strip())):
        say("\n".join(line for line in p.out.split("\n") if not line.startswith("ok ")))
    return tuple(int(n) for n in m.groups())


def boot(root):
    """A kernel of Debian 13's own sources; seconds until its /init."""
    p = root.must("scripts/build-guest-kernel.sh tiny", "a guest kernel of Debian 13's sources", 7200)
    kernel = p.out.strip()
    p = root.must("build/gcc/kvmprof run %s/vmlinux --initrd build/gcc/guest/initramfs.cpio -m 64M "
                  "-o build/linux.data" % kernel, "boot of the guest kernel", 900)
    check("kvmprof-init: done" in p.out and "kvmprof-init: failures" not in p.out,
          "/init did not come to its end:\n" + p.out[-2000:])
    with open(os.path.join(root.path, "src/build/linux.data/kvmprof.json"), encoding="utf-8") as f:
        s = json.load(f)
    check(s["samples"] > 500 and s["unsymbolized"] * 1000 <= s["samples"],
          "%d of %d samples without a name" % (s["unsymbolized"], s["samples"]))
    version = re.search(r"Linux version (\S+)", p.out)
    return version.group(1) if version else "?"


e2e.need_kvm()
root = debian_root.Root("trixie")
root.must("apt-get -q update && apt-get -qy install --no-install-recommends make && "
          "rm -rf /var/lib/apt/lists/*", "make")
demo(root)
if QUICK:
    e2e.finish("make demo")
root.must("scripts/deps.sh test", "deps.sh test")
quiet("deps.sh test again", root.must("scripts/deps.sh test", "deps.sh test"))
root.must("make -k -j%d WERROR=1 BUILD=build/gcc all unit-bins" % (os.cpu_count() or 1), "build", 3600)
units = tests(root, "unit/ check/")
check(units[0] > 100, "%d unit tests passed" % units[0])
e2e.finish("make demo; %d unit tests passed, %d failed, %d skipped; Linux %s boots" % (units + (boot(root),)))

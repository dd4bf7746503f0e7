#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 3600 s
# tests: not svm, files
"""A build without vmm/pvm (make PVM=0) links, says that it is one, knows the rate of a guest's TSC as
another build does, and passes its unit tests.

    tests/e2e/without_pvm.py KVMPROF SCRATCH

The build takes minutes.
"""

import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def check(program):
    return subprocess.run([program, "check"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout


def tsc(text):
    """kHz; None: KVM does not tell."""
    found = re.search(r"guest TSC\W+(\d+) kHz", text)
    return found and found.group(1)


def main():
    build = os.path.join(sys.argv[2], "build")
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PVM")}
    for argv in (["make", "-C", TOP, "-j2", "PVM=0", "BUILD=" + build, "all", "unit-bins", "fuzz-bins"],
                 [os.path.join(TOP, "tests", "run.py"), "--build", build, "unit/"]):
        if subprocess.run(argv, env=env, stdin=subprocess.DEVNULL).returncode:
            print("failed: " + " ".join(argv))
            return 1
    said = check(os.path.join(build, "kvmprof"))
    if "built without the probe guest" not in said:
        print("kvmprof check does not say that it is built without the probe guest:\n" + said)
        return 1
    if tsc(said) != tsc(check(sys.argv[1])):
        print("another rate of a guest's TSC than that of %s:\n%s" % (sys.argv[1], said))
        return 1
    return 0


sys.exit(main())

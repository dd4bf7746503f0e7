#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A build without vmm/pvm (make PVM=0) links, says that it is one, and passes its unit tests.

    tests/e2e/without_pvm.py KVMPROF SCRATCH

The build takes minutes. KVMPROF itself is not used.
"""

import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    build = os.path.join(sys.argv[2], "build")
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PVM")}
    for argv in (["make", "-C", TOP, "-j2", "PVM=0", "BUILD=" + build, "all", "unit-bins", "fuzz-bins"],
                 [os.path.join(TOP, "tests", "run.py"), "--build", build, "unit/"]):
        if subprocess.run(argv, env=env, stdin=subprocess.DEVNULL).returncode:
            print("failed: " + " ".join(argv))
            return 1
    p = subprocess.run([os.path.join(build, "kvmprof"), "check"], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, universal_newlines=True)
    if "built without the probe guest" not in p.stdout:
        print("kvmprof check does not say that it is built without the probe guest:\n" + p.stdout)
        return 1
    return 0


sys.exit(main())

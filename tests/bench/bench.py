# SPDX-License-Identifier: GPL-2.0-or-later
"""What the benchmarks in Python share: arguments, a folder of their own that goes, runs, and rows.

A script's first line of __doc__ is its usage: "bench_x.py KVMPROF SCRATCH [...]: what it measures"."""

import atexit
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import __main__

sys.dont_write_bytecode = True
NAME = os.path.splitext(os.path.basename(__main__.__file__))[0]
if len(sys.argv) < 3:
    sys.exit("usage: " + __main__.__doc__.splitlines()[0].split(":")[0])
KVMPROF = os.path.abspath(sys.argv[1])
os.makedirs(sys.argv[2], exist_ok=True)
SCRATCH = tempfile.mkdtemp(prefix=NAME + ".", dir=sys.argv[2])
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)
CACHE = os.environ.get("KVMPROF_CACHE") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kvmprof")


def argument(n, default, kind=int):
    """The n-th argument behind SCRATCH, from 0."""
    return kind(sys.argv[3 + n]) if len(sys.argv) > 3 + n else default


def skip(reason):
    print("%s: skipped: %s" % (NAME, reason))
    sys.exit(0)


def need_kvm():
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        skip("no access to /dev/kvm")


def command(*args, timeout=300):
    """Standard output and standard error of a command that must not fail."""
    p = subprocess.run([KVMPROF, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=timeout, universal_newlines=True, cwd=SCRATCH,
                       env=dict(os.environ, HOME=SCRATCH))
    if p.returncode:
        sys.exit("%s: %s: status %d: %s" % (NAME, " ".join(args), p.returncode, p.stderr))
    return p.stdout, p.stderr


def run(*args, timeout=300):
    """A run's summary."""
    return json.loads(command("run", "--json", "-o", "x", *args, timeout=timeout)[0])


def spread(values):
    return "(%.2f-%.2f)" % (min(values), max(values))


def row(name, unit, values, note=""):
    print("%-46s %10.2f %s %s%s" % (name, statistics.median(values), unit, spread(values), note))

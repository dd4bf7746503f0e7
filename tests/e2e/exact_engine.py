# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of `kvmprof run --engine exact` have in common: QEMU, runs, profiles that are held together.
None of it needs KVM or root."""

import hashlib
import os
import subprocess
import sys
from collections import Counter

import e2e


def find_qemu(release="trixie"):
    """Puts the QEMU of this release of Debian into the environment, whatever the system has."""
    p = subprocess.run([os.path.join(e2e.TOP, "scripts", "fetch-qemu.sh"), release], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, universal_newlines=True)
    if p.returncode == 3:
        e2e.skip("no QEMU 9.1 or later: " + p.stderr.strip())
    if p.returncode:
        sys.exit("fetch-qemu.sh: " + p.stderr)
    os.environ["KVMPROF_QEMU"] = os.path.join(p.stdout.strip(), "bin", "qemu-system-x86_64")


def exact(*argv, **kw):
    return e2e.kvmprof("run", "--engine", "exact", *argv, **kw)


def hash_of(directory):
    """Of all files of a profile, with their names."""
    h = hashlib.sha256()
    for top, dirs, files in os.walk(directory):
        dirs.sort()
        for name in sorted(files):
            path = os.path.join(top, name)
            h.update(os.path.relpath(path, directory).encode() + b"\0")
            with open(path, "rb") as f:
                h.update(hashlib.sha256(f.read()).digest())
    return h.hexdigest()


def by_address(profile, event):
    """Counts by the address of each chain's innermost frame. Needs perf."""
    out, wanted = Counter(), 0
    for line in e2e.perf_script(profile).split("\n"):
        m = e2e.EVENT.match(line)
        if m:
            wanted = int(m.group(5)) if m.group(6) == event else 0
        elif wanted:
            out[int(line.split()[0], 16)] += wanted
            wanted = 0
    return out


def one_line(what, p, *words):
    """A refusal: one line of its own, which says all that."""
    lines = [x for x in p.err.split("\n") if x and "unfinished profile" not in x and "no IMAGE:" not in x]
    e2e.check(p.status != 0 and len(lines) == 1 and all(w in lines[0] for w in words),
              "%s: status %d, %s" % (what, p.status, p.err))

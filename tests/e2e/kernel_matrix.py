# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernels of tests/kernels.table, and where their images are."""

import glob
import os
import subprocess
from collections import namedtuple

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = os.path.join(TOP, "tests", "kernels.table")
ANSWERS = ("names", "stacks", "tasks", "modules", "mappings", "files", "off_cpu")
VALUES = {"yes", "partly", "searched", "no"}
TIERS = {"quick", "slow"}
Kernel = namedtuple("Kernel", ("name", "source", "facts", "boot") + ANSWERS + ("by",))


class Missing(Exception):
    """The image of a kernel cannot be had; the text says why."""


def kernels():
    found = {}
    with open(TABLE, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != len(Kernel._fields):
                raise SystemExit("%s:%d: %d columns, not %d" % (TABLE, number, len(words), len(Kernel._fields)))
            k = Kernel(*words)
            if (k.name in found or k.facts not in TIERS or k.boot not in ("slow", "svm", "-") or
                    not VALUES.issuperset(getattr(k, x) for x in ANSWERS)):
                raise SystemExit("%s:%d: what is %s?" % (TABLE, number, line.strip()))
            found[k.name] = k
    return found


def image(kernel):
    """Path of the image, fetched or built if it is not in the cache."""
    kind, what, *options = kernel.source.split(":")
    script = {"debian": "fetch-debian-kernel.sh", "built": "build-guest-kernel.sh"}[kind]
    p = subprocess.run([os.path.join(TOP, "scripts", script)] + options + [what], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, universal_newlines=True)
    if p.returncode and (kind == "built" or p.returncode == 3):
        raise Missing("%s: %s" % (kernel.name, p.stderr.strip().split("\n")[-1]))
    if p.returncode:
        raise SystemExit("%s: %s: %s" % (kernel.name, script, p.stderr))
    found = glob.glob(os.path.join(p.stdout.strip(), "vmlinuz-*" if kind == "debian" else "bzImage"))
    if len(found) != 1:
        raise Missing("%s: %d images in %s" % (kernel.name, len(found), p.stdout.strip()))
    return found[0]

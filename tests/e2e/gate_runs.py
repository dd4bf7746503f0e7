# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles with known truth for the tests of gates: imported stacks, with noise between runs.

Each run's counts are drawn from a generator that is seeded by the run's name."""

import os
import random

import e2e

SHARES = {"main;tree;left_leaf": 5000, "main;tree;right_leaf": 2000, "main;loop;spin": 3000,
          "main;io;copy": 1600, "main;other": 8400}


def make(name, more=None, noise=0.004, event=None):
    """A profile `name'; more: what some stacks take in addition, or new ones."""
    rng = random.Random(name)
    counts = dict(SHARES)
    for stack, n in (more or {}).items():
        counts[stack] = counts.get(stack, 0) + n
    with open(name + ".folded", "w") as f:
        for stack, n in counts.items():
            f.write("demo;%s %d\n" % (stack, max(1, round(rng.gauss(n, n * noise)))))
    p = e2e.kvmprof("import", "--kernel", "--no-buildid-cache", "-o", name, name + ".folded",
                    *(["--event", event] if event else []))
    e2e.check(p.status == 0, "import: " + p.err)
    os.unlink(name + ".folded")
    return name


def group(prefix, n, **kw):
    return [make("%s%d" % (prefix, i), **kw) for i in range(n)]

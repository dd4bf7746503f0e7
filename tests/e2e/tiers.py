# SPDX-License-Identifier: GPL-2.0-or-later
"""The tests that a script or a fuzz target names in its own first lines.

A script of tests/e2e has a line for each way in which it is run:

    # tests: TIER, N s[: ARGUMENTS]                 N s is its time on two quiet cores
    # tests: slow, at most N s[: ARGUMENTS]         it is ended after N s

with one of these tiers:

    kernel      builds a guest kernel for others: minutes once, then it is found in a cache
    beside      needs no Linux guest, and its expectations hold on a busy machine
    alone       times what it does, so that nothing else may run
    together    needs a Linux guest, and its expectations hold on a busy machine
    without_kvm is run on a machine without /dev/kvm alone, beside others
    slow        is run by `make test-slow` alone

{asan}/kvmprof and {tsan}/kvmprof in ARGUMENTS are the programs with sanitizers. {booted} stands for each
kernel of tests/kernels.table that is booted, and {debian} for each of these that is Debian's.

Each such script has at least one line about the emulated host with SVM (tests/e2e/svm_host.py):

    # tests: svm, at most N s[: ARGUMENTS]          `svm_host.py suite` runs it, for N s of that host at most
    # tests: not svm, WORD                          it does not, for the reason NOT_SVM[WORD]

A fuzz target that `make test` also feeds with inputs made of its corpus, always the same N of them, has

    /* tests: N runs */

and a unit test whose form with sanitizers is run by `make test-slow' alone has

    /* tests: slow with sanitizers */
"""

import collections
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
TIERS = ("kernel", "beside", "without_kvm", "alone", "together", "slow")
# Why a script is not in the suite of the emulated host.
NOT_SVM = {
    "breakpoints": "hardware breakpoints never stop an SVM guest of QEMU's (emulated.breakpoints_fire)",
    "threads": "not tried: it times threads beside each other, which that host's one CPU runs in turn",
    "load": "eight events at 20,000 Hz, its last part, leave that host's one CPU no time for the guest",
    "network": "it needs a network or kernel modules that this host does not have",
    "disk": "not tried: kernels and disks, which take long over 9P",
    "files": "it says nothing of a host's KVM: files, texts, other tools, the tests themselves",
    "host": "it is, or starts, an emulated host",
    "ring0": "it is about instructions that only a KVM leaves unfinished which interprets ring 0",
}

LINE = re.compile(r"# tests: (?:not svm, (?P<why>\w+)|(?P<tier>\w+), (?P<most>at most )?(?P<seconds>\d+) s(?:: (?P<argv>\S.*))?)$")
SLOW_ASAN = "/* tests: slow with sanitizers */"
RUNS = re.compile(r"/\* tests: (\d+) runs \*/$")

# tier: one of TIERS, "svm" or "not svm"; why: a key of NOT_SVM, for the last.
Line = collections.namedtuple("Line", "script tier seconds arguments why")


def head(path):
    """The first lines of a file, those of comments."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            if not line.startswith(("#", "/*")):
                return
            yield line.rstrip("\n")


def lines(path):
    """The script's lines about tests. Raises ValueError for one that cannot be read."""
    found = []
    for text in head(path):
        if not text.startswith("# tests:"):
            continue
        m = LINE.match(text)
        tier = m and (m["tier"] or "not svm")
        if not m or tier not in TIERS + ("svm", "not svm") or m["why"] and m["why"] not in NOT_SVM or \
                bool(m["most"]) != (tier in ("slow", "svm")):
            raise ValueError("not as tests/e2e/tiers.py has it: " + text)
        found.append(Line(os.path.basename(path), tier, int(m["seconds"] or 0), (m["argv"] or "").split(), m["why"]))
    return found


def scripts(directory=HERE):
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory)) if name.endswith((".py", ".sh"))]


def of_tier(tier):
    """The lines of a tier. Alone and slow, the quick ones come first; where two run at a time, the long ones do, so
    that no core waits at the end."""
    found = [line for path in scripts() for line in lines(path) if line.tier == tier]
    return sorted(found, key=lambda line: line.seconds, reverse=tier in ("beside", "together"))


def slow_with_sanitizers(path):
    return SLOW_ASAN in head(path)


def fuzz_runs(path):
    """How many inputs made of its corpus a fuzz target is fed with; 0: those of the corpus alone."""
    return sum(int(m[1]) for m in map(RUNS.match, head(path)) if m)

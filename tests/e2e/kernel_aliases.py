#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 900 s: {debian}
# tests: slow, at most 900 s: 6.12-any
# tests: slow, at most 900 s: 6.12-rt
# tests: slow, at most 900 s: 7
# tests: not svm, disk
"""kernel_aliases.py KVMPROF SCRATCH KERNEL: the names of a Debian kernel of tests/kernels.table against its own.

The kernel boots on an emulated host, without KASLR, and its /proc/kallsyms is the truth. kvmprof reads the same code
symbols out of the image, shows no function as a mark of the linker script, and finds each function by each of its
names: `kvmprof symbols`, the kallsyms of a profile, `report --symbol` and `annotate`."""

import json
import os
import re
from collections import defaultdict

import e2e
import emulated
import kernel_matrix
from e2e import check, say

CODE = "tTwW"
AT_ONCE = 2000    # words of one command line
# may_be_linker_script_provide_symbol() of Linux's scripts/kallsyms.c, and what vmlinux.lds.S calls the ends of text.
MARK = re.compile(r"__(start|stop|end)_.+$|__.+_(start|end)$|_s?text$|_etext$|_[se]inittext$")


def rows(lines):
    """{address: [name]} of the kernel's own code: those of modules have a fourth word."""
    found = defaultdict(list)
    for words in (line.split() for line in lines):
        if len(words) == 3 and words[1] in CODE:
            found[int(words[0], 16)].append(words[2])
    return found


def pairs(found):
    return {(a, n) for a, names in found.items() for n in names}


def asked(words):
    """What `kvmprof symbols` answers, by line."""
    lines = []
    for i in range(0, len(words), AT_ONCE):
        p = e2e.kvmprof("symbols", "--no-demangle", image, *words[i:i + AT_ONCE])
        check(p.status == 0, "kvmprof symbols: status %d: %s" % (p.status, p.err[-500:]))
        lines += p.out.splitlines()
    return lines


def by_itself():
    """The kernel's own table."""
    kind, series, *options = kernel.source.split(":")
    flavour = ["--flavour", options[0][2:]] if options else []
    host = emulated.Host("--kernel", series, "--no-modules", *flavour, limit=300)
    done = host.run("cat /proc/kallsyms >/out/kallsyms; uname -r")
    release = os.path.basename(image)[len("vmlinuz-"):]
    check(done.status == 0 and done.out.strip() == release, "the host runs %s, not %s" % (done.out, release))
    with open(os.path.join(host.out, "kallsyms")) as f:
        return rows(f)


def check_profile(shared):
    """A profile's kallsyms has each name, and a report finds what was sampled by each of them."""
    p = e2e.kvmprof("run", image, "--duration", "20", "-F", "999", "-m", "256M", "--no-buildid-cache", "-o", "k.data", timeout=300)
    check(p.status == 0, "kvmprof run: status %d: %s" % (p.status, p.err[-500:]))
    with open("k.data/kcore_dir/kallsyms") as f:
        there = pairs(rows(line for line in f if "[" not in line))
    lost = [(a, n) for a, names in shared.items() for n in names if (a, n) not in there]
    check(not lost, "the profile's kallsyms lacks %d names: %s" % (len(lost), lost[:5]))
    report = json.loads(e2e.kvmprof("report", "--json", "-n", "0", "--sort", "sym", "-i", "k.data").out)
    shown = {r["symbol"]: (r["self"], r["children"]) for r in report["symbols"]}
    # Code that is in no function has the mark before it: .altinstr_aux of 5.10 is _einittext in the kernel's own messages, too.
    bad = [n for n in shown if MARK.match(n) and any(n in x for x in shared.values())]
    check(not bad, "functions are shown as marks: %s" % bad)
    tried = 0
    for names in shared.values():
        here = [n for n in names if n in shown]
        for n in names if here else []:
            r = json.loads(e2e.kvmprof("report", "--json", "-n", "0", "--sort", "sym", "--symbol", "^%s$" % re.escape(n),
                                       "-i", "k.data").out)["symbols"]
            got = {x["symbol"]: (x["self"], x["children"]) for x in r}
            check(got.get(here[0]) == shown[here[0]], "--symbol %s: %s, not %s" % (n, got, here[0]))
            if shown[here[0]][0]:
                p = e2e.kvmprof("annotate", "-i", "k.data", n)
                check(p.status == 0 and here[0] in p.out, "annotate %s: %s" % (n, p.err))
            tried += 1
    return "%d names by report --symbol" % tried


e2e.need_kvm()
kernel = kernel_matrix.kernels()[e2e.EXTRA[0] if e2e.EXTRA else "6.1"]
try:
    image = kernel_matrix.image(kernel)
except kernel_matrix.Missing as missing:
    e2e.skip(str(missing))
truth = by_itself()
p = e2e.kvmprof("symbols", image)
check(p.status == 0, "kvmprof symbols: " + p.err)
ours = rows(p.out.splitlines())
for a, n in sorted(pairs(truth) ^ pairs(ours))[:20]:
    say("%016x %s: only in %s" % (a, n, "the guest" if n in truth[a] else "kvmprof"))
check(len(truth) > 10000 and pairs(truth) == pairs(ours), "%d code symbols differ" % len(pairs(truth) ^ pairs(ours)))

shared = {a: names for a, names in truth.items() if len(set(names)) > 1}
functions = {a: names for a, names in shared.items() if not all(MARK.match(n) for n in names)}
answers = dict(zip(sorted(functions), asked(["%x" % a for a in sorted(functions)])))
wrong = {a: line for a, line in answers.items() if MARK.match(line.split()[1].rpartition("+0x")[0])}
check(len(functions) > 20 and not wrong, "%d functions are shown as marks: %s" % (len(wrong), list(wrong.items())[:5]))

# A name that several functions have is found at each of them.
names = sorted({n for x in shared.values() for n in x})
at = defaultdict(set)
for line in asked(names):
    m = re.match(r"([0-9a-f]{16}) (\S+?)\+0x0(?: |$)", line)
    if m:
        at[m[2]].add(int(m[1], 16))
missing = [(a, n) for a, x in shared.items() for n in x if a not in at[n]]
check(not missing, "%d names are not found: %s" % (len(missing), missing[:5]))
profile = check_profile(shared)
e2e.finish("%s: %d code symbols as in the guest; %d addresses have several names, %d a function and a mark; %d names found; %s" %
           (os.path.basename(image), len(pairs(truth)), len(shared),
            sum(any(MARK.match(n) for n in x) for x in functions.values()), len(names), profile))

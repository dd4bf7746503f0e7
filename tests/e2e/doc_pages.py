#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 25 s
# tests: slow, at most 5400 s: linux
# tests: not svm, files
"""The examples of README.md and of each page in docs/ are run, in order; where a page shows what an
example of the demo guest prints, each such line is among those that are printed, but for numbers.

With the argument `linux` those of docs/tutorial.md are run as they stand, on the kernel that they name
(two boots: ten minutes on a host that interprets the kernel), and what the page concludes is checked.
"""

import glob
import json
import os
import re
import xml.etree.ElementTree

import doc_examples
import e2e
from e2e import check

e2e.need_kvm()
os.mkdir("bin")
os.symlink(e2e.KVMPROF, "bin/kvmprof")
os.environ["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]


def pages():
    names = ["README.md"] + sorted(os.path.relpath(p, e2e.TOP) for p in
                                   glob.glob(os.path.join(e2e.TOP, "docs", "*.md")))
    return [(name, doc_examples.text_examples(name)) for name in names]


def check_self():
    """That a line which is not printed is noticed, and that numbers and names of rows may differ."""
    told = ["kvmprof: 12 samples of nothing", "  1.5%  2.5%  3  kernel  a  b", "wrote ..."]
    lacks = doc_examples.missing_lines(told, "kvmprof: 7 samples of all\n 9.5% 8.5% 1 kernel c d\nwrote x\n")
    check(lacks == told[:1], "missing_lines() finds %r" % lacks)


def check_pictures():
    """Each is one whole document; those of terminals are made for dark and for light pages."""
    for path in glob.glob(os.path.join(e2e.TOP, "docs", "pictures", "*.svg")):
        name, text = os.path.basename(path), doc_examples.read(path)
        root = xml.etree.ElementTree.fromstring(text)
        check(root.tag.endswith("svg"), name + " is no picture")
        check(name == "boot.svg" or "prefers-color-scheme:dark" in text, name + " has no dark form")
        used = any(name in doc_examples.read(os.path.join(e2e.TOP, page)) for page, _ in pages())
        check(used, "no page shows " + name)


def seconds(profile):
    return e2e.summary(profile)["run_seconds"]


def tutorial():
    """Boots with and without the option, and what the page tells of them."""
    page = os.path.join("docs", "tutorial.md")
    os.environ["D"] = os.path.dirname(e2e.debian_kernel("6.1"))
    os.symlink(e2e.BUILD, "build")
    ran = 0
    for x in doc_examples.text_examples(page):
        if not re.search("slow.data|fixed.data", x.command):    # not of the two boots: gate.py and others
            doc_examples.check_options(x)
            continue
        p = e2e.run("bash", "-c", x.command, timeout=2400)
        check(p.status == 0, "%s: status %d: %s" % (x.command, p.status, p.err[-400:]))
        for lacks in doc_examples.missing_lines(x.output, p.out + p.err):
            check(False, "`%s` prints no line like %r; it prints:\n%s" % (x.command, lacks, (p.out + p.err)[-3000:]))
        ran += 1
    p = e2e.kvmprof("report", "--json", "--phase", "start_kernel", "--order", "self", "-n", "1", "-i", "slow.data")
    row = json.loads(p.out)["symbols"][0]
    check(row["symbol"] == "clear_page_orig", "the function of the tutorial is %s" % row)
    check(seconds("fixed.data") < seconds("slow.data"), "without init_on_free=1 the boot is not shorter")
    e2e.finish("%d examples; %.1f s with init_on_free=1, %.1f s without" %
               (ran, seconds("slow.data"), seconds("fixed.data")))


check_self()
if "linux" in e2e.EXTRA:
    tutorial()
doc_examples.make_fixtures()
ran = compared = count = 0
every = []
for page, examples in pages():
    r, c = doc_examples.run_examples(page, examples) if examples else (0, 0)
    ran, compared, count = ran + r, compared + c, count + len(examples)
    every += examples
check_pictures()
version = doc_examples.read(os.path.join(e2e.TOP, "VERSION")).strip()
newest = re.search(r"^## (\S+)", doc_examples.read(os.path.join(e2e.TOP, "CHANGELOG.md")), re.M).group(1)
check(newest == version and e2e.kvmprof("--version").out == "kvmprof %s\n" % version,
      "VERSION has %s, CHANGELOG.md %s, the program %s" % (version, newest, e2e.kvmprof("--version").out))
check(len(every) > 90, "only %d examples were found" % len(every))
# The manual pages' and the help's examples are run by help_pages.py.
others = e2e.kvmprof("help").out + "".join(
    doc_examples.read(p) for p in glob.glob(os.path.join(e2e.TOP, "docs", "*.1")) +
    glob.glob(os.path.join(e2e.TOP, "docs", "man", "*.1"))).replace("\\-", "-")
for part in doc_examples.NOT_RUN:
    check(part in others or any(part in x.command for x in every), "no example has what NOT_RUN lists: " + part)
e2e.finish("%d of %d examples run, the output of %d compared" % (ran, count, compared))

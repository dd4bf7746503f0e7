#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 1 s
# tests: not svm, ring0
"""A guest whose SIMD instructions name rsp gets no address of the host, and kvmprof ends in order."""

import os
import re

import compiled
import e2e
from e2e import check

RAM = 64 << 20


def run(form):
    """Status and console of the guest of that form."""
    image = os.path.abspath("g-" + form.lower())
    compiled.cc("-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x1000000", "-Wl,--build-id=none", "-Wl,-n",
                "-D" + form, "-o", image, os.path.join(e2e.TOP, "tests", "e2e", "simd_escape.S"))
    p = e2e.kvmprof("run", "-o", form + ".data", "-m", "64M", "--duration", "20", image)
    text = p.out + p.err
    check("begin" in text, "%s: the guest did not begin: %s" % (form, text))
    values = [int(x, 16) for x in re.findall(r"^([0-9a-f]{16})\r?$", text, re.M)]
    check(all(v < RAM for v in values), "%s: the guest read %s" % (form, [hex(v) for v in values]))
    check(p.status in (0, 1) and "crashed" not in p.err, "%s: status %d: %s" % (form, p.status, p.err))
    check(os.path.isdir(form + ".data"), "%s: no profile was written" % form)
    if p.status == 1:
        check("cannot finish it" in p.err, "%s: %s" % (form, p.err))
    return p, values


e2e.need_kvm()
for form in ("READ", "WRITE", "PIVOT"):
    run(form)
p, values = run("PLAIN")
check(p.status == 0 and "done" in p.out + p.err and len(values) == 2 and values[0] == values[1],
      "rsp is not a value like others: %s: %s%s" % (values, p.out, p.err))
e2e.finish()

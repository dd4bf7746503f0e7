#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 6 s
# tests: slow, at most 1800 s: large
# tests: not svm, files
"""many_programs.py KVMPROF SCRATCH [large]: profiles of guests that start programs without end
open, with all their mappings: 70,000 programs, and code made at run time that grows 30,000 times;
large: 10 million samples of 700,000 execs of 100,000 programs, in one GiB of memory."""

import json
import resource

import compiled
import e2e
from e2e import check

GIB = 1 << 30
LARGE = "large" in e2e.EXTRA
SAMPLES, EXECS, PROGRAMS, GROWTHS = (10000000, 700000, 100000, 30000) if LARGE else (280000, 140000, 70000, 30000)


def report(*options):
    p = e2e.kvmprof("report", "-i", "many.data", *options, timeout=1800)
    check(p.status == 0, "report: " + p.err)
    return p


compiled.tool("e2e/mkmany.c")
p = e2e.run("./mkmany", "many.data", SAMPLES, EXECS, PROGRAMS, GROWTHS, timeout=1800)
check(p.status == 0 and not p.err, "mkmany: " + p.err)
p = report("--json", "-n", "0", "--sort", "dso")
memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
r = json.loads(p.out)
rows = {x["dso"]: x["children"] for x in r["symbols"]}
check(r["samples"] == SAMPLES + GROWTHS, "%d samples" % r["samples"])
check(r["mappings_left_out"] == 0, "%d mappings are left out" % r["mappings_left_out"])
check(not any("unknown" in x for x in rows), "addresses in no mapping: %s" % rows.get("[unknown]"))
check(sum(x.startswith("/bin/p") for x in rows) == PROGRAMS, "not all programs are there: %d" % len(rows))
check(rows.get("//anon") == 1000 * GROWTHS, "of code made at run time: %s" % rows.get("//anon"))
# Wherever each process has its libraries, code without a name is one row for one place in its file.
p = report("--json", "-n", "0", "--sort", "dso,sym")
places = sum(x["dso"] == "/lib/l1.so" for x in json.loads(p.out)["symbols"])
check(places == 16, "%d places in a library where 16 were sampled" % places)
check(not LARGE or memory < GIB, "report needs %.0f MiB" % (memory / (1 << 20)))
e2e.finish("%d samples, %d execs, %d programs: report in %.1f s, %.0f MiB" %
           (SAMPLES, EXECS, PROGRAMS, p.seconds, memory / (1 << 20)))

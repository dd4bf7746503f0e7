#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 11 s
# tests: not svm, files
"""What speedscope, in a headless browser, shows of exported profiles: names, totals and
self times of functions, in its own format and pprof's."""

import e2e
import exported
from e2e import check

why = exported.browser_why_not()
if why:
    e2e.skip(why)
package, why = exported.npm_package("speedscope", exported.SPEEDSCOPE)
if not package:
    e2e.skip(why)
shown = 0
for p in exported.make_profiles():
    # speedscope shows one profile at a time, here the one of the first vCPU.
    cpu = min(s.cpu for s in p.samples)
    mine = [s for s in p.samples if s.cpu == cpu]
    for fmt in ("speedscope", "pprof"):
        own, children = exported.Counter(), exported.Counter()
        for s in mine:
            names = s.stack.split(";")
            own[names[-1]] += s.period
            for n in set(names):
                children[n] += s.period
        out = fmt + "-of-" + p.path
        p.export(fmt, "--cpu", str(cpu), out=out)
        table = exported.speedscope_table(package, out)
        for name, weight in p.named(children).items():
            got = table.get(name, (-1, -1))
            check(exported.close(got[0], weight / 1e9) and exported.close(got[1], own[name] / 1e9),
                  "%s: %s: speedscope shows %s for %s, not %.6f and %.6f s" %
                  (p.path, fmt, got, name, weight / 1e9, own[name] / 1e9))
            shown += 1
        total = sum(s for _, s in table.values())
        check(exported.close(total, sum(s.period for s in mine) / 1e9), "%s: %s: %f s in all" % (p.path, fmt, total))
e2e.finish("%d names" % shown)

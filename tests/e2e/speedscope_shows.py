#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What speedscope, in a headless browser, shows of exported profiles: names, totals and
self times of functions, in its own format, pprof's and Chrome's."""

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
    cpus = {s.cpu for s in p.samples}
    # One profile is shown at a time; so the first vCPU's samples alone.
    first = "%d" % min(cpus)
    mine = [s for s in p.samples if s.cpu == min(cpus)]
    own, children = exported.Counter(), exported.Counter()
    for s in mine:
        names = s.stack.split(";")
        own[names[-1]] += s.period
        for n in set(names):
            children[n] += s.period
    # Of a trace speedscope makes a profile for each thread, so there must be but one.
    for fmt in ("speedscope", "pprof", "chrome-trace"):
        if fmt == "chrome-trace" and len({s.comm for s in mine}) > 1:
            continue
        out = fmt + "-of-" + p.path
        p.export(fmt, "--cpu", first, out=out)
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

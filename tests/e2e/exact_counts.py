#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""kvmprof run --engine exact --call-counts and gate --exact: every instruction is counted, the same
each time; the demo guest's leaves have the instructions that their code has; one more system call, a
longer function and one more allocation are named, and nothing else fails.

exact_counts.py KVMPROF SCRATCH [many [N]]: N gates of A against A, 1000 by default."""

import json
import os
import re
import subprocess
import sys

import compiled
import e2e
from e2e import check, say

# subtract, jump: what one turn of exact_init's loop executes.
TURN_INSNS = 2


def find_qemu():
    """Into the environment: this one, whatever the system has."""
    p = subprocess.run([os.path.join(e2e.TOP, "scripts", "fetch-qemu.sh")], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, universal_newlines=True)
    if p.returncode == 3:
        e2e.skip("no QEMU 9.1 or later: " + p.stderr.strip())
    if p.returncode:
        sys.exit("fetch-qemu.sh: " + p.stderr)
    os.environ["KVMPROF_QEMU"] = os.path.join(p.stdout.strip(), "bin", "qemu-system-x86_64")


def count(out, *argv):
    """A profile of exact counts; what the run said."""
    p = e2e.kvmprof("run", "--engine", "exact", "--call-counts", "-q", "-o", out, *argv)
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

def demo():
    said = count("demo.data", "--append", "seconds=1")
    # Of all that QEMU has counted, what it counts too much is blocks that were left early.
    all_of_it = int(re.search(r": (\d+) instructions, each counted", said).group(1))
    counted = int(re.search(r"(\d+) instructions counted, in \d+ stacks", said).group(1))
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
    p = e2e.kvmprof("run", "--engine", "exact", "--call-counts", "--vcpus", "2", "-o", "x")
    check(p.status == 2 and "one vCPU" in p.err, "two vCPUs: " + p.err)
    p = e2e.kvmprof("run", "--call-counts", "-o", "x")
    check(p.status == 2 and "--engine exact" in p.err, "without the engine: " + p.err)
    p = e2e.kvmprof("gate", "--exact", "--base", "demo.data", "demo.data", "--head", "demo.data")
    check(p.status == 2 and "one run" in p.err, "two runs of the base: " + p.err)
    p = e2e.kvmprof("gate", "--base", "demo.data", "--head", "demo.data", "-c",
                    os.path.join(e2e.TOP, "configs", "gate-exact.toml"))
    check(p.status == 2 and "give --exact" in p.err, "exact rules without --exact: " + p.err)
    p = e2e.kvmprof("gate", "--exact", "--base", "demo.data", "--head", "demo.data", "-c",
                    os.path.join(e2e.TOP, "configs", "gate-default.toml"))
    check(p.status == 2 and "several runs" in p.err, "other rules with --exact: " + p.err)


# -- Linux: one thing more ------------------------------------------------------------------------

def variant(name, *defines):
    compiled.cc("-O2", "-I" + e2e.TOP, "-static", "-nostdlib", "-ffreestanding", "-fno-pic", "-no-pie",
                "-fno-stack-protector", "-fcf-protection=none", *defines, "-o", name,
                os.path.join(e2e.TOP, "tests", "e2e", "exact_init.c"))
    e2e.run(sys.executable, os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), name, name + ".cpio")
    count(name + ".data", kernel, "--initrd", name + ".cpio")
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

    rule = gate(base, "ppid.data", 1, "-c", rule_file())["getppid"]
    check(rule["verdict"] == "fail" and rule["result"]["head"] > rule["result"]["base"],
          "a rule for one function: %s" % rule)


def rule_file():
    with open("getppid.toml", "w", encoding="utf-8") as f:
        f.write('[[rule]]\nname = "getppid"\nmetric = "instructions"\n'
                'subtree = "__x64_sys_getppid"\nthreshold = "9 %"\n')
    return "getppid.toml"


def many(n):
    for i in range(n):
        count("many.data", "--append", "seconds=0.05")
        if not i:
            os.rename("many.data", "first.data")
            count("many.data", "--append", "seconds=0.05")
        out = gate("first.data", "many.data", 0)
        check(not any(r["functions"] for r in out.values() if "functions" in r),
              "gate %d: an alarm" % i)
    say("%d gates of A against A: no alarm" % n)


find_qemu()
if e2e.EXTRA and e2e.EXTRA[0] == "many":
    many(int(e2e.EXTRA[1]) if len(e2e.EXTRA) > 1 else 1000)
    e2e.finish()
demo()
annotated()
refused()
kernel = os.path.join(e2e.built_kernel("tiny"), "bzImage")
linux()
e2e.finish()

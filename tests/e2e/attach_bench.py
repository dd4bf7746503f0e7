#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 300 s
# tests: not svm, threads
"""`kvmprof bench --base-vmm COMMAND --head-vmm COMMAND`: each run starts the VMM of its side. A VMM that
starts later, a guest whose function is slower, and a kernel that boots longer are told apart, for
tests/e2e/microvmm.c, QEMU and Linux."""

import json
import os
import shlex
import signal
import subprocess
import time

import e2e
import microvm
import qemu
from e2e import check, say

WORK = "work=100 user_work=200"
RULES = """
[[rule]]
name = "functions"
metric = "symbols"
threshold = "5 %"
min-share = "3 %"

[[rule]]
name = "VMM start"
metric = "time"
phase = "vmm"
threshold = "50 ms"

[[rule]]
name = "KVM set-up"
metric = "time"
phase = "kvm"
threshold = "100 ms"
level = "warn"

[[rule]]
name = "start to end"
metric = "vmm-time"
threshold = "100 ms"
level = "warn"
"""


def microvmm(append):
    return shlex.join(["./microvmm", "--kernel", microvm.DEMO, "--append", append, "--once", "1", "--filter", "cloud-hypervisor"])


def bench(directory, base, head, *argv, options=(), timeout=280):
    return e2e.kvmprof("bench", "--seed", "7", "-q", "-o", directory, "--base-vmm", base, "--head-vmm", head, *argv,
                       "--", *options, timeout=timeout)


def outcomes(p):
    return {x["rule"]: x for x in json.loads(p.out)["rules"]}


def manifest(directory):
    with open(os.path.join(directory, "bench.json"), encoding="utf-8") as f:
        return json.load(f)


def test_vmm():
    """Runs end with their VMM: the head's VMM begins 200 ms later, and its guest has a slower function."""
    image = ("--image", microvm.DEMO)
    late = shlex.join(["sh", "-c", "sleep 0.2; exec " + microvmm(WORK + " slow=left_leaf:500")])
    p = bench("own", microvmm(WORK), late, "--config", "rules.toml", "--format", "json", "--warmup", "0", "-n", "8", options=image)
    if not check(p.status == 1, "a later VMM and a slower function: status %d: %s%s" % (p.status, p.out[:2000], p.err)):
        return
    rule = outcomes(p)
    start = rule["VMM start"]
    say("VMM start: %s" % {k: v for k, v in start.items() if k in ("verdict", "text")})
    check(start["verdict"] == "fail", "the later VMM is not found: %s" % start)
    check(rule["KVM set-up"]["verdict"] != "fail", "KVM set-up fails, too: %s" % rule["KVM set-up"])
    check("left_leaf" in json.dumps(rule["functions"]), "left_leaf is not named: %s" % rule["functions"])
    m = manifest("own")
    check(m["base_vmm"][:2] == ["./microvmm", "--kernel"] and m["head_vmm"][0] == "sh", str(m)[:300])
    facts = e2e.summary("own/head-001")
    check(facts["attach"]["start"]["vmm_ns"] > 2e8, "a run does not begin with its VMM: %s" % facts["attach"]["start"])
    # The kept runs can be judged again, also with the rules of VMMs.
    p = e2e.kvmprof("gate", "--config", os.path.join(e2e.TOP, "configs", "gate-vmm.toml"), "--format", "json",
                    "--base", *["own/base-%03d" % i for i in range(1, 9)], "--head", *["own/head-%03d" % i for i in range(1, 9)])
    check(p.status in (1, 3) and outcomes(p)["VMM start"]["verdict"] == "warn", "gate-vmm.toml: %d %s%s" % (p.status, p.out[:2000], p.err))


def test_qemu():
    """Runs end at a line of the console, with the same VMM on both sides."""
    command = shlex.join(["qemu-system-x86_64", "-display", "none", "-nodefaults", "-serial", "stdio", *qemu.DEMO, "seconds=1"])
    # A guest that has just begun may have had no sample yet on a busy host.
    p = bench("qemu", command, command, "--format", "json", "--warmup", "0", "-n", "2",
              options=("--image", microvm.DEMO, "--until", "console:demo: done"))
    check(p.status in (0, 3), "QEMU: status %d: %s%s" % (p.status, p.out[:2000], p.err))
    check(all(r["end"] == "fine" for r in manifest("qemu")["runs"]), "QEMU: %s" % manifest("qemu")["runs"])
    rule = outcomes(p)
    say("QEMU: %s" % {name: x["verdict"] for name, x in rule.items()})
    check(rule["initcalls"]["verdict"] == "skipped", "the demo guest has no initcalls: %s" % rule["initcalls"])


def test_linux(kernel):
    """The phases of a kernel's boot are compared."""
    command = shlex.join([e2e.KVMPROF, "run", "-q", "--sandbox=off", "-F", "1", "-o", "own.data", "--overwrite", "--no-buildid-cache",
                          "--duration", "60", os.path.join(kernel, "vmlinux")])
    p = bench("linux", command, command, "--format", "json", "--warmup", "0", "-n", "2",
              options=("--samples", "2500"))
    if not check(p.status in (0, 3), "Linux: status %d: %s%s" % (p.status, p.out[:2000], p.err)):
        return
    rule = outcomes(p)
    say("Linux: %s" % {name: x["verdict"] for name, x in rule.items()})
    check(rule["start_kernel"]["verdict"] != "skipped", "start_kernel is not compared: %s" % rule["start_kernel"])


def vmms():
    """PIDs of this test's VMM."""
    return [p for p in filter(str.isdigit, os.listdir("/proc")) if runs("/proc/%s/exe" % p)]


def runs(exe):
    try:
        return os.readlink(exe) == os.path.realpath("microvmm")
    except OSError:
        return False


def test_ends():
    """Neither a time limit nor Ctrl-C leaves a VMM behind, also one that ignores SIGTERM."""
    deaf = shlex.join(["sh", "-c", "trap '' TERM; exec " + microvmm("seconds=600")])
    p = bench("late", deaf, deaf, "--timeout", "2", "--warmup", "0", "-n", "3")
    check(p.status == 1 and "no end after" in p.err, "timeout: %d %s" % (p.status, p.err))
    check(not vmms(), "a VMM is left after --timeout")
    p = subprocess.Popen([e2e.KVMPROF, "bench", "-o", "stop", "--warmup", "0", "--base-vmm", deaf, "--head-vmm", deaf],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not vmms() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1)
    p.send_signal(signal.SIGINT)
    err = p.communicate(timeout=60)[1]
    check(p.returncode == 130, "Ctrl-C: %d %s" % (p.returncode, err))
    check(not vmms(), "a VMM is left after Ctrl-C")


def test_usage():
    for argv, words in ((["--base-vmm", "x"], "the other side is missing: '--head-vmm'"),
                        (["--head-vmm", "x"], "the other side is missing: '--base-vmm'"),
                        (["--base-vmm", ""], "--base-vmm"),
                        (["--base-vmm", "'x", "--head-vmm", "x"], "a quote without an end"),
                        (["--base-vmm", "x", "--head-vmm", "x", "--base", "k"], "a kernel or a VMM"),
                        (["--base-vmm", "x", "--head-vmm", "x", "--engine", "exact"], "--engine exact"),
                        (["--base-vmm", "x", "--head-vmm", "x", "--deterministic"], "--deterministic"),
                        (["--base-vmm", "x", "--head-vmm", "x", "--", "--", "vmm"], "vmm")):
        p = e2e.kvmprof("bench", *argv)
        check(p.status == 2 and p.err.count("\n") == 1 and words in p.err, "bench %s: %d %s" % (argv, p.status, p.err))
    p = bench("none", "./nothing", "./nothing")
    check(p.status == 1 and "cannot execute ./nothing" in p.err, "no VMM: %d %s" % (p.status, p.err))


e2e.need_kvm()
e2e.need_tool("qemu-system-x86_64")
microvm.build()
with open("rules.toml", "w", encoding="utf-8") as f:
    f.write(RULES)
test_usage()
test_vmm()
test_qemu()
test_ends()
test_linux(e2e.built_kernel("tiny"))
e2e.finish("bench of VMMs: microvmm, QEMU and Linux")

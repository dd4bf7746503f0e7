#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 4 s
# tests: svm, at most 120 s
"""What backs the guest's memory: --hugepages and --numa, as the host's own tables say it; and what a run takes beside it."""

import os
import re
import signal

import e2e
from e2e import check, say

MIB = 64
MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ ")
# docs/promises.md: beside the guest's memory, and more of it where KVM interprets ring 0.
BESIDE = 8 << 20
BESIDE_INTERPRETER = 3.2 * 2**20


def backing(pid):
    """Of the mapping that is the guest's RAM: the fields of smaps, and where its pages may come from."""
    found = {}
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            if MAPPING.match(line):
                now = {"at": line.split("-")[0]}
            else:
                key, value = line.split(":", 1)
                now[key] = value.split()
                if key == "Size" and int(now["Size"][0]) == MIB << 10:
                    found = now
    if os.path.exists("/proc/%d/numa_maps" % pid):
        with open("/proc/%d/numa_maps" % pid) as f:
            found["policy"] = dict(line.split()[:2] for line in f).get(found.get("at"))
    return found


def processes(pid):
    """The process and all that descend from it."""
    found = [pid]
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task)) as f:
            for child in f.read().split():
                found += processes(int(child))
    return found


def proportional(pid):
    """The proportional set size of the run's processes in bytes, without the guest's RAM. Each page counts once."""
    total, size = 0, 0
    for process in processes(pid):
        with open("/proc/%d/smaps" % process) as f:
            for line in f:
                words = line.split()
                if words[0] == "Size:":
                    size = int(words[1])
                elif words[0] == "Pss:" and size != MIB << 10:
                    total += int(words[1]) << 10
    return total, len(processes(pid))


def check_beside():
    """The demo guest with a profile: the run, and the process that names its results."""
    boot = e2e.Boot("-m", "%dM" % MIB, "-o", "beside.data", "--append", "seconds=20")
    try:
        if not check(boot.wait_for("demo: start", 60), "no guest: " + boot.err):
            return
        e2e.time.sleep(1)
        total, n = proportional(boot.process.pid)
    finally:
        boot.process.send_signal(signal.SIGINT)
        boot.wait(20)
    limit = BESIDE + ("interprets guest ring 0" in boot.err) * BESIDE_INTERPRETER
    say("%d processes: %.2f MiB beside the guest's memory, of %.1f" % (n, total / 2**20, limit / 2**20))
    check(n >= 2, "a run with a profile is %d processes" % n)
    check(total < limit, "%d bytes beside the guest's memory" % total)


def started(*options):
    """The memory of a guest that runs; None: kvmprof refused, and what it said."""
    boot = e2e.Boot("-m", "%dM" % MIB, "-o", "m.data", "--append", "seconds=20", *options)
    try:
        if not boot.wait_for("demo: start", 60):
            boot.wait(20)
            return None, boot
        return backing(boot.process.pid), boot
    finally:
        boot.process.terminate()
        boot.wait(20)


def refused(boot, text):
    lines = boot.err.strip().split("\n")
    check(boot.status == 1 and len(lines) == 1 and text in lines[0],
          "%s: status %s: %s" % (boot.argv, boot.status, boot.err.strip()))


def main():
    e2e.need_kvm()
    said = []
    transparent = os.path.exists("/sys/kernel/mm/transparent_hugepage/enabled")
    for options, flag in (([], "hg"), (["--hugepages", "off"], "nh"), (["--hugepages", "thp"], "hg")):
        memory, boot = started(*options)
        if not transparent:
            if "thp" in options:
                refused(boot, "this host has no transparent huge pages")
            elif not check(memory is not None, "%s: %s" % (options, boot.err)):
                continue
        elif check(memory, "%s: no mapping of %d MiB: %s" % (options, MIB, boot.err)):
            check(flag in memory["VmFlags"], "%s: flags %s" % (options, memory["VmFlags"]))
            said.append("%s %s KiB huge" % (" ".join(options) or "default", memory["AnonHugePages"][0]))

    memory, boot = started("--hugepages", "2M")
    if memory is None:
        refused(boot, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
        said.append("2M refused")
    else:
        check("ht" in memory["VmFlags"], "--hugepages 2M: flags %s" % memory["VmFlags"])

    memory, boot = started("--numa", "0")
    if memory is None:
        refused(boot, "guest memory cannot be bound to host node 0")
        said.append("node 0 refused")
    elif memory.get("policy"):
        check(memory["policy"] == "bind:0", "--numa 0: policy %s" % memory["policy"])
        said.append("node 0 bound")
    _, boot = started("--numa", "1023")
    refused(boot, "guest memory cannot be bound to host node 1023")
    p = e2e.kvmprof("run", "--hugepages", "3M")
    check(p.status == 2 and "2M, 1G, thp or off" in p.err, "3M: status %d: %s" % (p.status, p.err))
    say("; ".join(said))
    check_beside()
    e2e.finish()


main()

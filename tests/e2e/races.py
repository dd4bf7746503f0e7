#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 2700 s: {tsan}/kvmprof 10
# tests: not svm, files
"""No data race between our threads, as ThreadSanitizer sees it, in runs that use all of them: vCPUs,
consumer, console, control, disks and their polling, networks, shares, the PIT, snapshots, attach.

    races.py KVMPROF SCRATCH PROGRAM [STORM]    PROGRAM: built by `make tsan-program`

STORM: so many seconds of each class of the attacking guest's storms, too. A race that is made for it must
be found by the same options, or nothing here would say anything."""

import ctypes
import glob
import os
import re
import subprocess
import time

import blk_guest
import compiled
import e2e
from e2e import check, say

import villain_host as villain

PROGRAM = e2e.EXTRA[0]
STORM = int(e2e.EXTRA[1]) if e2e.EXTRA[1:] else 0
LOG = os.path.abspath("tsan")
LIMIT = 300
SUPPRESSED = os.path.join(e2e.TOP, "tests", "e2e", "races.supp")
# personality(2), for us and our children: its memory is at fixed places, which random mappings may be in
# the way of.
ADDR_NO_RANDOMIZE = 0x0040000
QUIET = ["--sandbox=off", "--no-buildid-cache"]
RACE = """
#include <pthread.h>
static int shared;
static void *add(void *arg) { for (int i = 0; i < 100000; i++) shared++; return arg; }
int main(void)
{
	pthread_t t;

	pthread_create(&t, 0, add, 0);
	add(0);
	return pthread_join(t, 0);
}
"""


def environment():
    # Reports go to files; the status stays the program's own.
    return dict(os.environ, TSAN_OPTIONS="log_path=%s:exitcode=0:suppressions=%s" % (LOG, SUPPRESSED))


def start(*argv):
    return subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, errors="replace", env=environment())


def reports():
    """What was said of races since the last call, and removed."""
    found = []
    for path in glob.glob(LOG + ".*"):
        with open(path, errors="replace") as f:
            found += re.findall(r"^WARNING: ThreadSanitizer: .*?^SUMMARY: [^\n]*", f.read(), re.M | re.S)
        os.unlink(path)
    return found


def judge(what, process, statuses=(0,)):
    try:
        out = process.communicate(timeout=LIMIT)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        check(False, "%s: no end after %d s" % (what, LIMIT))
        return
    check(process.returncode in statuses, "%s: status %s: %s" % (what, process.returncode, out[-1000:]))
    found = reports()
    check(not found, "%s: %d races, the first:\n%s" % (what, len(found), found[0] if found else ""))
    say("%s: status %d, %d races" % (what, process.returncode, len(found)))
    done.append(what)


def made_race():
    with open("race.c", "w") as f:
        f.write(RACE)
    compiled.cc("-O1", "-g", "-fsanitize=thread", "-o", "race", "race.c", "-pthread")
    p = start("./race")
    out = p.communicate(timeout=LIMIT)[0]
    if "unexpected memory mapping" in out:
        e2e.skip("ThreadSanitizer does not run on this kernel: " + out.strip())
    check(len(reports()) == 1, "a race that was made was not found: status %s, %s" % (p.returncode, out))


def controlled():
    """All that `ctl` can do, while the guest works, and a view of it."""
    p = start(PROGRAM, "run", "-o", "c.data", *QUIET, "--control", "sock", "--append", "seconds=60")
    until = time.monotonic() + 60
    while not os.path.exists("sock") and time.monotonic() < until and p.poll() is None:
        time.sleep(0.05)
    view = subprocess.Popen([e2e.KVMPROF, "ctl", "--control", "sock", "--follow", "status"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for words in (["collect", "on"], ["status"], ["period", "wall", "2ms"], ["disarm", "wall"], ["event", "wall"],
                  ["vcpu", "0", "off"], ["vcpu", "all", "on"], ["max-stack", "3"], ["stack-size", "512"],
                  ["mark", "here"], ["snapshot", "s.data"], ["collect", "off"], ["collect", "on"], ["status"]) * 3:
        e2e.kvmprof("ctl", "--control", "sock", *words)
        time.sleep(0.1)
    q = e2e.kvmprof("ctl", "--control", "sock", "stop")
    check(q.status == 0, "ctl stop: " + q.err)
    judge("control", p)
    view.kill()
    view.wait()


def attached():
    """By ptrace and BPF, to a run of the same build."""
    guest = start(PROGRAM, "run", "-o", "g.data", *QUIET, "--append", "seconds=60")
    time.sleep(3)
    for way in (("--technique", "auto"), ("--technique", "ptrace"), ("-e", "host")):
        judge("attach " + " ".join(way), start(PROGRAM, "attach", guest.pid, *way, "--image",
                                            os.path.join(e2e.BUILD, "guest", "demo.elf"), "--duration", 2,
                                            "--no-buildid-cache", "-o", "a.data"))
    guest.terminate()
    judge("the run that was attached to", guest)


def linux():
    """Two vCPUs, their tasks and programs, and disks, by either transport."""
    kernel = e2e.built_kernel("smp-fp")
    judge("Linux, 2 vCPUs", start(
        PROGRAM, "run", "-o", "l.data", *QUIET, "-m", "256M", "--vcpus", 2, "--off-cpu", "--duration", 60,
        os.path.join(kernel, "vmlinux"), "--initrd", os.path.join(e2e.BUILD, "guest", "worker.cpio"),
        "--append", "worker.seconds=10 panic=-1"))


e2e.need_kvm()
ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
done = []
made_race()
judge("demo", start(PROGRAM, "run", "-o", "d.data", *QUIET, "--append", "seconds=2"))
judge("demo, host", start(PROGRAM, "run", "-e", "host", "-o", "d.data", *QUIET, "--append", "seconds=2 mode=where"))
judge("stat", start(PROGRAM, "stat", "--sandbox=off", "--append", "seconds=1"))
judge("snapshot", start(PROGRAM, "run", "-m", "64M", "-o", "s.data", *QUIET, "--append", "seconds=1", "--snapshot-save",
                        "s.snap", "--snapshot-on", "demo: start"))
judge("restored", start(PROGRAM, "run", "--snapshot", "s.snap", "-o", "r.data", *QUIET))
controlled()
attached()
blk_guest.write_image("disk.img", 8192)
for way in (["--virtio", "mmio"], ["-e", "io"]):
    judge("disk " + " ".join(way), start(PROGRAM, "run", "-o", "b.data", *QUIET, "-m", "64M", "--disk", "disk.img,overlay=over",
                                         "--append", "ms=100 irq=1%s" % (" transport=mmio" if "mmio" in way else ""),
                                         *way, blk_guest.ELF))
linux()
villain.make_files()
os.environ.update(environment())
p, _ = villain.run(PROGRAM, "class=net", "-e", "wall,net,exit", "-o", "n.data", *QUIET)
villain.judge("packets", p.status, p.out, p.err, villain.verdicts(p.out))
found = reports()
check(not found, "packets: %d races, the first:\n%s" % (len(found), found[0] if found else ""))
say("packets: status %d, %d races" % (p.status, len(found)))
done.append("packets")
if STORM:
    for c in villain.CLASSES:
        race = c == "race"
        p, _ = villain.run(PROGRAM, "class=%s race=%d storm=%d" % (c, race, STORM * 1000), "--vcpus", str(1 + race),
                           "-o", "v.data", *QUIET, timeout=STORM * 3 + 240)
        n = villain.judge("storm " + c, p.status, p.out, p.err, villain.verdicts(p.out))
        found = reports()
        check(not found, "storm %s: %d races, the first:\n%s" % (c, len(found), found[0] if found else ""))
        say("storm %s: %d attacks" % (c, n))
        done.append("storm " + c)
e2e.finish("%d runs: no race" % len(done))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 19 s
# tests: slow, at most 1800 s: {asan}/kvmprof
# tests: not svm, host
"""`kvmprof run --engine exact` with a QEMU that the guest has taken over (fake_qemu.c): whatever it writes to the
shared page, and however much to its pipes, the run ends with a line about it, or at a signal, in bounded memory.

    exact_hostile.py KVMPROF SCRATCH [ANOTHER_KVMPROF]

ANOTHER_KVMPROF: of a build with sanitizers, which is used instead."""

import os
import re
import signal
import subprocess
import time

import compiled
import e2e
from e2e import check, say

PROGRAM = e2e.EXTRA[0] if e2e.EXTRA else e2e.KVMPROF
# MiB that a run with a flood may have beside what it has at its start: the backlog's limit is 16.
GROWS_MOST = 100
LIMIT = 60    # seconds, in which a run is sure to have ended by itself: far more than it takes
# Seconds from a signal to the end, of which two are promised; the others are for a busy machine.
END_LIMIT = 10


class Run:
    """kvmprof with the fake QEMU in one of its modes."""

    def __init__(self, mode, *argv, bad="", words="", user=None):
        # Errors are collected in files: a flood must not depend on who reads it.
        self.mode = mode
        self.err_file = open("err", "wb+")
        self.out_file = open("out", "wb+")
        env = dict(os.environ, KVMPROF_QEMU=FAKE)
        env["KVMPROF_PLUGIN"] = os.path.join(e2e.BUILD, "kvmprof-exact.so")
        env["ASAN_OPTIONS"] = "detect_leaks=0"    # it makes system calls of its own at the end
        env["UBSAN_OPTIONS"] = "print_stacktrace=1:halt_on_error=1"
        if mode == "no-version":
            env["FAKE_NO_VERSION"] = "1"
        self.begun = time.monotonic()
        self.process = subprocess.Popen([PROGRAM, "run", "--engine", "exact", "-o", mode + ".data", "--append",
                                         "fake=%s bad=%s %s" % (mode, bad, words)] + list(argv),
                                        stdin=subprocess.DEVNULL, stdout=self.out_file, stderr=self.err_file,
                                        env=env, user=user, group=user, extra_groups=[] if user else None)

    def children(self):
        """PIDs of QEMU."""
        path = "/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)
        try:
            with open(path, encoding="ascii") as f:
                return [int(x) for x in f.read().split()]
        except OSError:
            return []

    def memory(self):
        """KiB of its own."""
        try:
            with open("/proc/%d/status" % self.process.pid, encoding="ascii") as f:
                return int(re.search(r"RssAnon:\s*(\d+)", f.read()).group(1))
        except (OSError, AttributeError):
            return 0

    def end(self, number=None, limit=LIMIT):
        """Waits for it, after a signal. Returns the seconds that took."""
        begun = time.monotonic()
        if number:
            self.process.send_signal(number)
        try:
            self.process.wait(limit)
        except subprocess.TimeoutExpired:
            check(False, "%s: it has not ended %d s after %s" % (self.mode, limit, number or "its start"))
            self.process.kill()
            self.process.wait()
        self.seconds = time.monotonic() - begun
        self.status = self.process.returncode
        for f in (self.err_file, self.out_file):
            f.seek(0)
        self.err = self.err_file.read().decode(errors="replace")
        self.out = self.out_file.read().decode(errors="replace")
        check("Sanitizer" not in self.err and "runtime error" not in self.err, self.mode + ": " + self.err[:3000])
        check(self.status >= 0 or self.status == -(number or 0),
              "%s: ended by signal %d: %s" % (self.mode, -self.status, self.err[-500:]))
        return self.seconds

    def wait_for(self, condition, what):
        end = time.monotonic() + LIMIT
        while self.process.poll() is None and time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.02)
        return check(False, "%s: %s did not come" % (self.mode, what))

    def wait_for_samples(self):
        """Until the guest goes on, and something of it is recorded."""
        begin = time.monotonic()
        return self.wait_for(lambda: self.children() and time.monotonic() > begin + 1, "QEMU")


def ends_with_a_line(mode, bad, *words, argv=()):
    r = Run(mode, *argv, bad=bad)
    r.end()
    lines = [x for x in r.err.split("\n") if x.startswith("kvmprof: QEMU")]
    check(r.status == 1 and any(all(w in x for w in words) for x in lines),
          "%s %s: status %d: %s" % (mode, bad, r.status, r.err[-800:]))
    say("%s %s: ended by itself after %.2f s" % (mode, bad or "", r.seconds))


def values():
    """What can't be, each once, behind 50 samples that are right."""
    for bad in ("reached", "reached-most", "at", "at-most", "ahead", "off"):
        ends_with_a_line("bad", bad, "cannot be", argv=("--mark-at", "demo_main"))
    # The demo has one place here: 2 is none, 3 is one behind the table of breakpoints.
    for bad in ("2", "3", "4", "201", "4294967295"):
        ends_with_a_line("race", bad, "place " + bad, argv=("--mark-at", "demo_main"))


def goes_on(mode, *argv, bad=""):
    """Nothing of it is an error: samples are recorded until a signal ends the run."""
    r = Run(mode, *argv, bad=bad)
    r.wait_for_samples()
    r.end(signal.SIGTERM, END_LIMIT)
    check(r.status == 0 and re.search(r"kvmprof: [1-9]\d* samples", r.err),
          "%s: status %d: %s" % (mode, r.status, r.err[-800:]))
    say("%s: %.2f s from SIGTERM to the end" % (mode, r.seconds))


def churn():
    """Every word of the page changes all the time: either it is seen as what can't be, or it is a sample."""
    for _ in range(5):
        r = Run("churn", "--mark-at", "demo_main")
        r.end(limit=LIMIT)
        check(r.status == 1 and "cannot be" in r.err, "churn: status %d: %s" % (r.status, r.err[-800:]))


def floods():
    for mode, words in (("console", "console endlessly"), ("monitor", "monitor endlessly")):
        r, most, first = Run(mode), 0, 0
        while r.process.poll() is None and time.monotonic() < r.begun + LIMIT:
            most = max(most, r.memory())
            first = first or most
            time.sleep(0.02)
        r.end()
        check(r.status == 1 and words in r.err, "%s: status %d: %s" % (mode, r.status, r.err[-500:]))
        check(most - first < GROWS_MOST << 10, "%s: it grew by %d KiB" % (mode, most - first))
        say("%s: it grew by %d KiB until it ended" % (mode, most - first))
    # A signal in the middle of one.
    for mode in ("console", "stderr"):
        r = Run(mode)
        r.wait_for(r.children, "QEMU")
        time.sleep(0.05)
        r.end(signal.SIGTERM, END_LIMIT)
        say("%s: %.2f s from SIGTERM to the end" % (mode, r.seconds))


def peers():
    """It does nothing at all: a signal ends the run, and QEMU with it."""
    for mode, argv in (("no-version", ()), ("not-ready", ()), ("not-ready-flood", ()), ("silent", ()),
                       ("stops", ()), ("closes", ()), ("samples", ()),
                       ("counts", ("--call-counts",))):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGTERM and mode not in ("not-ready", "silent"):
                continue
            r = Run(mode, *argv, bad="1")
            r.wait_for(r.children, "QEMU")
            time.sleep(0.5)
            children = r.children()
            if mode == "stops":
                os.kill(children[0], signal.SIGSTOP)
                time.sleep(0.1)
            r.end(number, END_LIMIT)
            say("%s: %.2f s from %s to the end, status %d" % (mode, r.seconds, number.name, r.status))
            time.sleep(0.2)
            for pid in children:
                check(not alive(pid), "%s: QEMU is still there" % mode)
    # Without a signal: it ends by itself.
    for mode, word in (("dies", "ended by signal 4"), ("closes", "closed its connection"), ("tokens", "cannot be")):
        r = Run(mode)
        r.end()
        check(r.status == 1 and word in r.err, "%s: status %d: %s" % (mode, r.status, r.err[-500:]))


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def sealed():
    r = Run("truncate")
    r.wait_for_samples()
    r.end(signal.SIGTERM, END_LIMIT)
    check("not cut" in r.out and r.status == 0, "truncate: status %d: %s%s" % (r.status, r.out[-200:], r.err[-500:]))


def unprivileged():
    """A user with nothing but this directory; None: nobody but root gets here."""
    uid = 12345
    os.mkdir("of-user")
    os.chown("of-user", uid, uid)
    p = subprocess.run([PROGRAM, "--version"], user=uid, group=uid, extra_groups=[], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False, cwd="of-user")
    return uid if p.returncode == 0 else None


def confined(user=None):
    """As root, whose files and processes it must not reach, and as somebody else."""
    here = os.getcwd()
    if user:
        os.chdir("of-user")
    try:
        with open("secret", "w", encoding="ascii") as f:
            f.write("secret\n")
        before = os.stat("secret")
        os.chmod("secret", 0o644)
        if user:
            os.chown("secret", user, user)
        r = Run("tries", words="pid=%d file=%s" % (os.getpid(), os.path.abspath("secret")), user=user)
        r.wait_for(lambda: "told all" in read("out"), "its report")
        r.end(signal.SIGTERM, END_LIMIT)
        with open("secret", encoding="ascii") as f:
            check(f.read() == "secret\n" and os.stat("secret").st_mtime == before.st_mtime, "the file has changed")
        check(not os.path.exists("made"), "it has made a file")
    finally:
        os.chdir(here)
    told = [x.rstrip("\r") for x in r.out.split("\n") if ": " in x and not x.startswith("kvmprof")]
    for line in told:
        say("    " + line)
    possible = {x.rsplit(": ", 1)[0] for x in told if x.endswith(": POSSIBLE")}
    check(len(told) >= 15, "the report of what it can do: %s %s" % (r.out[-1500:], r.err[-500:]))
    check(not possible, "it can: %s" % possible)
    has = [int(x.split()[1]) for x in r.out.split("\n") if x.startswith("has ")]
    check(has and all(10 <= fd < 20 for fd in has), "its descriptors: %s" % has)
    check("less confined" not in r.err, r.err[:300])


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


FAKE = os.path.abspath("fake_qemu")
compiled.cc("-std=gnu11", "-O1", "-static", "-pthread", "-I", e2e.TOP, "-o", "fake_qemu",
            os.path.join(e2e.TOP, "tests", "e2e", "fake_qemu.c"))
confined()
if os.getuid() == 0:
    confined(unprivileged())
values()
churn()
goes_on("samples", "--mark-at", "demo_main")
goes_on("regs")
sealed()
floods()
peers()
e2e.finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 19 s
# tests: not svm, threads
"""Standard output that nobody reads must not stop a run, and one that is read slowly loses nothing.

A ring that is full, and the words in place of what was dropped: tests/unit/profile/record/console/test_console.c."""

import fcntl
import re
import signal
import subprocess
import threading
import time

import e2e
from e2e import check, say

FOREVER = "mode=flood seconds=600"
LINE = 64
F_SETPIPE_SZ = 1031


class Stalled:
    """`kvmprof run ... | reader` with a reader that begins when it is told to, if ever."""

    def __init__(self, *argv):
        self.process = subprocess.Popen([e2e.KVMPROF, "run"] + list(argv), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Less than a pipe holds otherwise: it is full soon on a slow host, too.
        fcntl.fcntl(self.process.stdout.fileno(), F_SETPIPE_SZ, 16384)
        self.err = ""
        self.out = b""
        self.thread = threading.Thread(target=self.read_errors, daemon=True)
        self.thread.start()

    def read_errors(self):
        self.err = self.process.stderr.read().decode(errors="replace")

    def read(self, pause=0.0):
        """All of the output, a piece at a time."""
        while True:
            piece = self.process.stdout.read1(4096)
            if not piece:
                return
            self.out += piece
            time.sleep(pause)

    def wait(self, what, timeout):
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            check(False, "%s: it goes on after %d s" % (what, timeout))
            self.process.kill()
            self.process.wait()
        self.thread.join(10)
        return self.process.returncode


def lost(err):
    m = re.search(r"(\d+) bytes of the console were lost", err)
    return int(m.group(1)) if m else 0


def complete(path):
    p = e2e.kvmprof("report", "--json", "-i", path)
    check(p.status == 0 and '"partial":false' in p.out.replace(" ", ""), "%s: %s" % (path, p.err))


def numbers(out):
    """The numbers of whole lines, in order."""
    return [int(m, 16) for m in re.findall(rb"^flood ([0-9a-f]{8})\.{49}$", out, re.M)]


def duration_ends_it():
    s = Stalled("--append", FOREVER, "--duration", "2", "-o", "duration.data")
    status = s.wait("--duration", 60)
    check(status == 0, "--duration: status %d: %s" % (status, s.err))
    check("duration reached" in s.err, "--duration: no word about it: " + s.err)
    check(lost(s.err) > 0, "--duration: no word about what was lost: " + s.err)
    complete("duration.data")
    s.read()
    got = numbers(s.out)
    check(got and got == list(range(len(got))), "the output's first part is not whole")
    say("--duration 2: %d lines came through, %d bytes lost" % (len(got), lost(s.err)))


def signal_ends_it(number):
    s = Stalled("--append", FOREVER, "-o", "signal.data")
    time.sleep(3)
    check(s.process.poll() is None, "signal %d: it ended before: %s" % (number, s.err))
    s.process.send_signal(number)
    status = s.wait("signal %d" % number, 60)
    check(status == 0, "signal %d: status %d: %s" % (number, status, s.err))
    check("interrupted" in s.err, "signal %d: no word about it: %s" % (number, s.err))
    complete("signal.data")


def slow_reader_loses_nothing():
    """Several times what a pipe holds, read in small pieces with pauses."""
    n = 64 << 10
    s = Stalled("--append", "mode=flood bytes=%d" % n, "-o", "slow.data")
    s.read(pause=0.1)
    status = s.wait("a slow reader", 60)
    check(status == 0, "a slow reader: status %d: %s" % (status, s.err))
    check(not lost(s.err) and b"[kvmprof:" not in s.out, "a slow reader lost bytes: " + s.err)
    got = numbers(s.out)
    check(got == list(range(n // LINE)), "a slow reader got %d lines of %d" % (len(got), n // LINE))


def interrupted_while_it_waits():
    """The guest has ended by itself, the output was not read: a signal ends that as well."""
    s = Stalled("--append", "mode=flood bytes=%d" % (48 << 10), "-o", "waits.data")
    time.sleep(3)
    check(s.process.poll() is None, "it did not wait for its reader: " + s.err)
    s.process.send_signal(signal.SIGTERM)
    status = s.wait("SIGTERM at the end", 30)
    check(status == 0, "SIGTERM at the end: status %d: %s" % (status, s.err))
    check(lost(s.err) > 0, "SIGTERM at the end: no word about what was lost: " + s.err)
    complete("waits.data")


e2e.need_kvm()
duration_ends_it()
signal_ends_it(signal.SIGTERM)
signal_ends_it(signal.SIGINT)
slow_reader_loses_nothing()
interrupted_while_it_waits()
e2e.finish()

# SPDX-License-Identifier: GPL-2.0-or-later
"""A real QEMU with its console in a file."""

import os
import socket
import subprocess
import time

import e2e
from e2e import check

# The demo guest under KVM, with what it asks for behind -append.
DEMO = ["-accel", "kvm", "-cpu", "host,-arch-capabilities", "-M", "microvm,acpi=off", "-m", "128",
        "-kernel", os.path.join(e2e.BUILD, "guest", "demo.elf"), "-append"]


def threads(pid):
    """State, tracer and processor time (ns) of each thread of a machine."""
    found = []
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/status" % (pid, tid), encoding="ascii", errors="replace") as f:
                s = dict(line.split(":", 1) for line in f if ":" in line)
            with open("/proc/%d/task/%s/schedstat" % (pid, tid), encoding="ascii") as f:
                found.append((s["State"].split()[0], int(s["TracerPid"]), int(f.read().split()[0])))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def goes_on(pid, what):
    """None of its threads is stopped or traced, and it gets processor time."""
    before, until = sum(t[2] for t in threads(pid)), time.monotonic() + 20
    while time.monotonic() < until:
        now = threads(pid)
        if all(state not in "tT" and not tracer for state, tracer, _ in now) and sum(t[2] for t in now) > before:
            return True
        time.sleep(0.01)
    return check(False, "%s: the machine stands: %s" % (what, now))


# A guest that resets ends its machine, unless a test empties this list.
NO_REBOOT = ["-no-reboot"]


class Qemu:
    def __init__(self, name, *args):
        self.out = name + ".console"
        if os.path.exists(self.out):  # an earlier machine's
            os.unlink(self.out)
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-display", "none", "-nodefaults", *NO_REBOOT, *self.serial(name), *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.pid = self.process.pid

    def serial(self, _):
        return ["-serial", "file:" + self.out]

    @classmethod
    def with_stub_of(cls, name, *args):
        """A machine, and where its gdbstub is."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            stub = "127.0.0.1:%d" % s.getsockname()[1]
        return cls(name, *args, "-gdb", "tcp:" + stub), stub

    @classmethod
    def with_stub(cls, name):
        """The demo guest for an hour, and where its gdbstub is."""
        q, stub = cls.with_stub_of(name, *DEMO, "seconds=3600")
        q.wait_for("demo: start", 60)
        return q, stub

    def console(self):
        try:
            with open(self.out, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def wait_for(self, text, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if text in self.console():
                return True
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        return check(False, "no '%s' on the console:\n%s" % (text, self.console()[-2000:]))

    def end(self):
        self.process.kill()
        self.process.communicate()

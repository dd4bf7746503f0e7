# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts with SVM or VMX for tests, emulated: scripts/emulated-host.py.

    host = emulated.Host()                  # SVM; emulated.Host("--vmx")
    done = host.run("kvmprof check")        # a boot: done.status, done.out
    all = host.steps({"check": "kvmprof check", "stat": "..."})     # one boot for all
    host.out                                # where what they left in /out is then

Each boot is a new host: nothing is left of the one before. With SVM nothing but what is run
counts for its time, so that it can be compared with figures of an earlier run.
"""

import os
import re
import subprocess
from collections import namedtuple

import e2e

Done = namedtuple("Done", "status out")

# QEMU's CPU does not stop at the breakpoints of an SVM guest: VMRUN loads DR7, but nothing
# looks at it.
TCG_MODEL = "QEMU TCG CPU"


def breakpoints_fire():
    """May a guest of this host be stopped by its hardware breakpoints?"""
    with open("/proc/cpuinfo") as f:
        return TCG_MODEL not in f.read()


class Host:
    def __init__(self, *options, limit=60):
        self.options = options
        self.limit = limit
        self.out = os.path.abspath("host-out")
        if not e2e.shutil.which("qemu-system-x86_64") and "--vmx" not in options:
            e2e.skip("qemu-system-x86_64 is not installed")
        p = self.call("--prepare", "-")
        if p.returncode:
            e2e.skip(p.stderr.strip().split("\n")[-1])

    def call(self, *argv, text=""):
        return subprocess.run([os.path.join(e2e.TOP, "scripts", "emulated-host.py"),
                               "--kvmprof", e2e.KVMPROF, *self.options, *argv],
                              input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, errors="replace")

    def run(self, commands, *options, limit=None):
        e2e.shutil.rmtree(self.out, ignore_errors=True)
        p = self.call("--limit", str(limit or self.limit), "--out", self.out, *options, "-",
                      text=commands)
        if p.returncode == 125:
            e2e.say("the host's console:\n" + p.stderr)
            e2e.check(False, "the host did not come to the end of: " + commands)
            e2e.finish()
        return Done(p.returncode, p.stdout)

    def steps(self, commands, *options, limit=None):
        """A dictionary: each in a shell of its own, in order, whatever became of those before."""
        lines = []
        for name, text in commands.items():
            lines += ["echo '<<begin %s>>'" % name, "(", text, ")", "echo \"<<end %s $?>>\"" % name]
        done = self.run("\n".join(lines) + "\n", *options, limit=limit)
        found = {}
        for name in commands:
            m = re.search(r"^<<begin %s>>\n(.*?)<<end %s (\d+)>>$" % (name, name), done.out,
                          re.M | re.S)
            found[name] = Done(int(m[2]), m[1]) if m else Done(-1, "")
            if not m:
                e2e.check(False, "no end of step %s in:\n%s" % (name, done.out))
        return found

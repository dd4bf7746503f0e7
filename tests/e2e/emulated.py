# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts with SVM or VMX for tests, emulated: scripts/emulated-host.py.

    host = emulated.Host()                  # SVM; emulated.Host("--vmx")
    done = host.run("kvmprof check")        # a boot: done.status, done.out
    all = host.steps({"check": "kvmprof check", "stat": "..."})     # one boot for all
    host.out                                # where what they left in /out is then
    boot = emulated.Boot(image, "--initrd", ram_disk, "-o", "x.data").wait(0)

Each boot is a new host: nothing is left of the one before. With SVM nothing but what is run
counts for its time, so that it can be compared with figures of an earlier run.
"""

import os
import re
import shlex
import subprocess
import threading
import time
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


class Follower:
    """Calls tell(line) for each line that comes to be in a file; tell None: does nothing."""

    def __init__(self, path, tell):
        self.path, self.tell = path, tell
        self.done = threading.Event()
        self.rest = ""
        self.thread = threading.Thread(target=self.follow, daemon=True)

    def read(self, f):
        lines = (self.rest + f.read()).replace("\r", "").split("\n")
        self.rest = lines.pop()
        for line in lines:
            self.tell(line)

    def follow(self):
        with open(self.path, errors="replace") as f:
            while not self.done.wait(0.5):
                self.read(f)
            self.read(f)

    def __enter__(self):
        if self.tell:
            open(self.path, "w").close()
            self.thread.start()

    def __exit__(self, *_):
        self.done.set()
        if self.tell:
            self.thread.join()


def step_script(commands):
    lines = []
    for name, text in commands.items():
        lines += ["echo '<<begin %s>>'" % name, "(", text, ")", "echo \"<<end %s $?>>\"" % name]
    return "\n".join(lines) + "\n"


def step_results(commands, out):
    found = {}
    for name in commands:
        m = re.search(r"^<<begin %s>>\n(.*?)<<end %s (\d+)>>$" % (name, name), out, re.M | re.S)
        found[name] = Done(int(m[2]), m[1]) if m else Done(-1, "")
        if not m:
            e2e.check(False, "no end of step %s in:\n%s" % (name, out))
    return found


class Host:
    def __init__(self, *options, limit=60, needed=True):
        """needed: without it the test is skipped; else self.lacks says why there is none."""
        self.options = options
        self.name = "VMX (Bochs)" if "--vmx" in options else "SVM (QEMU's TCG)"
        self.limit = limit
        self.out = os.path.abspath("host-out")
        p = self.call("--prepare", "-")
        self.lacks = p.stderr.strip().split("\n")[-1] if p.returncode else None
        if self.lacks and needed:
            e2e.skip(self.lacks)
        self.qemu = p.stdout.strip()    # which one; nothing for VMX

    def call(self, *argv, text=""):
        return subprocess.run([os.path.join(e2e.TOP, "scripts", "emulated-host.py"),
                               "--kvmprof", e2e.KVMPROF, *self.options, *argv],
                              input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, errors="replace")

    def run(self, commands, *options, limit=None, progress=None):
        """progress(line) is called, on another thread, for what commands write to /dev/ttyS2."""
        e2e.shutil.rmtree(self.out, ignore_errors=True)
        if progress:
            options += ("--progress", os.path.abspath("progress"))
        with Follower(os.path.abspath("progress"), progress):
            p = self.call("--limit", str(limit or self.limit), "--out", self.out, *options, "-",
                          text=commands)
        if p.returncode == 125:
            e2e.say("the host's console:\n" + p.stderr)
            e2e.check(False, "the host did not come to the end of: " + commands)
            e2e.finish()
        return Done(p.returncode, p.stdout)

    def steps(self, commands, *options, limit=None):
        """A dictionary: each in a shell of its own, in order, whatever became of those before."""
        return step_results(commands, self.run(step_script(commands), *options, limit=limit).out)


class Boot:
    """A Linux by `kvmprof run` on an SVM host of its own, with the members of e2e.Boot once it has ended.

    The profile is where -o says, the kernel and the RAM disk are copied there."""

    def __init__(self, image, *argv):
        self.argv, self.files, self.out = [], ["--file", "k=" + image], None
        values = iter(str(a) for a in argv)
        for a in values:
            self.argv.append(a)
            if a == "--initrd":
                self.files += ["--file", "i=" + os.path.abspath(next(values))]
                self.argv.append("/i")
            elif a == "-o":
                self.out = next(values)
                self.argv.append("/tmp/" + self.out)
        self.host = Host()
        self.lines = []    # (seconds, text)
        self.start = time.monotonic()

    def heard(self, line):
        self.lines.append((time.monotonic() - self.start, line))

    def wait(self, _):
        run = " ".join(shlex.quote(a) for a in ["kvmprof", "run", "/k", *self.argv])
        done = self.host.run("%s 2>&1 >/dev/ttyS2; s=$?; cp -r /tmp/%s $HOME/.debug /out; exit $s" % (run, self.out),
                             *self.files, "--memory", "2048", limit=300, progress=self.heard)
        self.seconds = time.monotonic() - self.start
        self.status, self.err = done.status, done.out
        # The profile, and perf's build-id cache, in which it finds the guest's programs.
        for name, place in ((self.out, self.out), (".debug", os.path.join(os.environ["HOME"], ".debug"))):
            if os.path.isdir(os.path.join(self.host.out, name)):
                e2e.shutil.rmtree(place, ignore_errors=True)
                e2e.shutil.move(os.path.join(self.host.out, name), place)
        return self

    text, seen = e2e.Boot.text, e2e.Boot.seen


class Here:
    """This machine in place of an emulated host: /out and /tmp are directories of the test."""

    name = "this machine's KVM"

    def __init__(self):
        self.out = os.path.abspath("host-out")

    def steps(self, commands, *options):
        place = {"/out/": self.out + "/", "/tmp/": os.path.abspath("host-tmp") + "/"}
        for d in place.values():
            e2e.shutil.rmtree(d, ignore_errors=True)
            os.mkdir(d)
        for path, source in (o.split("=", 1) for o in options if "=" in o):
            place["/" + path] = source
        # One pass: what is put in is not looked at again.
        script = re.sub(r"(?<![\w/])(%s)" % "|".join(map(re.escape, place)), lambda m: place[m[1]],
                        step_script(commands))
        env = dict(os.environ, PATH=os.path.dirname(e2e.KVMPROF) + ":" + os.environ["PATH"])
        p = subprocess.run(["sh"], input=script, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           universal_newlines=True, errors="replace")
        return step_results(commands, p.stdout)

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 10 s
# tests: not svm, files
"""private_files.py KVMPROF SCRATCH: nobody but its owner can read a profile, whatever the umask; and a run closes the
descriptors that it inherits, but for those that its command line names, and has no machine but its guest's."""

import os
import stat
import subprocess

import e2e
from e2e import check, say

RUN = ("run", "-q", "--no-summary", "--append", "seconds=2")


def open_files(pid):
    """What the descriptors of a process lead to."""
    found = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            found.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except OSError:
            pass  # closed meanwhile
    return found


def check_modes():
    old = os.umask(0)
    for options in (("-o", "a.data"), ("--single-file", "-o", "b.data")):
        p = e2e.kvmprof(*RUN, *options)
        check(p.status == 0, "%s: %d %s" % (options, p.status, p.err))
    # Profiles that are requested meanwhile, and a snapshot: the profile of one run is a directory, that of the other one a file.
    for name, options in (("e.data", ()), ("f.data", ("--single-file",))):
        boot = e2e.Boot("--control", "s", "-o", name, *options, "--snapshot-save", name + ".snap", "--snapshot-on", "^demo: start",
                        "--snapshot-continue", "--append", "seconds=60")
        check(boot.wait_for("demo: start", 60), "no guest: " + boot.err)
        p = e2e.kvmprof("ctl", "--control", "s", "snapshot", "late." + name)
        check(p.status == 0, "ctl snapshot: " + p.err)
        boot.process.terminate()
        boot.wait(60)
        check(boot.status == 0 and os.path.exists(name + ".snap"), "%s: %d %s" % (name, boot.status, boot.err))
    os.umask(old)
    check(not e2e.leftovers(), "left: %s" % e2e.leftovers())
    tops = ["a.data", "b.data", "e.data", "f.data", "late.e.data", "late.f.data", "e.data.snap", "f.data.snap"]
    paths = tops + [os.path.join(top, name) for t in tops for top, dirs, names in os.walk(t) for name in dirs + names]
    for path in paths:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        check(mode & 0o077 == 0, "%s has mode %o" % (path, mode))
    say("%d files and directories, none for others" % len(paths))


def check_descriptors():
    """One descriptor in front of the named one, one behind it, and one far away."""
    names = {n: os.path.abspath("inherited-%d" % n) for n in (7, 11, 500)}
    files = []
    for number, name in names.items():
        with open(name, "w", encoding="ascii") as f:
            f.write("secret\n")
            os.dup2(f.fileno(), number)
            os.set_inheritable(number, True)
            files.append(number)
    kernel = os.open(os.path.join(e2e.BUILD, "guest", "demo.elf"), os.O_RDONLY)
    os.dup2(kernel, 9)
    p = subprocess.Popen([e2e.KVMPROF, "run", "/dev/fd/9", "-q", "--no-summary", "--append", "seconds=3", "-o", "c.data"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=files + [9])
    seen = set()
    while p.poll() is None:
        now = open_files(p.pid) if os.path.exists("/proc/%d/fd" % p.pid) else set()
        if "/dev/kvm" in now:
            seen |= now
    said = p.communicate()[0].decode()
    check(p.returncode == 0, "a kernel by its descriptor: %d %s" % (p.returncode, said))
    check("/dev/kvm" in seen, "the run was not seen at work: %s" % seen)
    for name in names.values():
        check(name not in seen, "%s was open during the run" % name)
    for fd in files + [9, kernel]:
        os.close(fd)


def check_machines():
    """The guest that looked for this host's quirks is gone when the first line of the real one is there."""
    p = subprocess.Popen([e2e.KVMPROF, "run", "--no-summary", "--append", "seconds=2", "-o", "d.data"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdout.readline()
    found = []
    for fd in os.listdir("/proc/%d/fd" % p.pid):
        try:
            found.append(os.readlink("/proc/%d/fd/%s" % (p.pid, fd)))
        except OSError:
            pass
    p.communicate()
    check(p.returncode == 0, "status %d" % p.returncode)
    # Where KVM refuses instructions, each vCPU has a machine that runs them (vmm/pvm).
    more = e2e.summary("d.data")["host"]["refuses_insns"]
    check(found.count("anon_inode:kvm-vm") == 1 + more, "machines: %s" % found)
    check(sum(name.startswith("anon_inode:kvm-vcpu:") for name in found) == 1 + more, "vCPUs: %s" % found)


e2e.need_kvm()
check_modes()
check_machines()
check_descriptors()
e2e.finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 4 s
# tests: not svm, disk
"""other_user.py KVMPROF SCRATCH: a run of root's becomes another user before its guest runs, and its profile is root's."""

import os
import subprocess
import sys
import time

import compiled
import e2e
from e2e import check, say

DYNAMIC = range(61184, 65520)
READ_SEARCH = 1 << 2


def status_of(pid):
    with open("/proc/%s/status" % pid) as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return f.read().split()


def one_owner(top):
    """The owners of a file, or of all in a directory."""
    paths = [top] + [os.path.join(at, name) for at, dirs, names in os.walk(top) for name in dirs + names]
    return {(os.lstat(p).st_uid, os.lstat(p).st_gid) for p in paths}


def in_run(sudo, options, users, capabilities=READ_SEARCH):
    """Starts a run, returns it with the number of its user once its guest has said something."""
    for name in ("SUDO_UID", "SUDO_GID"):
        os.environ.pop(name, None)
    os.environ.update(sudo)
    boot = e2e.Boot(*options, "--append", "seconds=60")
    if not check(boot.wait_for("demo: start", 60), "no guest: " + boot.err):
        return boot, None
    pid = boot.process.pid
    for task in os.listdir("/proc/%d/task" % pid):
        s = status_of("%d/task/%s" % (pid, task))
        if s["Name"].startswith("kvm-"):    # the kernel's own
            continue
        ids = [set(s[k].split()) for k in ("Uid", "Gid")]
        check(all(len(x) == 1 for x in ids) and int(s["Uid"].split()[0]) in users, "%s is %s" % (s["Name"], s["Uid"]))
        check(s["Groups"].split() == s["Gid"].split()[:1] or 0 in users, "groups of %s: %s" % (s["Name"], s["Groups"]))
        check(int(s["CapPrm"], 16) & ~capabilities == 0, "%s has capabilities %s" % (s["Name"], s["CapPrm"]))
    # Nobody but root may trace it, or read its memory.
    check(os.stat("/proc/%d/mem" % pid).st_uid == 0, "other processes of its user may trace it")
    return boot, int(status_of(pid)["Uid"].split()[0])


def profiles():
    for n, (sudo, users) in enumerate((({}, DYNAMIC), ({"SUDO_UID": "1234", "SUDO_GID": "2345"}, (1234,)))):
        for kind in ((), ("--single-file",)):
            name = "p%d%s.data" % (n, "s" if kind else "")
            boot, user = in_run(sudo, ("-o", name, *kind), users)
            tmp = "%s.tmp-%d" % (name, boot.process.pid)
            own = (user, int(sudo.get("SUDO_GID", user)))
            # perf reads a file that is root's, also after a crash.
            check(one_owner(tmp) == ({(0, 0)} if kind else {own, (0, 0)}) and one_owner(tmp if kind else os.path.join(tmp, "data")) == {(0, 0)},
                  "%s: owners %s" % (tmp, one_owner(tmp)))
            keepers = [c for c in children(boot.process.pid) if status_of(c)["Name"] == "keeper"]
            check(len(keepers) == 1 and status_of(keepers[0])["Uid"].split() == ["0"] * 4, "keepers: %s" % keepers)
            boot.process.terminate()
            boot.wait(60)
            check(boot.status == 0 and one_owner(name) == {(0, 0)}, "status %d, owners %s: %s" % (boot.status, one_owner(name), boot.err))
            check(e2e.kvmprof("report", "-i", name, "-n", "3").status == 0, name)
    check(one_owner(os.path.join(os.environ["HOME"], ".debug")) == {(0, 0)}, "the build-id cache has other owners")
    left = [n for n in os.listdir(os.path.join(os.environ["HOME"], ".debug")) if n.startswith(".kvmprof")]
    check(not left and not [n for n in os.listdir(".") if ".tmp-" in n], "left: %s" % left)


def other_runs():
    with open("pipe.data", "wb") as out:
        p = subprocess.run([e2e.KVMPROF, "run", "-q", "-o", "-", "--append", "seconds=1"], stdout=out, stderr=subprocess.PIPE, timeout=120,
                           check=False)
    check(p.returncode == 0 and os.path.getsize("pipe.data") > 1000, "-o -: %d %s" % (p.returncode, p.stderr))
    boot, _ = in_run({}, ("--no-output",), DYNAMIC)
    boot.process.terminate()
    boot.wait(60)
    check(boot.status == 0, "--no-output: %d %s" % (boot.status, boot.err))
    p = e2e.kvmprof("run", "-q", "-o", "off.data", "--sandbox=off", "--append", "seconds=1")
    check(p.status == 0 and one_owner("off.data") == {(0, 0)}, "--sandbox=off: " + p.err)


def late_results():
    """What is written while the guest runs, at places of root's: the keeper names it."""
    os.makedirs("sub", exist_ok=True)
    for sudo, users in (({}, DYNAMIC), ({"SUDO_UID": "1234"}, (1234,))):
        boot, _ = in_run(sudo, ("-o", "c.data", "--control", "s", "--snapshot-save", "c.snap", "--snapshot-on", "^demo: start",
                                "--snapshot-continue"), users)
        end = time.monotonic() + 30
        while not os.path.exists("c.snap") and time.monotonic() < end:
            time.sleep(0.05)
        check(os.path.exists("c.snap") and one_owner("c.snap") == {(0, 0)}, "no snapshot: " + boot.err)
        for name in ("late.data", "late.data", "sub/late.data"):
            p = e2e.kvmprof("ctl", "--control", "s", "snapshot", name)
            check(p.status == 0 and one_owner(name) == {(0, 0)}, "ctl snapshot: %s" % p.err)
            check(e2e.kvmprof("report", "-i", name, "-n", "3").status == 0, name)
        debug = os.path.join(os.environ["HOME"], ".debug")
        check(any(f == "elf" for _, _, files in os.walk(debug) for f in files), "its programs are not in the cache yet")
        check(one_owner("s") == {(0, 0)} and os.stat("s").st_mode & 0o777 == 0o600, "the control socket is another user's")
        boot.process.terminate()
        boot.wait(60)
        check(boot.status == 0 and not os.path.exists("s") and not e2e.leftovers(), "%d: %s %s" % (boot.status, e2e.leftovers(), boot.err))
        check("saved c.snap" in boot.err, "the snapshot is not reported: " + boot.err)
        p = e2e.kvmprof("run", "-q", "--snapshot", "c.snap", "-o", "on.data", "--duration", "0.1")
        check(p.status == 0, "from the snapshot: " + p.err)
        for name in ("c.snap", "sub/late.data"):
            (e2e.shutil.rmtree if os.path.isdir(name) else os.unlink)(name)


def empty_caches():
    """A run that adds nothing to the build-id cache leaves none behind."""
    home = os.environ["HOME"]
    os.environ["HOME"] = os.path.abspath("empty")
    os.makedirs(os.environ["HOME"])
    compiled.cc("-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x1000000", "-Wl,--build-id=none", "-Wl,-n", "-DNONE", "-o", "guest.elf",
                os.path.join(e2e.TOP, "tests", "e2e", "exit_guest.S"))
    p = e2e.kvmprof("run", "-q", "-o", "empty.data", "guest.elf")
    check(os.path.isdir("empty.data") and os.listdir(os.environ["HOME"]) in ([], [".cache"]), "left %s: %d %s" %
          (os.listdir(os.environ["HOME"]), p.status, p.err))
    os.environ["HOME"] = home


if os.getuid():
    print("only root can become another user")
    sys.exit(77)
e2e.need_kvm()
os.environ["HOME"] = os.getcwd()
os.makedirs("private", mode=0o700)
os.chdir("private")
profiles()
other_runs()
late_results()
empty_caches()
say("users: %d to %d, or sudo's" % (DYNAMIC[0], DYNAMIC[-1]))
e2e.finish("4 profiles and what else a run writes")

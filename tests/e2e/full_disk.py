#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 26 s
# tests: slow, at most 3600 s: sizes
# tests: not svm, files
"""Nothing is lost without a word, and nothing is destroyed: full disks, killed runs, devices,
links and directories that can't be written.

    full_disk.py KVMPROF SCRATCH [sizes]    sizes: disks of each size up to that of the profile, alone

Full disks are tmpfs in a mount namespace of the test's own; the full device is a node that the
test makes in its scratch directory (the numbers of /dev/full), never the system's.
"""

import ctypes
import json
import os
import re
import shutil
import signal
import stat
import subprocess

import e2e
from e2e import check, say

QUIET = ["-q", "--no-buildid-cache"]
LONG = ["--append", "seconds=60"]
SHORT = ["--duration", "0.4"] + LONG
FULL = "full"
DISK = "disk"


def new_namespace():
    """False where this process may not have mounts of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newns = 0x20000
    return libc.unshare(clone_newns) == 0 and e2e.run("mount", "--make-rprivate", "/").status == 0


def make_full():
    """None, or why there is no full device."""
    try:
        os.mknod(FULL, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        with open(FULL, "wb", buffering=0) as f:
            f.write(b"x")
    except PermissionError as e:
        return "mknod: " + e.strerror
    except OSError as e:
        return None if e.errno == 28 else str(e)
    return "a node of that number can be written"


def still_full():
    if os.path.lexists(FULL) and stat.S_ISCHR(os.lstat(FULL).st_mode):
        return True
    # So that the rest is tried, too.
    shutil.rmtree(FULL, ignore_errors=True) if os.path.isdir(FULL) else None
    if os.path.lexists(FULL):
        os.remove(FULL)
    make_full()
    return False


def numbers(text, pattern):
    m = re.search(pattern, text)
    return tuple(int(x) for x in m.groups()) if m else None


def read_profile(path):
    """Its samples and what is missing, the same by kvmprof and by perf."""
    p = e2e.kvmprof("report", "--json", "-i", path)
    if not check(p.status in (0, 1) and p.out, "report of %s: %s" % (path, p.err)):
        return None
    r = json.loads(p.out)
    # A file without a sample is shown, but it is an error.
    check(p.status == (0 if r["samples"] else 1), "report of %s: status %d, %d samples: %s" % (
        path, p.status, r["samples"], p.err))
    if e2e.has_tool("perf"):
        q = e2e.run("perf", "script", "-i", path)
        check(q.status == 0, "perf script -i %s: %s" % (path, q.err))
        n = len(e2e.parse_script(q.out))
        check(n == r["samples"], "%s: perf sees %d samples, kvmprof %d" % (path, n, r["samples"]))
    return r


# -- full disks ------------------------------------------------------------------------------

def run_on(size, *argv):
    """What a run on a file system of that size said, and the profile that it left, if any."""
    os.makedirs(DISK, exist_ok=True)
    if e2e.run("mount", "-t", "tmpfs", "-o", "size=" + size, "none", DISK).status:
        e2e.skip("tmpfs can't be mounted")
    try:
        path = os.path.join(DISK, "p")
        p = e2e.kvmprof("run", *(["-q"] if "--single-file" in argv else QUIET), "-o", path, *argv)
        left = sorted(os.listdir(DISK))
        check(left in ([], ["p"]), "%s: there are %s" % (size, left))
        r = read_profile(path) if left else None
        check("wrote " not in p.err or p.status == 0, "%s: 'wrote': %s" % (size, p.err))
        return p, r
    finally:
        e2e.run("umount", DISK)


def judge_full(size, argv):
    """fits, cut or nothing: what is said and what is there are the same."""
    p, r = run_on(size, *argv)
    if p.status == 0:
        told = numbers(p.err, r"kvmprof: (\d+) samples")
        check(r and not r["partial"] and told == (r["samples"],),
              "%s: status 0, %s samples told, %s in it" % (size, told, r and r["samples"]))
        return "fits"
    check(p.status == 1, "%s: status %d" % (size, p.status))
    lines = [x for x in p.err.split("\n") if "No space left on device" in x]
    if not check(len(lines) == 1, "%s: not one line about it: %s" % (size, p.err)):
        return "untold"
    check(DISK + "/p: cannot " in lines[0], "%s: it does not say where: %s" % (size, lines[0]))
    check("name another place with -o" in lines[0], "%s: no word of what to do: %s" % (size, lines[0]))
    if not r:
        return "nothing"
    told = numbers(lines[0], r"only (\d+) of (\d+) samples are in it")
    all_told = numbers(lines[0], r"all (\d+) samples are in it")
    if check(told or all_told, "%s: it does not say how many: %s" % (size, lines[0])):
        kept, given = told or (all_told[0], all_told[0])
        check(r["samples"] == kept, "%s: %d samples, told %d" % (size, r["samples"], kept))
        check(r["lost"] >= given - kept, "%s: %d samples are missing, %d told as lost" %
              (size, given - kept, r["lost"]))
        # The last file of all has nothing that the samples' file has not.
        check(r["partial"] or (all_told and "cannot write kvmprof.json:" in lines[0]),
              "%s: not marked partial: %s" % (size, lines[0]))
    check(size != "1m" or "kvmprof: error after " in p.err,
          "the run went on after the disk was full: " + p.err)
    return "cut"


def full_at_end_or_within():
    """The room ends anywhere: at the first file, in the records, at the last drain, behind them."""
    seen = {judge_full(size, argv) for size, argv in (
        ("120k", SHORT),
        ("300k", ["--duration", "1.5", "-F", "2000"] + LONG),
        ("500k", ["--duration", "2", "-F", "2000"] + LONG),
        ("1m", ["--append", "seconds=20", "-F", "20000"]),
        ("8m", SHORT))}
    check(seen == {"fits", "cut", "nothing"}, "of the three cases only %s were seen" % seen)


def full_everywhere():
    """Each size up to the first that holds all of a profile, in each of its forms."""
    runs = 0
    for what in ([], ["--single-file", "--buildid-dir", "ids"], ["--mem"]):
        argv = ["--duration", "1", "-F", "4000", *what, *LONG]
        seen, size = {}, 16
        while seen.get("fits", 0) < 2 and size < 8192:
            case = judge_full("%dk" % size, argv)
            seen[case] = seen.get(case, 0) + 1
            size += 16 if size < 512 else 64
            runs += 1
        check(seen.get("fits") and seen.get("cut"), "%s: %s" % (" ".join(what), seen))
        say("%s: %s" % (" ".join(what) or "as usual", seen))
    return runs


def old_profile_stays():
    """A run that can keep nothing leaves what was there."""
    os.makedirs(DISK, exist_ok=True)
    if e2e.run("mount", "-t", "tmpfs", "-o", "size=600k", "none", DISK).status:
        e2e.skip("tmpfs can't be mounted")
    path = os.path.join(DISK, "p")
    p = e2e.kvmprof("run", *QUIET, "-o", path, *SHORT, "-F", "200")
    check(p.status == 0, "a small profile: " + p.err)
    before = read_profile(path)
    with open(os.path.join(DISK, "filler"), "wb", buffering=0) as f:
        try:
            while f.write(b"\0" * 4096):
                pass
        except OSError:
            pass
    p = e2e.kvmprof("run", *QUIET, "-o", path, *LONG)
    check(p.status == 1 and "No space left" in p.err, "a full disk: %d: %s" % (p.status, p.err))
    after = read_profile(path)
    check(after == before, "a failed run changed the profile that was there")
    check(not e2e.leftovers(DISK), "left: %s" % os.listdir(DISK))
    e2e.run("umount", DISK)


def full_pipe_directory():
    """-o - keeps a file in $TMPDIR first; what fits there goes on."""
    os.makedirs(DISK, exist_ok=True)
    if e2e.run("mount", "-t", "tmpfs", "-o", "size=1m", "none", DISK).status:
        e2e.skip("tmpfs can't be mounted")
    with open("piped.data", "wb") as out:
        p = subprocess.run([e2e.KVMPROF, "run", "-q", "-o", "-", "--append", "seconds=20",
                            "-F", "10000"], stdout=out, stderr=subprocess.PIPE,
                           env=dict(os.environ, TMPDIR=os.path.abspath(DISK)))
    check(p.returncode == 1 and b"set TMPDIR" in p.stderr, "-o -: %d: %s" %
          (p.returncode, p.stderr))
    told = numbers(p.stderr.decode(), r"only (\d+) of (\d+) samples are in")
    r = read_profile("piped.data")
    check(r and told and r["samples"] == told[0], "-o -: told %s, there are %s" %
          (told, r and r["samples"]))
    check(not os.listdir(DISK), "-o - left %s" % os.listdir(DISK))
    e2e.run("umount", DISK)


# -- a library that fails a call --------------------------------------------------------------

FAILING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int hit(const char *call, int fd)
{
	const char *want = getenv("FAIL_CALL"), *path = getenv("FAIL_PATH");
	char link[64], name[4096];
	ssize_t n;
	if (!want || !path || strcmp(want, call))
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	if (n < 0)
		return 0;
	name[n] = 0;
	return n >= (ssize_t)strlen(path) && !strcmp(name + n - strlen(path), path);
}
int fsync(int fd)
{
	static int done;
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
	if (!done && hit("fsync", fd)) {
		done = 1;
		errno = ENOSPC;
		return -1;
	}
	return real(fd);
}
int close(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
	int fail = hit("close", fd), ret = real(fd);
	if (fail) {
		errno = EIO;
		return -1;
	}
	return ret;
}
ssize_t pwrite(int fd, const void *data, size_t len, off_t at)
{
	ssize_t (*real)(int, const void *, size_t, off_t) =
		(ssize_t (*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
	if (hit("write", fd)) {
		errno = ENOSPC;
		return -1;
	}
	return real(fd, data, len, at);
}
ssize_t pwrite64(int fd, const void *data, size_t len, off_t at)
{
	return pwrite(fd, data, len, at);
}
ssize_t write(int fd, const void *data, size_t len)
{
	ssize_t (*real)(int, const void *, size_t) =
		(ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	if (hit("write", fd)) {
		errno = ENOSPC;
		return -1;
	}
	return real(fd, data, len);
}
"""


def failing_calls():
    """Each file of a profile, and the calls that come last."""
    if not e2e.has_tool("cc"):
        return
    with open("failing.c", "w") as f:
        f.write(FAILING)
    p = e2e.run("cc", "-shared", "-fPIC", "-O", "-o", "failing.so", "failing.c", "-ldl")
    if not check(p.status == 0, "failing.so: " + p.err):
        return
    for call, path, keeps in (("fsync", "/data", True), ("close", "/data", True),
                              ("write", "/kcore_dir/kallsyms", False),
                              ("write", "/kcore_dir/kcore", True), ("write", "/text", True),
                              ("close", "/text", True), ("write", "/kvmprof.json", True)):
        shutil.rmtree("calls", ignore_errors=True)
        env = dict(os.environ, LD_PRELOAD=os.path.abspath("failing.so"), FAIL_CALL=call,
                   FAIL_PATH=path)
        # The library makes calls of its own on each thread.
        p = e2e.kvmprof("run", "--sandbox=off", *QUIET, "-o", "calls", *SHORT, env=env)
        what = "%s of %s" % (call, path)
        check(p.status == 1, "%s: status %d: %s" % (what, p.status, p.err))
        check("calls: cannot write" in p.err and "wrote " not in p.err, "%s: %s" % (what, p.err))
        check(os.path.isdir("calls") == keeps, "%s: a profile is there: %s" %
              (what, os.path.isdir("calls")))
        if os.path.isdir("calls"):
            r = read_profile("calls")
            check(r["samples"] > 0, "%s: %d samples" % (what, r["samples"]))
            told = numbers(p.err, r"(?:all|only) (\d+) ")
            check(told and told[0] == r["samples"], "%s: told %s, there are %d" %
                  (what, told, r["samples"]))
            check("/data" in path or not os.path.exists("calls" + path), "half a %s is left" % path)
        check(not e2e.leftovers(), "%s: left %s" % (what, e2e.leftovers()))


# -- killed runs -------------------------------------------------------------------------------

def leftover(name):
    return [x for x in os.listdir(".") if x.startswith(name + ".tmp-")]


def killed(name, seconds, *argv):
    boot = e2e.Boot("--no-buildid-cache" if "--single-file" not in argv else "--no-status", "-o",
                    name, *argv, "--append", "seconds=60")
    if not check(boot.wait_for("demo: start", 30), "the guest did not start"):
        return
    e2e.time.sleep(seconds)
    boot.process.kill()
    boot.wait(20)
    left = leftover(name)
    if not check(len(left) == 1, "%s: left: %s" % (name, left)):
        return
    r = read_profile(left[0])
    span = (r["last_ns"] - r["first_ns"]) / 1e9 if r["samples"] else 0
    # A second is promised; another one is for a host under load.
    check(span > seconds - 2, "killed after %.1f s: samples of %.2f s" % (seconds, span))
    check(r["partial"] and "not finished" in r["message"], "%s: %s" % (name, r["message"]))
    say("killed %.1f s after the guest's start: %d samples of %.2f s" %
        (seconds, r["samples"], span))
    names = {x.get("symbol") for x in r["symbols"]}
    if r["samples"] and "--single-file" not in argv:
        check("demo_main" in names, "%s: no names: %s" % (name, sorted(map(str, names))[:5]))
    hint = "%s is the unfinished profile" % left[0]
    p = e2e.kvmprof("report", "-i", name)
    check(p.status == 1 and hint in p.err, "report -i %s: %s" % (name, p.err))
    p = e2e.kvmprof("run", *QUIET, "-o", name, *SHORT)
    check(p.status == 0 and hint in p.err, "the next run: %s" % p.err)
    check(leftover(name) == left, "the next run removed what was left")
    p = e2e.kvmprof("report", "-i", name)
    check(p.status == 0 and hint in p.err, "report of the next run: %s" % p.err)
    shutil.rmtree(left[0], ignore_errors=True)


def run_in_progress_is_none():
    boot = e2e.Boot(*QUIET, "-o", "busy", "--append", "seconds=60")
    for _ in range(200):
        if leftover("busy"):
            break
        e2e.time.sleep(0.05)
    p = e2e.kvmprof("report", "-i", "busy")
    check("unfinished" not in p.err, "a profile that is being written counts as left: " + p.err)
    boot.process.send_signal(signal.SIGTERM)
    boot.wait(20)


def many_periods_missed():
    """A warning exactly where more than half were missed, in the run and in report."""
    seen = set()
    others = [subprocess.Popen(["taskset", "-c", "0", "sh", "-c", "while :; do :; done"])
              for _ in range(6)]
    try:
        for prefix, seconds in (([], "0.4"), (["taskset", "-c", "0"], "1.2")):
            p = e2e.run(*prefix, e2e.KVMPROF, "run", *QUIET, "-o", "missed", "--duration",
                        seconds, *LONG)
            share = e2e.summary("missed")["missed_share"]
            much = share > 0.5
            seen.add(much)
            check(("% of the timer's periods were missed" in p.err) == much,
                  "%.2f missed: %s" % (share, p.err))
            text = e2e.kvmprof("report", "-i", "missed").out
            check(("# WARNING: " in text) == much, "%.2f missed: %s" % (share, text[:400]))
            few = [x for x in json.loads(e2e.kvmprof("report", "--json", "-i", "missed").out)
                   ["symbols"] if 0 < x["self_samples"] < 5]
            say("missed: %.0f %%; %d functions by fewer than 5 samples" % (100 * share, len(few)))
    finally:
        for o in others:
            o.kill()
            o.wait()
    check(True in seen, "no run missed most of its periods: the warning was not tried")


# -- outputs ---------------------------------------------------------------------------------------

def to_full_stdout(*argv):
    with open(FULL, "w") as out:
        p = subprocess.run([e2e.KVMPROF] + list(argv), stdin=subprocess.DEVNULL, stdout=out,
                           stderr=subprocess.PIPE)
    err = p.stderr.decode()
    # gate has 1 for "slower".
    check(p.returncode == (2 if argv[0] == "gate" else 1), "%s >full: status %d" % (" ".join(argv), p.returncode))
    check(sum("standard output" in x or "the archive" in x for x in err.split("\n")) == 1,
          "%s >full: %s" % (" ".join(argv), err))


def full_stdout():
    for argv in (["help"], ["--help"], ["--version"], ["help", "topics"], ["run", "--help"],
                 ["ctl", "--help"], ["list"], ["check"], ["export", "--list"],
                 ["run", "-q", "--no-output", "--json"] + SHORT,
                 ["run", "--no-output"] + SHORT,
                 ["stat"] + SHORT,
                 ["top", "--stdio", "-n", "1", "-d", "0.2"],
                 ["report", "-i", "a"], ["report", "--json", "-i", "a"],
                 ["report", "--phase", "-i", "a"], ["script", "-i", "a"],
                 ["annotate", "-i", "a", HOT], ["diff", "a", "b"], ["mem", "-i", "m"],
                 ["flamegraph", "-i", "a", "-o", "-"], ["export", "-F", "folded", "-i", "a", "-o", "-"],
                 ["export", "-F", "pprof", "-i", "a", "-o", "-"], ["archive", "-i", "a", "-o", "-"],
                 ["gate", "--base", "a", "a2", "--head", "b", "b2"], ["scan", "."],
                 ["run", "-q", "-o", "-"] + SHORT):
        to_full_stdout(*argv)


def outputs():
    """Each command that writes a file: its name, and what stands before the file's."""
    return (("flamegraph", ["flamegraph", "-i", "a", "-o"]),
            ("chart", ["flamegraph", "--chart", "-i", "a", "-o"]),
            ("annotate", ["annotate", "-i", "a", HOT, "-o"]),
            ("diff", ["diff", "a", "b", "-o"]),
            ("export", ["export", "-F", "folded", "-i", "a", "-o"]),
            ("export gz", ["export", "-F", "pprof", "-i", "a", "-o"]),
            ("scan", ["scan", ".", "-o"]),
            ("gate text", ["gate", "--base", "a", "a2", "--head", "b", "b2", "-o"]),
            ("gate md", ["gate", "--base", "a", "a2", "--head", "b", "b2", "--markdown"]),
            ("gate junit", ["gate", "--base", "a", "a2", "--head", "b", "b2", "--junit"]),
            ("gate sarif", ["gate", "--base", "a", "a2", "--head", "b", "b2", "--sarif"]),
            ("gate picture", ["gate", "--base", "a", "a2", "--head", "b", "b2", "--flamegraph"]))


def full_files():
    """Devices and links stay; the old file does, when the new one has no room."""
    for target in (FULL, "link"):
        for name, argv in outputs():
            if target == "link" and not os.path.lexists("link"):
                os.symlink(FULL, "link")
            p = e2e.kvmprof(*argv, target)
            check(p.status == (2 if name.startswith("gate") else 1), "%s to %s: status %d: %s" %
                  (name, target, p.status, p.err))
            check("No space left on device" in p.err, "%s to %s: %s" % (name, target, p.err))
            check(still_full() and os.path.islink("link") == (target == "link"),
                  "%s removed %s" % (name, target))
    os.symlink(FULL, "full.tar")
    p = e2e.kvmprof("archive", "-i", "a", "-o", "full.tar")
    check(p.status == 1 and "No space left" in p.err and os.path.islink("full.tar") and
          still_full(), "archive: %d: %s" % (p.status, p.err))
    for name, argv in outputs():
        fits = e2e.kvmprof(*argv, "whole")
        check(fits.status in (0, 1, 3) and os.path.getsize("whole") > 0, "%s: %s" % (name, fits.err))
        with open("old", "w") as f:
            f.write("old")
        limit = "ulimit -f 0; exec \"$@\""
        p = e2e.run("sh", "-c", limit, "sh", e2e.KVMPROF, *argv, "old")
        check(p.status in (1, 2) and "File too large" in p.err, "%s: %d: %s" %
              (name, p.status, p.err))
        with open("old") as f:
            check(f.read() == "old", "%s: the old file is gone" % name)
        check(not e2e.leftovers(), "%s: left %s" % (name, e2e.leftovers()))
        shutil.rmtree("far", ignore_errors=True)
        os.mkdir("far")
        os.symlink("far/file", "to-far")
        open("far/file", "w").close()
        p = e2e.kvmprof(*argv, "to-far")
        check(os.path.islink("to-far") and os.path.getsize("far/file") == os.path.getsize("whole"),
              "%s through a link: %s" % (name, p.err))
        os.remove("to-far")


def full_profiles():
    """Where a profile, a directory or a snapshot is wanted a device is none, and stays."""
    os.symlink(FULL, "device-link")
    for argv in (["run", "-o"], ["bench", "-n", "2", "-o"], ["import", "stacks", "-o"],
                 ["run", "--no-output", *LONG, "--snapshot-on", "demo: start", "--snapshot-save"]):
        for target in (FULL, "device-link"):
            p = e2e.kvmprof(*argv, target, timeout=20)
            check(p.status == 1 and "exists and is n" in p.err,
                  "%s %s: %d: %s" % (" ".join(argv), target, p.status, p.err))
            check(still_full() and os.path.islink("device-link"),
                  "%s %s: it is gone" % (" ".join(argv), target))
    check(not os.path.lexists(FULL + ".old"), "the device was renamed")
    # What is no regular file in the way of .old.
    os.mkfifo("c.old")
    shutil.copytree("a", "c")
    p = e2e.kvmprof("run", *QUIET, "-o", "c", *SHORT)
    check(p.status == 1 and stat.S_ISFIFO(os.lstat("c.old").st_mode), "c.old: %s" % p.err)
    os.symlink("a", "to-a")
    p = e2e.kvmprof("run", *QUIET, "-o", "to-a", *SHORT)
    check(p.status == 0 and os.path.islink("to-a") and os.path.isdir("a.old"),
          "a profile through a link: %s" % p.err)


def checked_before_the_boot():
    os.mkdir("readonly")
    at = ["--snapshot-at", "job_pick", "--append", "seconds=60"]
    for where, why in (("missing/x.snap", "No such file"), ("readonly", "is a directory"),
                       ("a/data/x", "Not a directory")):
        p = e2e.kvmprof("run", "--no-output", "--snapshot-save", where, *at, timeout=20)
        check(p.status == 1 and why in p.err and not p.out,
              "--snapshot-save %r: %d, %s" % (where, p.status, p.err))
    if os.geteuid():
        os.chmod("readonly", 0o555)
        for argv in (["run", "--no-output", "--snapshot-save", "readonly/x"] + at,
                     ["run", "-o", "readonly/x"], ["flamegraph", "-i", "a", "-o", "readonly/x"]):
            p = e2e.kvmprof(*argv, timeout=20)
            check(p.status == 1 and "Permission denied" in p.err and not p.out, p.err)


def readonly_disk():
    """Root may write where it may not; on a read-only file system nobody can."""
    os.makedirs("ro", exist_ok=True)
    if e2e.run("mount", "-t", "tmpfs", "-o", "ro,size=1m", "none", "ro").status:
        say("no read-only tmpfs")
        return
    for argv in (["run", "--append", "seconds=60", "-o", "ro/x"],
                 ["run", "--append", "seconds=60", "--no-output", "--snapshot-at", "job_pick",
                  "--snapshot-save", "ro/x"],
                 ["flamegraph", "-i", "a", "-o", "ro/x"], ["archive", "-i", "a", "-o", "ro/x.tar"]):
        p = e2e.kvmprof(*argv, timeout=20)
        check(p.status == 1 and "Read-only file system" in p.err and not p.out,
              "%s: %d: %s" % (" ".join(argv), p.status, p.err))
    e2e.run("umount", "ro")


def closed_stdout_is_not_a_profile():
    """A closed standard output: the first file opened must not become it."""
    p = subprocess.run(["sh", "-c", "exec \"$@\" >&-", "sh", e2e.KVMPROF, "run", "--no-buildid-cache",
                        "-o", "closed"] + SHORT, stderr=subprocess.PIPE)
    read_profile("closed")
    check(p.returncode == 1 and b"standard output" in p.stderr, "closed: %r" % p.stderr)


def top_writes_nothing():
    os.mkdir("top")
    p = e2e.kvmprof("top", "--stdio", "-n", "1", "-d", "0.3", cwd="top")
    check(p.status == 0 and not os.listdir("top"), "top: %d, left %s: %s" %
          (p.status, os.listdir("top"), p.err))
    p = e2e.kvmprof("top", "--stdio", "-n", "1", "-d", "0.3", "--", "-o", "kept", cwd="top")
    check(p.status == 0 and os.listdir("top") == ["kept"], "top -- -o: %s" % p.err)
    p = e2e.kvmprof("top", "--append", "seconds=5")
    check(p.status == 2 and "kvmprof top -- --append" in p.err, "top --append: %s" % p.err)


e2e.need_kvm()
for x in os.listdir("."):
    if x != "home":
        shutil.rmtree(x, ignore_errors=True) if os.path.isdir(x) and not os.path.islink(x) else os.remove(x)
if e2e.EXTRA[:1] == ["sizes"]:
    if not new_namespace():
        e2e.skip("no mount namespace of its own: full disks were not tried")
    e2e.finish("%d disks" % full_everywhere())
# A gate takes no run twice.
for name, more in (("a", []), ("b", []), ("a2", []), ("b2", []), ("m", ["--mem"])):
    done = e2e.kvmprof("run", *QUIET, "-o", name, *SHORT, *more)
    check(done.status == 0, "a profile to begin with: " + done.err)
HOT = max(json.loads(e2e.kvmprof("report", "--json", "-i", "a").out)["symbols"],
          key=lambda x: x["self"])["symbol"]
with open("stacks", "w") as stacks:
    stacks.write("a;b 1\n")
why = make_full()
if why:
    say("no full device: " + why)
else:
    full_stdout()
    full_files()
    full_profiles()
checked_before_the_boot()
closed_stdout_is_not_a_profile()
top_writes_nothing()
failing_calls()
killed("early", 0.2)
killed("later", 2.4)
killed("single", 1.3, "--single-file")
run_in_progress_is_none()
many_periods_missed()
if not new_namespace():
    if e2e.failures:
        e2e.finish()
    e2e.skip("no mount namespace of its own: full disks were not tried")
full_at_end_or_within()
old_profile_stays()
full_pipe_directory()
readonly_disk()
e2e.finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 24 s
# tests: slow, at most 900 s: all
# tests: not svm, files
"""The thread that reads the guest's memory crashes: the profile ends with what was written so far, which
kvmprof and perf can read, one line tells of it, the status is 1, and the guest goes on to its end.

    consumer_crash.py KVMPROF SCRATCH [all]

The crash comes from here: a signal to that thread (tgkill(2)), or its registers are changed (ptrace(2)), so
that it jumps to where nothing is, has no stack, runs an instruction that there is not, or makes a system call
that is not in its list. Without `all` one of each way of crashing is tried, and one behind a gdbstub."""

import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

import e2e
import qemu
from e2e import check, say

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
TGKILL, SOCKET = 234, 41    # of x86-64
# struct user_regs_struct (sys/user.h): 27 words.
REGS = ctypes.c_ulonglong * 27
RAX, ORIG_RAX, RIP, RSP = 10, 15, 16, 19
SEIZE, INTERRUPT, GETREGS, SETREGS, DETACH = 0x4206, 0x4207, 12, 13, 17
WALL = 0x40000000
GUEST_S = 3
ALL = e2e.EXTRA == ["all"]
GDB_CRASHES = 3 if ALL else 1
LINE = re.compile(r"^kvmprof: thread consumer crashed \((.*)\): the profile ends here(.*)$", re.M)


def consumer_of(pid):
    for path in glob.glob("/proc/%d/task/*/comm" % pid):
        try:
            with open(path) as f:
                if f.read().strip() == "consumer":
                    return int(path.split("/")[4])
        except OSError:
            pass
    return None


def send(number):
    def crash(pid, tid):
        return check(LIBC.syscall(TGKILL, pid, tid, number) == 0, "tgkill: errno %d" % ctypes.get_errno())
    return crash


def ptrace(request, tid, data=None):
    if LIBC.ptrace(request, tid, None, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace %#x" % request)


def changed(**to):
    """Registers that the thread goes on with. It stands in a system call most of the time: rip is behind that."""
    def crash(pid, tid):
        try:
            ptrace(SEIZE, tid)
        except PermissionError:
            e2e.skip("ptrace(2) is not allowed here")
        ptrace(INTERRUPT, tid)
        os.waitpid(tid, WALL)
        regs = REGS()
        ptrace(GETREGS, tid, ctypes.addressof(regs))
        in_call = ctypes.c_longlong(regs[ORIG_RAX]).value >= 0
        regs[ORIG_RAX] = (1 << 64) - 1    # no call is made again
        if "call" in to and in_call:
            regs[RIP] -= 2    # the length of `syscall`
            regs[RAX] = to["call"]
        regs[RIP] = to.get("rip", regs[RIP])
        regs[RSP] = to.get("rsp", regs[RSP])
        ptrace(SETREGS, tid, ctypes.addressof(regs))
        ptrace(DETACH, tid)
        return in_call or "call" not in to
    return crash


CRASHES = {
    "SIGSEGV": (send(signal.SIGSEGV), "SIGSEGV, in "),
    "SIGBUS": (send(signal.SIGBUS), "SIGBUS, in "),
    "SIGABRT": (send(signal.SIGABRT), "SIGABRT, in "),
    "SIGILL": (send(signal.SIGILL), "SIGILL, in "),
    "SIGFPE": (send(signal.SIGFPE), "SIGFPE, in "),
    "a jump to nowhere": (changed(rip=16), "SIGSEGV at address 0x10, in 0x10"),
    "no stack": (changed(rip=16, rsp=64), "SIGSEGV at address 0x10, in 0x10"),
    "a call that is not in its list": (changed(call=SOCKET), "its list has no system call socket (41)"),
}
if not ALL:
    CRASHES = {what: CRASHES[what] for what in ("SIGBUS", "no stack", "a call that is not in its list")}


def told(what, err, status, words):
    """What follows the cause, in the one line about it."""
    err = err.replace("kvmprof: no IMAGE: the embedded demo guest runs\n", "")
    lines = LINE.findall(err)
    check(status == 1, "%s: status %s: %s" % (what, status, err))
    if not check(len(lines) == 1 and err.count("kvmprof: ") == 1, "%s: not one line: %s" % (what, err)):
        return ""
    check(lines[0][0].startswith(words), "%s: the cause is '%s', not '%s'" % (what, lines[0][0], words))
    return lines[0][1]


def read(path, piped=False):
    """Samples, as kvmprof and perf see them."""
    p = e2e.kvmprof("report", "--json", "-i", path)
    if not check(p.status == 0, "report of %s: %s" % (path, p.err)):
        return 0
    r = json.loads(p.out)
    check(piped or r["partial"], "%s does not say that it is not whole" % path)
    if e2e.has_tool("perf"):
        q = e2e.run("perf", "script", "-i", path)
        n = len(e2e.parse_script(q.out))
        check(q.status == 0 and n == r["samples"], "%s: perf sees %d samples, kvmprof %d: %s" % (
            path, n, r["samples"], q.err))
    return r["samples"]


def ended(what, process):
    """What it has said."""
    try:
        return process.communicate(timeout=60)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        err = process.communicate()[1]
        check(False, "%s: no end after the crash: %s" % (what, err))
        return err


def clean(out):
    for path in glob.glob(out + "*"):
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def crashed(what, out, *argv, after=1.3, words="SIGSEGV", crash=send(signal.SIGSEGV), during=None):
    """A run whose consumer crashes so many seconds after its guest began, and its line."""
    clean(out)
    boot = e2e.Boot("-o", out, *argv, "--append", "seconds=%d" % GUEST_S)
    tid = None
    if check(boot.wait_for("demo: start", 60), "%s: the guest did not start: %s" % (what, boot.err)):
        time.sleep(after)
        tid = consumer_of(boot.process.pid)
    if not check(tid, "%s: there is no consumer's thread" % what) or not crash(boot.process.pid, tid):
        boot.process.kill()
        boot.wait(60)
        return None, ""
    if during:
        during(boot)
    boot.wait(60)
    check(boot.seen("demo: done"), "%s: the guest did not go on to its end: %s" % (what, boot.text()[-300:]))
    rest = told(what, boot.err, boot.status, words)
    left = [f for f in os.listdir(".") if f.startswith(out + ".tmp") or f.startswith("core")]
    check(not left and not os.listdir(os.environ["TMPDIR"]), "%s: left: %s" % (what, left))
    return boot, rest


def each_crash():
    for what, (crash, words) in CRASHES.items():
        for attempt in range(3):
            boot, rest = crashed(what, "c.data", "--no-buildid-cache", crash=crash, words=words)
            if boot:
                break
        if not check(boot, "%s: the thread stood in no system call, three times" % what):
            continue
        check(rest == ", what it had is in c.data; the guest continues", "%s: %s" % (what, rest))
        n = read("c.data")
        check(n > 20, "%s: %d samples" % (what, n))
        say("%s: %d samples of it are read" % (what, n))


def each_output():
    _, rest = crashed("--single-file", "s.data", "--single-file", "--buildid-dir", "ids")
    check("what it had is in s.data" in rest and read("s.data") > 20, "--single-file: " + rest)
    _, rest = crashed("--overwrite", "o.data", "--no-buildid-cache", "--overwrite")
    check("what --overwrite kept is lost" in rest and not os.path.exists("o.data"), "--overwrite: " + rest)
    with open("piped.data", "wb") as out:
        p = subprocess.Popen([e2e.KVMPROF, "run", "-q", "-o", "-", "--append", "seconds=%d" % GUEST_S],
                             stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True)
        time.sleep(2)
        send(signal.SIGSEGV)(p.pid, consumer_of(p.pid) or 0)
        err = p.communicate(timeout=60)[1]
    rest = told("-o -", err, p.returncode, "SIGSEGV")
    check("what it had is in standard output" in rest and read("piped.data", piped=True) > 20, "-o -: " + rest)
    # The one that was there stays where nothing was written yet.
    shutil.copytree("c.data", "k.data")
    boot = e2e.Boot("-o", "k.data", "--no-buildid-cache", "--append", "seconds=%d" % GUEST_S)
    while not consumer_of(boot.process.pid) and boot.process.poll() is None:
        time.sleep(0.001)
    send(signal.SIGSEGV)(boot.process.pid, consumer_of(boot.process.pid) or 0)
    boot.wait(60)
    rest = told("at its begin", boot.err, boot.status, "SIGSEGV")
    check(boot.seen("demo: done") and ("nothing was written" in rest) == (not os.path.exists("k.data.old")) and
          os.path.exists("k.data") and not e2e.leftovers(), "at its begin: %s; there are %s" % (rest, os.listdir(".")))


def wait_written(process, out, least):
    """Until its profile has told of so many bytes of records; the first 64 KiB have no sample."""
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        for path in glob.glob(out + ".tmp-*/data"):
            with open(path, "rb") as f:
                f.seek(48)    # perf_file_header.data.size
                if int.from_bytes(f.read(8), "little") > least:
                    return
        time.sleep(0.1)


def with_control():
    """Who asks for the profile is told; the rest of the socket works."""
    def ask(boot):
        p = e2e.kvmprof("ctl", "--control", "s", "snapshot", "snap.data")
        check(p.status == 1 and "its thread crashed" in p.out + p.err, "snapshot: %d %s%s" % (p.status, p.out, p.err))
        check(not os.path.exists("snap.data"), "there is a snapshot")
        p = e2e.kvmprof("ctl", "--control", "s", "status")
        check(p.status == 0, "status: " + p.err)

    _, rest = crashed("--control", "c.data", "--no-buildid-cache", "--control", "s", during=ask)
    check("what it had is in c.data" in rest and read("c.data") > 20, "--control: " + rest)


def attached():
    """Another's machine is let go at once, and goes on."""
    guest = e2e.Boot("-o", "g.data", "--no-buildid-cache", "--append", "seconds=20")
    guest.wait_for("demo: start", 60)
    p = subprocess.Popen([e2e.KVMPROF, "attach", str(guest.process.pid), "--image",
                          os.path.join(e2e.BUILD, "guest", "demo.elf"), "-o", "a.data", "--no-buildid-cache"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_written(p, "a.data", 100000)
    tid = consumer_of(p.pid)
    if p.poll() is not None or not tid:
        e2e.left_out("attach does not work here: %s" % p.communicate()[1].strip())
        guest.process.kill()
        guest.wait(60)
        return
    send(signal.SIGSEGV)(p.pid, tid)
    err = p.communicate(timeout=30)[1]
    check(p.returncode == 1 and len(LINE.findall(err)) == 1, "attach: status %s: %s" % (p.returncode, err))
    n = read("a.data")
    check(n > 20, "attach: %d samples" % n)
    before = len(guest.lines)
    guest.process.send_signal(signal.SIGTERM)
    guest.wait(60)
    check(guest.status == 0 and e2e.summary("g.data")["samples"] > 0 and before, "the guest: %s %s" % (
        guest.status, guest.err))


def in_a_question(pid, tid):
    """It waits for an answer of the gdbstub, in poll(2) (7), while the machine stands and others wait for that."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with open("/proc/%d/task/%d/syscall" % (pid, tid)) as f:
            if f.read().startswith("7 "):
                return
    check(False, "the consumer asks the gdbstub nothing")


def behind_a_gdbstub():
    """The machine that stood for its question goes on."""
    if not e2e.has_tool("qemu-system-x86_64"):
        e2e.left_out("qemu-system-x86_64 is not installed")
        return
    q, stub = qemu.Qemu.with_stub("stub")
    try:
        for i in range(GDB_CRASHES):
            what = "--gdb, crash %d" % i
            clean("g.data")
            p = subprocess.Popen([e2e.KVMPROF, "attach", "--gdb", stub, "--image", os.path.join(e2e.BUILD, "guest", "demo.elf"),
                                  "-F", "199", "-o", "g.data", "--no-buildid-cache", "--no-status"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            wait_written(p, "g.data", 20000)
            tid = consumer_of(p.pid)
            if check(tid, what + ": it has ended"):
                in_a_question(p.pid, tid)
                send(signal.SIGSEGV)(p.pid, tid)
            told(what, ended(what, p), p.returncode, "SIGSEGV")
            qemu.goes_on(q.pid, what)
    finally:
        q.end()


def waits_for_the_end(pid):
    """Whether the main thread comes to wait in futex(2) (202), as it does for a machine that is to end."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with open("/proc/%d/task/%d/syscall" % (pid, pid)) as f:
            if f.read().startswith("202 "):
                return True
        time.sleep(0.01)
    return False


def after_the_end(pid, tid):
    """It is held while the run is told to end, and crashes when that waits for it."""
    ptrace(SEIZE, tid)
    ptrace(INTERRUPT, tid)
    os.waitpid(tid, WALL)
    os.kill(pid, signal.SIGINT)
    check(waits_for_the_end(pid), "the main thread does not wait for the machine's end")
    send(signal.SIGSEGV)(pid, tid)
    ptrace(DETACH, tid)


def exact(what, crash):
    """A machine that runs only while that thread lets it ends."""
    clean("e.data")
    p = subprocess.Popen([e2e.KVMPROF, "run", "-q", "--engine", "exact", "-o", "e.data", "--no-buildid-cache", "--append",
                          "seconds=60"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_written(p, "e.data", 200000)
    tid = consumer_of(p.pid)
    if p.poll() is not None or not tid:
        e2e.left_out("--engine exact does not work here: %s" % (p.communicate()[1] if p.poll() is not None else p.kill()))
        return
    crash(p.pid, tid)
    rest = told(what, ended(what, p), p.returncode, "SIGSEGV")
    n = read("e.data")
    check(rest == ", what it had is in e.data" and n > 0, "%s: %d samples%s" % (what, n, rest))


e2e.need_kvm()
os.makedirs("tmp", exist_ok=True)
os.environ["TMPDIR"] = os.path.abspath("tmp")
each_crash()
each_output()
with_control()
attached()
behind_a_gdbstub()
exact("--engine exact", send(signal.SIGSEGV))
exact("--engine exact, between its end and the join", after_the_end)
e2e.finish("%d crashes of its thread" % (len(CRASHES) + 8 + GDB_CRASHES))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 8 s
# tests: slow, at most 900 s: attempts
# tests: slow, at most 900 s: calls
# tests: slow, at most 3600 s: calls linux
# tests: svm, at most 600 s
"""sandbox.py KVMPROF SCRATCH [attempts | calls [linux]]: what a run gives up before its guest's first instruction.

Without an argument: threads of each kind (sandbox_thread.c) make calls that are in no list or in another
kind's; threads of a real run are bound; files outside of the plan are not written.
attempts: by each kind each call that takes a path or a process, with Landlock as old as that of other kernels.
calls: runs of many kinds under strace use each entry of the table (profile/record/sandbox/calls.c) but those that
RARE has with their reasons; linux: with the small kernel that has virtio devices."""

import ctypes
import glob
import os
import re
import signal
import socket
import subprocess
import threading
import time

import blk_guest
import compiled
import e2e
import exact_engine
import page_server
from e2e import check, say

KINDS = ("main", "vcpu", "disk", "disk-poll", "9p", "9p-files", "keeper", "virtio-rest", "net-user", "net-slirp", "net-tap", "pit", "consumer", "console",
         "control", "tracer", "gdb", "libvirt", "attach-main", "attach-serve", "attach-link", "attach-guard", "msr-filter", "probe")
CLONE_NEWNET = 0x40000000    # linux/sched.h
# Of no list, or of no list with these arguments; the word that the line has.
BAD = {"execve": "execve (59)", "ptrace": "ptrace (101)", "socket": "socket (41)", "mprotect": "mprotect (10)",
       "tgkill": "tgkill (234)", "ioctl": "ioctl (16) with request 0x5412",
       "KVM_CREATE_VM": "ioctl (16) with request 0xae01"}

# -- threads without a machine ---------------------------------------------------------


def each_kind_dies(tool):
    for kind in KINDS:
        for call, word in BAD.items():
            p = e2e.run(tool, "call", "on", kind, call)
            check(p.status == 1 and "done" not in p.out and p.err.count("\n") == 1 and
                  "thread %s calls %s" % (kind, word) in p.err,
                  "%s of %s: status %d: %s%s" % (call, kind, p.status, p.out, p.err))
        p = e2e.run(tool, "call", "on", kind, "futex")    # of each list; its arguments make no sense
        check(p.status == 0 and p.out == "done 38\n" and not p.err, "futex of %s: %s %s" % (kind, p.out, p.err))
        p = e2e.run(tool, "call", "log", kind, "getppid")
        check(p.status == 0 and p.out == "done 0\n" and "thread %s calls getppid (110), which is not in its list\n" %
              kind in p.err, "watched: %s %s" % (p.out, p.err))
    # No thread maps memory as code. A vCPU's may restore the action of a signal: base/fault.c.
    for kind in ("vcpu", "disk", "consumer"):
        for call in ("mmap", "rt_sigaction"):
            may = kind == "vcpu" and call == "rt_sigaction"
            p = e2e.run(tool, "call", "on", kind, call)
            check((p.out == "done 22\n") == may and (p.status == 1) == (not may),
                  "%s of %s: status %d: %s%s" % (call, kind, p.status, p.out, p.err))


def the_consumer_has_no_machine(tool):
    """What reads the guest's memory asks KVM, the terminal and the network for nothing."""
    has = {tuple(line.split()[1:]) for line in e2e.run(tool, "list").out.splitlines() if line.split()[0] == "consumer"}
    reach = {c for c, _ in has} & {"ioctl", "socket", "connect", "sendto", "recvmsg", "accept4", "perf_event_open",
                                  "timer_create", "rt_sigaction", "kill", "clone", "clone3", "execve", "ptrace", "dup"}
    check(len(has) > 30 and not reach, "the consumer's list has %s of %d" % (reach, len(has)))


def files_are_confined(tool):
    os.makedirs("may", exist_ok=True)
    for f in ("may/file", "may-not"):
        if os.path.exists(f):
            os.unlink(f)
    p = e2e.run(tool, "write", "may", "may/file")
    check(p.status == 0 and p.out == "done 0\n" and os.path.exists("may/file"), "inside: %s %s" % (p.out, p.err))
    p = e2e.run(tool, "write", "may", "may-not")
    check(p.status == 0 and p.out == "done 13\n" and not os.path.exists("may-not"), "outside: %s %s" % (p.out, p.err))


# Kinds whose lists have calls that take a path; no other kind has any. Landlock says where, and not for LOOKS.
WITH_PATHS = {"main", "consumer", "9p-files", "keeper", "net-slirp", "tracer"}
LOOKS = {"newfstatat", "access", "readlink"}
PATHS = LOOKS | {"openat:read", "openat:write", "openat:make", "openat:mem", "openat:victim-mem", "openat2", "mkdir", "rename", "unlink", "linkat",
                 "symlink", "chmod", "truncate", "utimensat"}


def attempts(tool, abis, kinds=KINDS):
    """Each call that takes a path or a process, by each kind, outside of what is permitted; by the ABI of Landlock."""
    outside = os.path.abspath("attempts/file")
    os.makedirs("attempts", exist_ok=True)
    os.makedirs("may", exist_ok=True)
    lines = []
    for abi in abis:
        for kind in kinds:
            p = e2e.run("env", "SANDBOX_TEST_ABI=%s" % abi, tool, "try", kind, "may", outside, timeout=600)
            # The guard's signal to the victim is what it is for; its end may be seen with the next call.
            lines_of = p.out.replace("[victim has ended] ", "") if kind == "attach-guard" else p.out
            found = dict(line.split(" ", 2)[1:] for line in lines_of.splitlines())
            check(PATHS < set(found) and len(found) == 36, "attempts of %s: %s %s" % (kind, p.out, p.err))
            for call, result in found.items():
                ended = result == "refused 1"
                lines.append("%-4s %-12s %-20s %s" % (abi, kind, call, "seccomp" if ended else "Landlock" if result == "done 13" else result))
                if kind == "attach-guard" and call == "pidfd_send_signal":
                    check(result == "done 0", "%s of %s: %s" % (call, kind, result))
                    continue
                check("victim" not in result, "%s of %s, ABI %s: %s" % (call, kind, abi, result))
                if kind in ("tracer", "attach-serve") and call not in PATHS:    # another process is what they are for
                    continue
                if kind == "libvirt" and call.startswith("openat:"):    # fails, and does not end the run
                    check(result == "done 13", "%s of %s, ABI %s: %s" % (call, kind, abi, result))
                    continue
                if kind not in WITH_PATHS or call not in PATHS or call in ("chmod", "truncate", "utimensat"):
                    check(ended, "%s of %s, ABI %s: %s" % (call, kind, abi, result))
                elif abi >= 2 and call not in LOOKS and kind != "tracer":
                    check(ended or result == "done 13", "%s of %s, ABI %s: %s" % (call, kind, abi, result))
    with open("attempts.txt", "w") as f:
        f.write("\n".join(lines) + "\n")
    say("%d attempts: attempts.txt" % len(lines))


# -- a run --------------------------------------------------------------------------------


def status_of(task):
    with open(os.path.join(task, "status")) as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def limits_of(pid):
    """{resource: (soft, hard)}, as /proc names them."""
    with open("/proc/%d/limits" % pid) as f:
        rows = [re.split(r"\s{2,}", line.strip()) for line in f.readlines()[1:]]
    return {row[0]: (row[1], row[2]) for row in rows}


def threads_are_bound(landlock):
    """Each thread of a run, once its guest has said something; what it may not write."""
    outside = os.path.abspath("outside")
    os.makedirs("inside", exist_ok=True)
    os.makedirs(outside, exist_ok=True)
    os.chdir("inside")
    boot = e2e.Boot("--control", "s", "-o", "run.data", "--append", "mode=default seconds=60", "--disk",
                    os.path.abspath("../disk.img"), "--virtio", "mmio")
    if check(boot.wait_for("demo: start", 60), "no guest: " + boot.err):
        seen = set()
        for task in glob.glob("/proc/%d/task/*" % boot.process.pid):
            s = status_of(task)
            kind = "main" if task.endswith("/%d" % boot.process.pid) else s["Name"]
            if kind.startswith("kvm-"):    # the kernel's own
                continue
            seen.add(kind)
            check(kind in KINDS and s["Seccomp"] == "2" and s["NoNewPrivs"] == "1", "%s: %s" % (kind, s))
            files = {"main": 4, "consumer": 4}.get(kind, 0)    # CAP_DAC_READ_SEARCH: it has another user
            check(int(s["CapEff"], 16) & ~files == 0 and int(s["CapPrm"], 16) & ~files == 0,
                  "%s has capabilities: %s" % (kind, s["CapPrm"]))
        check({"main", "vcpu", "disk", "disk-poll", "consumer", "console", "control"} <= seen, "threads: %s" % seen)
        limits = limits_of(boot.process.pid)
        own = limits_of(os.getpid())
        check(limits["Max core file size"] == ("0", "0"), "limits: %s" % limits)
        files = limits["Max open files"]
        check(files[0] == files[1] and 0 < int(files[0]) < 4096 + 200, "descriptors: %s" % (files,))
        for same in ("Max file size", "Max address space", "Max locked memory"):
            check(limits[same] == own[same], "%s: %s" % (same, limits[same]))
        ctl = ["ctl", "--control", "s", "snapshot"]
        p = e2e.kvmprof(*ctl, "here.data")
        check(p.status == 0 and os.path.exists("here.data"), "a snapshot beside the profile: " + p.err)
        if landlock:
            p = e2e.kvmprof(*ctl, os.path.join(outside, "there.data"))
            check(p.status == 1 and "ermission denied" in p.err + p.out, "outside: %d %s%s" % (p.status, p.out, p.err))
            check(not os.listdir(outside), "left outside: %s" % os.listdir(outside))
        e2e.kvmprof("ctl", "--control", "s", "stop")
    boot.wait(60)
    check(boot.status == 0 and not os.path.exists("s"), "status %d: %s" % (boot.status, boot.err))
    check(e2e.summary("run.data")["samples"] > 0, "no samples")
    os.chdir("..")


def a_broken_list_leaves_a_profile():
    """A tracer makes the main thread open a socket: the run ends, and what it has recorded can be read."""
    boot = e2e.Boot("-o", "broken.data", "--append", "seconds=60")
    check(boot.wait_for("demo: start", 60), "no guest: " + boot.err)
    time.sleep(1.5)    # what is written each half second is there
    p = e2e.run(os.path.join(e2e.SCRATCH, "inject"), str(boot.process.pid), "socket|1|1|0")
    boot.wait(60)
    check(p.out == "refused\n" and boot.status == 1 and re.search(r"sandbox: thread \S+ calls socket \(41\)", boot.err),
          "status %d: %s\n%s" % (boot.status, boot.err, p.out + p.err))
    left = glob.glob("broken.data.tmp-*")
    check(len(left) == 1, "left: %s" % left)
    for path in left:
        p = e2e.kvmprof("report", "-i", path, "-n", "3")
        check(p.status == 0 and "%" in p.out, "report of what is left: %s" % p.err)
        e2e.shutil.rmtree(path, ignore_errors=True)


def injected(tid, *calls):
    """Results of system calls that a tracer makes in a thread, bound as it is."""
    p = e2e.run(os.path.join(e2e.SCRATCH, "inject"), str(tid), *calls)
    got = [int(n) for n in p.out.split()]
    check(p.status == 0 and len(got) == len(calls), "inject: %s%s" % (p.out, p.err))
    return got


def consumer_of(boot):
    return next((os.path.basename(t) for t in glob.glob("/proc/%d/task/*" % boot.process.pid)
                 if status_of(t)["Name"] == "consumer"), None)


def writing_is_in_its_own_directory(landlock):
    """A taken-over thread writes nothing beside the profile; what it leaves in there is not published."""
    if not landlock:
        return
    os.makedirs("own/dir", exist_ok=True)
    os.chdir("own")
    with open("secret", "w") as f:
        f.write("secret")
    os.chmod("secret", 0o644)
    before = set(os.listdir("."))
    late = ("--control", "s", "--snapshot-save", "o.snap", "--snapshot-on", "never said")
    for planted, options in ((False, late), (True, ())):
        boot = e2e.Boot("-o", "o.data", *options, "--append", "seconds=60")
        check(boot.wait_for("demo: start", 60), "no guest: " + boot.err)
        tid, tmp = consumer_of(boot), "o.data.tmp-%d" % boot.process.pid
        check(tid and os.path.isdir(tmp), "no consumer, or no %s" % tmp)
        outside = ["openat|-100|beside|0101|0600", "openat|-100|dir/in|0101|0600", "openat|-100|secret|01", "unlink|secret",
                   "openat|-100|%s/planted|0101|0600" % os.path.expanduser("~/.debug"),
                   "mkdir|made|0700", "rename|secret|%s/text" % tmp, "rename|%s|moved" % tmp,
                   "rename|%s/data|data" % tmp, "linkat|-100|secret|-100|%s/text|0" % tmp, "symlink|/etc|%s/text" % tmp]
        stages = [f for f in os.listdir(".") if f.startswith(".kvmprof-%d-" % boot.process.pid)]
        check(len(stages) == (1 if options else 0) and all(map(os.path.isdir, stages)), "stages: %s" % stages)
        if options:
            stage = stages[0]
            outside += ["unlink|s", "openat|-100|o.snap|0101|0600", "openat|-100|s.snap.new.%d|0101|0600" % boot.process.pid,
                        "rename|%s|moved" % stage, "rename|%s/data|%s/data" % (tmp, stage), "rmdir|%s" % stage,
                        "symlink|/etc|%s/1" % stage]
        got = injected(tid, *outside, "openat|-100|%s/%s|0101|0600" % (tmp, ".planted" if planted else "text"))
        # EACCES, EXDEV for a name in another directory, EPERM for a link to another user's file.
        check({-1, -13, -18} >= set(got[:-1]) and got[-1] >= 0, "done outside: %s" % dict(zip(outside, got)))
        if not planted:
            injected(tid, "unlink|%s/text" % tmp)
        boot.process.terminate()
        boot.wait(60)
        if not planted:
            check("no snapshot" in boot.err and not os.path.exists("o.snap") and not os.path.exists("s"), "late results: " + boot.err)
        if planted:
            check(boot.status == 1 and ".planted" in boot.err and tmp in boot.err, "planted: %d %s" % (boot.status, boot.err))
            check(e2e.kvmprof("report", "-i", tmp, "-n", "3").status == 0, "what stays cannot be read")
        check(os.stat("secret").st_size == 6 and os.stat("secret").st_mode & 0o7777 == 0o644, "the secret was changed")
        check(set(os.listdir(".")) - before <= {"o.data", tmp}, "left: %s" % os.listdir("."))
    check(e2e.summary("o.data")["samples"] > 0, "no samples")
    os.chdir("..")


def modes_and_the_keeper():
    """Modes whatever the umask, the earlier profile, one that cannot be renamed, and a keeper that is gone or stopped."""
    os.makedirs("modes", exist_ok=True)
    os.chdir("modes")
    mask = os.umask(0)
    for _ in range(3):
        p = e2e.kvmprof("run", "-q", "-o", "m.data", "--append", "seconds=1")
        check(p.status == 0, "run: " + p.err)
    p = e2e.kvmprof("run", "-q", "-o", "s.data", "--single-file", "--append", "seconds=1")
    os.umask(mask)
    check(p.status == 0 and sorted(os.listdir(".")) == ["m.data", "m.data.old", "s.data"], "there are %s" % os.listdir("."))
    for top, dirs, files in os.walk("."):
        for name in dirs + files:
            mode = os.stat(os.path.join(top, name)).st_mode & 0o7777
            check(mode == (0o700 if name in dirs else 0o600), "%s has mode %o" % (os.path.join(top, name), mode))
    for sig in ("KILL", "STOP"):
        boot = e2e.Boot("-o", sig + ".data", "--append", "seconds=60")
        check(boot.wait_for("demo: start", 60), "no guest: " + boot.err)
        with open("/proc/%d/task/%d/children" % (boot.process.pid, boot.process.pid)) as f:
            children = f.read().split()
        keeper = next((int(c) for c in children if status_of("/proc/" + c)["Name"] == "keeper"), None)
        s = status_of("/proc/%s" % keeper) if check(keeper, "no keeper among %s" % children) else {}
        check(s.get("Seccomp") == "2" and s.get("NoNewPrivs") == "1" and int(s.get("CapPrm", "0"), 16) & ~0xf == 0,
              "the keeper is bound so: %s" % s)
        os.kill(keeper, getattr(signal, "SIG" + sig))
        t0 = time.monotonic()
        boot.process.terminate()
        boot.wait(120)
        left = glob.glob(sig + ".data*")
        check(boot.status != 0 and len(left) == 1 and ".tmp-" in left[0], "%s: status %d, left %s" % (sig, boot.status, left))
        check(left and left[0] in boot.err, "not named: " + boot.err)
        say("keeper %s: over %.1f s after SIGTERM" % (sig, time.monotonic() - t0))
        # Without its limits it would be 30 s.
        check(time.monotonic() - t0 < 20, "%s: over only %.1f s after SIGTERM" % (sig, time.monotonic() - t0))
        check(e2e.kvmprof("report", "-i", left[0], "-n", "3").status == 0, "what stays cannot be read")
        check(not os.path.exists("/proc/%d" % keeper) or status_of("/proc/%d" % keeper)["State"].startswith("Z"),
              "the keeper is still there")
    os.chdir("..")


def words():
    whole = "Landlock ABI" in e2e.kvmprof("check").out
    for more in ((), ("--control", "s", "--snapshot-save", "strict.snap", "--snapshot-on", "^demo: start", "--snapshot-continue")):
        p = e2e.kvmprof("run", "-q", "-o", "strict.data", *more, "--sandbox=strict", "--append", "seconds=1")
        check(p.status == (0 if whole else 1) and ("sandbox" in p.err) == (not whole), "strict: %d %s" % (p.status, p.err))
        check(os.path.exists("strict.snap") == (bool(more) and whole) and not os.path.exists("s"), "strict %s: %s" % (more, os.listdir(".")))
    check(not e2e.leftovers(), "left: %s" % e2e.leftovers())
    p = e2e.kvmprof("run", "--sandbox=maybe")
    check(p.status == 2 and p.err.count("\n") == 1 and "--sandbox" in p.err, "--sandbox=maybe: " + p.err)
    p = e2e.kvmprof("run", "-q", "-o", "log.data", "--sandbox=log", "--append", "seconds=1")
    check(p.status == 0 and "kvmprof: sandbox: " in p.err and "not in its list" not in p.err, "log: " + p.err)
    p = e2e.kvmprof("run", "-q", "-o", "off.data", "--sandbox=off", "--append", "seconds=1")
    check(p.status == 0 and "sandbox" not in p.err, "off: " + p.err)
    p = e2e.kvmprof("check")
    line = next((l for l in p.out.split("\n") if "sandbox" in l), "")
    check("no_new_privs" in line and "seccomp" in line, "check says nothing of it: " + p.out)
    return "Landlock ABI" in line


# -- which entries are used ------------------------------------------------------------------

# What the runs below need not come to, and why the lists have it all the same.
RARE, LIBC = {}, {}


def rare(reason, kinds, *calls):
    """kinds "all": of libc's making, of each kind that has it."""
    for kind in (KINDS if kinds == "all" else kinds.split()):
        for call in calls:
            (LIBC if kinds == "all" else RARE)[kind, call] = reason


rare("the end of a run whose list is broken", "all", "exit_group", "write")
rare("a signal in a system call", "all", "rt_sigreturn", "restart_syscall")
rare("a clock of the host's that the vDSO does not read", "all", "clock_gettime")
rare("memory, when the allocator has to ask for it or gives it back", "all", "brk", "mmap", "mprotect", "munmap", "madvise",
     "mremap", "sysinfo")
rare("random numbers of libc's for its own tables and names", "all", "getrandom")
rare("a lock that another thread has", "all", "futex")
rare("glibc 2.39 and later: fstat(3)", "all", "fstat")
rare("a thread's end", "all", "rt_sigprocmask", "exit")
rare("requests that wait for the image's device, and what a driver seldom asks for", "main vcpu disk disk-poll",
     "pread64", "pwrite64", "preadv2", "pwritev", "fallocate", "fdatasync", "lseek", "KVM_IRQ_LINE",
     "KVM_SIGNAL_MSI")
rare("a disk image that qemu-nbd reads (disk_formats.py)", "main disk disk-poll", "poll", "close", "sendto", "recvfrom")
rare("a keeper that does not answer when a client requests a profile", "control", "wait4", "shutdown")
rare("a driver that floods a queue (villain.py)", "virtio-rest", "KVM_IRQ_LINE", "KVM_SIGNAL_MSI")
rare("hosts with VMX or SVM: registers are asked for", "vcpu", "KVM_GET_REGS", "KVM_GET_SREGS")
rare("the guest's own debug registers beside our breakpoints", "vcpu", "KVM_GET_DEBUGREGS", "KVM_SET_DEBUGREGS")
rare("instructions that KVM refuses, and single steps (vmm/pvm)", "vcpu", "KVM_SET_REGS", "KVM_SET_SREGS", "KVM_GET_XCRS",
     "KVM_SET_XCRS", "KVM_GET_XSAVE", "KVM_SET_XSAVE", "KVM_GET_VCPU_EVENTS", "KVM_SET_VCPU_EVENTS", "KVM_SET_MSRS")
rare("a crash of a vCPU's thread (base/fault.c)", "vcpu", "rt_sigaction")
rare("a guest that has kvm-clock is paused", "vcpu", "KVM_KVMCLOCK_CTRL")
rare("a guest that resets itself, with --reboot", "main", "KVM_SET_REGS", "KVM_SET_SREGS", "KVM_SET_MSRS", "KVM_SET_XSAVE",
     "KVM_SET_XCRS", "KVM_SET_DEBUGREGS", "KVM_SET_VCPU_EVENTS", "KVM_SET_MP_STATE", "KVM_SET_LAPIC", "KVM_SET_IRQCHIP", "KVM_SET_PIT2",
     "KVM_SET_GUEST_DEBUG")
rare("hardware counters and tracepoints", "vcpu", "PERF_EVENT_IOC_DISABLE", "PERF_EVENT_IOC_ENABLE", "PERF_EVENT_IOC_REFRESH",
     "PERF_EVENT_IOC_PERIOD", "PERF_EVENT_IOC_SET_FILTER")
rare("counters whose period is changed by `kvmprof ctl`", "vcpu", "perf_event_open", "F_SETOWN_EX", "F_SETSIG", "F_SETFL")
rare("requests that follow each other closely", "main vcpu", "sched_getaffinity")
rare("--rng", "vcpu", "getrandom")
rare("a snapshot where a guest's TSC is not the host's", "main", "KVM_GET_DEVICE_ATTR")
rare("more XSAVE state than 4 KiB", "main", "KVM_GET_XSAVE2", "KVM_GET_XSAVE")
rare("a terminal", "main", "TCGETS", "TIOCGWINSZ")
rare("a terminal", "console", "TIOCGWINSZ")
rare("a snapshot of a machine with disks, whose paths it notes", "main", "readlink", "getcwd")
rare("a snapshot of a machine with shares, where fids stand", "9p-files", "readlinkat")
rare("the process of a share, which has ended", "main vcpu 9p", "wait4", "close", "shutdown", "clock_nanosleep")
rare("a share whose driver begins anew", "vcpu 9p", "poll")
rare("abort(3) in a thread whose crash is its own end", "consumer", "gettid")
rare("realpath(3) of a relative path", "consumer", "getcwd")
rare("a warning of GLib's", "net-slirp", "TCGETS", "getpid", "write")
rare("devices whose guests these runs do not drive so far", "net-slirp", "AF_INET6", "recvmsg", "getpeername", "shutdown", "lseek",
     "getrandom", "accept", "listen", "bind", "openat", "newfstatat", "fcntl", "getsockname", "FIONREAD")
rare("attach, which has no keeper: it gives its profile the name, and removes the one before", "main", "getdents64", "renameat2",
     "unlinkat", "rmdir", "unlink")
rare("a profile's directory that was there is removed", "keeper", "unlinkat")
rare("whether a file that is to be replaced is a profile", "keeper", "read")
rare("a QEMU that does not end when it is told to", "main", "pidfd_send_signal")
rare("the probe's machine, where it is closed only after the lists are in force", "probe", "close")
rare("a file system that cannot exchange names", "keeper", "renameat")
rare("a file for the build-id cache that is new there", "keeper", "mkdirat", "symlinkat", "fchown")
rare("--guest-root, --debuginfo", "consumer", "openat2", "readlinkat", "readlink")
rare("streams and directories that libraries open, and files in memory", "main consumer", "F_GETFD", "F_SETFD", "F_GETFL", "F_DUPFD_CLOEXEC",
     "F_ADD_SEALS", "fcntl")
rare("a directory that is listed, a file that is changed while it is open", "9p-files", "F_GETFD", "F_SETFD", "F_GETFL", "F_DUPFD_CLOEXEC", "fcntl")
rare("the process of the network, which has ended", "net-user", "wait4", "close", "shutdown", "clock_nanosleep")
rare("sockets of libslirp", "net-slirp", "F_GETFD", "F_SETFD", "F_GETFL")
rare("the process of a share at the end of a run", "main", "poll")
rare("--mem", "consumer", "move_pages")
rare("`kvmprof ctl snapshot` over a profile that is there, and into another file system", "consumer", "rmdir", "unlink",
     "copy_file_range", "symlink", "mkdir", "rename", "renameat2", "linkat", "access", "uname")
rare("another thread is to look at what was asked for", "consumer control", "getpid", "tgkill")
rare("a client that does not read", "control", "clock_nanosleep")
rare("an answer of its clock, where ring 0 is interpreted", "pit", "pread64", "KVM_IRQ_LINE")
rare("a snapshot of a disk with an overlay in memory", "main", "memfd_create")
rare("a kernel that moves: its image is unpacked when it has booted", "consumer", "memfd_create")

LINE = re.compile(r"^(\d+) +(\w+)\((.*)")


def used_of(path):
    """(kind, call or ioctl's request) of all that was called by threads once they were bound."""
    kind, bound, used, begun = {}, set(), set(), {}
    first = None
    with open(path, errors="replace") as f:
        for line in f:
            m = LINE.match(line)
            if not m:
                continue
            tid, call, rest = m.groups()
            first = first or tid
            if call == "prctl" and rest.startswith("PR_SET_NAME"):
                kind[tid] = rest.split('"')[1]
            elif call == "seccomp" and rest.startswith("SECCOMP_SET_MODE_FILTER") and "{len=" in rest:
                bound.add(tid)
                if tid == first:
                    kind[tid] = "main"
            elif tid in bound and tid in kind:    # QEMU's own have a list of QEMU's
                used.add((kind[tid], argument(call, rest)))
    return used


def argument(call, rest):
    if call in ("ioctl", "fcntl"):
        return rest.split(", ")[1].split(")")[0].split(" ")[0].split("_OLD")[0]
    return rest.split(", ")[0] if call in ("socket", "ptrace") else call


def traced(name, *argv, status=(0,), during=None, stdin=subprocess.DEVNULL, command="run"):
    """One run under strace; during(process) goes on beside it."""
    path = name + ".strace"
    p = subprocess.Popen(["strace", "-f", "-o", path, e2e.KVMPROF, command] + list(argv), stdin=stdin,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out = []
    reader = threading.Thread(target=lambda: out.append(p.communicate()), daemon=True)
    reader.start()
    if during:
        during(p)
    reader.join(900)
    if p.poll() is None:
        # strace goes with what it traces.
        os.kill(int(open("/proc/%d/task/%d/children" % (p.pid, p.pid)).read().split()[0]), 9)
        reader.join()
        check(False, "%s: not over after 900 s" % name)
    text = b"".join(out[0]).decode(errors="replace") if out else ""
    check(p.returncode in status, "%s: status %s: %s" % (name, p.returncode, text[-2000:]))
    used = used_of(path)
    os.unlink(path)
    return used


def control_during(p):
    ctl = ["ctl", "--control", "s"]
    for _ in range(600):
        if os.path.exists("s") and e2e.kvmprof(*ctl, "status").status == 0:
            break
        time.sleep(0.1)
    for words in ("stats", "collect off", "collect on", "snapshot now.data", "mark here", "vcpu 0 off", "vcpu 0 on"):
        e2e.kvmprof(*ctl, *words.split())
    e2e.kvmprof("top", "--control", "s", "--stdio", "-n", "2", "-d", "0.3")
    e2e.kvmprof("ps", "--control", "s")
    e2e.kvmprof(*ctl, "stop")


def demo_runs():
    """With the guests that kvmprof brings along."""
    blk_guest.write_image("disk.img", 8192)
    demo = ["--append", "seconds=1"]
    disk = ["-m", "64M", "-o", "disk.data", blk_guest.ELF]
    yield traced("demo", "-o", "demo.data", *demo)
    yield traced("again", "-o", "demo.data", "-e", "cpu,task-clock", "--mem", *demo)
    yield traced("pipe", "-o", "-", "--overwrite", *demo)
    yield traced("single", "-q", "-o", "single.data", "--single-file", "--json", "-e", "exit:io", *demo)
    yield traced("markers", "-o", "m.data", "--start-on", "demo: start", "--mark-at", "job_pick", "--pin", "0",
                 "--duration", "1", "--append", "seconds=9")
    yield traced("save", "-m", "64M", "-o", "save.data", "--snapshot-save", "s.snap", "--snapshot-on", "^demo: start",
                 "--append", "seconds=1")
    yield traced("restored", "-o", "rest.data", "--snapshot", "s.snap")
    yield traced("control", "--control", "s", "-o", "c.data", "--vcpus", "2", "--append", "seconds=60", during=control_during)
    tiny = e2e.built_kernel("tiny")
    yield traced("tiny", os.path.join(tiny, "vmlinux"), "--initrd", e2e.INITRAMFS, "-m", "64M", "-o", "tiny.data", "--ps-at-end",
                 "--off-cpu", "--mem", "--duration", "20")
    yield traced("stat", "--duration", "1", "-F", "97", command="stat")
    yield traced("exact", "--engine", "exact", "--call-counts", "-q", "-o", "exact.data", "--append", "work=2")
    yield traced("crash", "-o", "crash.data", "--append", "mode=crash", status=(0, 1))
    for name, image, words, options in (
            ("mmio", "disk.img,readonly", "transport=mmio", ["--virtio", "mmio"]),
            ("pci", "disk.img", "irq=1", []),
            ("file", "disk.img,overlay=%s.img" % os.getpid(), "irq=1", []),
            ("write", "disk.img,writable", "", ["-e", "io"])):
        yield traced("disk-" + name, "--disk", image, "--append", "ms=40 " + words, *options, *disk)


def calls(tool):
    e2e.need_tool("strace")
    exact_engine.find_qemu()
    table = {(k, a if a != "-" else c) for k, c, a in (l.split() for l in e2e.run(tool, "list").out.splitlines())}
    used, runs = set(), 0
    for more in demo_runs():
        used |= more
        runs += 1
    if "linux" in e2e.EXTRA:
        for more in linux_runs():
            used |= more
            runs += 1
    idle = sorted(e for e in table - used if e not in RARE and e not in LIBC)
    if "linux" not in e2e.EXTRA:    # devices that only a Linux drives
        idle = [e for e in idle if e[0] not in ("9p", "9p-files", "net-user", "net-slirp", "net-tap")]
    idle = [e for e in idle if e[0] not in ("tracer", "gdb", "libvirt") and not e[0].startswith("attach-")]    # these runs attach to nothing
    for kind, call in idle:
        check(False, "%s: no run has used %s, and no reason is given" % (kind, call))
    for kind, call in sorted(set(RARE) - table):
        check(False, "%s: %s has a reason, and is in no list" % (kind, call))
    for kind, call in sorted(used - table):
        say("%s has used %s, which is not in its list" % (kind, call))
    return "%d runs use %d of %d entries, %d are rare" % (runs, len(used & table), len(table), len(table & (set(RARE) | set(LIBC))))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def serve_guest(p, address):
    """Connects to the guest's server once it listens."""
    end = time.monotonic() + 600
    while p.poll() is None and time.monotonic() < end:
        try:
            with socket.create_connection(address, timeout=60) as s:
                if s.recv(4096):
                    return
        except OSError:
            pass
        time.sleep(0.2)
    check(False, "nobody answered at the guest's port 80")


SHARED = ("cd /data; busybox cat in; busybox ls -la; echo out > sub/out; busybox mv sub/out moved; busybox mkdir d;"
          " busybox ln -s moved d/l; busybox dd if=/dev/zero of=big bs=1000 count=100 conv=fsync; busybox chmod 600 moved;"
          " busybox rm in; busybox df .; busybox touch -d 2020-01-01 moved; busybox truncate -s 10 big; busybox sync;"
          " busybox rm -r d; busybox mkfifo p; true")


def linux_runs():
    """With a Linux that has drivers: the network, a share, random numbers, hvc0."""
    kernel = e2e.built_kernel("smp-fp")
    server = page_server.serve("127.0.0.1", b"a page\n" * 500)
    for name, options in (("pci", []), ("mmio", ["--virtio", "mmio"])):
        port = free_port()
        yield traced("net-" + name, os.path.join(kernel, "vmlinux"), "-m", "128M", "--initrd",
                     os.path.join(e2e.BUILD, "guest", "devices.cpio"), "--rng", "--virtio-console", "-o", "net.data",
                     "--net", "user,host-loopback,hostfwd=tcp:%d-:80" % port, *options, "--append",
                     "ip=dhcp devices.serve=80 devices.http=10.0.2.2:%d" % server.server_address[1],
                     during=lambda p, port=port: serve_guest(p, ("127.0.0.1", port)))
    server.shutdown()
    os.makedirs("rw/sub", exist_ok=True)
    with open("rw/in", "w") as f:
        f.write("from the host\n")
    for name, options in (("pci", []), ("mmio", ["--virtio", "mmio"])):
        yield traced("share-" + name, os.path.join(kernel, "bzImage"), "-m", "128M", "-F", "97", "-o", "share.data", *options,
                     "--share", os.path.abspath("rw") + ":/data", "--", "busybox", "sh", "-c", SHARED)
    yield from tap_runs(kernel)


def tap_runs(kernel):
    """This thread goes into a network namespace of its own, and stays there."""
    host, guest = "10.99.0.1", "10.99.0.2"
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        check(False, "no network namespace of one's own for the runs with a tap interface: %s" % os.strerror(ctypes.get_errno()))
        return
    for words in ("tuntap add dev kvmprof0 mode tap", "address add %s/24 dev kvmprof0" % host, "link set kvmprof0 up"):
        check(e2e.run("ip", *words.split()).status == 0, "ip " + words)
    for name, options in (("pci", []), ("mmio", ["--virtio", "mmio"])):
        yield traced("tap-" + name, os.path.join(kernel, "vmlinux"), "-m", "128M", "--initrd",
                     os.path.join(e2e.BUILD, "guest", "devices.cpio"), "-o", "tap.data", "--net", "tap=kvmprof0", *options,
                     "--append", "ip=%s::%s:255.255.255.0::eth0:off devices.serve=80" % (guest, host),
                     during=lambda p: serve_guest(p, (guest, 80)))


e2e.need_kvm()
thread = compiled.tool("e2e/sandbox_thread.c")
compiled.tool("e2e/inject.c")
if e2e.EXTRA[:1] == ["attempts"]:
    attempts(thread, (99, 5, 2, 1, 0))
    e2e.finish("ABI of the host, 5, 2, 1, 0")
if e2e.EXTRA[:1] == ["calls"]:
    e2e.finish(calls(thread))
with open("disk.img", "wb") as f:
    f.truncate(1 << 20)
each_kind_dies(thread)
attempts(thread, (0,))
attempts(thread, (99,), sorted(WITH_PATHS))
the_consumer_has_no_machine(thread)
has_landlock = words()
if has_landlock:
    files_are_confined(thread)
threads_are_bound(has_landlock)
a_broken_list_leaves_a_profile()
writing_is_in_its_own_directory(has_landlock)
modes_and_the_keeper()
e2e.finish("%d kinds of threads, %d calls each%s" % (len(KINDS), len(BAD) + 1, "" if has_landlock else "; no Landlock here"))

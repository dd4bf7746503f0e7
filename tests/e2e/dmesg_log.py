#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 1800 s
# tests: not svm, host
"""dmesg_log.py KVMPROF SCRATCH [KERNEL,...]: `kvmprof dmesg` prints what the guest's own dmesg would.

Linux guests write many records of all kinds (dmesg_init.c) and print their log as syslog(2) returns it. What `kvmprof
dmesg --raw` reads from outside must be the same bytes, and without --raw the same without "<N>": through a gdbstub of QEMU
without KVM, of all kernels whose boot is tested; and, where there is KVM, by the PID of a `kvmprof run`. Levels, lines and
JSON are held against the same text. Wrong usage gets one line.
"""

import json
import os
import re
import socket
import subprocess
import time

import compiled
import e2e
import kernel_matrix
import qemu
from e2e import check, say

RECORDS = 4000    # more than fit in 128 KiB, so that the ring wraps
FEW = 40
LEVELS = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"]
APPEND = "console=ttyS0 printk.devkmsg=on dmesg.records=%d"


def ram_disk():
    compiled.cc("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", "dmesg_init",
                os.path.join(e2e.TOP, "tests", "e2e", "dmesg_init.c"))
    subprocess.run([os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), "dmesg_init", "dmesg.cpio"], check=True)


def contents(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except FileNotFoundError:
        return b""


def logs(console):
    """All logs that the guest has printed completely."""
    return re.findall(rb"dmesg-begin\n(.*?)dmesg-end\n", contents(console), re.S)


def wait_for_log(console, seconds, ended):
    until = time.monotonic() + seconds
    while time.monotonic() < until and not ended():
        if logs(console):
            return True
        time.sleep(0.05)
    return check(False, "no log on the console: " + contents(console)[-1500:].decode(errors="replace"))


def dmesg(*argv):
    p = subprocess.run([e2e.KVMPROF, "dmesg", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=120)
    check(p.returncode == 0, "dmesg %s: status %d: %s" % (argv, p.returncode, p.stderr.decode(errors="replace")))
    return p


def settled(console, *argv):
    """The guest's own log and ours, between which it did not change: the guest looks each 0.3 s."""
    for _ in range(10):
        before = contents(console).count(b"dmesg-begin\n")
        p = dmesg("--raw", *argv)
        time.sleep(3)
        if before == contents(console).count(b"dmesg-begin\n") == len(logs(console)):
            break
    else:
        check(False, "the guest's log changes all the time")
    return logs(console)[-1], p


def difference(ours, truth):
    a, b = ours.split(b"\n"), truth.split(b"\n")
    at = next((i for i in range(min(len(a), len(b))) if a[i] != b[i]), min(len(a), len(b)))
    return "%d lines, not %d; line %d is %r, not %r" % (len(a), len(b), at, b"\n".join(a[at:at + 2]), b"\n".join(b[at:at + 2]))


def plain(raw):
    return re.sub(rb"^<\d+>", b"", raw, flags=re.M)


def same_log(name, console, *argv):
    truth, p = settled(console, *argv)
    check(p.stdout == truth, "%s: %s" % (name, difference(p.stdout, truth)))
    check(p.stderr == b"", "%s: %s" % (name, p.stderr))
    text = dmesg(*argv).stdout
    check(text == plain(truth), "%s, text: %s" % (name, difference(text, plain(truth))))
    return truth


def options(name, truth, *argv):
    lines = truth.splitlines(keepends=True)
    severe = b"".join(x for x in lines if int(re.match(rb"<(\d+)>", x).group(1)) % 8 in (0, 1, 2, 3, 7))
    got = dmesg("--raw", "-l", "err+,debug", *argv).stdout
    check(got == severe, "%s, err+,debug: %s" % (name, difference(got, severe)))
    for n in (1, 7):
        got = dmesg("--raw", "--lines", str(n), *argv).stdout
        check(got == b"".join(lines[-n:]), "%s, %d lines: %r" % (name, n, got))
    o = json.loads(dmesg("--json", *argv).stdout)
    check(set(o) == {"version", "release", "records", "missing"} and not any(o["missing"].values()), "%s: JSON: %s" %
          (name, {k: o[k] for k in o if k != "records"}))
    timed = re.match(rb"<\d+>\[", truth)
    again = "".join("<%d>%s%s\n" % (
        r["facility"] << 3 | LEVELS.index(r["level"]), "[%5d.%06d] " % (r["time_ns"] // 10 ** 9, r["time_ns"] % 10 ** 9 // 1000) if timed else "",
        line) for r in o["records"] for line in r["text"].split("\n"))
    check(again == truth.decode(errors="replace") or not truth.isascii(), "%s: JSON has another text" % name)
    seq = [r["seq"] for r in o["records"]]
    # Of what the kernel has overwritten, a record without text may remain.
    check(seq == sorted(set(seq)), "%s: numbers of records: %s" % (name, [(a, b) for a, b in zip(seq, seq[1:]) if b <= a]))
    check(len(json.loads(dmesg("--json", "--lines", "3", *argv).stdout)["records"]) == 3, "%s: 3 records" % name)
    return sum(1 for r in o["records"] if "device" in r)


def through_gdb(name, image):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        stub = "127.0.0.1:%d" % s.getsockname()[1]
    q = qemu.Qemu(name, "-accel", "tcg,thread=multi", "-M", "q35", "-cpu", "max", "-smp", "2", "-m", "256", "-no-user-config",
                  "-kernel", image, "-initrd", "dmesg.cpio", "-append", APPEND % RECORDS, "-gdb", "tcp:" + stub)
    try:
        if not wait_for_log(q.out, 300, lambda: q.process.poll() is not None):
            return
        truth = same_log(name, q.out, "--gdb", stub)
        check(b"record %d " % (RECORDS - 1) in truth and b"Linux version" not in truth, "%s: the ring did not wrap" % name)
        options(name, truth, "--gdb", stub)
        start = time.monotonic()
        dmesg("--gdb", stub)
        say("%s, gdbstub: %d bytes, %d lines, the same; %.2f s" % (name, len(truth), truth.count(b"\n"), time.monotonic() - start))
    finally:
        q.end()


def by_pid(name, image):
    """Of a `kvmprof run`, which is not asked."""
    console = name + ".run"
    with open(console, "wb") as out:
        run = subprocess.Popen([e2e.KVMPROF, "run", image, "--initrd", "dmesg.cpio", "-m", "128M", "-F", "1", "-o", name + ".data",
                                "--append", APPEND % FEW], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
    try:
        if not wait_for_log(console, 300, lambda: run.poll() is not None):
            return
        truth = same_log(name, console, str(run.pid))
        check(b"Linux version" in truth, "%s: the log has no beginning" % name)
        n = options(name, truth, str(run.pid))
        start = time.monotonic()
        dmesg(str(run.pid))
        say("%s, PID: %d bytes, %d lines, the same, %d of devices; %.2f s" %
            (name, len(truth), truth.count(b"\n"), n, time.monotonic() - start))
    finally:
        run.kill()
        run.communicate()


def saved(name, image):
    """Of a snapshot, by each way to name it; without KVM and without the guest's devices."""
    console = name + ".saved"
    with open(console, "wb") as out:
        p = subprocess.run([e2e.KVMPROF, "run", image, "--initrd", "dmesg.cpio", "-m", "64M", "-F", "1", "-o", "saved.data",
                            "--append", APPEND % FEW, "--snapshot-save", "log.snap", "--at", "console:^dmesg-end"],
                           stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, timeout=600)
    if not check(p.returncode == 0, "saving: " + p.stderr.decode(errors="replace")):
        return
    truth = logs(console)[-1]
    for argv in (["log.snap"], ["--snapshot", "log.snap"]):
        p = dmesg("--raw", *argv)
        check(p.stdout == truth and not p.stderr, "%s %s: %s %s" % (name, argv, difference(p.stdout, truth), p.stderr))
    options(name, truth, "log.snap")
    w = e2e.kvmprof("why", "--json", "--hang-after", "0.1", "log.snap")
    o = json.loads(w.out)
    check(w.status == 0 and o["status"] == "well" and o["vcpus"][0]["samples"] > 5, "why: status %d: %s" % (w.status, w.out[:300]))
    say("%s, snapshot: %d bytes, the same" % (name, len(truth)))


def refusals():
    for argv, status, text in (
            ([], 2, "which machine"), (["--level", "loud", "1"], 2, "emerg"), (["-l", "err,", "1"], 2, "emerg"),
            (["--lines", "0", "1"], 2, "a number of lines"), (["--raw", "--json", "1"], 2, "not both"),
            (["--gdb", "127.0.0.1:1", "7"], 2, "give one of"), (["--gdb", "127.0.0.1:1"], 1, "cannot connect"),
            (["--snapshot", "no.snap"], 1, "no.snap"), (["--snapshot", "dmesg.cpio"], 1, "not a snapshot"),
            (["--snapshot", "a", "--gdb", "b"], 2, "not both"), (["--snapshot", "a", "7"], 2, "give one of"),
            ([str(os.getpid())], 1, "KVM")):
        p = e2e.kvmprof("dmesg", *argv)
        check(p.status == status and text in p.err and p.err.count("\n") == 1 and not p.out, "dmesg %s: status %d: %s" %
              (argv, p.status, p.err))


def main():
    wanted = e2e.EXTRA[0].split(",") if e2e.EXTRA else None
    kernels = [k for k in kernel_matrix.kernels().values() if k.name in wanted or []] if wanted else \
        [k for k in kernel_matrix.kernels().values() if k.boot in ("slow", "svm") or k.name in ("tiny", "full")]
    ram_disk()
    refusals()
    for k in kernels:
        try:
            image = kernel_matrix.image(k)
        except kernel_matrix.Missing as e:
            e2e.left_out(str(e))
            continue
        if e2e.has_tool("qemu-system-x86_64"):
            through_gdb(k.name, image)
        if k.name == "tiny" and os.path.exists("/dev/kvm"):
            by_pid(k.name, image)
            saved(k.name, image)
    e2e.finish()


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 8 s
# tests: slow, at most 1800 s: 100
# tests: slow, at most 3600 s: linux 100
# tests: slow, at most 1800 s: smp
# tests: svm, at most 240 s
"""snapshots.py KVMPROF SCRATCH [N | linux [N] | smp]: a machine is saved, and goes on as it would
have: the same guest-visible result in N (5) runs from one file, several of them at once.

linux: the tiny kernel, saved when its init begins, to its end N (100) times. smp: two vCPUs."""

import glob
import hashlib
import os
import re
import struct
import subprocess
import time
import zlib

import e2e
import emulated
from e2e import check, say

e2e.need_kvm()
WHAT = e2e.EXTRA[0] if e2e.EXTRA and not e2e.EXTRA[0].isdigit() else "demo"
N = next((int(a) for a in e2e.EXTRA if a.isdigit()), 5 if WHAT == "demo" else 100)
LONG_ENOUGH_MS = 200    # for samples, and for --duration 0.1 to come first


def run(*argv, status=0, timeout=600):
    p = e2e.kvmprof("run", *argv, timeout=timeout)
    check(p.status == status, "run %s: status %d, not %d: %s" % (argv, p.status, status, p.err))
    return p


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def result(text):
    """What a guest says but for how long it took: no two runs take the same time."""
    lines = [l for l in text.replace("\r", "").split("\n") if l]
    return [re.sub(r"\d+ ms", "T ms", re.sub(r"\d+ timer interrupts", "N timer interrupts",
            re.sub(r"^(truth|outside) *[\d.]+", r"\1", l))) for l in lines]


def save(path, *argv):
    p = run("-m", "64M", "-o", "save.data", "--snapshot-save", path, *argv)
    check("saved %s in" % path in p.err and "snapshot saved after" in p.err, "saving: " + p.err)
    return p


# -- the demo guest --------------------------------------------------------------------

def work_for(ms):
    """So many rounds as take so long here: hosts differ by a factor of a thousand."""
    work = 20
    while True:
        p = run("-m", "64M", "-o", "work.data", "--append", "work=%d" % work)
        took = int(re.search(r"^demo: (\d+) ms", p.out, re.M)[1])
        if took >= ms:
            return work
        work *= max(2, min(20, 3 * ms // (2 * max(took, 1))))


def same_result():
    whole = run("-m", "64M", "-o", "whole.data", "--append", "work=%d" % WORK)
    first = save("s.snap", "--append", "work=%d" % WORK, "--at", "console:^demo: start")
    size, used = os.stat("s.snap").st_size, os.stat("s.snap").st_blocks * 512
    check(size > 64 << 20 and used < 4 << 20, "%d bytes, %d of them on disk" % (size, used))
    before = digest("s.snap")
    want = result(whole.out)
    check(result(first.out) == want[:len(result(first.out))], "before it was saved: %r" % first.out)
    rest = want[len(result(first.out)):]
    check(any("slices" in l for l in rest), "nothing is left to say: %r" % rest)
    for i in range(N - 2):
        p = run("--snapshot", "s.snap", "-o", "p%d.data" % (i % 3))
        check(result(p.out) == rest, "run %d said %r, not %r" % (i, result(p.out), rest))
    # At once.
    many = [subprocess.Popen([e2e.KVMPROF, "run", "--snapshot", "s.snap", "-o", "m%d.data" % i],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, universal_newlines=True) for i in range(2)]
    for p in many:
        out, err = p.communicate(timeout=600)
        check(p.returncode == 0 and result(out) == rest, "beside another: %r %s" % (out, err))
    check(digest("s.snap") == before, "the file has changed")
    s = e2e.summary("p0.data")
    check(s["samples"] > 20 and s["lost"] == 0, "%d samples" % s["samples"])
    report = e2e.run("perf", "report", "-i", "p0.data", "--stdio")
    check("left_leaf" in report.out, "perf report: " + report.out[:500] + report.err)


def at_an_instruction():
    """It stands in front of the instruction, so that it comes there once more."""
    p = run("-m", "64M", "-o", "n.data", "--append", "work=%d" % WORK, "--mark-at", "job_pick")
    all_of_it = e2e.summary("n.data")["breakpoints"][0]["reached"]
    save("a.snap", "--append", "work=%d" % WORK, "--snapshot-at", "job_pick")
    run("--snapshot", "a.snap", "-o", "n.data", "--mark-at", "job_pick")
    again = e2e.summary("n.data")["breakpoints"][0]["reached"]
    check(again == all_of_it, "reached %d times of %d" % (again, all_of_it))
    check(p.status == 0, p.err)
    # A snapshot of what came out of one; and going on.
    p = run("--snapshot", "a.snap", "-o", "c.data", "--snapshot-save", "b.snap", "--snapshot-on",
            "^demo: start", "--snapshot-continue")
    check("slices" in p.out and "saved b.snap" in p.err, "going on: %s %s" % (p.out, p.err))
    check("snapshot" in [m["kind"] for m in e2e.summary("c.data")["markers"]], "no marker")
    p = run("--snapshot", "b.snap", "-o", "c.data")
    check("slices" in p.out and "demo: start" not in p.out, "of the second: " + p.out)


def with_options():
    run("--snapshot", "s.snap", "-o", "d.data", "--duration", "0.1", "-F", "500", "-q")
    check(e2e.summary("d.data")["end"] == "duration reached", "--duration")
    run("--snapshot", "s.snap", "-o", "d.data", "--stop-on", "^truth ", "-e", "exit:io")
    check(e2e.summary("d.data")["end"] == "stop marker reached", "--stop-on")


def patched(path, section, old, new):
    """A copy of s.snap in which a section says something else, with good checksums."""
    with open("s.snap", "rb") as f:
        data = bytearray(f.read())
    n = struct.unpack_from("<I", data, 12)[0]
    for i in range(n):
        row = 40 + 48 * i
        if data[row:row + 24].rstrip(b"\0") == section:
            off, length = struct.unpack_from("<QQ", data, row + 32)
            text = bytes(data[off:off + length])
            check(old in text and len(old) == len(new), "no %r in %r" % (old, text))
            data[off:off + length] = text = text.replace(old, new)
            struct.pack_into("<I", data, row + 28, zlib.crc32(text))
    struct.pack_into("<I", data, 32, 0)
    struct.pack_into("<I", data, 32, zlib.crc32(bytes(data[:40 + 48 * n])))
    with open(path, "wb") as f:
        f.write(data)


def one_line(p, *words):
    lines = p.err.strip().split("\n")
    check(len(lines) == 1 and all(w in lines[0] for w in words), "said %r" % p.err)


def refusals():
    for extra in (["demo.elf"], ["-m", "64M"], ["--vcpus", "2"], ["--append", "x"],
                  ["--cmdline", "x"], ["--initrd", "x"], ["--no-tune"], ["--rng"]):
        one_line(run("--snapshot", "s.snap", "-o", "x", *extra, status=2), "--snapshot")
    for wrong in (["--snapshot-save", "x"], ["--at", "main"], ["--snapshot-on", "x"],
                  ["--snapshot-continue"], ["--snapshot-save", "x", "--at", "foo:bar"],
                  ["--snapshot-save", "x", "--snapshot-at", "a", "--snapshot-on", "b"],
                  ["--snapshot-save", "", "--at", "x"], ["--snapshot-save", "x", "--at", "console:("]):
        one_line(run("-o", "x", *wrong, status=2))
    one_line(run("--snapshot", "none.snap", "-o", "x", status=1), "none.snap: cannot open: No such file")
    one_line(run("--snapshot", ".", "-o", "x", status=1), "is a directory, expected a file")
    one_line(run("--snapshot", e2e.KVMPROF, "-o", "x", status=1), "is not a snapshot")
    one_line(run("--snapshot", "s.snap", "--cpu", "3", "-o", "x", status=1), "--cpu 3")
    # Before the boot, not when the marker is reached.
    p = run("-o", "x", "--append", "work=1", "--snapshot-save", "no/such/x", "--at",
            "console:^demo: start", status=1)
    one_line(p, "no/such/x: cannot create: no/such: No such file")
    check(not p.out, "the guest was booted: " + p.out)
    with open("s.snap", "rb") as f, open("cut.snap", "wb") as g:
        g.write(f.read(1 << 20))
    one_line(run("--snapshot", "cut.snap", "-o", "x", status=1), "cut off")
    kind = b"KVM interprets ring 0="
    with open("s.snap", "rb") as f:
        at = f.read(1 << 20)
    is_yes = kind + b"yes" in at
    model = re.search(rb"processor model=0x[0-9a-f]{8}", at).group(0)
    patched("other.snap", b"host", model, model[:-8] + b"deadbeef")
    one_line(run("--snapshot", "other.snap", "-o", "x", status=1), "another host",
             "processor model=0xdeadbeef", model.decode())
    if is_yes:
        patched("other.snap", b"host", b"instructions=yes", b"instructions=no!")
        one_line(run("--snapshot", "other.snap", "-o", "x", status=1), "refuses instructions")
    # Waited for in vain.
    p = run("-o", "x", "-q", "--append", "work=1", "--snapshot-save", "never.snap", "--at",
            "console:never said", status=1)
    check("no snapshot: --snapshot-on 'never said' was never seen" in p.err, p.err)
    check(not os.path.exists("never.snap"), "a file of what never was")


def resources():
    """What the file names of this host is not opened because the file names it."""
    with open("a disk", "wb") as f:
        f.truncate(1 << 20)
    disk = os.path.realpath("a disk")
    p = save("r.snap", "--append", "mode=default work=1", "--disk", disk, "--net", "user", "--at", "console:^demo: start")
    again = "--disk '%s' --net user" % disk
    check("`kvmprof run --snapshot r.snap %s` goes on" % again in p.err, "saving says: " + p.err)
    on = ["--snapshot", "r.snap", "-o", "r.data", "-F", "97"]
    one_line(run(*on, status=1), "r.snap uses", "--snapshot-trust", again)
    one_line(run(*on, "--net", "user", status=1), "of your own): --disk")
    one_line(run(*on, "--disk", disk, status=1), "of your own): --net user")
    one_line(run(*on, "--share", ".", "--snapshot-trust", status=1), "no share")
    run(*on, "--disk", disk, "--net", "user")
    run(*on, "--snapshot-trust")
    # A disk that can't be opened is not what is said: it was not tried.
    os.unlink(disk)
    os.mkfifo(disk)
    one_line(run(*on, status=1, timeout=60), again)


def killed_saves():
    """Nothing, or all of it."""
    os.mkdir("kill")
    complete = 0
    for i in range(4):
        path = "kill/k%d.snap" % i
        p = subprocess.Popen([e2e.KVMPROF, "run", "-m", "512M", "-o", "x", "--append", "work=1000",
                              "--snapshot-save", path, "--at", "console:^demo: start"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        for line in p.stdout:
            if b"demo: start" in line:
                break
        time.sleep(0.03 * i)
        p.kill()
        p.wait()
        p.stdout.close()
        if os.path.exists(path):
            complete += 1
            run("--snapshot", path, "-o", "x", "-q", "--duration", "0.05")
    left = glob.glob("kill/*")
    check(len(left) == complete, "left over: %r" % left)
    say("%d of 4 killed saves were complete" % complete)


# -- Linux -----------------------------------------------------------------------------

def linux(variant, marker, count, *argv):
    k = e2e.built_kernel(variant)
    t0 = time.monotonic()
    run(os.path.join(k, "vmlinux"), "--initrd", e2e.INITRAMFS, "-o", "l.data", "-F", "20", "-q",
        "--snapshot-save", "l.snap", "--snapshot-on", marker, *argv, timeout=1800)
    took = time.monotonic() - t0
    before, first = digest("l.snap"), None
    for i in range(count):
        p = run("--snapshot", "l.snap", "-o", "l.data", "-F", "100", timeout=900)
        first = first or result(p.out)
        check(result(p.out) == first, "run %d said %r, not %r" % (i, result(p.out), first))
        check("kvmprof-init: done" in p.out, "run %d: %s" % (i, p.out))
    check(digest("l.snap") == before, "the file has changed")
    e2e.finish("boot %.0f s, then %d times the same %d lines" % (took, count, len(first)))


if WHAT == "linux":
    linux("tiny", "^kvmprof-init: start", N, "-m", "64M")
elif WHAT == "smp":
    linux("smp-fp", "^kvmprof-init: phase", min(N, 10), "-m", "64M", "--vcpus", "2")
else:
    WORK = work_for(LONG_ENOUGH_MS)
    same_result()
    if emulated.breakpoints_fire():
        at_an_instruction()
    else:
        say("not tried: --snapshot-at, as this emulated host's guests never stop at breakpoints")
    with_options()
    refusals()
    resources()
    killed_saves()
    e2e.finish("%d runs from one file, of work=%d" % (N, WORK))

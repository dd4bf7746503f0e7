#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 5 s: {asan}/kvmprof
# tests: not svm, files
"""What users get wrong: one clear line, the right exit status, nothing left behind.

bad_input.py KVMPROF SCRATCH [KVMPROF2]: KVMPROF2 is the program built with sanitizers,
which has to say the same."""

import os
import re
import struct
import subprocess

import e2e
from e2e import check, say

CORPUS = os.path.join(e2e.TOP, "tests", "fuzz", "corpus", "fuzz_image")
# Documentation/arch/x86/boot.rst: "The Real-Mode Kernel Header"
SETUP_SECTS, SYSSIZE, LOADFLAGS, XLOADFLAGS = 0x1f1, 0x1f4, 0x211, 0x236
CMDLINE_SIZE, PAYLOAD_OFFSET, PAYLOAD_LENGTH = 0x238, 0x248, 0x24c
# elf(5): Elf64_Phdr members, from the first program header of the seed
PHDR = 64
P_OFFSET, P_PADDR, P_FILESZ, P_MEMSZ = PHDR + 8, PHDR + 24, PHDR + 32, PHDR + 40
WRAP = 2 ** 64 - 0x800

have_kvm = os.access("/dev/kvm", os.R_OK | os.W_OK)
not_tried = []


def seed(name):
    with open(os.path.join(CORPUS, name), "rb") as f:
        return bytearray(f.read())


def write(name, data):
    path = os.path.join(e2e.SCRATCH, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def patched(name, base, *fields):
    data = seed(base)
    for offset, fmt, value in fields:
        struct.pack_into("<" + fmt, data, offset, value)
    return write(name, data)


def images():
    """(what, file, what the message has to tell)"""
    bz, elf = seed("bz-gzip"), seed("elf")
    return [
        ("missing", os.path.join(e2e.SCRATCH, "missing"), "No such file"),
        ("empty", write("empty", b""), "empty"),
        ("a directory", "/", "directory"),
        ("a device", "/dev/null", "regular file"),
        ("a text file", "/etc/passwd", "text file"),
        ("zeros", write("zeros", bytes(65536)), "zero"),
        ("noise", write("noise", bytes(range(1, 256)) * 64), "not a kernel"),
        ("this program", e2e.KVMPROF, ""),
        ("a 32-bit ELF", os.path.join(CORPUS, "elf-32bit"), "32-bit"),
        ("an ELF for another machine", os.path.join(CORPUS, "elf-arm64"), ""),
        ("a core file", os.path.join(CORPUS, "elf-core"), ""),
        ("an ELF cut short", write("elf-cut", elf[:300]), "truncated"),
        ("an ELF header cut short", write("elf-cut2", elf[:40]), ""),
        ("a bzImage cut short", write("bz-cut", bz[:len(bz) - 60]), "truncated"),
        ("a bzImage header cut short", write("bz-cut2", bz[:0x230]), ""),
        ("a bzImage with noise for a payload", write("bz-noise", bz[:-200] + bytes(range(200))), ""),
        ("setup_sects 255", patched("sects255", "bz-gzip", (SETUP_SECTS, "B", 255)), ""),
        ("setup_sects 0", patched("sects0", "bz-gzip", (SETUP_SECTS, "B", 0)), ""),
        ("payload_offset 2^32-1", patched("poff", "bz-gzip", (PAYLOAD_OFFSET, "I", 2**32 - 1)), ""),
        ("payload_offset 2^32-len", patched("poffw", "bz-gzip", (PAYLOAD_OFFSET, "I", 2**32 - 0x100)), ""),
        ("payload_length 2^32-1", patched("plen", "bz-gzip", (PAYLOAD_LENGTH, "I", 2**32 - 1)), ""),
        ("payload_length 0", patched("plen0", "bz-gzip", (PAYLOAD_LENGTH, "I", 0)), ""),
        ("payload_length 1", patched("plen1", "bz-gzip", (PAYLOAD_LENGTH, "I", 1)), ""),
        ("a 32-bit bzImage", patched("x32", "bz-gzip", (XLOADFLAGS, "H", 0)), "32-bit"),
        ("boot protocol 2.05", os.path.join(CORPUS, "bz-old"), "too old"),
        ("a decompression bomb", os.path.join(CORPUS, "bz-bomb"), ""),
        ("p_offset wraps", patched("eoff", "elf", (P_OFFSET, "Q", WRAP)), ""),
        ("p_filesz wraps", patched("efsz", "elf", (P_FILESZ, "Q", WRAP)), ""),
        ("p_memsz wraps", patched("emsz", "elf", (P_MEMSZ, "Q", WRAP)), ""),
        ("p_paddr wraps", patched("epa", "elf", (P_PADDR, "Q", WRAP)), ""),
        ("phoff wraps", os.path.join(CORPUS, "elf-phoff-wraps"), ""),
        ("65535 program headers", patched("ephn", "elf", (56, "H", 65535)), ""),
        ("entry outside", os.path.join(CORPUS, "elf-entry-outside"), ""),
    ]


def tree():
    """All that exists here, with sizes: to see what a failed command leaves. The probe's result may stay."""
    found = []
    for top, dirs, files in os.walk(e2e.SCRATCH):
        dirs[:] = [d for d in dirs if d != ".cache" or os.listdir(os.path.join(top, d)) != ["kvmprof"]]
        found += [os.path.join(top, d) for d in dirs]
        found += ["%s %d" % (os.path.join(top, f), os.path.getsize(os.path.join(top, f))) for f in files]
    return sorted(found)


def refused(program, what, argv, status, text, wrap=None):
    before = tree()
    try:
        p = e2e.run(*(wrap or []) + [program] + argv, timeout=60)
    except subprocess.TimeoutExpired:
        check(False, what + ": no end after 60 s")
        return
    say("  %-34s %d  %s" % (what, p.status, p.err.strip()[:150]))
    check(p.status == status, "%s: status %d, expected %d" % (what, p.status, status))
    check(p.err.count("\n") == 1 and re.match(r"kvmprof[^:]*: \S", p.err),
          "%s: not one clear line: %r" % (what, p.err[:400]))
    check(text in p.err, "%s: the line does not say '%s'" % (what, text))
    check(".tmp" not in p.err, what + ": names a temporary file instead of what was asked for")
    check(not p.out, "%s: prints on stdout: %r" % (what, p.out[:200]))
    check(tree() == before, "%s: leaves %s" % (what, sorted(set(tree()) - set(before))))


def in_namespace(script):
    """A command prefix that runs the rest where `script` was done to the file systems, or None."""
    prefix = ["unshare", "-m", "sh", "-ec", script + '; exec "$@"', "sh"]
    try:
        return prefix if e2e.run(*prefix, "true").status == 0 else None
    except OSError:
        return None


def table(program):
    run = ["run", "--append", "seconds=60", "-o", "never.data"]
    for what, path, text in images():
        refused(program, what, run + [path], 1, text)

    usage = [
        ("unknown option", ["run", "--bogus"], "--bogus"),
        ("unknown short option", ["run", "-Z"], "Z"),
        ("option without its value", ["run", "-m"], "m"),
        ("value for a flag", ["run", "--quiet=1"], "q"),
        ("two images", ["run", "a", "b"], "'b'"),
        ("-m 1", ["run", "-m", "1"], "16M"),
        ("-m 0", ["run", "-m", "0"], ""),
        ("-m -1", ["run", "-m", "-1"], "-1"),
        ("-m x", ["run", "-m", "x"], "x"),
        ("-m 64Q", ["run", "-m", "64Q"], "64Q"),
        ("-m 99999999999999999999G", ["run", "-m", "99999999999999999999G"], ""),
        ("--vcpus 0", ["run", "--vcpus", "0"], "1 to 64"),
        ("--vcpus 65", ["run", "--vcpus", "65"], "1 to 64"),
        ("--vcpus 1.5", ["run", "--vcpus", "1.5"], "1 to 64"),
        ("--duration 0", ["run", "--duration", "0"], "0"),
        ("--duration nan", ["run", "--duration", "nan"], "nan"),
        ("-F 0", ["run", "-F", "0"], "0"),
        ("-F x", ["run", "-F", "x"], "x"),
        ("-F 1e9", ["run", "-F", "1e9"], "50000"),
        ("--stack-size 1", ["run", "--stack-size", "1"], "256"),
        ("unknown command", ["frobnicate"], "frobnicate"),
        ("report: unknown option", ["report", "--bogus"], "--bogus"),
        ("report: two profiles", ["report", "x", "y"], "y"),
        ("report: -n x", ["report", "-n", "x"], "x"),
        ("script: unknown option", ["script", "--bogus"], "--bogus"),
        ("check: argument", ["check", "x"], "x"),
        ("check: unknown option", ["check", "--bogus"], "--bogus"),
        ("run: QEMU's -kernel", ["run", "-kernel", "x"], "kvmprof run KERNEL"),
        ("run: QEMU's -smp", ["run", "-smp", "2"], "--vcpus"),
        ("run: QEMU's -cpu, which is no -c pu", ["run", "-cpu", "host"], "one kind of machine"),
        ("run: QEMU's -hda, which is no -h", ["run", "-hda", "x"], "--disk"),
        ("run: QEMU's -initrd", ["run", "-initrd", "x"], "--initrd"),
        ("run: vng's --cpus", ["run", "--cpus=2"], "--vcpus"),
        ("run: perf's -p", ["run", "-p", "1"], "attach"),
        ("attach: perf's -p", ["attach", "-p", "1"], "attach PID"),
        ("report: one dash", ["report", "-stdio"], "--stdio"),
        ("report: a time's unit", ["report", "--time", "1parsec,2"], "1parsec"),
        ("annotate: two functions", ["annotate", "a", "b", "c"], "c"),
    ]
    for what, argv, text in usage:
        refused(program, what, argv, 2, text)

    image = run + [os.path.join(e2e.BUILD, "guest", "demo.elf")]
    files = [
        ("initrd missing", image + ["--initrd", "missing"], "missing"),
        ("initrd empty", image + ["--initrd", "empty"], "empty"),
        ("initrd a directory", image + ["--initrd", "/"], "directory"),
        ("symbols missing", image + ["--symbols", "missing"], "missing"),
        ("symbols empty", image + ["--symbols", "empty"], "empty"),
        ("symbols foreign", image + ["--symbols", "/etc/passwd"], "/etc/passwd"),
        ("report: missing", ["report", "-i", "missing"], "missing"),
        ("report: missing argument", ["report", "missing"], "missing"),
        ("annotate: missing argument", ["annotate", "missing", "main"], "missing"),
        ("push: missing argument", ["push", "missing", "http://127.0.0.1:1"], "missing"),
        ("report: foreign", ["report", "-i", "/etc/passwd"], "/etc/passwd"),
        ("report: empty", ["report", "-i", "empty"], "empty"),
        ("script: foreign", ["script", "-i", "/etc/passwd"], "/etc/passwd"),
    ]
    for what, argv, text in files:
        refused(program, what, argv, 1, text)


def with_kvm(program):
    """What is found out only when a machine is made."""
    run = ["run", "--append", "seconds=60"]
    bz = patched("cmdline", "bz-none", (CMDLINE_SIZE, "I", 32))
    refused(program, "cmdline longer than cmdline_size",
            ["run", bz, "-m", "64M", "-o", "never.data", "--append", "x" * 200], 1, "32")
    refused(program, "cmdline of 5000 bytes", ["run", "-o", "never.data", "--append", "x" * 5000], 1, "command line")
    refused(program, "more memory than the host has", run + ["-o", "never.data", "-m", "100000G"], 1, "MiB")
    refused(program, "a kernel larger than memory", ["run", "-o", "never.data", "-m", "16M", os.path.join(e2e.BUILD, "guest", "demo.elf"), "--initrd",
            write("big-initrd", bytes(20 << 20))], 1, "")
    os.remove("big-initrd")
    refused(program, "output below a file", run + ["-o", "empty/x"], 1, "empty/x")
    refused(program, "output in a missing directory", run + ["-o", "missing/x"], 1, "missing/x")
    refused(program, "output is somebody's directory", run + ["-o", "/etc"], 1, "/etc")
    refused(program, "output on /proc", run + ["-o", "/proc/x"], 1, "/proc/x")

    os.makedirs("mnt", exist_ok=True)
    for what, script, argv, text in (
            ("output on a read-only file system", "mount -t tmpfs -o ro none mnt",
             run + ["-o", "mnt/x"], "Read-only"),
            ("output on a full file system", "mount -t tmpfs -o nr_inodes=1 none mnt",
             run + ["-o", "mnt/x"], "No space"),
            ("no /dev/kvm", "mount -t tmpfs none /dev", run + ["-o", "never.data"], "/dev/kvm"),
            ("a file for /dev/kvm", "mount --bind empty /dev/kvm", run + ["-o", "never.data"], "/dev/kvm")):
        wrap = in_namespace(script)
        if wrap:
            refused(program, what, argv, 1, text, wrap)
        else:
            not_tried.append(what)


programs = [e2e.KVMPROF] + [p for p in e2e.EXTRA if os.path.exists(p)]
for number, program in enumerate(programs):
    say("%s:" % ("built as usual" if number == 0 else "built with sanitizers"))
    table(program)
    if have_kvm:
        with_kvm(program)
if not have_kvm:
    e2e.left_out("no /dev/kvm: the cases that need a machine")
if not_tried:
    e2e.left_out("No mount namespace may be made here: " + ", ".join(sorted(set(not_tried))))
e2e.finish()

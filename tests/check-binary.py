#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""check-binary.py [--build DIR]: the program and QEMU's plugin are hardened as the Makefile says.

Reads their ELF files through readelf: position independent, read-only relocations that are all resolved at the start
(RELRO with BIND_NOW), no text relocations, no executable stack, no segment that is writable and executable, canaries,
and checked string functions (FORTIFY) where the build optimizes. Objects carry the mark of control-flow protection
(IBT, SHSTK) and have ENDBR64 in front of their functions where the compiler can do so.

The program is linked with no library that only few commands need: each start would pay for it. Such are loaded when they
are needed (base/library.h).

It then builds a program without hardening and reports each property that this one seems to have.

Prints one line for each property that is missing.
"""

import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def output(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          universal_newlines=True, env=dict(os.environ, LC_ALL="C")).stdout


def segments(path):
    """[(type, flags)] of the program headers."""
    return re.findall(r"^  ([A-Z_]+) +0x\S+ 0x\S+ 0x\S+ 0x\S+ 0x\S+ ([R ][W ][E ]) ",
                      output("readelf", "-lW", path), re.M)


def faults(path, fortified, program):
    """What the ELF file at `path` lacks. program: it is no shared library."""
    header, dynamic = output("readelf", "-hW", path), output("readelf", "-dW", path)
    symbols = output("readelf", "-W", "--dyn-syms", path)
    found = segments(path)
    flags = " ".join(re.findall(r"\((?:FLAGS|FLAGS_1|BIND_NOW)\) *(.*)", dynamic))
    wanted = (
        (re.search(r"Type: +DYN ", header), "is not position independent"),
        (not program or "PIE" in flags, "is not marked as PIE"),
        ("GNU_RELRO" in [kind for kind, _ in found], "has no RELRO"),
        ("NOW" in flags.split(), "has no BIND_NOW"),
        ("TEXTREL" not in dynamic, "has text relocations"),
        ([f for kind, f in found if kind == "GNU_STACK"] == ["RW "], "has an executable stack"),
        (not [f for _, f in found if "W" in f and "E" in f], "has a segment that is writable and executable"),
        ("__stack_chk_fail" in symbols, "has no stack protector"),
        (not fortified or len(set(re.findall(r" __(\w+)_chk(?:@| |$)", symbols, re.M))) >= (8 if program else 1),
         "has no FORTIFY"),
    )
    return ["%s %s" % (path, text) for ok, text in wanted if not ok]


# Loaded by who needs them, or needed by tests alone; relocations by name made each start slower.
LOADED_LATER = ("archive", "blkid", "capstone", "com_err", "curl", "debuginfod", "ext2fs", "ncursesw", "nettle", "seccomp", "slirp",
                "tinfo", "virt", "xml2")


def linked_too_early(path, names=LOADED_LATER):
    needed = re.findall(r"\(NEEDED\).*\[lib([a-z0-9_]+)[.-]", output("readelf", "-dW", path))
    return ["%s is linked with lib%s, which each start then loads" % (path, name) for name in names if name in needed]


def flags_of(build):
    """The compiler's flags of an object, as make would use them now."""
    with tempfile.TemporaryDirectory() as new:
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        p = subprocess.run(["make", "-n", "-C", TOP, "BUILD=" + new, new + "/obj/vmm/dev/p9.o"], env=env,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, universal_newlines=True)
    return p.stdout.split()


def object_faults(path, flags):
    """Control-flow protection of one object, and canaries in a file that parses hostile input."""
    wrong = []
    if "-fcf-protection" in flags:
        notes = output("readelf", "-nW", path)
        wrong += ["%s is not marked with %s" % (path, mark) for mark in ("IBT", "SHSTK") if mark not in notes]
        if "endbr64" not in output("objdump", "-d", "--no-show-raw-insn", path):
            wrong.append("%s has no ENDBR64" % path)
    if "__stack_chk_fail" not in output("readelf", "-sW", path):
        wrong.append("%s has no stack protector" % path)
    return wrong


def hollow(directory):
    """The faults that are found in a program without hardening: this test can fail."""
    source, path = os.path.join(directory, "hollow.c"), os.path.join(directory, "hollow")
    with open(source, "w", encoding="utf-8") as f:
        f.write("int main(void)\n{\n\treturn 0;\n}\n")
    subprocess.run([os.environ.get("CC") or "gcc", "-fno-stack-protector", "-no-pie", "-fno-pie", "-z", "norelro",
                    "-z", "lazy", "-z", "execstack", source, "-o", path], stderr=subprocess.DEVNULL, check=True)
    return faults(path, True, True)


def main():
    build = sys.argv[sys.argv.index("--build") + 1] if "--build" in sys.argv else os.path.join(TOP, "build")
    flags = flags_of(build)
    fortified = any(f.startswith("-D_FORTIFY_SOURCE=") for f in flags)
    wrong = faults(os.path.join(build, "kvmprof"), fortified, True)
    wrong += faults(os.path.join(build, "kvmprof-exact.so"), fortified, False)
    wrong += linked_too_early(os.path.join(build, "kvmprof"))
    if not linked_too_early(os.path.join(build, "kvmprof"), ("c",)):
        wrong.append("%s/kvmprof is linked with no libc" % build)
    for name in ("vmm/dev/virtio_9p.o", "vmm/dev/virtio.o", "profile/format/files/userfile.o"):
        path = os.path.join(build, "obj", name)
        wrong += object_faults(path, flags)
    with tempfile.TemporaryDirectory() as directory:
        missed = [text for text in ("position", "PIE", "RELRO", "BIND_NOW", "executable stack", "protector", "FORTIFY")
                  if text not in " ".join(hollow(directory))]
    wrong += ["a program without hardening passes for %s" % text for text in missed]
    print("\n".join(wrong) if wrong else "kvmprof and its plugin: PIE, RELRO, BIND_NOW, canaries%s%s" %
          (", FORTIFY" if fortified else "", ", control-flow marks" if "-fcf-protection" in flags else ""))
    return 1 if wrong else 0


sys.exit(main())

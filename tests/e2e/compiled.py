# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in C that a test compiles and links with what kvmprof is made of."""

import os
import shlex

import e2e


def cc(*argv):
    """The compiler of the build, which may be two words (ccache gcc)."""
    p = e2e.run(*shlex.split(os.environ.get("CC") or "gcc"), *argv)
    if p.status:
        raise SystemExit("it does not compile:\n" + p.err)


def freestanding(source, out, *defines):
    """A static program for a guest, without libc, of one source file beside this one."""
    cc("-O2", "-I" + e2e.TOP, "-static", "-nostdlib", "-ffreestanding", "-fno-pic", "-no-pie", "-fno-stack-protector",
       "-fcf-protection=none", *defines, "-o", out, os.path.join(e2e.TOP, "tests", "e2e", source))


def libraries():
    """What libkvmprof.a needs: make test says it, and otherwise the Makefile does."""
    text = os.environ.get("LIBS")
    if text is None:
        text = e2e.run("make", "-s", "--no-print-directory", "-C", e2e.TOP, "print-libs").out
    return shlex.split(text)


def tool(source, *objects):
    """The program of one source file below tests/, with these objects of the build; its path."""
    out = os.path.abspath(os.path.splitext(os.path.basename(source))[0])
    cc("-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I" + e2e.TOP, *shlex.split(os.environ.get("CFLAGS", "")),
       "-o", out, os.path.join(e2e.TOP, "tests", source),
       *(os.path.join(e2e.BUILD, "obj", x) for x in objects),
       os.path.join(e2e.BUILD, "libkvmprof.a"), *libraries())
    return out

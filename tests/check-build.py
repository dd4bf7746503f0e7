#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiler warnings stop a build only with WERROR=1; PVM=0 leaves vmm/pvm out of one.

Each compiler has warnings that the ones before it had not, so a release must build in spite
of them. Asks make, without running anything, how it would compile the program, the BPF
object, the guests and the unit tests. Then compiles one file that a compiler warns of.

Prints one line for each command that is wrong.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# One object of each kind at least, by the end of its path.
KINDS = ("obj/profile/cmd/main.o", "obj/profile/gate/toml_shim.o", "bpf/peek.o", "bpf/slots.o", "guest/demo/main.o",
         "guest/exec/exec.o", "guest/worker", "guest/devices", "guest/mb/main.o",
         "unit/tables/test_agg")
problems = []


def make(*argv):
    env = {k: v for k, v in os.environ.items()
           if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "WERROR", "CFLAGS")}
    return subprocess.run(["make", "-C", TOP] + list(argv), env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)


def compilations(build, *options):
    """Output -> command, of all that a build from nothing would compile with warnings on."""
    p = make("-n", "BUILD=" + build, *options, "all", "unit-bins")
    if p.returncode:
        problems.append("make -n %s: %s" % (" ".join(options), p.stderr.strip()))
    found = {}
    for line in p.stdout.replace("\\\n", " ").split("\n"):
        m = re.search(r"\s-o (\S+)", line)
        if m and "-Wall" in line:
            found[os.path.relpath(m.group(1), build)] = line
    return found


def compiles(build, *options):
    """Whether a file with an unused variable becomes an object."""
    source = os.path.join(build, "warned.c")
    with open(source, "w") as f:
        f.write("int warned(void);\nint warned(void)\n{\n\tint unused;\n\n\treturn 0;\n}\n")
    out = os.path.join(build, "warned.o")
    command = compilations(build, *options).get("obj/profile/cmd/main.o")
    if not command:
        return None
    argv = [a for a in shlex.split(command) if a not in ("-MMD", "-MP")]
    argv[argv.index("-o") + 1] = out
    argv[argv.index("profile/cmd/main.c")] = source
    return subprocess.run(argv, cwd=TOP, stderr=subprocess.DEVNULL).returncode == 0


with tempfile.TemporaryDirectory() as directory:
    for options, wanted in (((), False), (("WERROR=0",), False), (("WERROR=1",), True)):
        commands = compilations(directory, *options)
        for kind in KINDS:
            if kind not in commands:
                problems.append("make -n %s: does not compile %s" % (" ".join(options), kind))
        problems += ["make %s: %s -Werror: %s" % (" ".join(options),
                                                  "lacks" if wanted else "has", name)
                     for name, line in sorted(commands.items())
                     if ("-Werror" in shlex.split(line)) != wanted]
    if compiles(directory) is not True:
        problems.append("make: a warning stops it")
    if compiles(directory, "WERROR=1") is not False:
        problems.append("make WERROR=1: a warning does not stop it")
    p = make("-n", "BUILD=" + directory, "PVM=0", "all", "unit-bins", "fuzz-bins")
    if p.returncode or "vmm/pvm_none.c" not in p.stdout:
        problems.append("make -n PVM=0: does not compile vmm/pvm_none.c: " + p.stderr.strip())
    problems += ["make PVM=0: needs %s" % what
                 for what in ("vmm/pvm/", "unit/pvm/", "bpf/peek.o") if what in p.stdout]

print("\n".join(problems[:20]) if problems else "only WERROR=1 makes warnings errors, PVM=0 has nothing of vmm/pvm")
sys.exit(1 if problems else 0)

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiler warnings stop a build only with WERROR=1; PVM=0 leaves vmm/pvm out of one.

Each compiler has warnings that the ones before it had not, so a release must build in spite
of them. Asks make, without running anything, how it would compile the program, the BPF
object, the guests and the unit tests. Then compiles one file that a compiler warns of.
`make unit/ROOM` builds the unit tests of one folder and no others.

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
KINDS = ("obj/profile/cmd/main.o", "obj/profile/compare/gate/toml_shim.o", "bpf/peek.o", "bpf/slots.o", "guest/demo/main.o",
         "guest/exec/exec.o", "guest/worker", "guest/devices", "guest/mb/main.o",
         "unit/profile/analyse/tables/test_agg")
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


def check_room(build, room, folder):
    """The unit tests of a folder are all that `make unit/ROOM` links and runs."""
    p = make("-n", "BUILD=" + build, "unit/" + room)
    built = set(re.findall(r"\s-o (%s/unit/\S+)" % re.escape(build), p.stdout))
    run = {os.path.join(build, t) for t in re.findall(r" (unit/\S+/test_\w+)", p.stdout.split("tests/run.py")[-1])}
    wanted = {os.path.join(build, "unit", folder, os.path.splitext(t)[0])
              for t in os.listdir(os.path.join(TOP, "tests", "unit", folder)) if re.match(r"test_.*\.c$", t)}
    if p.returncode or not wanted or built != wanted or run != wanted:
        problems.append("make -n unit/%s: builds %s and runs %s, expected %s: %s" % (
            room, sorted(built), sorted(run), sorted(wanted), p.stderr.strip()))
    if re.search(r"-o %s/kvmprof\s" % re.escape(build), p.stdout):
        problems.append("make -n unit/%s: builds the program" % room)


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
                 for what in ("vmm/pvm/", "unit/vmm/pvm/", "bpf/peek.o") if what in p.stdout]
    check_room(directory, "gate", "profile/compare/gate")
    check_room(directory, "profile/compare/gate", "profile/compare/gate")
    check_room(directory, "vmm", "vmm")
    p = make("-n", "BUILD=" + directory, "unit/nowhere")
    if p.returncode == 0 or p.stderr.strip().count("\n") or " unit/profile/compare/gate " not in p.stderr:
        problems.append("make unit/nowhere: not one line with what is there: " + p.stderr)

print("\n".join(problems[:20]) if problems else "only WERROR=1 makes warnings errors, PVM=0 has nothing of vmm/pvm")
sys.exit(1 if problems else 0)

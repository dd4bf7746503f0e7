#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 11 s
# tests: not svm, files
"""deps_script.py KVMPROF SCRATCH: scripts/deps.sh on systems that lack some packages.

apt and dpkg are programs of this test that keep their state in files, so that each system can
be had: what it knows, what is installed, what cannot be installed. They take names as apt
does: one that is unknown and has a '.' is a pattern. debian13.py runs the script with the
real ones."""

import os
import re
import stat

import e2e
from e2e import check

SCRIPT = os.path.join(e2e.TOP, "scripts", "deps.sh")

PROGRAMS = {
    "id": "cat state/uid",
    "npm": "exit 1",
    "rustc": "exit 1",
    "sudo": "exit 1",
    "dpkg-query": """
shift 3
for p; do
    grep -qxF -- "$p" state/installed && printf 'installed:%s\\n' "$p"
done
exit 1""",
    "apt-cache": """
[ "$*" = pkgnames ] || exit 1
! [ -e state/lists ] || cat state/known""",
    "apt-get": """
echo "$@" >>state/calls
while :; do
    case $1 in
    -o) shift 2 ;;
    -*) shift ;;
    *) break ;;
    esac
done
command=$1
shift
if [ "$command" = update ]; then
    [ ! -e state/offline ] || { echo 'E: no network'; exit 100; }
    touch state/lists
    exit 0
fi
[ "$1" != --no-install-recommends ] || shift
got=
for p; do
    if [ -e state/lists ] && grep -qxF -- "$p" state/known; then
        got="$got $p"
    elif case $p in *.*) grep -q -- "$p" state/known ;; *) false ;; esac; then
        got="$got $(grep -- "$p" state/known)"
    else
        echo "E: Unable to locate package $p"
        exit 100
    fi
    ! grep -qxF -- "$p" state/broken || { echo "E: $p has unmet dependencies"; exit 100; }
done
printf '%s\\n' $got >>state/installed""",
}


def listed(text, name):
    """A list in the script's own words; alternatives stay joined."""
    return re.search(r"^%s=[\"'](.*?)[\"']" % name, text, re.S | re.M).group(1)


with open(SCRIPT) as f:
    text = f.read()
REQUIRED = (listed(text, "BUILD") + " " + listed(text, "TEST")).split()
OPTIONAL = " ".join(line.split(":")[0] for line in listed(text, "OPTIONAL").split("\n")).split()
for other in ("npm", "rustc"):    # the system has another one
    OPTIONAL.remove(other)
FIRST = [n.split("|")[0] for n in REQUIRED + OPTIONAL]
KERNEL = [n.split("|")[0] for n in listed(text, "KERNEL").split()]
# Each package of the build has a name in Fedora and in Arch, or comes with another one.
ROWS = [line.split(" ") for line in listed(text, "COUNTERPARTS").split("\n")]
# needs.sh names packages that the script installs: all libraries of the build among them.
with open(os.path.join(e2e.TOP, "scripts", "needs.sh")) as f:
    needs = f.read()
NEEDED = {r.split(" ")[1] for n in ("PROGRAMS", "HEADERS", "CXX_HEADERS") for r in listed(needs, n).split("\n")}
check(NEEDED - {"binutils"} <= set(listed(text, "BUILD").split()),
      "needs.sh names what deps.sh does not install: %s" % sorted(NEEDED - set(listed(text, "BUILD").split())))
lacks = {n for n in listed(text, "BUILD").split() if re.match(r"lib.*-dev$|comerr-dev|nettle-dev", n)} - NEEDED
check(not lacks, "needs.sh does not look for %s" % sorted(lacks))
CHECK = listed(needs, "CHECK_HEADERS").split()[1::2]
check(CHECK == listed(text, "CHECK").split(), "make check needs %s, deps.sh check installs %s" % (CHECK, listed(text, "CHECK")))
check(set(CHECK) <= set(REQUIRED), "deps.sh test does not install what make check needs")
check([r[0] for r in ROWS] == listed(text, "BUILD").split() and all(len(r) == 3 for r in ROWS),
      "COUNTERPARTS and BUILD differ: %s" % set(listed(text, "BUILD").split()).symmetric_difference(r[0] for r in ROWS))


def elsewhere(manager, column):
    """A system without dpkg: what is to be installed is said, with the names that it has there."""
    os.makedirs("elsewhere-" + manager)
    for tool in ("sh", "cut", "grep", "sed"):
        os.symlink(e2e.shutil.which(tool), "elsewhere-%s/%s" % (manager, tool))
    if manager != "none":
        os.symlink(e2e.shutil.which("true"), "elsewhere-%s/%s" % (manager, manager))
    p = e2e.run("sh", SCRIPT, "build", env={"PATH": os.path.abspath("elsewhere-" + manager), "HOME": "/"})
    want = [r[column] for r in ROWS if r[column] != "-"]
    check(p.status == 1 and p.err.count("\n") == 1 and p.err.split(":", 2)[-1].split()[-len(want):] == want,
          "%s: status %d: %s" % (manager, p.status, p.err))


elsewhere("dnf", 1)
elsewhere("pacman", 2)
elsewhere("none", 0)

os.mkdir("bin")
for name, body in PROGRAMS.items():
    path = os.path.join("bin", name)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + body + "\n")
    os.chmod(path, stat.S_IRWXU)


class System:
    """known: without these names, and with those added."""

    def __init__(self, installed=(), without=(), added=(), broken=(), lists=True, uid=0,
                 offline=False):
        e2e.shutil.rmtree("state", ignore_errors=True)
        e2e.shutil.rmtree("cache", ignore_errors=True)
        os.mkdir("state")
        self.write("installed", installed)
        self.write("known", [n for n in FIRST + KERNEL if n not in without] + list(added))
        self.write("broken", broken)
        self.write("uid", [str(uid)])
        if lists:
            self.write("lists", [])
        if offline:
            self.write("offline", [])

    def write(self, name, lines):
        with open(os.path.join("state", name), "w") as f:
            f.write("".join(n + "\n" for n in lines))

    def read(self, name):
        try:
            with open(os.path.join("state", name)) as f:
                return f.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def deps(self, what="test"):
        """Runs the script; what it said and what it asked apt for."""
        self.write("calls", [])
        env = dict(os.environ, PATH=os.path.abspath("bin") + ":" + os.environ["PATH"],
                   KVMPROF_CACHE=os.path.abspath("cache"))
        p = e2e.run(SCRIPT, what, env=env)
        check(p.out == "", "%s: stdout: %r" % (what, p.out))
        said = [line for line in p.err.split("\n") if line and "deps: installing" not in line]
        return p.status, said, self.read("calls")


def expect(name, got, status, said, calls):
    """said: a pattern for each line; calls: the number of calls of apt."""
    check(got[0] == status, "%s: status %d, not %d: %r" % (name, got[0], status, got[1]))
    check(len(got[1]) == len(said) and all(re.search(p, t) for p, t in zip(said, got[1])),
          "%s: said %r, expected %r" % (name, got[1], said))
    check(len(got[2]) == calls, "%s: %d calls of apt, not %d: %r" % (name, len(got[2]), calls,
                                                                  got[2]))


s = System(installed=FIRST)
expect("all there", s.deps(), 0, [], 0)
s = System(installed=FIRST, uid=1000)
expect("all there, not root", s.deps(), 0, [], 0)

s = System()
expect("nothing there", s.deps(), 0, [], 1)
check(sorted(s.read("installed")) == sorted(FIRST), "nothing there: installed %r" %
      sorted(set(FIRST) ^ set(s.read("installed"))))
expect("second call", s.deps(), 0, [], 0)

s = System(lists=False)
expect("no lists", s.deps(), 0, [], 2)
expect("no lists, second call", s.deps(), 0, [], 0)

s = System()
expect("the build", s.deps("build"), 0, [], 1)
check("linux-perf" not in s.read("installed"), "the build installs perf")

s = System()
expect("make check", s.deps("check"), 0, [], 1)
check(sorted(s.read("installed")) == sorted(listed(text, "BUILD").split() + CHECK), "make check: installed %r" %
      s.read("installed"))
s = System()
expect("a kernel", s.deps("kernel"), 0, [], 1)
got = s.read("installed")
check(5 < len(got) <= 20 and {"bc", "bison", "flex"} <= set(got) and
      not {"chromium", "npm", "qemu-system-x86", "clang"} & set(got), "a kernel: installed %r" % got)
expect("a kernel, second call", s.deps("kernel"), 0, [], 0)

# A name with a '.' that does not exist, and one that it matches as a pattern.
s = System(without=["linux-source-6.1"], added=["linux-source", "linux-source-6.19", "g--x"])
expect("another kernel", s.deps(), 0, [], 1)
got = s.read("installed")
check("linux-source" in got and "linux-source-6.19" not in got, "another kernel: %r" % got[-20:])
expect("another kernel, second call", s.deps(), 0, [], 0)

# No alternative: the rest is installed, and what is lost is told each time.
s = System(without=["linux-source-6.1", "chromium", "linux-perf"],
           added=["linux-source-6.19", "linux-tools-generic"])
told = ["without linux-source-6.1: no guest kernel", "without chromium: .*browser"]
expect("not known", s.deps(), 0, ["asked for these again"] + told, 2)
check("linux-tools-generic" in s.read("installed"), "the other name of perf is not used")
check("linux-source-6.19" not in s.read("installed"), "a name became a pattern")
check(set(REQUIRED) <= set(s.read("installed")), "not known: required ones are missing")
expect("not known, second call", s.deps(), 0, told, 0)
os.utime("cache/deps-without", (1, 1))
expect("not known, long after", s.deps(), 0, ["asked for these again"] + told, 1)

# One of a group that cannot be installed.
s = System(broken=["libvirt-clients"])
got = s.deps()
told = ["without libvirt-clients: tests with libvirt"]
check(got[0] == 0 and len(got[1]) == 2 and told[0] in got[1][1], "broken: %r" % (got[:2],))
check(set(FIRST) - set(s.read("installed")) == {"libvirt-clients"}, "broken: also missing: %r" %
      (set(FIRST) - set(s.read("installed"))))
expect("broken, second call", s.deps(), 0, told, 0)

s = System(without=["libcmocka-dev"])
expect("required, not known", s.deps(), 1, ["no package libcmocka-dev"], 1)
s = System(without=["libcmocka-dev"])
expect("not required for the build", s.deps("build"), 0, [], 1)
s = System(broken=["libdw-dev", "chromium"])
got = s.deps()
check(got[0] == 1 and len(got[1]) == 1 and
      re.search("could not install libdw-dev: libdw-dev has unmet", got[1][0]),
      "required, broken: %r" % (got[:2],))
s = System(lists=False, offline=True)
expect("no network", s.deps("build"), 1, ["cannot update its lists: no network", "no package gcc"], 1)

s = System(uid=1000)
expect("not root", s.deps(), 1, ["need root .*: gcc "], 0)
s = System(installed=REQUIRED, uid=1000)
got = s.deps()
check(got[0] == 0 and not got[2] and all("without" in t for t in got[1]) and len(got[1]) > 5,
      "not root, only optional ones missing: %r" % (got,))
got = e2e.run(SCRIPT, "everything")
check(got.status == 1 and "usage" in got.err, "usage: %r" % (got,))
e2e.finish()

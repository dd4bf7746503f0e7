#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 10800 s
# tests: not svm, files
"""deb_package.py KVMPROF SCRATCH: `make deb` in a bare Debian 12 and 13: the package builds from the archive of the
source, twice with the same bytes, lintian has no error, and in another bare system it installs, profiles,
and goes without leaving a file. Debian 13 has a QEMU that is new enough for kvmprof-exact, and runs it."""

import glob
import hashlib
import os
import re
import shutil

import debian_root
import demo_judge
import e2e
from e2e import check, say

POINTS = 3.0
INSTALLED = "sh -c 'find / -xdev -cnewer /mark -not -path \"/var/*\" -not -path \"/tmp*\" -not -path \"/etc/ld.so.cache\" | grep kvmprof'"


def must(root, command, what, timeout=3600):
    p = root.must(command, what, timeout)
    if p.status:
        # Of the package's own tests the log has what failed.
        for path in glob.glob(os.path.join(root.path, "src", "build", "deb.log")):
            with open(path, encoding="utf-8", errors="replace") as f:
                lines = f.read().split("\n")
            for i, line in enumerate(lines):
                if line.startswith("FAIL "):
                    say("\n".join(lines[i:i + 15]))
        e2e.finish()
    return p


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def built(release):
    """The package's path, outside of the root that made it."""
    root = debian_root.Root(release)
    must(root, "apt-get -q update && apt-get -qy install --no-install-recommends build-essential debhelper lintian", "tools")
    must(root, "scripts/deps.sh build", "deps.sh")
    digests = []
    for options in ("", "nocheck"):
        p = must(root, "apt-get -qy install --no-install-recommends libcmocka-dev >/dev/null; "
                 "DEB_BUILD_OPTIONS='parallel=%d %s' SOURCE_DATE_EPOCH=1700000000 make deb" %
                 (os.cpu_count() or 1, options), "make deb")
        path, exact = [os.path.join(root.path, x.lstrip("/")) for x in p.out.strip().split("\n")[:-3:-1]]
        digests.append((digest(path), digest(exact), digest(glob.glob(os.path.dirname(path) + "/kvmprof-*.tar.gz")[0])))
    check(digests[0] == digests[1], "%s: two builds differ: %s" % (release, digests))
    p = root.run("lintian --fail-on error --no-cfg %s %s" % (path[len(root.path):], exact[len(root.path):]))
    check(p.status == 0 and not re.search(r"^E: ", p.out, re.M), "lintian: %s%s" % (p.out, p.err))
    say("%s: lintian: %d warnings" % (release, len(re.findall(r"^W: ", p.out, re.M))))
    kept = [os.path.abspath("%s-%s.deb" % (name, release)) for name in ("kvmprof", "kvmprof-exact")]
    shutil.copy(path, kept[0])
    shutil.copy(exact, kept[1])
    shutil.rmtree(root.path)
    return kept


def used_exact(root, release, package):
    """The package comes on both. Where QEMU is old, check says so and names a script, which is there; else it works."""
    shutil.copy(package, os.path.join(root.path, "root", "kvmprof-exact.deb"))
    p = root.run("apt-get -qy install --no-install-recommends /root/kvmprof-exact.deb qemu-system-x86")
    check(p.status == 0, "apt-get install kvmprof-exact: %s" % p.out[-500:] + p.err[-500:])
    if release == "bookworm":
        p = root.run("kvmprof check; ls -l /usr/share/kvmprof/scripts/fetch-qemu.sh")
        check("needs QEMU 9.1 or later" in p.out and "/usr/share/kvmprof/scripts/fetch-qemu.sh unpacks one" in p.out and
              "cannot access" not in p.err, "QEMU of bookworm: %s%s" % (p.out, p.err))
    else:
        must(root, "cd /root && kvmprof run --engine exact --repeat 2 -q --no-buildid-cache --append seconds=1 -o exact.data && "
             "rm -r exact.data", "--engine exact")
    root.run("rm /root/kvmprof-exact.deb; apt-get -qy purge kvmprof-exact qemu-system-x86 && apt-get -qy autopurge")


def used(release, package, exact):
    root = debian_root.Root(release)
    shutil.copy(package, os.path.join(root.path, "root", "kvmprof.deb"))
    must(root, "apt-get -q update && : >/mark && sleep 1 && apt-get -qy install --no-install-recommends /root/kvmprof.deb",
         "apt-get install")
    version = must(root, "kvmprof --version", "kvmprof --version").out
    with open(os.path.join(e2e.TOP, "VERSION")) as f:
        check(f.read().strip() in version, "version: " + version)
    p = must(root, "cd /root && kvmprof run --no-buildid-cache --append seconds=5 -o demo.data && kvmprof script -i demo.data >script",
             "the demo")
    truth, outside = e2e.parse_truth(p.out)
    with open(os.path.join(root.path, "root", "script")) as f:
        demo_judge.judge("%s: the demo" % release, e2e.parse_script(f.read()), truth, outside, POINTS)
    p = must(root, INSTALLED, "files")
    check("/usr/share/man/man1/kvmprof.1.gz" in p.out and "/docs/tutorial.md" in p.out, "installed: " + p.out)
    used_exact(root, release, exact)
    must(root, "rm -r /root/demo.data /root/kvmprof.deb; apt-get -qy purge kvmprof", "apt-get purge")
    p = root.run(INSTALLED)
    check(not p.out.strip(), "%s: left behind: %s" % (release, p.out))
    shutil.rmtree(root.path)


e2e.need_kvm()
sizes = []
for release in e2e.EXTRA or ["bookworm", "trixie"]:
    package, exact = built(release)
    used(release, package, exact)
    sizes.append("%s: %d KiB" % (release, os.path.getsize(package) // 1024))
e2e.finish("; ".join(sizes))

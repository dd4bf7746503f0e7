#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 3600 s
# tests: not svm, files
"""release_archive.py KVMPROF SCRATCH [RELEASE...]: `make release` twice has the same bytes, and what it makes runs without
installation on bare systems of Debian 12, 13 and sid, and of Debian 11 where the archive still has it: as a user who is not
root, from a path with a blank in it. There it checks the host, reports and exports a profile that was made here with the
words that it has here, and counts the demo guest's instructions with a QEMU that is fetched: once, and, started again by
itself, twice."""

import glob
import hashlib
import json
import os
import shutil
import tarfile
import urllib.error
import urllib.request

import debian_root
import e2e
from e2e import check, say
from exact_engine import exact, find_qemu

RELEASES = ("bookworm", "trixie", "sid", "bullseye")
PLACE = "/srv/a place"
AS_USER = "setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/srv/home KVMPROF_QEMU=/srv/qemu/bin/qemu-system-x86_64 " \
    "sh -ec 'cd /srv/home; PATH=\"%s:$PATH\"; %s'"


def built():
    """The archive's path."""
    # As make knows it: by another name all would be built again.
    build = os.path.relpath(os.path.dirname(e2e.KVMPROF), e2e.TOP)
    digests = []
    for _ in range(2):
        p = e2e.run("make", "-C", e2e.TOP, "--no-print-directory", "BUILD=" + build, "release",
                    timeout=1800)
        path = p.out.strip().split("\n")[-1]
        if not check(p.status == 0 and path.endswith("-linux-amd64.tar.gz"), "make release: " + (p.out + p.err)[-2000:]):
            e2e.finish()
        with open(path, "rb") as f:
            digests.append(hashlib.sha256(f.read()).hexdigest())
    check(digests[0] == digests[1], "make release: two archives differ")
    return path


def complete(path):
    """Each library has its version and its licence, and the loader finds them all in the archive."""
    with tarfile.open(path) as t:
        names = t.getnames()
        top = names[0].split("/")[0]
        t.extractall("unpacked")
        check(not any(m.uid or m.gid for m in t.getmembers()), "files that belong to somebody")
    home = os.path.join("unpacked", top, "lib", "kvmprof")
    libraries = {n.rsplit("/", 1)[1] for n in names if "/lib/kvmprof/lib/" in n}
    versions = os.path.join("unpacked", top, "share", "doc", "kvmprof", "libraries", "VERSIONS")
    with open(versions, encoding="utf-8") as f:
        lines = [line.split() for line in f]
    check({line[0] for line in lines} == libraries | {"ld-linux-x86-64.so.2"}, "VERSIONS names %s" % lines)
    for line in lines:
        check(line[1] != "(of" and os.path.exists(os.path.join(os.path.dirname(versions), line[1] + ".copyright")),
              "no licence of %s" % line)
    # What the program itself names it loads by dlopen(): ncurses and slirp were once overlooked.
    for name in ("libcapstone.so", "libarchive.so", "libncursesw.so", "libslirp.so", "libcurl.so", "libnettle.so"):
        check(any(x.startswith(name) for x in libraries), "no %s: %s" % (name, sorted(libraries)))
    with open(os.path.join("unpacked", top, "share", "doc", "kvmprof", "kvmprof.spdx.json"), encoding="utf-8") as f:
        packages = {x["name"] for x in json.load(f)["packages"]}
    check({"libncursesw6", "libslirp0"} <= packages, "the bill of materials lacks packages: %s" % sorted(packages))
    loader = os.path.join(home, "ld-linux-x86-64.so.2")
    for file in [os.path.join(home, "kvmprof")] + glob.glob(os.path.join(home, "lib", "*")):
        p = e2e.run(loader, "--inhibit-cache", "--library-path", os.path.join(home, "lib"), "--list", file)
        foreign = [x for x in p.out.split("\n") if "=>" in x and os.path.abspath(home) not in x.replace("unpacked", os.path.abspath("unpacked"), 1)]
        check(p.status == 0 and not foreign, "%s needs %s %s" % (file, foreign, p.err))
    return top


def offered(release):
    """Whether the archive still has that release."""
    try:
        with urllib.request.urlopen("%s/dists/%s/Release" % (debian_root.mirror().rstrip("/"), release), timeout=60):
            return True
    except (urllib.error.URLError, OSError) as err:
        e2e.left_out("%s: the archive does not serve it: %s" % (release, err))
        return False


def used(release, top, qemu, shown):
    try:
        root = debian_root.Root(release)
    except SystemExit as end:    # e2e.skip() of a system that cannot be made here
        if end.code != e2e.SKIP:
            raise
        e2e.left_out("%s: mmdebstrap cannot make it here" % release)
        return
    srv = os.path.join(root.path, "srv")
    shutil.copytree(os.path.join("unpacked", top), root.path + PLACE, symlinks=True)
    shutil.copytree(qemu, os.path.join(srv, "qemu"), symlinks=True)
    shutil.copytree("here.data", os.path.join(srv, "here.data"))
    os.mkdir(os.path.join(srv, "home"))
    for top, _, files in list(os.walk(os.path.join(srv, "here.data"))) + [(os.path.join(srv, "home"), [], [])]:
        for name in [top] + [os.path.join(top, file) for file in files]:
            os.chown(name, 65534, 65534)

    def run(command, statuses=(0,)):
        p = root.run(AS_USER % (PLACE + "/bin", command))
        check(p.status in statuses, "%s: %s: status %d: %s%s" % (release, command, p.status, p.out[-1000:], p.err[-1000:]))
        return p
    check(run("id -u").out.strip() == "65534", "%s: root" % release)
    with open(os.path.join(e2e.TOP, "VERSION"), encoding="ascii") as f:
        check(f.read().strip() in run("kvmprof --version").out, "%s: version" % release)
    # 1: there may be no KVM; that is a line of it like the others.
    p = run("kvmprof check", (0, 1))
    check("ok    run --engine exact           QEMU 1" in p.out and "host kernel" in p.out, "%s: check: %s" % (release, p.out))
    for words, text in shown.items():
        got = run("kvmprof %s -i /srv/here.data" % words).out
        check(got == text, "%s: %s: %s, not %s" % (release, words, got[:1000], text[:1000]))
    made = "kvmprof run --engine exact --call-counts -q --no-buildid-cache --append work=1"
    run(made + " -o one.data")
    run("ln -s \"%s/bin/kvmprof\" linked; ./linked run --engine exact --repeat 2 --call-counts -q "
        "--no-buildid-cache --append work=1 -o two.data" % PLACE)
    p = run("kvmprof gate --exact --base one.data --head two.data")
    check("PASS" in p.out.split("\n")[0], "%s: gate: %s" % (release, p.out))
    shutil.rmtree(root.path)
    say("%s: done" % release)


debian_root.need()
e2e.need_tool("make")
find_qemu()
archive = built()
directory = complete(archive)
p = exact("--call-counts", "-q", "--no-buildid-cache", "--append", "work=1", "-o", "here.data")
check(p.status == 0, "run --engine exact: " + p.err)
words = ("report -n 0", "export -F folded", "export -F kp")
wanted = {w: e2e.kvmprof(*w.split(), "-i", "here.data").out for w in words}
check(all(len(text) > 500 for text in wanted.values()), "nothing is shown here")
seen = []
for name in e2e.EXTRA or RELEASES:
    if name != "bullseye" or offered(name):
        used(name, directory, os.path.dirname(os.path.dirname(os.environ["KVMPROF_QEMU"])), wanted)
        seen.append(name)
e2e.finish("%d MiB, runs on %s" % (os.path.getsize(archive) >> 20, ", ".join(seen)))

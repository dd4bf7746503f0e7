#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 7 s
# tests: not svm, files
"""sbom.py KVMPROF SCRATCH: the bill of materials (scripts/sbom.py) names each library that the program can load.

What the dynamic linker loads is asked of the linker itself, and what is loaded later is found in the sources. The members
that SPDX 2.3 requires are there, each relation is between elements of the document, and two runs give the same bytes."""

import glob
import hashlib
import json
import os
import re
import subprocess
import sys

import e2e
from e2e import check, say

SCRIPT = os.path.join(e2e.TOP, "scripts", "sbom.py")
# SPDX 2.3, sections 6 to 8, and the JSON schema that comes with it.
DOCUMENT = ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo", "packages", "files", "relationships")
PACKAGE = ("SPDXID", "name", "downloadLocation", "filesAnalyzed", "licenseConcluded", "licenseDeclared", "copyrightText")
FILE = ("SPDXID", "fileName", "checksums", "licenseConcluded", "copyrightText")


def bill(*files, epoch="1700000000"):
    return subprocess.run([sys.executable, SCRIPT, "-", *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env=dict(os.environ, SOURCE_DATE_EPOCH=epoch))


def package_of(path):
    """The Debian package of a file, under either name of a merged /usr; None without dpkg."""
    for name in (path, os.path.realpath(path), re.sub("^/usr", "", os.path.realpath(path))):
        p = subprocess.run(["dpkg-query", "-S", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if p.returncode == 0:
            return re.split("[:,]", p.stdout.decode())[0]
    return None


def libraries_of(program):
    """Paths of the libraries that the linker loads for it, directly or not."""
    lines = subprocess.run(["ldd", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    paths = dict(re.findall(r"^\s+(\S+) => (/\S+)", lines, re.M))
    check(paths, "ldd: %s" % lines)
    return paths


def needed(program):
    lines = subprocess.run(["readelf", "-d", program], stdout=subprocess.PIPE, check=True).stdout.decode()
    return re.findall(r"\(NEEDED\).*\[(.+)\]", lines)


def sonames_in_sources():
    found = set()
    for path in glob.glob(os.path.join(e2e.TOP, "*", "**", "*.[ch]"), recursive=True):
        if os.path.relpath(path, e2e.TOP).split(os.sep)[0] in ("base", "vmm", "symbolizer", "profile"):
            with open(path, encoding="utf-8") as f:
                found.update(re.findall(r'"(lib[\w+-]+\.so\.\d+)"', f.read()))
    return found


def main():
    program = e2e.KVMPROF
    plugin = os.path.join(os.path.dirname(program), "kvmprof-exact.so")
    p = bill(program, plugin)
    check(p.returncode == 0, "sbom.py: status %d: %s" % (p.returncode, p.stderr.decode()))
    check(bill(program, plugin).stdout == p.stdout, "two bills of the same files differ")
    d = json.loads(p.stdout)
    check(d["spdxVersion"] == "SPDX-2.3" and d["creationInfo"]["created"] == "2023-11-14T22:13:20Z", "head: %s" % d["creationInfo"])
    for members, elements in ((DOCUMENT, [d]), (PACKAGE, d["packages"]), (FILE, d["files"])):
        for e in elements:
            check(not set(members) - set(e), "%s lacks %s" % (e.get("SPDXID"), set(members) - set(e)))
    ids = [e["SPDXID"] for e in d["packages"] + d["files"]] + [d["SPDXID"]]
    check(len(ids) == len(set(ids)), "an identifier stands twice")
    check(all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", x) for x in ids), "identifiers: %s" % ids)
    ends = [r[k] for r in d["relationships"] for k in ("spdxElementId", "relatedSpdxElement")]
    check(set(ends) == set(ids), "relations and elements differ: %s" % (set(ends) ^ set(ids)))
    for f in d["files"]:
        path = os.path.join(os.path.dirname(program), f["fileName"])
        with open(path, "rb") as data:
            digest = hashlib.sha256(data.read()).hexdigest()
        check({"algorithm": "SHA256", "checksumValue": digest} in f["checksums"], "checksum of %s" % path)

    names = {x["name"] for x in d["packages"]}
    paths = libraries_of(program)
    expected = {package_of(paths[x]) or x for x in needed(program) if x in paths}
    check(not expected - names, "libraries that the linker loads are missing: %s" % (expected - names))
    later = sonames_in_sources()
    check(len(later) >= 5, "names of libraries in the sources: %s" % later)
    optional = {x["spdxElementId"] for x in d["relationships"] if x["relationshipType"] == "OPTIONAL_DEPENDENCY_OF"}
    given = {x["name"] for x in d["packages"] if x["SPDXID"] in optional}
    linker = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, check=True).stdout.decode()
    there = dict(re.findall(r"^\s+(\S+) \(.*x86-64.*\) => (\S+)", linker, re.M))
    with open(program, "rb") as f:
        data = f.read()
    for library in later - set(needed(program)):
        if b"\0" + library.encode() + b"\0" in data:
            name = package_of(there[library]) if library in there else None
            check((name or library) in given, "%s, which the program loads, is missing" % library)
    say("%d packages: %d are linked, %d are loaded when needed" % (len(d["packages"]) - 1, len(expected), len(optional)))

    p = bill("missing")
    check(p.returncode == 1 and p.stderr.decode().count("\n") == 1 and "missing" in p.stderr.decode(), "a missing file: %s" % p.stderr)
    p = bill(SCRIPT)
    check(p.returncode == 1 and p.stderr.decode().count("\n") == 1, "a file that is no program: %s" % p.stderr)
    p = bill(program, epoch="soon")
    check(p.returncode == 1 and "SOURCE_DATE_EPOCH" in p.stderr.decode(), "a date that is none: %s" % p.stderr)
    e2e.finish()


main()

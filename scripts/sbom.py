#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the software bill of materials of a build as SPDX 2.3 in JSON.

    scripts/sbom.py OUTPUT FILE...      (OUTPUT "-": standard output)

The bill lists the files, the program and its plugin for QEMU, with their checksums, and each package whose code runs in
them: libraries that the dynamic linker loads, libraries that the program loads when it
needs them, and code that is linked in. The libraries are read from the files themselves, the packages and versions from
dpkg. Without dpkg a library has its file name and no version. The same build gives the same bytes: the date is
SOURCE_DATE_EPOCH, or the last commit's, or that of the file VERSION.

Format: https://spdx.github.io/spdx-spec/v2.3/
"""

import datetime
import hashlib
import json
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = "kvmprof"
LICENSE = "GPL-2.0-or-later"
# Code that leaves no name in the program: the file that it comes from, for the compiler, and what it needs to be true.
LINKED_IN = (
    ("libstdc++.a", lambda needed: not any(x.startswith("libstdc++") for x in needed)),
    ("libgcc.a", lambda needed: True),
    ("libiberty.a", lambda needed: True),
    ("/usr/include/toml++/toml.h", lambda needed: True),
)


class Problem(Exception):
    """One line for the user."""


def output_of(*command):
    """The command's output, or "" where it fails or is missing."""
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                              env=dict(os.environ, LC_ALL="C")).stdout.decode(errors="replace")
    except OSError:
        return ""


def date():
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch:
        epoch = output_of("git", "-C", TOP, "log", "-1", "--format=%ct").strip()
    if not epoch:
        epoch = int(os.stat(os.path.join(TOP, "VERSION")).st_mtime)
    try:
        return datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        raise Problem("SOURCE_DATE_EPOCH: %r is no number of seconds" % epoch) from None


def needed(path):
    """The names of the libraries that the dynamic linker loads for this file."""
    names = re.findall(r"\(NEEDED\).*\[(.+)\]", output_of("readelf", "-d", path))
    if not names:
        raise Problem("%s: readelf (of binutils) finds no libraries that it needs" % path)
    return names


def loaded(data, known):
    """The names of libraries that the program gives to dlopen(): they are strings of it."""
    found = set(x.decode() for x in re.findall(rb"(?<![a-zA-Z0-9_+.-])lib[a-zA-Z0-9_+-]+\.so\.[0-9]+(?=\0)", data))
    return sorted(found - set(known))


def library_paths():
    paths = {}
    for line in (output_of("ldconfig", "-p") or output_of("/sbin/ldconfig", "-p")).split("\n"):
        m = re.match(r"\s+(\S+) \(.*x86-64.*\) => (\S+)", line)
        if m:
            paths.setdefault(m.group(1), m.group(2))
    return paths


def candidates(path):
    """Names under which dpkg may know a file: packages of before the merge of /lib into /usr/lib have the other one."""
    real = os.path.realpath(path)
    return [path, real, real[len("/usr"):] if real.startswith("/usr/lib") else "/usr" + real]


def owners(paths):
    """{path: (name, version, source package)} of the Debian packages that have these files; others are left out."""
    known, found = {}, {}
    if paths:
        lines = output_of("dpkg-query", "-S", *[c for p in paths for c in candidates(p)])
        known = {m.group(2): m.group(1) for m in re.finditer(r"^([^:,\s]+)(?::[^,\s]+)?: (\S+)$", lines, re.M)}
    for path in paths:
        for name in candidates(path):
            if name in known:
                found.setdefault(path, known[name])
    packages = {}
    if found:
        lines = output_of("dpkg-query", "-W", "-f", "${Package}\t${Version}\t${source:Package}\n", *set(found.values()))
        packages = {x.split("\t")[0]: tuple(x.split("\t")) for x in lines.split("\n") if x}
    return {path: packages[name] for path, name in found.items() if name in packages}


def identifier(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


class Bill:
    def __init__(self, version, owner):
        """owner: of owners()."""
        self.owner = owner
        self.packages, self.files, self.relations = {}, [], []
        self.main = identifier("Package-kvmprof")
        self.packages[self.main] = {
            "SPDXID": self.main, "name": "kvmprof", "versionInfo": version, "supplier": "Organization: kvmprof developers",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": LICENSE, "licenseDeclared": LICENSE,
            "copyrightText": "2026 the kvmprof developers", "primaryPackagePurpose": "APPLICATION"}

    def relate(self, a, kind, b):
        relation = {"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
        if relation not in self.relations:
            self.relations.append(relation)

    def add_file(self, name, data):
        spdx = identifier("File-" + name)
        self.files.append({
            "SPDXID": spdx, "fileName": "./" + name, "fileTypes": ["BINARY"],
            "checksums": [{"algorithm": a, "checksumValue": hashlib.new(a.lower(), data).hexdigest()} for a in ("SHA1", "SHA256")],
            "licenseConcluded": LICENSE, "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "2026 the kvmprof developers"})
        self.relate(self.main, "CONTAINS", spdx)
        return spdx

    def add_package(self, library, path):
        """The package of a library; path None: the library is not on this system."""
        found = self.owner.get(path)
        name, version, source = found or (library, None, None)
        spdx = identifier("Package-" + name)
        if spdx in self.packages:
            return spdx
        p = {"SPDXID": spdx, "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
             "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION",
             "primaryPackagePurpose": "LIBRARY"}
        if found:
            p["versionInfo"] = version
            p["sourceInfo"] = "built from the Debian source package " + source
            p["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": "pkg:deb/debian/%s@%s?arch=amd64" % (name, version.replace("+", "%2B").replace(":", "%3A"))}]
        self.packages[spdx] = p
        return spdx

    def document(self, version, created):
        text = json.dumps([list(self.packages.values()), self.files, self.relations], sort_keys=True)
        relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": self.main}]
        return {
            "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "kvmprof-" + version,
            "documentNamespace": "https://kvmprof.invalid/spdx/kvmprof-%s-%s" % (version, hashlib.sha256(text.encode()).hexdigest()[:32]),
            "creationInfo": {"created": created, "creators": ["Organization: kvmprof developers", "Tool: kvmprof-sbom-" + version]},
            "packages": sorted(self.packages.values(), key=lambda p: (p["SPDXID"] != self.main, p["SPDXID"])),
            "files": self.files, "relationships": relations + self.relations}


def make(files):
    with open(os.path.join(TOP, "VERSION"), encoding="ascii") as f:
        version = f.read().strip()
    paths, parts = library_paths(), []
    for path in files:
        try:
            with open(path, "rb") as f:
                data = f.read()
        except OSError as e:
            raise Problem("%s: %s; run `make` first" % (path, e.strerror)) from None
        names = needed(path)
        uses = [("DYNAMIC_LINK", x, paths.get(x)) for x in names]
        uses += [("OPTIONAL_DEPENDENCY_OF", x, paths.get(x)) for x in loaded(data, names)]
        for source, holds in LINKED_IN if os.path.basename(path) == PROGRAM else ():
            at = source if source.startswith("/") else output_of("gcc", "-print-file-name=" + source).strip()
            if holds(names) and os.path.exists(at):
                uses.append(("STATIC_LINK", source, at))
        parts.append((os.path.basename(path), data, uses))
    bill = Bill(version, owners({at for part in parts for _, _, at in part[2] if at}))
    for name, data, uses in parts:
        spdx = bill.add_file(name, data)
        for kind, library, at in uses:
            package = bill.add_package(library, at)
            ends = (package, spdx) if kind == "OPTIONAL_DEPENDENCY_OF" else (spdx, package)
            bill.relate(ends[0], kind, ends[1])
    return bill.document(version, date())


def main():
    if len(sys.argv) < 3:
        sys.stderr.write("usage: sbom.py OUTPUT FILE...\n")
        return 2
    try:
        document = make(sys.argv[2:])
        text = json.dumps(document, indent=1, sort_keys=True) + "\n"
        out = sys.argv[1]
        if out == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            with open(out + ".tmp", "w", encoding="utf-8") as f:
                f.write(text)
            os.replace(out + ".tmp", out)
            print(out)
    except Problem as e:
        sys.stderr.write("sbom: %s\n" % e)
        return 1
    except OSError as e:
        sys.stderr.write("sbom: %s: %s\n" % (e.filename or "standard output", e.strerror))
        return 1
    return 0


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: slow, at most 3600 s: bookworm
# tests: slow, at most 3600 s: trixie
# tests: not svm, files
"""compilers.py KVMPROF SCRATCH bookworm|trixie: built in a bare Debian 12 or 13 by each compiler that
it has, with warnings as errors, and with that release's libraries (capstone 4 and 5 among them).

KVMPROF is not used. gcc builds the unit tests as well, clang the fuzz targets; clang builds no guests."""

import os
import re

import debian_root
import e2e
from e2e import check

RELEASES = {
    "bookworm": ("gcc-12", "clang-14", "clang-15", "clang-16"),
    "trixie": ("gcc-13", "gcc-14", "clang-17", "clang-18", "clang-19"),
}


def build(root, compiler):
    """The compiler's whole version; None: it does not build it."""
    gcc = compiler.startswith("gcc")
    packages = compiler + (" " + compiler.replace("gcc", "g++") if gcc else "")
    p = root.must("apt-get -qy install --no-install-recommends " + packages, packages)
    if p.status:
        return None
    p = root.must("make -k -j%d WERROR=1 CC=%s GUEST_CC=%s BUILD=build/%s all %s" %
                  (os.cpu_count() or 1, compiler, compiler if gcc else "gcc", compiler,
                   "unit-bins" if gcc else "fuzz-bins"), "build with " + compiler)
    if p.status:
        return None
    p = root.must("build/%s/kvmprof --version" % compiler, "the program of " + compiler)
    check(p.out.startswith("kvmprof "), "%s: the program says %r" % (compiler, p.out[:100]))
    version = root.run(compiler + " --version").out.split("\n")[0]
    return re.search(r"\d+\.\d+\.\d+", version).group(0)


release = e2e.EXTRA[0]
root = debian_root.Root(release)
root.must("apt-get -q update && apt-get -qy install --no-install-recommends make libcmocka-dev && "
          "scripts/deps.sh build", "what a build needs")
built = {c: build(root, c) for c in RELEASES[release]}
e2e.finish("no warnings by %s" % ", ".join("%s (%s)" % (c, v) for c, v in built.items() if v))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 1 s: tiny
# tests: together, 1 s: smp-fp
# tests: slow, at most 900 s: 6.1
# tests: slow, at most 900 s: 6.12
# tests: not svm, disk
"""kallsyms_truth.py KVMPROF SCRATCH tiny|smp-fp|6.1|6.12: names from the bzImage alone are those
of the System.map that was made with it.

`kvmprof symbols` lists the same functions at the same addresses, and for 10,000 random text
addresses it tells the same function and offset (any name, where several are at one address).
Debian's System.map is in its -dbg package, which is fetched once: 283 MB for 6.1."""

import bisect
import glob
import json
import os
import random
import re
import struct

import e2e
from e2e import check, say

ADDRESSES = 10000
CODE = "tTwW"
MAX_GAP = 1 << 20    # SYMTAB_MAX_GAP: beyond that a symbol without a size does not reach


def built(variant):
    d = e2e.built_kernel(variant)
    return os.path.join(d, "bzImage"), os.path.join(d, "System.map")


def debian(series):
    image = e2e.debian_kernel(series, "--dbg")
    return image, glob.glob(os.path.join(os.path.dirname(image), "dbg", "System.map-*"))[0]


def read_map(lines):
    """[(address, type, name)] without absolute symbols, which are values and no places."""
    rows = (line.split(None, 2) for line in lines)
    return [(int(a, 16), t, n.strip()) for a, t, n in rows if t not in "aA"]


what = e2e.EXTRA[0] if e2e.EXTRA else "tiny"
image, system_map = debian(what) if what[0].isdigit() else built(what)
with open(system_map) as f:
    truth = read_map(f)

p = e2e.kvmprof("symbols", image)
check(p.status == 0, "kvmprof symbols: " + p.err)
say(p.err)
check("kallsyms" in p.err and "\nORC " in p.err, "the facts lack the source of the names or ORC")
found = read_map(p.out.splitlines())
check(found == sorted(found, key=lambda r: r[0]), "the table is not sorted by address")

want = {(a, n) for a, t, n in truth if t in CODE}
have = {(a, n) for a, t, n in found if t in CODE}
for a, n in sorted(want ^ have)[:20]:
    say("%016x %s: only in %s" % (a, n, "System.map" if (a, n) in want else "kallsyms"))
check(want == have, "%d functions differ" % len(want ^ have))

names = {}
for a, t, n in truth:
    names.setdefault(a, {})[n] = t
addresses = sorted(names)
at = {n: a for a, _, n in truth}
# Each text byte is equally likely, but not those with which the linker fills up to a huge page.
spans, holes = [], 0
for section in (("_stext", "_etext"), ("_sinittext", "_einittext")):
    first, last = (bisect.bisect_left(addresses, at[n]) for n in section)
    for start, end in zip(addresses[first:last], addresses[first + 1:last + 1]):
        if end - start > MAX_GAP:
            holes += 1
            check(any(n.endswith("_end") for n in names[start]), "a hole behind %s" % names[start])
        elif start < end:
            spans.append((start, end))
check(holes < 8, "%d holes in the text" % holes)
random.seed(20)
picked = [random.randrange(*span) for span in
          random.choices(spans, [end - start for start, end in spans], k=ADDRESSES)]

p = e2e.kvmprof("symbols", image, *["%x" % a for a in picked])
check(p.status == 0, "kvmprof symbols with addresses: " + p.err)
lines = p.out.splitlines()
check(len(lines) == len(picked), "%d answers" % len(lines))
right = outside = 0
for a, line in zip(picked, lines):
    start = addresses[bisect.bisect_right(addresses, a) - 1]
    here = {n for n, t in names[start].items() if t in CODE}
    answer = line.split()[1]
    if not here:
        outside += 1    # data between functions
        ok = answer == "?"
    else:
        ok = answer.rpartition("+0x")[0] in here and answer.rpartition("+")[2] == hex(a - start)
    right += ok
    if not ok and picked.index(a) - right < 20:
        say("%x: %s, expected %s+0x%x" % (a, answer, sorted(here), a - start))
check(right == len(picked), "%d of %d addresses have another name or offset than in System.map" %
      (len(picked) - right, len(picked)))
check(outside < len(picked) // 100, "%d addresses without a function" % outside)

p = e2e.kvmprof("symbols", "--json", image)
facts = json.loads(p.out)
check(facts["names_from"] == "kallsyms" and facts["names"] >= len(found), "facts: " + p.out)
if what[0].isdigit():    # Debian's have BTF; its answers are compared in unit/test_btf_kernel
    check(facts["btf_types"] > 50000 and facts["btf_bytes"] > 2**20 and not facts["no_btf_because"] and
          5000 < facts["sizeof_task_struct"] < 20000 and facts["btf_ns"], "BTF facts: " + p.out)
else:
    check(not facts["btf_types"] and "CONFIG_DEBUG_INFO_BTF" in facts["no_btf_because"] and
          facts["sizeof_task_struct"] is None, "BTF facts: " + p.out)
for wrong in (["symbols"], ["symbols", "--no"], ["symbols", "--debuginfo"]):
    p = e2e.kvmprof(*wrong)
    check(p.status == 2 and p.err and not p.out, "%s: status %d" % (wrong, p.status))
start, name = min((a, n) for a, n in want if n in ("panic", "vprintk"))
p = e2e.kvmprof("symbols", image, name)
check(p.status == 0 and int(p.out.split()[0], 16) == start and name in p.out, "symbols %s: %s" % (name, p.out + p.err))
p = e2e.kvmprof("symbols", image, "main")
check(p.status == 1 and "'main'" in p.err and not p.out, "symbols main: status %d" % p.status)


def damaged_vmlinux():
    """The kernel as an ELF file without sections, and so without .symtab, with one byte of its
    names changed."""
    p = e2e.kvmprof("symbols", image)
    names_va = int(re.search(r"names at (0x\w+)", p.err).group(1), 16)
    with open(os.path.join(os.path.dirname(image), "vmlinux"), "rb") as vmlinux:
        elf = bytearray(vmlinux.read())
    phoff, phnum = struct.unpack_from("<Q", elf, 32)[0], struct.unpack_from("<H", elf, 56)[0]
    struct.pack_into("<Q", elf, 40, 0)
    struct.pack_into("<HH", elf, 60, 0, 0)
    for i in range(phnum):
        kind, _, off, va, _, size = struct.unpack_from("<IIQQQQ", elf, phoff + 56 * i)
        if kind == 1 and va <= names_va < va + size:
            elf[off + names_va - va] += 1
    with open("damaged", "wb") as f:
        f.write(elf)
    return "damaged"


# Names that cannot be read are a note, not a failed run.
if what == "tiny":
    bad = damaged_vmlinux()
    p = e2e.kvmprof("symbols", bad)
    check(p.status == 1 and "don't agree" in p.err, "damaged names: status %d: %s" % (p.status, p.err))
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        p = e2e.kvmprof("run", bad, "--duration", "0.3", "-o", "damaged.data")
        check(p.status == 0, "a run without names: status %d: %s" % (p.status, p.err))
        check("has no symbols; " in p.err and "don't agree" in p.err, "no note with the reason: " + p.err)

e2e.finish("%d of %d addresses as in System.map; %d symbols in %.0f ms; %s" %
           (right, len(picked), facts["names"], facts["ready_ns"] / 1e6, facts["kallsyms_layout"]))

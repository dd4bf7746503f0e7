#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 15 s: tiny
# tests: slow, at most 1800 s: cloud
# tests: not svm, disk
"""orc_complete.py KVMPROF SCRATCH tiny|cloud [VMLINUX SYSTEM.MAP]: how many kernel stacks of a
kernel without frame pointers are complete.

tiny: all of a small kernel's work, from its vmlinux and from its bzImage, which has no symbols.
cloud: the first 60 s of Debian's kernel, from its bzImage alone. Each stack that reached neither
a root nor user space has a counted reason, and is shown with the place where it ended.

The edges of the stacks are then checked against the code: where a frame's return address follows
a direct call, the inner frame has to be in the function called, or in one that it jumps to."""

import bisect
import os
import re
import struct

import e2e
from e2e import check, say

WANTED = {"tiny": 99.5, "cloud": 99.0}
EDGES = 99.9
# Calls of these lead on to what a register or a patch says.
INDIRECT = ("__x86_indirect", "__SCT__", "__fentry__", "__x86_return_thunk")
MAX_JUMPS = 4
PROVEN, POSSIBLE, WRONG = "proven", "possible", "wrong"
FRAME = re.compile(r"^\s+([0-9a-f]+)\s+.+ \(.*\)$")


class Code:
    """An image's bytes by address, and where its functions begin."""

    def __init__(self, vmlinux, system_map):
        with open(vmlinux, "rb") as f:
            self.data = f.read()
        phoff, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        self.segments = []
        for i in range(count):
            kind, _, off, va, _, filesz = struct.unpack_from("<IIQQQQ", self.data, phoff + i * size)
            if kind == 1 and va >> 63:
                self.segments.append((va, off, filesz))
        names = {}
        with open(system_map) as f:
            for line in f:
                address, kind, name = line.split()
                if kind in "tTwW":
                    names.setdefault(int(address, 16), []).append(name)
        self.names = names
        self.starts = sorted(names)

    def bytes(self, va, n):
        for start, off, size in self.segments:
            if start <= va and va + n <= start + size:
                return self.data[off + va - start:off + va - start + n]
        return b""

    def function(self, va):
        i = bisect.bisect_right(self.starts, va) - 1
        return self.starts[i] if i >= 0 else 0

    def base(self, va):
        return {re.sub(r"\.(cold|part|isra|constprop)\b.*", "", n) for n in self.names.get(va, [])}

    def direct_target(self, ret):
        b = self.bytes(ret - 5, 5)
        if len(b) < 5 or b[0] != 0xE8:
            return None
        return ret + struct.unpack("<i", b[1:])[0]

    def jumps(self, start):
        """Function starts that this one may jump to; bytes that only look so do no harm here."""
        i = bisect.bisect_right(self.starts, start)
        end = min(self.starts[i] if i < len(self.starts) else start + 64, start + 8192)
        code, found = self.bytes(start, end - start), set()
        if code and code[-1] not in b"\xc3\xcc\x90\x00":
            found.add(end)    # falls through
        for at in range(len(code) - 1):
            if code[at] == 0xEB and start + at + 2 + struct.unpack_from("<b", code, at + 1)[0] in self.names:
                found.add(start + at + 2 + struct.unpack_from("<b", code, at + 1)[0])
        for at in range(len(code) - 4):
            if code[at] == 0xE9 or (code[at] & 0xF0 == 0x80 and at and code[at - 1] == 0x0F):
                found.add(start + at + 5 + struct.unpack_from("<i", code, at + 1)[0])
        return found

    def jumps_anywhere(self, start):
        """May it end in a jump through a register, memory or a retpoline, or be patched?"""
        i = bisect.bisect_right(self.starts, start)
        end = min(self.starts[i] if i < len(self.starts) else start + 64, start + 8192)
        return re.search(rb"\xff[\x20-\x27\x60-\x67\xa0-\xa7\xe0-\xe7]", self.bytes(start, end - start))

    def leads_to(self, target, function):
        """PROVEN: by the code alone. POSSIBLE: by a jump or patch that a value decides. WRONG."""
        seen, now = {target}, {target}
        possible = False
        for _ in range(MAX_JUMPS + 1):
            if function in now or any(self.base(t) & self.base(function) for t in now):
                return PROVEN
            for t in now:
                possible = possible or self.jumps_anywhere(t) or \
                    any(n.startswith(INDIRECT) for n in self.names.get(t, [])) or \
                    self.stem(t) & self.stem(function)
            now = {self.function(j) for t in now for j in self.jumps(t)} - seen
            seen |= now
        return POSSIBLE if possible else WRONG

    def stem(self, va):
        """clear_page of clear_page_orig and clear_page_rep: which one is called is patched."""
        return {n.rsplit("_", 1)[0] for n in self.names.get(va, []) if "_" in n[1:]} - {"_", ""}


def stacks(text):
    one = []
    for line in text.split("\n"):
        m = FRAME.match(line)
        if m:
            one.append(int(m.group(1), 16))
        elif one:
            yield one
            one = []
    if one:
        yield one


def check_edges(code, directory):
    count, wrong, verdict = {PROVEN: 0, POSSIBLE: 0, WRONG: 0}, {}, {}
    for s in stacks(e2e.kvmprof("script", "-i", directory, timeout=600).out):
        for k in range(1, len(s)):
            # A caller is shown at the last byte of its call.
            inner, ret = s[k - 1], s[k] + 1
            function = code.function(inner)
            target = code.direct_target(ret)
            names = " ".join(code.names.get(function, []))
            # An interrupted frame: what it called last has returned, and this came from outside.
            if target is None or "asm_" in names or not ret >> 63 or not inner >> 63:
                continue
            key = (function, target, ret)
            if key not in verdict:
                verdict[key] = code.leads_to(target, function)
            count[verdict[key]] += 1
            if verdict[key] == WRONG:
                wrong[key] = wrong.get(key, 0) + 1
    for (function, target, ret), n in sorted(wrong.items(), key=lambda x: -x[1])[:10]:
        say("%6d times in %s, but the call before %x is of %s" %
            (n, code.names.get(function), ret, code.names.get(target)))
    direct = sum(count.values())
    share = 100 - 100 * count[WRONG] / max(direct, 1)
    say("%s: %d edges by direct calls: %d lead to the inner function, %d may by an indirect or "
        "patched jump, %d do not" % (directory, direct, count[PROVEN], count[POSSIBLE], count[WRONG]))
    check(direct > 1000 and share >= EDGES and count[PROVEN] > 0.9 * direct,
          "edges by direct calls: only %.3f %%" % share)
    return share


def run(image, output, *options):
    b = e2e.Boot(image, "--initrd", e2e.INITRAMFS, "-o", output, *options).wait(300)
    check(b.status == 0, "%s: status %d: %s" % (output, b.status, b.err))
    s = e2e.check_lost(output)
    ends = s["kernel_stack_end"]
    total = sum(ends.values())
    whole = 100 * (ends["root"] + ends["user-entry"]) / max(total, 1)
    say("%s: %d kernel stacks, %.3f %% complete: %s; %d ORC entries, layout of %s" %
        (output, total, whole, {k: v for k, v in ends.items() if v}, s["orc_entries"],
         s["orc_layout"]))
    for x in sorted(s["broken_stacks"], key=lambda x: -x["count"])[:15]:
        say("%6d %s at %s %s (innermost: %s)" % (x["count"], x["end"], x["ip"], x["symbol"],
                                               x["innermost"]))
    counted = sum(x["count"] for x in s["broken_stacks"]) + s["broken_stacks_beyond"]
    check(counted == total - ends["root"] - ends["user-entry"], "stacks without a counted reason")
    check(total > 1000 and s["orc_entries"] > 10000, "no ORC, or too few samples")
    check("no unwinding by the kernel's ORC" not in b.err, b.err)
    check(whole >= WANTED[MODE], "%s: only %.3f %% complete" % (output, whole))
    return whole, b


e2e.need_kvm()
MODE = e2e.EXTRA[0] if e2e.EXTRA else "tiny"
if MODE == "tiny":
    d = e2e.built_kernel("tiny")
    code = Code(os.path.join(d, "vmlinux"), os.path.join(d, "System.map"))
    shares = []
    for image in ("vmlinux", "bzImage"):
        whole, b = run(os.path.join(d, image), image + ".data", "-m", "64M")
        check("kvmprof-init: done" in b.text(), image + ": /init did not come to its end")
        shares.append(whole)
    edges = [check_edges(code, image + ".data") for image in ("vmlinux", "bzImage")]
    e2e.finish("%.2f %% of the kernel stacks complete (vmlinux), %.2f %% (bzImage alone); %.2f %% of "
               "direct calls lead to the inner frame" % (shares[0], shares[1], min(edges)))
else:
    whole, b = run(e2e.debian_kernel("6.1"), "cloud.data", "--duration", "60")
    if len(e2e.EXTRA) > 2:
        check_edges(Code(e2e.EXTRA[1], e2e.EXTRA[2]), "cloud.data")
    e2e.finish("%.2f %% of the kernel stacks complete" % whole)

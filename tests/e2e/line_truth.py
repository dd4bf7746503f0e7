# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of source lines have in common: random text addresses, our answer and that
of binutils' addr2line, and what explains a difference."""

import bisect
import json
import os
import random
import re

import e2e

Frame = tuple    # (function, file, line)


def text_addresses(elf, count, seed=20):
    """Addresses of which each text byte is equally likely."""
    out = e2e.run("readelf", "-SW", elf).out
    spans = [(int(m[2], 16), int(m[3], 16)) for m in re.finditer(
        r"\] (\S+)\s+PROGBITS\s+([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+) \S+\s+(\w*X\w*) ", out)
        if int(m[3], 16) and "altinstr" not in m[1]]
    rng = random.Random(seed)
    return [start + rng.randrange(size) for start, size in
            rng.choices(spans, [size for _, size in spans], k=count)]


def functions(elf):
    """Sorted [(start, end, name)] of the symbol table's functions that have a size."""
    out = e2e.run("readelf", "-sW", elf).out
    return sorted((int(m[1], 16), int(m[1], 16) + int(m[2], 0), m[3]) for m in re.finditer(
        r"^\s*\d+: ([0-9a-f]+)\s+(\S+) FUNC\s+\S+\s+\S+\s+\S+ (\S+)", out, re.M) if int(m[2], 0))


def in_function(table, address):
    i = bisect.bisect_right(table, (address, 1 << 64, "")) - 1
    # Several names of one function stand side by side.
    return any(s <= address < e and not n.startswith("__pfx_") for s, e, n in table[max(0, i - 8):i + 1])


def ours(image, addresses, *options):
    """[[Frame, ...]] for each address, and the whole answer."""
    answer, frames = {}, []
    for i in range(0, len(addresses), 2000):
        p = e2e.kvmprof("symbols", "--json", *options, image, *["%x" % a for a in addresses[i:i + 2000]],
                        timeout=600)
        if not e2e.check(p.status == 0, "kvmprof symbols --json: " + p.err):
            e2e.finish()
        answer = json.loads(p.out)
        frames += [[(f["function"], f["file"], f["line"]) for f in a["frames"]] for a in answer["addresses"]]
    return frames, answer


def theirs(elf, addresses, tool=("addr2line",)):
    with open("addresses", "w") as f:
        f.writelines("0x%x\n" % a for a in addresses)
    with open("addresses") as f:
        import subprocess
        out = subprocess.run(list(tool) + ["-a", "-i", "-f", "-e", elf], stdin=f, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, timeout=1200).stdout.decode(errors="replace")
    result = []
    lines = [x for x in out.split("\n") if x]
    i = 0
    while i < len(lines):
        if re.fullmatch(r"0x[0-9a-f]+", lines[i]):
            result.append([])
            i += 1
            continue
        # eu-addr2line adds where a function was inlined, and a column.
        function = lines[i].split(" inlined at ")[0]
        m = re.match(r"(.*?):(\d+|\?)(:\d+)?( \(discriminator.*)?$", lines[i + 1])
        result[-1].append((function, m[1], int(m[2]) if m[2] != "?" else 0))
        i += 2
    return result


def same_file(mine, other):
    """Ours may lack a relative directory of compilation, which addr2line puts before it."""
    if mine is None or other == "??":
        return mine is None and other == "??"
    mine, other = os.path.normpath(mine), os.path.normpath(other)
    return mine == other or (mine[0] != "/" and other.endswith("/" + mine))


def same_function(mine, other):
    # Without a name in DWARF addr2line takes the symbol's, and so does our text output.
    return mine == other or mine is None


def same(mine, other):
    return len(mine) == len(other) and all(
        same_function(a[0], b[0]) and same_file(a[1], b[1]) and a[2] == b[2] for a, b in zip(mine, other))


def nothing(mine, other):
    """Neither has a line; addr2line still names the symbol before the address."""
    return not mine and len(other) == 1 and other[0][2] == 0


def compare(elf, image, count, *options):
    """(equal, explained, unexplained, with inlined frames); prints what is not explained."""
    addresses = text_addresses(elf, count)
    mine, answer = ours(image, addresses, *options)
    other = theirs(elf, addresses)
    table = functions(elf)
    equal = inlined = 0
    differ = []
    for a, x, y in zip(addresses, mine, other):
        inlined += len(x) > 1
        if same(x, y) or nothing(x, y):
            equal += 1
        else:
            differ.append((a, x, y))
    explained = 0
    second = theirs(elf, [d[0] for d in differ], ("eu-addr2line",)) if differ and has_elfutils() else None
    for i, (a, x, y) in enumerate(differ):
        # Fill bytes between functions, to which only the last line before them reaches.
        fill = not x and not in_function(table, a)
        # addr2line of binutils takes file 1 of DWARF 5 for file 0 in some sequences; elfutils' does not.
        if fill or (second and same(x, second[i])):
            explained += 1
        else:
            e2e.say("%x:\n  ours       %s\n  addr2line  %s\n  elfutils   %s" %
                    (a, x, y, second and second[i]))
    return equal, explained, len(differ) - explained, inlined, answer


def has_elfutils():
    import shutil
    return shutil.which("eu-addr2line") is not None

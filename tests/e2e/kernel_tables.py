#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 15 s
# tests: slow, at most 1800 s: all
# tests: not svm, disk
"""kernel_tables.py KVMPROF SCRATCH [all]: what is read out of kernels' images, without a guest.

Of the kernels of tests/kernels.table that belong to the quick tier (`all`: to any)
`kvmprof symbols --check` must say what the table says. Then (kernel_tables.c) the unwind table is
held against the code of all functions, the same table with its registers numbered at random must
come out the same, and stacks that are made up over real call sites must unwind whole. At last an
image is damaged: what comes of it is one line, or answers; and of a kernel whose types know other
names for what we want, what is lost is said. A kernel that cannot be had is left out by name."""

import json
import mmap
import os
import random

import compiled
import e2e
import kernel_matrix
from e2e import check, say

PERMUTATIONS = 3
QUICK_HARMED = 4
# Members as the strings of BTF name them, and what is lost when they are called otherwise.
RENAMED = (("vm_end", ("mappings", "files")), ("d_parent", ("mappings", "files")), ("f_mapping", ("files",)),
           ("xa_head", ("files",)), ("i_size", ("files",)), ("sp", ("off_cpu",)), ("comm", ("tasks",)),
           ("init_task", ()), ("map_count", ()), ("orc_unwind", ("modules",)), ("num_symtab", ("modules",)))


def rows_of(path):
    """What --check says of an image: {row: (answer, text)}, or the line on stderr."""
    p = e2e.kvmprof("symbols", "--check", "--json", path)
    if p.status == 0:
        c = json.loads(p.out)["check"]
        return {x: (c[x]["answer"], c[x]["text"]) for x in c}
    check(p.status == 1 and p.err.count("\n") == 1 and not p.out,
          "%s: status %d and not one line: %s%s" % (path, p.status, p.out, p.err))
    return p.err


def check_answers(kernel, path):
    rows = rows_of(path)
    if not check(isinstance(rows, dict) and set(rows) == set(kernel_matrix.ANSWERS), "%s: %s" % (path, rows)):
        return
    say("%s: %s" % (kernel.name, ", ".join("%s %s" % (x, rows[x][0]) for x in rows)))
    for row, (answer, text) in rows.items():
        want = getattr(kernel, row)
        check(answer == want, "%s: %s is %s, not %s: %s" % (kernel.name, row, answer, want, text))
    by = {"orc": "by its ORC table", "frame-pointers": "by frame pointers", "search": "a search"}[kernel.by]
    check(by in rows["stacks"][1], "%s: stacks %s" % (kernel.name, rows["stacks"][1]))
    p = e2e.kvmprof("inspect", path)
    for row, (answer, text) in rows.items():
        check("%s: %s" % (answer, text) in p.out, "%s: inspect says another thing of %s: %s" %
              (kernel.name, row, p.out))


def check_tables(kernel, path):
    p = e2e.run("./kernel_tables", path)
    check(p.status == 0, "%s: status %d: %s" % (kernel.name, p.status, p.err))
    v, broken = {}, []
    for line in p.out.split("\n"):
        word, _, text = line.partition(" ")
        v[word] = int(text) if text.isdigit() else text
        if word in ("broken", "disagree", "permuted-refused"):
            broken.append(line)
    name, before = kernel.name, e2e.failures
    check_variables(kernel, p.out)
    if kernel.by != "orc":
        return
    say("%s: ORC: %s entries; %s of %s instructions agree; %s of %s stacks whole" %
        (name, v.get("orc"), v.get("agree"), v.get("instructions"), v.get("orc-whole"), v.get("orc-stacks")))
    if not check(v.get("orc", 0) > 50000, "%s: %s ORC entries" % (name, v.get("orc"))):
        return
    check(v["outside"] * 1000 <= v["orc"], "%s: %d entries are outside of the text" % (name, v["outside"]))
    check(v["functions"] > 5000 and v["starts"] * 1000 >= v["functions"] * 999,
          "%s: at the start of only %d of %d functions the frame is at rsp + 8" % (name, v["starts"], v["functions"]))
    check(v["agree"] * 1000 >= v["instructions"] * 999, "%s: the table disagrees with the code: %d of %d" %
          (name, v["agree"], v["instructions"]))
    check(v["permuted-wrong"] == 0, "%s: with other numbers %d entries are another" % (name, v["permuted-wrong"]))
    check(v["permuted-lost"] * 1000 <= v["orc"] * PERMUTATIONS,
          "%s: with other numbers %d entries are lost" % (name, v["permuted-lost"]))
    check(v["orc-stacks"] >= 1000 and v["orc-whole"] * 1000 >= v["orc-stacks"] * 995 and v["orc-invented"] == 0,
          "%s: %d of %d stacks are whole, %d frames are invented" %
          (name, v["orc-whole"], v["orc-stacks"], v["orc-invented"]))
    # Without the table, by the code's way to its return: not all, but none that is not there.
    check(v["scan-right"] * 10 >= v["scan-frames"] * 9 and v["scan-invented"] * 1000 <= v["scan-frames"],
          "%s: without the table %d of %d frames are found, and %d that are not there" %
          (name, v["scan-right"], v["scan-frames"], v["scan-invented"]))
    if e2e.failures > before:
        say("\n".join(broken))


def check_variables(kernel, out):
    """Found without their names, by content and code: those that the image names are where it says."""
    found = dict(x.split()[1:] for x in out.split("\n") if x.startswith("variable "))
    if not found:
        # Then it names functions only, and nothing tells what is right: a boot does (cloud_boot.py).
        check(kernel.names == "partly", "%s: no variables" % kernel.name)
        return
    say("%s: by content and code: %s" % (kernel.name, ", ".join("%s %s" % x for x in found.items())))
    # What begins with init_task's members cannot be found where they are shuffled.
    may_lack = ("init_task", "current_task", "__per_cpu_offset") if kernel.name == "randstruct" else ()
    for name, what in found.items():
        check(what in ("right", "none") or (what == "missing" and name in may_lack),
              "%s: without its name %s is %s" % (kernel.name, name, what))


def check_future(kernel, elf):
    """A kernel that calls what we want of it by other names: the rest stays, and each loss is named."""
    with open(elf, "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
        for name, lost in RENAMED:
            of_tasks = ("mappings", "files", "off_cpu") if "tasks" in lost else ()
            old, at, places = b"\0" + name.encode() + b"\0", -1, []
            while (at := m.find(old, at + 1)) >= 0:
                places.append(at)
            for at in places:
                m[at + 1:at + len(old) - 1] = old[1:-1].swapcase()
            rows = rows_of(elf)
            for at in places:
                m[at:at + len(old)] = old
            if not places or not check(isinstance(rows, dict), "%s: without %s: %s" % (kernel.name, name, rows)):
                continue
            say("%s without %s: %s" % (kernel.name, name, "; ".join("%s %s: %s" % (x, *rows[x]) for x in lost)))
            for x in kernel_matrix.ANSWERS:
                check(("yes" != rows[x][0]) == (x in lost or x in of_tasks),
                      "%s: without %s: %s %s: %s" % (kernel.name, name, x, *rows[x]))
                check(rows[x][0] == "yes" or len(rows[x][1]) > 20, "%s: no reason for %s" % (kernel.name, x))


def check_damage(kernel, path, elf):
    """Truncated, and with bytes of chance in its places: a line, or answers."""
    rng = random.Random(kernel.name)
    size = os.path.getsize(elf)
    for _ in range(3):
        with open(elf, "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
            kept = []
            for _ in range(rng.choice((1, 16, 256))):
                at, n = rng.randrange(size - 4096), rng.choice((1, 8, 4096))
                kept.append((at, m[at:at + n]))
                m[at:at + n] = rng.randbytes(n)
            rows_of(elf)
            for at, old in reversed(kept):
                m[at:at + len(old)] = old
    check(isinstance(rows_of(elf), dict), "%s: it was not mended" % kernel.name)
    with open(path, "rb") as f:
        whole = f.read()
    for n in (0, 600, len(whole) // 2):
        with open("cut", "wb") as f:
            f.write(whole[:n])
        line = rows_of("cut")
        check(isinstance(line, str), "%s: of its first %d of %d bytes: %s" % (kernel.name, n, len(whole), line))
    for _ in range(2):
        at = rng.randrange(len(whole) // 4, len(whole) * 3 // 4)
        with open("cut", "wb") as f:
            f.write(whole[:at] + rng.randbytes(64) + whole[at + 64:])
        rows_of("cut")
    os.truncate(elf, rng.randrange(size // 4, size))
    rows_of(elf)


def check_harmed(kernel, path):
    p = e2e.run("./kernel_tables", path, "elf")
    if check(p.status == 0, "%s: %s" % (kernel.name, p.err)):
        if kernel.tasks == kernel.modules == "yes":
            check_future(kernel, "elf")
        check_damage(kernel, path, "elf")


e2e.need_tool("gcc")
found, missing = {}, []
for kernel in kernel_matrix.kernels().values():
    if kernel.facts == "quick" or e2e.EXTRA[:1] == ["all"]:
        try:
            found.setdefault(kernel_matrix.image(kernel), kernel)
        except kernel_matrix.Missing as why:
            missing.append(str(why))
            e2e.left_out(str(why))
if not found:
    e2e.skip("none of the kernels is there: " + "; ".join(missing))
compiled.tool("e2e/kernel_tables.c", "demo_elf.o")
for path, kernel in found.items():
    check_answers(kernel, path)
    check_tables(kernel, path)
# Of the quick tier the newest of Debian's and those that are small.
for path, kernel in list(found.items()) if e2e.EXTRA else list(found.items())[-QUICK_HARMED:]:
    check_harmed(kernel, path)
e2e.finish("%d kernels (%s)%s" % (len(found), ", ".join(k.name for k in found.values()),
                                  "; left out: " + "; ".join(missing) if missing else ""))

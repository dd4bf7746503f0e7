#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 10 s
# tests: slow, at most 3600 s: debian 6.1
# tests: not svm, host
"""kvmprof export -F lcov: lines and functions of the demo guest, each with the count of its instructions, as
objdump and addr2line have them; lcov and genhtml read it; what has no counts or no lines is told in one line.

exact_lcov.py KVMPROF SCRATCH [debian SERIES]: of Debian's kernel with its debug package, too."""

import collections
import glob
import os
import re

import e2e
import exact_engine
from e2e import check, say

def counted(out, *argv):
    p = e2e.kvmprof("run", "--engine", "exact", "--call-counts", "-q", "--no-summary", "-o", out, *argv,
                    timeout=1200)
    check(p.status == 0, "run: status %d: %s" % (p.status, p.err))


def export(profile, out, *argv):
    p = e2e.kvmprof("export", "-F", "lcov", "-i", profile, "-o", out, *argv, timeout=600)
    check(p.status == 0, "export: status %d: %s" % (p.status, p.err))
    return p.err


def parse(path):
    """Lines and functions with counts, by file; its sums are what is in it."""
    lines, functions, where, sums = {}, {}, {}, {}
    source = None
    with open(path, encoding="utf-8") as f:
        for text in f.read().splitlines():
            key, _, value = text.partition(":")
            if key == "SF":
                source = value
                check(source not in lines, "%s is there twice" % source)
                lines[source], functions[source], where, sums = {}, {}, {}, {}
            elif key == "DA":
                number, count = value.split(",")
                lines[source][int(number)] = int(count)
            elif key == "FN":
                number, name = value.split(",", 1)
                check(name not in where, "%s is there twice in %s" % (name, source))
                where[name] = int(number)
            elif key == "FNDA":
                count, name = value.split(",", 1)
                functions[source][name] = (where[name], int(count))
            elif key in ("LF", "LH", "FNF", "FNH"):
                sums[key] = int(value)
            elif key == "end_of_record":
                have = (len(lines[source]), sum(c > 0 for c in lines[source].values()),
                        len(functions[source]), sum(c > 0 for _, c in functions[source].values()))
                check(have == (sums["LF"], sums["LH"], sums["FNF"], sums["FNH"]),
                      "%s: %s of %s" % (source, sums, have))
    return lines, functions


def executed(profile):
    """How often each instruction of the kernel's half was executed, as the samples have it."""
    p = e2e.kvmprof("export", "-F", "perf-script", "-i", profile, "--event", "insn-exec", timeout=600)
    counts, times = collections.Counter(), 0
    for line in p.out.splitlines():
        if line and not line[0].isspace():
            times = int(re.search(r"(\d+) insn-exec", line).group(1))
        elif line.strip():
            counts[int(line.split()[0], 16)] += times
    return {a: n for a, n in counts.items() if a >> 63}


def places(elf, addresses):
    """File and line of each, as addr2line has them without what was inlined."""
    with open("addresses", "w", encoding="utf-8") as f:
        f.writelines("%#x\n" % a for a in addresses)
    out = e2e.run("sh", "-c", "addr2line -e %s < addresses" % elf, timeout=600).out.splitlines()
    return [re.sub(r" \(discriminator \d+\)", "", line).rsplit(":", 1) for line in out]


def rows(elf):
    """Lines that have code: objdump's own table of them, of rows that reach to another address."""
    found = collections.defaultdict(set)
    before = None
    for line in e2e.run("objdump", "--dwarf=decodedline", elf).out.splitlines():
        m = re.match(r"(\S+)\s+(\d+|-)\s+(0x[0-9a-f]+)", line)
        if not m:
            continue
        address = int(m.group(3), 16)
        if before and before[2] < address and before[2] >> 63:
            found[before[0]].add(before[1])
        before = None if m.group(2) == "-" else (m.group(1), int(m.group(2)), address)
    return found


def demo():
    elf = os.path.join(e2e.BUILD, "guest", "demo.elf")
    counted("demo.data", "--append", "seconds=1")
    said = export("demo.data", "demo.info")
    check("are not in it" in said, "what is not in it: " + said)
    lines, functions = parse("demo.info")
    counts = executed("demo.data")
    # A line counts as often as the most often executed of its instructions.
    want = collections.Counter()
    addresses = sorted(counts)
    for address, (source, line) in zip(addresses, places(elf, addresses)):
        if line.isdigit() and int(line):
            key = (os.path.basename(source), int(line))
            want[key] = max(want[key], counts[address])
    have = {(os.path.basename(source), line): n for source, of in lines.items() for line, n in of.items()}
    wrong = {k: (n, have.get(k)) for k, n in want.items() if have.get(k) != n}
    check(len(want) > 200 and not wrong, "%d of %d lines differ from addr2line's: %s" %
          (len(wrong), len(want), list(wrong.items())[:5]))
    # What runs before paging does so at other addresses: it is in assembler.
    extra = [k for k, n in have.items() if n and k not in want and not k[0].endswith(".S")]
    check(not extra, "lines that addr2line has no instruction of: %s" % extra[:5])
    # Those that have code and were not executed are there, too.
    table = rows(elf)
    missing = [(f, n) for f, of in table.items() for n in of if (f, n) not in have]
    check(not missing and any(n == 0 for n in have.values()),
          "lines with code that are not there: %s" % missing[:5])
    # Functions: the count of their first instruction.
    entries = {line.split()[2]: int(line.split()[0], 16)
               for line in e2e.run("nm", elf).out.splitlines() if len(line.split()) == 3}
    told = {name: n for of in functions.values() for name, (_, n) in of.items()}
    wrong = {name: (n, counts.get(entries[name], 0)) for name, n in told.items()
             if name in entries and n != counts.get(entries[name], 0)}
    check(len(told) > 40 and told["flat_spin"] > 0 and not wrong, "functions: %s" % wrong)
    say("demo guest: %d lines of %d and %d functions as addr2line, objdump and nm have them" %
        (len(want), len(have), len(told)))


def real_consumers():
    if not e2e.has_tool("genhtml"):
        return
    lines, functions = parse("demo.info")
    p = e2e.run("lcov", "--summary", "demo.info")
    told = {m.group(1): (int(m.group(2)), int(m.group(3))) for m in
            re.finditer(r"(lines|functions)\.*: [\d.]+% \((\d+) of (\d+)", p.out + p.err)}
    want = {"lines": [n for of in lines.values() for n in of.values()],
            "functions": [n for of in functions.values() for _, n in of.values()]}
    check(p.status == 0 and told == {k: (sum(n > 0 for n in v), len(v)) for k, v in want.items()},
          "lcov --summary: %s%s" % (told, p.err))
    # The demo's paths are from the top of the tree.
    p = e2e.run("genhtml", "-q", "-o", os.path.abspath("html"), os.path.abspath("demo.info"), cwd=e2e.TOP)
    check(p.status == 0, "genhtml: " + p.err)
    with open(glob.glob("html/**/work.c.gcov.html", recursive=True)[0], encoding="utf-8") as f:
        page = f.read()
    source = next(s for s in lines if s.endswith("work.c"))
    for line in (36, 45):
        m = re.search(r'name="%d".*?lineCov">\s*(\d+)' % line, page)
        check(m and int(m.group(1)) == lines[source][line], "work.c:%d of genhtml: %s" %
              (line, m and m.group(1)))


def refused():
    def told(what, *argv):
        p = e2e.kvmprof("export", "-F", "lcov", *argv)
        check(p.status and what in p.err and not p.out, "%s: status %d: %s" % (what, p.status, p.err))

    told("there is no profile", "-i", "none.data")
    with open("stacks.folded", "w", encoding="utf-8") as f:
        f.write("task;main 12\n")
    e2e.kvmprof("import", "stacks.folded", "-o", "other.data")
    told("it has no counts of instructions", "-i", "other.data")
    os.mkdir("nothing")
    told("no lines of the kernel", "-i", "demo.data", "--buildid-dir", os.path.abspath("nothing"))
    told("lcov covers all instructions: drop --event, --samples and what selects samples or functions", "-i", "demo.data", "--event", "calls")
    p = e2e.kvmprof("export", "-F", "folded", "-i", "demo.data", "--debuginfo", "x")
    check(p.status == 2 and "are for lcov" in p.err, "--debuginfo elsewhere: " + p.err)


def debian(series):
    image = e2e.debian_kernel(series, "--dbg")
    debug = os.path.join(os.path.dirname(image), "dbg")
    counted("debian.data", image, "--append", "console=ttyS0 panic=-1 reboot=k quiet")
    export("debian.data", "debian.info", "--debuginfo", debug)
    lines, functions = parse("debian.info")
    hit = {s: sum(n > 0 for n in of.values()) for s, of in lines.items()}
    say("Debian's %s: %d of %d lines in %d files, %d of %d functions" % (
        series, sum(hit.values()), sum(len(of) for of in lines.values()), len(lines),
        sum(n > 0 for of in functions.values() for _, n in of.values()),
        sum(len(of) for of in functions.values())))
    # What ran before the page tables, too.
    early = [s for s in lines if s.endswith("arch/x86/kernel/head_64.S")]
    check(early and hit[early[0]] > 20, "early code: %s" % {s: hit[s] for s in early})
    main = next(s for s in functions if s.endswith("init/main.c"))
    check(functions[main]["start_kernel"][1] == 1, "start_kernel: %s" % (functions[main]["start_kernel"],))


for tool in ("addr2line", "objdump", "nm"):
    e2e.need_tool(tool)
exact_engine.find_qemu()
if e2e.EXTRA:
    debian(e2e.EXTRA[1])
    e2e.finish()
demo()
real_consumers()
refused()
e2e.finish()

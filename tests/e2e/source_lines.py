#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 1 s
# tests: slow, at most 900 s: 6.1
# tests: slow, at most 900 s: 6.12
# tests: not svm, files
"""source_lines.py KVMPROF SCRATCH [6.1|6.12]: source lines and inlined calls are those of addr2line.

Without an argument: 2,000 random text addresses of the demo guest, and each byte of a program
built with each form of debug information. With one: 2,000 addresses of Debian's kernel, whose
-dbg package is fetched once (283 MB for 6.1); the image is the bzImage, the debug file is found
by its build id."""

import glob
import json
import os
import re
import shutil

import e2e
import line_truth
from e2e import check, say

COUNT = 2000
SOURCE = """
static volatile int sink[4];
static inline __attribute__((always_inline)) void put(int n) { sink[n & 3] += n; }
static inline __attribute__((always_inline)) void twice(int n)
{
	put(n);
	if (n > 2)
		put(n + sink[1]);
}
__attribute__((noinline)) int f(int n)
{
	twice(n);
	return sink[0];
}
__attribute__((noinline, section(".text.far"))) int far_away(int n)
{
	put(n);
	return f(n);
}
void _start(void)
{
	for (int i = 0; i < 5; i++)
		far_away(i);
}
"""
BUILD = ["-O2", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=sha1"]


def result(what, r):
    equal, explained, unexplained, inlined, _ = r
    check(unexplained == 0, "%s: %d addresses have other lines than addr2line says" % (what, unexplained))
    check(inlined > 0, "%s: no inlined calls" % what)
    return equal, explained


def build(name, compiler, *flags):
    with open("program.c", "w") as f:
        f.write(SOURCE)
    p = e2e.run(compiler, *BUILD, *flags, "program.c", "-o", name)
    return check(p.status == 0, "%s %s: %s" % (compiler, flags, p.err)) and name


def all_bytes(name, tool=("addr2line",)):
    """Each byte of each function; returns how many have inlined calls."""
    spans = line_truth.functions(name)
    addresses = [a for s, e, _ in spans for a in range(s, e)]
    mine, answer = line_truth.ours(name, addresses)
    other = line_truth.theirs(name, addresses, tool)
    bad = [(hex(a), x, y) for a, x, y in zip(addresses, mine, other) if not line_truth.same(x, y)]
    check(len(addresses) > 50 and not bad, "%s: %d of %d differ: %s" % (name, len(bad), len(addresses), bad[:3]))
    check(all(f[1] and f[1].startswith("/") for x in mine for f in x), "%s: relative paths" % name)
    deepest = max(len(x) for x in mine)
    check(deepest == 3, "%s: put in twice in f is %d deep" % (name, deepest))
    return answer


def forms():
    """Versions, compilers, packed sections, without .debug_aranges, split, stripped."""
    count = 0
    compilers = ["gcc"] + (["clang"] if e2e.has_tool("clang") else [])
    for compiler in compilers:
        for form in ("-gdwarf-3", "-gdwarf-4", "-gdwarf-5", "-gz"):
            name = build(compiler + form, compiler, "-g", form)
            if name:
                all_bytes(name)
                count += 1
    shutil.copy("gcc-gdwarf-5", "no-aranges")
    e2e.run("objcopy", "--remove-section=.debug_aranges", "no-aranges")
    all_bytes("no-aranges")

    start = "%x" % line_truth.functions("gcc-gdwarf-5")[0][0]
    if build("split", "gcc", "-g", "-gdwarf-5", "-gsplit-dwarf"):
        p = e2e.kvmprof("symbols", "split", start)
        check(p.status == 0 and "split DWARF" in p.err and ".dwo" in p.err, "split DWARF: " + p.err)
        check(p.out.count("\n") == 1 and "+0x0" in p.out, "split DWARF: " + p.out)
    shutil.copy("gcc-gdwarf-5", "stripped")
    e2e.run("objcopy", "--strip-debug", "stripped")
    p = e2e.kvmprof("symbols", "stripped", start)
    check(p.status == 0 and "no source lines: no debug information for build id" in p.err, "stripped: " + p.err)
    # Its own debug file, by --debuginfo, of which only sections are left.
    e2e.run("objcopy", "--only-keep-debug", "gcc-gdwarf-5", "only.debug")
    p = e2e.kvmprof("symbols", "--debuginfo", "only.debug", "stripped", start)
    q = e2e.kvmprof("symbols", "gcc-gdwarf-5", start)
    check(p.status == 0 and p.out == q.out and " at /" in q.out, "debug file: %s%s" % (p.out, p.err))
    return count + 1


def demangled():
    """A C++ program: functions and inlined calls as in the source, or as they are."""
    with open("program.cc", "w") as f:
        f.write("namespace ns { volatile int sink;"
                " static inline __attribute__((always_inline)) void put(int n) { sink += n; }"
                " __attribute__((noinline)) void work(int n) { put(n); } }\n"
                'extern "C" void _start(void) { for (;;) ns::work(3); }\n')
    p = e2e.run("gcc", *BUILD, "-g", "program.cc", "-o", "cxx")
    if p.status:
        say("no C++ compiler: names of C++ are not tested")
        return
    start, end, _ = next(f for f in line_truth.functions("cxx") if "work" in f[2])
    addresses = ["%x" % a for a in range(start, end)]
    plain, raw = e2e.kvmprof("symbols", "cxx", *addresses), e2e.kvmprof("symbols", "--no-demangle", "cxx", *addresses)
    check(" ns::work+0x0\n    " in plain.out and " ns::work at /" in plain.out and "_ZN" not in plain.out and
          re.search(r"^    (ns::)?put at .* \(inlined\)$", plain.out, re.M), "C++ names: " + plain.out)
    check(" _ZN2ns4workEi+0x0\n    " in raw.out and " _ZN2ns4workEi at /" in raw.out and "ns::" not in raw.out,
          "--no-demangle: " + raw.out)
    frame = json.loads(e2e.kvmprof("symbols", "--json", "cxx", addresses[0]).out)["addresses"][0]
    check(frame["symbol"] == "ns::work" and frame["frames"][-1]["function"] == "ns::work", "JSON: %s" % frame)


def shared():
    """dwz moves what two files share into a third."""
    if not e2e.has_tool("dwz"):
        return
    for name in ("one", "two"):
        build(name, "gcc", "-g", "-gdwarf-4", "-fdebug-prefix-map=x=" + name)
        shutil.copy(name, name + ".before")
    p = e2e.run("dwz", "-m", "common.debug", "-M", os.path.abspath("common.debug"), "one", "two")
    if p.status or not os.path.exists("common.debug"):
        say("dwz shares nothing here: " + p.err)
        return
    answer = all_bytes_like("one", "one.before")
    check(answer["no_lines_because"] is None, "dwz: %s" % answer["no_lines_because"])
    os.rename("common.debug", "moved-away")
    addresses = [s for s, _, _ in line_truth.functions("one")]
    frames, _ = line_truth.ours("one", addresses)
    check(all(f for f in frames), "dwz: no lines without the second file")


def all_bytes_like(name, before):
    addresses = [a for s, e, _ in line_truth.functions(before) for a in range(s, e)]
    want, _ = line_truth.ours(before, addresses)
    have, answer = line_truth.ours(name, addresses)
    check(have == want, "%s differs from %s" % (name, before))
    return answer


def debian(series):
    image = e2e.debian_kernel(series, "--dbg")
    dbg = os.path.join(os.path.dirname(image), "dbg")
    return image, glob.glob(os.path.join(dbg, "vmlinux-*"))[0], dbg


for tool in ("gcc", "addr2line", "readelf", "objcopy"):
    e2e.need_tool(tool)
if e2e.EXTRA:
    image, vmlinux, directory = debian(e2e.EXTRA[0])
    r = line_truth.compare(vmlinux, image, COUNT, "--debuginfo", directory)
    equal, explained = result(e2e.EXTRA[0], r)
    check(equal > COUNT * 95 // 100, "only %d of %d equal" % (equal, COUNT))
    e2e.finish("%d of %d as addr2line, %d explained, %d with inlined calls" % (equal, COUNT, explained, r[3]))
demo = os.path.join(e2e.BUILD, "guest", "demo.elf")
r = line_truth.compare(demo, demo, COUNT)
equal, explained = result("demo", r)
check(explained == 0, "demo: %d differ" % explained)
built = forms()
shared()
demangled()
e2e.finish("demo: %d of %d as addr2line, %d with inlined calls; %d forms of debug information" %
           (equal, COUNT, r[3], built))

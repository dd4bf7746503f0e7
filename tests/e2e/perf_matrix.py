#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 12 s: quick
# tests: slow, at most 3600 s
# tests: not svm, files
"""Files of several perfs, recorded with many sets of options, in kvmprof and in the perf that made them: the samples and the
weight of each event, and the shares of the program's functions. What no host without a PMU records is made by
perf_writer.py; the output says which these are.

    perf_matrix.py KVMPROF SCRATCH quick      this host's perf, some sets
    perf_matrix.py KVMPROF SCRATCH            the perfs of Debian 12, 13 and sid, all sets; prints a table"""

import json
import os
import re
import subprocess

import debian_root
import e2e
import perf_writer
from e2e import check, say
from perf_writer import context

QUICK = "quick" in e2e.EXTRA
RELEASES = ("bookworm", "trixie", "sid")
CACHE = "cache"

WORK = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#define SLOW __attribute__((noinline))
volatile long sink;
SLOW void leaf(int n) { for (int i = 0; i < n; i++) sink += i; }
SLOW int rec(int d) { int r; if (!d) { leaf(200000); return 1; } r = rec(d - 1); sink += r; return r + 1; }
static int cmp(const void *a, const void *b) { leaf(50); return *(const int *)a - *(const int *)b; }
SLOW void sorter(void) { static int v[20000]; for (int i = 0; i < 20000; i++) v[i] = rand(); qsort(v, 20000, 4, cmp); }
SLOW void reader(void)
{
	char b[2048], *m;
	int fd = open("/dev/zero", O_RDONLY);
	for (int i = 0; i < 1000; i++) {
		if (read(fd, b, sizeof(b)) < 0)
			exit(1);
		if (i % 100 == 0) {
			usleep(100);
			syscall(SYS_getppid);
			m = malloc(1 << 20);
			m[4096 * (i / 100)] = 1;
			free(m);
		}
	}
	close(fd);
}
int main(void) { for (int i = 0; i < 30; i++) { rec(10); if (i % 5 == 0) sorter(); reader(); } return 0; }
"""
FUNCTIONS = ("leaf", "rec", "cmp", "sorter", "reader", "main")

# Name, options, whether the table of functions is compared.
SETS = (
    ("plain", "-e cpu-clock", True),
    ("frame pointers", "-e cpu-clock -g", True),
    ("whole host", "-e cpu-clock -g -a", True),
    ("fixed period", "-e cpu-clock -c 500000 -g", True),
    ("frequency", "-e cpu-clock -F 2999 -g", True),
    ("copied stacks", "-e cpu-clock --call-graph dwarf", True),
    ("copied stacks, short", "-e cpu-clock --call-graph dwarf,2048", True),
    ("compressed", "-e cpu-clock -g -z", True),
    ("threads", "-e cpu-clock -g --threads", True),
    ("threads, compressed", "-e cpu-clock -g --threads -z", True),
    ("leader sampling", "-e {cpu-clock,context-switches,page-faults}:S -g", False),
    ("leader sampling, host", "-e {cpu-clock,context-switches,page-faults}:S -a", False),
    ("two events", "-e cpu-clock -e task-clock -g", True),
    ("three events", "-e cpu-clock,page-faults,context-switches -g", True),
    ("all fields", "-e cpu-clock -g -d -W --phys-data --data-page-size --code-page-size", True),
    ("registers", "-e cpu-clock -g --intr-regs=ip,sp,bp --user-regs=ip,sp", True),
    ("ids in the maps", "-e cpu-clock -g --buildid-mmap", True),
    ("no build ids", "-e cpu-clock -g -B", True),
    ("no cache", "-e cpu-clock -g -N", True),
    ("identifiers", "-e cpu-clock -s -T -P -R --sample-cpu --sample-identifier", True),
    ("switches", "-e cpu-clock -g --switch-events", True),
    ("cgroups", "-e cpu-clock -g -a --all-cgroups", True),
    ("name spaces", "-e cpu-clock -g --namespaces", True),
    ("monotonic clock", "-e cpu-clock -g -k mono", True),
    ("per thread", "-e cpu-clock -g --per-thread", True),
    ("no inheritance", "-e cpu-clock -g -i", True),
    ("user chains", "-e cpu-clock -g --user-callchains", True),
    ("kernel chains", "-e cpu-clock -g --kernel-callchains", True),
    ("asynchronous", "-e cpu-clock -g --aio", True),
    ("late synthesis", "-e cpu-clock -g --tail-synthesize", True),
    ("tracepoint", "-e syscalls:sys_enter_getppid -e cpu-clock -g", False),
    ("off-CPU", "-e cpu-clock --off-cpu", False),
    ("latency", "-e cpu-clock -g --latency", False),
    ("deferred chains", "-e cpu-clock --call-graph fp,defer", True),
    ("LBR", "-e cpu-clock --call-graph lbr", True),
    ("pipe", "-o - -e cpu-clock -g", True),
    ("pipe, compressed", "-o - -e cpu-clock -g -z", True),
    ("pipe, two events", "-o - -e cpu-clock -e page-faults -g", True),
)
QUICK_SETS = ("copied stacks", "compressed", "leader sampling", "three events", "ids in the maps", "no cache")


class Perf:
    def __init__(self, release):
        """None: this host's."""
        self.release, self.argv = release, ["perf"]
        if release:
            root = os.path.join(os.getcwd(), release)
            # Before Debian 13 the C library is in /lib.
            libs = [root + d + "/x86_64-linux-gnu" for d in ("/usr/lib", "/lib")]
            # Nothing of it is run but perf: the packages are unpacked, and a mirror's old list of packages will do.
            p = e2e.run("mmdebstrap", "--mode=root", "--variant=extract", "--include=linux-perf", "--format=directory",
                        '--aptopt=Acquire::Check-Valid-Until "false"', release, root, debian_root.mirror())
            if p.status:
                e2e.skip("the perf of Debian %s cannot be had: %s" % (release, p.err.strip().split("\n")[-1]))
            loader = [d + "/ld-linux-x86-64.so.2" for d in libs if os.path.exists(d + "/ld-linux-x86-64.so.2")][0]
            self.argv = [loader, "--library-path", ":".join(libs), root + "/usr/bin/perf"]
        self.version = self.run("--version").out.split()[-1]

    def run(self, *argv):
        return e2e.run(*self.argv, "--buildid-dir", CACHE, *argv)

    def record(self, name, options):
        """What is said when it cannot be recorded, else None."""
        to_pipe = options[:2] == ["-o", "-"]
        options = options if to_pipe else options + ["-o", name]
        with open(name if to_pipe else os.devnull, "wb") as out:
            p = subprocess.run([*self.argv, "--buildid-dir", CACHE, "record", "-q", *options, "--", "./work"],
                               stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE)
        if p.returncode == 0 and os.path.exists(name):
            return None
        return re.sub(r"\s+", " ", p.stderr.decode(errors="replace")).strip()[:60] or "status %d" % p.returncode

    def totals(self, name):
        """{event: (samples, weight)}"""
        totals = {}
        for line in self.run("script", "-i", name, "-F", "event,period", "-G").out.split("\n"):
            m = re.match(r"\s*(\d+)\s+(\S.*?):\s*$", line)
            if m:
                n, weight = totals.get(plain(m.group(2)), (0, 0))
                totals[plain(m.group(2))] = (n + 1, weight + int(m.group(1)))
        return totals

    def shares(self, name, children):
        """{function: share} of the first event."""
        text = self.run("report", "-i", name, "--stdio", "-g", "none", "--percent-limit", "0", "--sort", "sym",
                        "--children" if children else "--no-children").out
        first = re.split(r"^# Samples: .* of event .*$", text, flags=re.M)[1]
        shares = {}
        for m in re.finditer(r"^ +([0-9.]+)%(?: +[0-9.]+%)? +\[\.\] (\w+)", first, re.M):
            shares[m.group(2)] = shares.get(m.group(2), 0) + float(m.group(1))
        return shares


def plain(event):
    """Without the modifiers, which perfs write in different ways."""
    return re.sub(r"(:[a-zA-Z]+|/)+$", "", event.strip())


def ours(name, *options):
    p = e2e.kvmprof("report", "-i", name, "--buildid-dir", CACHE, "--json", "-n", "0", "--sort", "sym", *options)
    if not check(p.status == 0, "%s %s: status %d: %s" % (name, " ".join(options), p.status, p.err)):
        return None
    return json.loads(p.out)


def our_totals(name, report):
    totals = {}
    for event in report["events"] or [{"name": report["event"], "samples": report["samples"]}]:
        if event["samples"]:
            one = report if event["name"] == report["event"] else ours(name, "--event", event["name"])
            totals[plain(event["name"])] = (one["samples"], one["weight"])
    return totals


def compare(perf, name, functions):
    """Words for the table: samples, weight, functions compared."""
    report = ours(name)
    if not report:
        return "-"
    check(not report["partial"], "%s: partial: %s" % (name, report["message"]))
    theirs, mine = perf.totals(name), our_totals(name, report)
    check(theirs and mine == theirs, "%s of perf %s: %s, perf has %s" % (name, perf.version, mine, theirs))
    compared = 0
    # perf has no column of children for what comes through a pipe.
    for children in (False,) if "pipe" in name else (True, False) if functions else ():
        shares = perf.shares(name, children)
        for row in report["symbols"]:
            share = 100 * row["children" if children else "self"] / report["weight"]
            if row["symbol"] in FUNCTIONS and share >= 1:
                compared += 1
                check(abs(shares.get(row["symbol"], 0) - share) < 0.02, "%s of perf %s: %s %s %.2f %%, perf: %s" % (
                    name, perf.version, row["symbol"], "children" if children else "self", share,
                    shares.get(row["symbol"])))
        check(compared, "%s of perf %s: no function of the program is named" % (name, perf.version))
    return "%d samples, %d functions" % (sum(n for n, _ in mine.values()), compared)


def matrix(perfs):
    table, recorded = {}, {}
    for perf in perfs:
        for name, options, functions in SETS:
            if QUICK and name not in QUICK_SETS:
                continue
            path = "%s-%s.data" % (perf.version, re.sub(r"\W+", "-", name))
            why = perf.record(path, options.split())
            table[name, perf.version] = "not recorded: " + why if why else compare(perf, path, functions)
            recorded[perf.version] = recorded.get(perf.version, 0) + (not why)
    for name in dict.fromkeys(n for n, _ in table):
        say("%-22s %s" % (name, " | ".join("%s: %s" % (p.version, table[name, p.version]) for p in perfs)))
    for perf in perfs:
        least = len(QUICK_SETS) - 1 if QUICK else 20  # this kernel or perf may be built without some
        check(recorded[perf.version] >= least, "perf %s recorded %d sets only" % (perf.version, recorded[perf.version]))
    return sum(recorded.values())


# -- files that are written -------------------------------------------------------------------


def frames(text):
    """[[address, name]...] of each sample of `script`."""
    return [[(int(m.group(1), 16), m.group(2)) for m in re.finditer(r"^\s+([0-9a-f]+) ([^+\s]+)", block, re.M)]
            for block in re.split(r"\n\s*\n", text) if block.strip()]


def our_frames(name):
    p = e2e.kvmprof("script", "-i", name, "--buildid-dir", CACHE)
    check(p.status == 0, "%s: status %d: %s" % (name, p.status, p.err))
    return [[name for _, name in sample] for sample in frames(p.out)]


def work_file(**more):
    """A file in which ./work is mapped at its own addresses, and where its functions lie."""
    out = e2e.run("nm", "work").out
    at = {m.group(2): int(m.group(1), 16) + 8 for m in re.finditer(r"^([0-9a-f]+) [tT] (\w+)$", out, re.M)}
    base = 0x555500000000
    f = perf_writer.PerfFile(**more)
    f.comm(77, "work")
    # The text segment begins at its own offset in the file: gcc and ld lay it out so.
    f.map("user", 77, (base, 0x10000, 0), os.path.abspath("work"), e2e_build_id("work"))
    return f, {name: base + addr for name, addr in at.items()}


def e2e_build_id(path):
    out = e2e.run("readelf", "-n", path).out
    return bytes.fromhex(re.search(r"Build ID: ([0-9a-f]+)", out).group(1))


def same_names(perf, name, wanted):
    """As expected, and as in a perf that knows such files."""
    mine = our_frames(name)
    check(mine == wanted, "%s: frames %s, expected %s" % (name, mine, wanted))
    if perf:
        theirs = [[n for _, n in s] for s in frames(perf.run("script", "-i", name, "-F", "ip,sym").out)]
        check(theirs == wanted, "%s: perf %s has %s, expected %s" % (name, perf.version, theirs, wanted))


def guests():
    f, at = work_file(extra=perf_writer.CALLCHAIN)
    f.map("guest kernel", 77, (0xffffffff81000000, 0x1000000, 0xffffffff81000000), "[guest.kernel.kallsyms]_text",
          bytes(20 * [7]))
    # The guest's addresses are those of functions here: of the VMM's own program, and of the host's kernel.
    f.sample("guest user", 77, at["leaf"], [context("user"), at["leaf"], at["rec"]])
    f.sample("guest kernel", 77, 0xffffffff81000010, [context("kernel"), context("user")])
    f.sample("hypervisor", 77, at["rec"], [])
    f.sample("user", 77, at["leaf"], [context("user"), at["leaf"], at["rec"]])
    f.write("guests.data")
    report = ours("guests.data")
    modes = report["mode_weight"]
    check((modes["guest_user"], modes["guest_kernel"], modes["hypervisor"], modes["user"], modes["kernel"]) ==
          (1, 1, 1, 1, 0), "guests.data: modes %s" % modes)
    check(our_frames("guests.data") == [["[unknown]", "[unknown]"], ["[unknown]"], ["[unknown]"], ["leaf", "rec"]],
          "guests.data: frames %s" % our_frames("guests.data"))
    text = e2e.kvmprof("report", "-i", "guests.data", "--buildid-dir", CACHE).out
    check("25.00 % guest kernel, 25.00 % guest user, 25.00 % hypervisor" in text, "guests.data: " + text[:400])
    folded = e2e.kvmprof("export", "-F", "folded", "-i", "guests.data", "-o", "-").out
    check(folded.count("leaf") == 1, "guests.data, folded: " + folded)


def deferred(perf):
    f, at = work_file(extra=perf_writer.CALLCHAIN, flags=perf_writer.DEFER_CALLCHAIN | perf_writer.DEFER_OUTPUT)
    kernel = [context("kernel"), 0xffffffffff000000]
    f.sample("user", 77, at["leaf"], [context("deferred"), 5])
    f.sample("kernel", 77, 0xffffffffff000000, kernel + [context("deferred"), 5])
    f.deferred(77, 5, [context("user"), at["leaf"], at["rec"], at["main"]])
    f.sample("user", 77, at["cmp"], [context("deferred"), 6])
    f.deferred(77, 6, [context("user"), at["cmp"], at["sorter"]])
    f.write("deferred.data")
    same_names(perf, "deferred.data", [["leaf", "rec", "main"], ["[unknown]", "leaf", "rec", "main"], ["cmp", "sorter"]])


def branches(perf):
    f, at = work_file(extra=perf_writer.CALLCHAIN | perf_writer.BRANCH, branch_type=1 << 11 | 1)
    f.sample("user", 77, at["leaf"], [context("user"), at["leaf"], at["reader"]],
             [(at["cmp"], at["leaf"]), (at["sorter"], at["cmp"]), (at["main"], at["sorter"])])
    f.write("lbr.data")
    same_names(perf, "lbr.data", [["leaf", "cmp", "sorter", "main"]])


def interrupted(perf):
    """The kernel interrupted a function at its first byte: no call is in front of that, so it is not the function before."""
    f, at = work_file(extra=perf_writer.CALLCHAIN)
    first = at["cmp"] - 8
    f.sample("kernel", 77, 0xffffffffff000000, [context("kernel"), 0xffffffffff000000, context("user"), first, at["sorter"]])
    f.sample("user", 77, first, [context("user"), first, at["sorter"]])
    f.write("interrupted.data")
    same_names(perf, "interrupted.data", [["[unknown]", "cmp", "sorter"], ["cmp", "sorter"]])
    functions = e2e.kvmprof("export", "-F", "folded", "-i", "interrupted.data", "-o", "-", "--buildid-dir", CACHE).out
    check(functions.count("cmp") == 2 and "leaf" not in functions, "interrupted.data, folded: " + functions)


def short_ids():
    """Ids of 8 and 16 bytes, in maps, in the table, and in an old perf's table, which has no lengths."""
    for kind, options in (("md5", "-Wl,--build-id=md5"), ("short", "-Wl,--build-id=0x0123456789abcdef")):
        subprocess.run("gcc -O1 -o work-%s %s work.c" % (kind, options), shell=True, check=True)
        path, build_id = os.path.abspath("work-" + kind), e2e_build_id("work-" + kind)
        leaf = int(re.search(r"^([0-9a-f]+) T leaf$", e2e.run("nm", path).out, re.M).group(1), 16)
        for way in ("map", "table", "old table"):
            f = perf_writer.PerfFile()
            f.map("user", 77, (0x555500000000, 0x10000, 0), path, build_id if way == "map" else None)
            f.sample("user", 77, 0x555500000000 + leaf + 8)
            if way != "map":
                f.build_id("user", path, build_id, way == "table")
            f.write("ids.data")
            check(our_frames("ids.data") == [["leaf"]], "an id of %d bytes in a %s: %s" % (
                len(build_id), way, our_frames("ids.data")))
    # Another file of the same name has another id, which may begin alike.
    f = perf_writer.PerfFile()
    f.map("user", 77, (0x555500000000, 0x10000, 0), path, build_id + b"\1")
    f.sample("user", 77, 0x555500000000 + leaf + 8)
    f.write("ids.data")
    check(our_frames("ids.data") == [["[unknown]"]], "a longer id: %s" % our_frames("ids.data"))


def inodes():
    """Without a build id the inode tells the file, as long as it has not changed since."""
    subprocess.run("gcc -O1 -o work-none -Wl,--build-id=none work.c", shell=True, check=True)
    path = os.path.abspath("work-none")
    leaf = int(re.search(r"^([0-9a-f]+) T leaf$", e2e.run("nm", path).out, re.M).group(1), 16)
    st = os.stat(path)
    number = (os.major(st.st_dev), os.minor(st.st_dev), st.st_ino, 0)

    def write(inode):
        f = perf_writer.PerfFile()
        f.map("user", 77, (0x555500000000, 0x10000, 0), path, inode=inode)
        f.sample("user", 77, 0x555500000000 + leaf + 8)
        f.write("inode.data")
        return our_frames("inode.data")

    check(write(number) == [["leaf"]], "the very inode: %s" % write(number))
    check(write((number[0], number[1], number[2] + 1, 0)) == [["[unknown]"]], "another inode")
    check(write((number[0], number[1] + 1, number[2], 0)) == [["[unknown]"]], "another device")
    check(write((0, 0, 0, 0)) == [["[unknown]"]], "no inode")
    write(number)
    later = os.stat("inode.data").st_mtime - 100
    os.utime("inode.data", (later, later))
    check(our_frames("inode.data") == [["[unknown]"]], "a file that has changed since")


def unknown_records():
    f, at = work_file()
    f.sample("user", 77, at["leaf"])
    f.record(60, 0, bytes(16))
    f.record(199, 0, bytes(16))
    f.write("unknown.data")
    report = ours("unknown.data")
    check(report["samples"] == 1 and report["partial"] and "2 records are of a kind that is not known" in
          report["message"], "unknown records: %s" % report["message"])


def jitted(perf):
    """perf inject -j, whose files have no build id since perf 6.17."""
    with open("jit.c", "w", encoding="utf-8") as f:
        f.write(JIT)
    subprocess.run("gcc -O1 -o jit jit.c", shell=True, check=True)
    p = perf.run("record", "-q", "-k", "1", "-e", "cpu-clock", "-o", "jit.data", "--", "./jit")
    p = perf.run("inject", "-j", "-i", "jit.data", "-o", "jitted.data") if p.status == 0 else p
    if not check(p.status == 0, "perf inject -j of perf %s: %s" % (perf.version, p.err)):
        return
    report = ours("jitted.data", "--no-children")
    share = {r["symbol"]: r["self"] / report["weight"] for r in report["symbols"]}
    for i, wanted in enumerate((1 / 7, 2 / 7, 4 / 7)):
        got = share.get("jitted_function_%d" % i, 0)
        check(abs(got - wanted) < 0.1, "jitted_function_%d of perf %s: %.2f of %.2f" % (i, perf.version, got, wanted))


JIT = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
/* The jitdump format is that of tools/perf/Documentation/jitdump-specification.txt. */
struct header { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; };
struct load { uint32_t id, size; uint64_t time; uint32_t pid, tid; uint64_t vma, addr, len, index; };
static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
int main(void)
{
	/* mov $N,%ecx; 1: dec %ecx; jnz 1b; ret */
	unsigned char code[] = { 0xb9, 0, 0, 0, 1, 0xff, 0xc9, 0x75, 0xfc, 0xc3 }, *at;
	struct header h = { 0x4a695444, 1, sizeof(h), 62, 0, (uint32_t)getpid(), now(), 0 };
	char name[64];
	FILE *f;
	snprintf(name, sizeof(name), "jit-%d.dump", getpid());
	f = fopen(name, "w+");
	fwrite(&h, sizeof(h), 1, f);
	fflush(f);
	mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0);
	at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 3; i++) {
		struct load l = { 0, 0, now(), h.pid, h.pid, (uintptr_t)(at + 64 * i), (uintptr_t)(at + 64 * i),
				  sizeof(code), (uint64_t)i };
		code[4] = 1 << i;
		memcpy(at + 64 * i, code, sizeof(code));
		snprintf(name, sizeof(name), "jitted_function_%d", i);
		l.size = (uint32_t)(sizeof(l) + strlen(name) + 1 + sizeof(code));
		fwrite(&l, sizeof(l), 1, f);
		fwrite(name, strlen(name) + 1, 1, f);
		fwrite(code, sizeof(code), 1, f);
		fflush(f);
		usleep(1000);
	}
	for (int k = 0; k < 6; k++)
		for (int i = 0; i < 3; i++)
			((void (*)(void))(at + 64 * i))();
	return 0;
}
"""


def debug_file(perf):
    """Names that were stripped off the program, from the debug file in the build-id cache."""
    subprocess.run("gcc -O1 -g -fno-omit-frame-pointer -o bare work.c && objcopy --only-keep-debug bare bare.debug && "
                   "strip bare", shell=True, check=True)
    hexes = e2e_build_id("bare").hex()
    p = e2e.run(*perf.argv, "--buildid-dir", "bare-cache", "record", "-q", "-e", "cpu-clock", "-o", "bare.data", "--",
                "./bare")
    check(p.status == 0, "perf record of a stripped program: " + p.err)

    def named():
        p = e2e.kvmprof("report", "-i", "bare.data", "--buildid-dir", "bare-cache", "--json", "-n", "0")
        return "leaf" in [r["symbol"] for r in json.loads(p.out)["symbols"]]

    check(not named(), "names of a stripped program out of nothing")
    place = "bare-cache/.build-id/%s/%s" % (hexes[:2], hexes[2:])
    os.makedirs(place, exist_ok=True)
    os.rename("bare.debug", place + "/debug")
    check(named(), "the debug file in the build-id cache was not used")
    # With the id of another program it is another file.
    subprocess.run("objcopy --only-keep-debug work '%s/debug'" % place, shell=True, check=True)
    check(not named(), "a debug file of another build id was used")


e2e.need_tool("perf")
with open("work.c", "w", encoding="utf-8") as source:
    source.write(WORK)
subprocess.run("gcc -O1 -fno-omit-frame-pointer -o work work.c", shell=True, check=True)
if e2e.run("perf", "record", "-q", "-e", "cpu-clock", "-o", "try.data", "--", "./work").status:
    e2e.skip("perf record does not work here")
if not QUICK:
    e2e.need_tool("mmdebstrap")
    if os.geteuid() != 0:
        e2e.skip("unpacking Debian's packages into a directory needs root")
machines = [Perf(None)] if QUICK else [Perf(r) for r in RELEASES]
count = matrix(machines)
newest = machines[-1]
say("written, as no PMU and no guest is here: modes of guests and hypervisors, deferred chains, LBR, unknown records")
interrupted(None if QUICK else newest)
guests()
deferred(None if QUICK else newest)
branches(None if QUICK else newest)
short_ids()
inodes()
unknown_records()
debug_file(newest)
for machine in machines:
    jitted(machine)
e2e.finish("%d files of perf %s: totals and shares as in perf" % (count, ", ".join(m.version for m in machines)))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 14 s
# tests: not svm, files
"""kvmprof report on what stock perf records on this host: as a file and through a pipe, of one
event and several, compressed, with all the fields that this host's perf can add. And the other
way: what kvmprof run -o - writes, in perf."""

import json
import os
import re
import subprocess

import e2e
from e2e import check, say

WORK = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=20000"]
BARE = re.compile(r"^0x[0-9a-f]+$")


def record(name, *options, work=WORK):
    """False: this perf or kernel can't do it."""
    p = subprocess.run(["perf", "record", *options, "-o", name, "--", *work], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return p.returncode == 0 and os.path.exists(name)


def ours(name, *options):
    p = e2e.kvmprof("report", "-i", name, "--json", "-n", "0", "--sort", "sym,dso", *options)
    if not check(p.status == 0, "%s: status %d: %s" % (name, p.status, p.err)):
        return None
    return json.loads(p.out)


def perfs(name, children, event=None):
    """{symbol: share} and the number of samples."""
    p = e2e.run("perf", "report", "-i", name, "--stdio", "-g", "none", "--percent-limit", "0", "--sort", "sym,dso",
                "--children" if children else "--no-children")
    parts = re.split(r"^# Samples: .* of event '([^']+)'$", p.out, flags=re.M)
    text = parts[2] if event is None else dict(zip(parts[1::2], parts[2::2]))[event]
    shares = {}
    for line in text.split("\n"):
        m = re.match(r" +([0-9.]+)%(?: +[0-9.]+%)?  \[(.)\] (\S+)", line)
        if m and m.group(2) == "k":
            shares[m.group(3)] = shares.get(m.group(3), 0) + float(m.group(1))
    return shares


def say_samples(name, function):
    """All samples with this function, as perf and as we print them: which of us is wrong?"""
    for who, text in (("perf", e2e.run("perf", "script", "-i", name, "-F", "comm,tid,time,event,ip,sym,dso").out),
                      ("we", e2e.kvmprof("script", "-i", name).out)):
        found = [x for x in text.split("\n\n") if re.search(r"\b%s\b" % re.escape(function), x)]
        say("%s: %d samples with %s:\n%s" % (who, len(found), function, "\n\n".join(found)))


def compare(name, event=None):
    """The shares of the kernel's functions. Without its names perf may know the host's own: no business of ours."""
    options = ["--event", event] if event else []
    report = ours(name, *options)
    if not report:
        return 0
    check(not report["partial"], "%s: partial: %s" % (name, report["message"]))
    script = e2e.run("perf", "script", "-i", name, "-F", "ip" if event is None else "event,ip", "-G")
    lines = [x for x in script.out.split("\n") if x.strip() and (event is None or event in x.split(":")[0])]
    check(report["samples"] == len(lines), "%s: %d samples, perf has %d" % (name, report["samples"], len(lines)))
    named, wrong = 0, []
    for children in (True, False):
        theirs = perfs(name, children, event)
        for row in report["symbols"]:
            share = 100 * row["children" if children else "self"] / report["weight"]
            if not row["named"] or row["dso"] != "[kernel.kallsyms]" or share < 2:
                continue
            named += 1
            if abs(theirs.get(row["symbol"], 0) - share) >= 0.02:
                wrong.append("%s %s: %.4f %%, perf says %s" % (row["symbol"], "children" if children else "self", share,
                                                               theirs.get(row["symbol"])))
    if wrong:
        say_samples(name, wrong[0].split()[0])
    check(not wrong, "%s: %d shares of kernel functions, not as in perf: %s" % (name, named, "; ".join(wrong)))
    return named


e2e.need_tool("perf")
if not record("g.data", "-e", "cpu-clock", "-g"):
    e2e.skip("perf record does not work here")
shares = compare("g.data")
tried = 1
for name, options in (
        ("all.data", ["-e", "cpu-clock", "-g", "-a"]),
        ("no-chain.data", ["-e", "cpu-clock"]),
        ("count.data", ["-e", "cpu-clock", "-c", "500000", "-g"]),
        ("rich.data", ["-e", "cpu-clock", "-g", "-d", "-W", "--phys-data", "--data-page-size", "--code-page-size"]),
        ("regs.data", ["-e", "cpu-clock", "--call-graph", "dwarf,1024"]),
        ("intr.data", ["-e", "cpu-clock", "-g", "--intr-regs=ip,sp", "--code-page-size"]),
        ("read.data", ["-e", "{cpu-clock,task-clock}:S", "-g"]),
        ("ids.data", ["-e", "cpu-clock", "-g", "--buildid-mmap"]),
        ("zstd.data", ["-e", "cpu-clock", "-g", "-z"]),
        ("zstd-all.data", ["-e", "cpu-clock", "-g", "-z", "-a"]),
        ("threads.data", ["-e", "cpu-clock", "-g", "--threads"]),
        ("threads-zstd.data", ["-e", "cpu-clock", "-g", "--threads", "-z"])):
    if record(name, *options):
        tried += 1
        # perf shows a group of events in one table: here the number of samples must do.
        if name == "read.data":
            count = len(re.findall("cpu-clock:", e2e.run("perf", "script", "-i", name, "-F", "event,ip", "-G").out))
            check(ours(name)["events"][0]["samples"] == count > 0, "%s: samples of a group" % name)
        else:
            shares += compare(name)
check(shares >= 20, "only %d shares of kernel functions were compared" % shares)
check(tried >= 5, "perf could record %d kinds of files only" % tried)

# One of the files alone: no samples, which is an error and not a profile.
if os.path.isdir("threads.data"):
    with open("threads.data/data", "rb") as f:
        for argv in (("report",), ("report", "--json"), ("script",)):
            p = subprocess.run([e2e.KVMPROF, *argv, "-i", "-"], stdin=f, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            check(p.returncode == 1 and b"no samples" in p.stderr, "%s of a file without its threads: status %d: %s" % (
                " ".join(argv), p.returncode, p.stderr))
            f.seek(0)

# Page sizes: only where they were sampled.
if os.path.exists("rich.data"):
    p = e2e.kvmprof("report", "-i", "rich.data", "--sort", "code_page_size")
    sizes = [x.split()[-1] for x in p.out.split("\n") if x and x[0] != "#"]
    check(p.status == 0 and sizes and set(sizes) <= {"4K", "2M", "1G", "N/A"}, "page sizes %s %s" % (sizes, p.err))
p = e2e.kvmprof("report", "-i", "g.data", "--sort", "code_page_size")
check(p.status == 1 and "do not say in which size" in p.err, "page sizes of a file without: " + p.err)

# Two events of one run, told apart by their ids.
if record("two.data", "-e", "cpu-clock", "-e", "task-clock", "-F", "3000", "-g"):
    first, second = ours("two.data"), ours("two.data", "--event", "task-clock")
    check([x["name"] for x in first["events"]] == ["cpu-clock", "task-clock"], "events %s" % first["events"])
    check(first["event"] == "cpu-clock" and second["event"] == "task-clock" and
          second["samples"] == first["events"][1]["samples"] > 0, "--event: %s" % second["events"])
    compare("two.data", "cpu-clock")
    text = e2e.kvmprof("report", "-i", "two.data").out
    check("# events: cpu-clock (" in text and "--event NAME" in text, "no list of events: " + text[:300])

# Through a pipe, from a file and from a pipe; then cut: everything before is there.
raw = subprocess.run(["perf", "record", "-e", "cpu-clock", "-g", "-o", "-", "--", *WORK], stdin=subprocess.DEVNULL,
                     stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
with open("pipe.data", "wb") as f:
    f.write(raw)
whole = ours("pipe.data")
check(whole["samples"] > 20 and not whole["partial"], "perf record -o -: %s" % whole["message"])
piped = subprocess.run([e2e.KVMPROF, "report", "--json", "-n", "0", "--sort", "sym,dso", "-i", "-"], input=raw,
                       stdout=subprocess.PIPE)
check(json.loads(piped.stdout)["symbols"] == whole["symbols"], "-i - differs from the file")
for name in [f for f in ("g.data", "zstd.data", "pipe.data") if os.path.exists(f)]:
    with open(name, "rb") as f:
        data = f.read()
    # Within a record: they have multiples of 8 bytes, and what a pipe brought may end behind any of them.
    with open("cut.data", "wb") as f:
        f.write(data[:len(data) // 12 * 8 + 4])
    cut = ours("cut.data")
    check(cut["partial"] and cut["message"] and 0 < cut["samples"], "%s cut: %s" % (name, cut["message"]))

# Programs: by their build id alone. The name of the file on this host proves nothing.
subprocess.run(["sh", "-c", "printf 'void spin(void) { for (volatile long i = 0; i < 300000000; i++) ; }\\n"
                "int main(void) { spin(); }\\n' > spin.c && gcc -O0 -g0 -Wl,--build-id=sha1 -o spin spin.c"], check=True)
if record("spin.data", "-e", "cpu-clock", "-g", "-N", work=["./spin"]):
    top = ours("spin.data", "--no-children")["symbols"][0]
    check(top["symbol"] == "spin", "the very file names no function: %s" % top)
    subprocess.run(["sh", "-c", "sed 's/spin/span/g' spin.c > other.c && gcc -O0 -Wl,--build-id=sha1 -o spin other.c"],
                   check=True)
    top = ours("spin.data", "--no-children")["symbols"][0]
    check(BARE.match(top["symbol"]), "another file at that path gave a name: %s" % top)

# kvmprof's own pipe in perf.
if os.path.exists("/dev/kvm"):
    os.mkdir("tmp")
    command = "TMPDIR=$PWD/tmp '%s' run -o - --append seconds=3 2>console | tee one.pipe | perf report -i - --stdio --no-children -g none"
    p = subprocess.run(["sh", "-c", command % e2e.KVMPROF], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, universal_newlines=True, timeout=120)
    check(p.returncode == 0 and "left_leaf" in p.stdout and "user_leaf_long" in p.stdout and "0x" not in
          re.sub(r" 0\.\d\d%.*", "", p.stdout), "perf report of run -o -: %s %s" % (p.stdout, p.stderr))
    bad = re.findall(r".*(?:warning|failed|invalid|kptr|not found).*", p.stderr, re.I)
    check(not bad, "perf report -i - complains: %s" % bad)
    with open("console") as f:
        console = f.read()
    check("truth" in console, "the guest's console is not on standard error")
    check(not os.listdir("tmp"), "run -o - left %s behind" % os.listdir("tmp"))
    mine = ours("one.pipe")
    shares_of = {r["symbol"]: 100 * r["self"] / mine["weight"] for r in mine["symbols"]}
    for share, name in re.findall(r"^ +([0-9.]+)% .*\[[k.]\] (\w+)", p.stdout, re.M):
        if float(share) > 2:
            check(abs(shares_of.get(name, 0) - float(share)) < 0.02, "%s: perf %s %%, we %s" % (name, share, shares_of.get(name)))
    p = e2e.kvmprof("run", "-o", "-", "--json")
    check(p.status == 2 and "--json" in p.err, "run -o - --json: " + p.err)
    p = e2e.kvmprof("run", "-o", "-", "--no-buildid-cache")
    check(p.status == 2 and "--no-buildid-cache" in p.err, "run -o - --no-buildid-cache: " + p.err)
e2e.finish("%d kinds of perf's files, %d shares as in perf" % (tried, shares))

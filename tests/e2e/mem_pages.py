#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 9 s
# tests: svm, at most 300 s
"""What `kvmprof mem` says of a guest that knows it: guest/demo's mode=pages.

* Data and code by page size, reads and writes, and regions are within a point of the truth.
  Pages of 1 GiB are in it where the guest's CPUID has them; tests/unit/profile/analyse/tables/test_memagg.c has
  them everywhere.
* perf reads the same addresses and page sizes out of the file.
* The tables need the file alone: a single file, a pipe and a copy of a directory give the same.
* A profile without --mem has none of these fields, and is refused.
"""

import json
import os
import re
import shutil
import subprocess
from collections import Counter

import e2e
from e2e import check, say

POINTS = 1.0
FIELDS = "comm,pid,time,period,addr,phys_addr,data_page_size,code_page_size,ip"

e2e.need_kvm()


def truth_of(console):
    found = re.findall(r"^pages (data|code|access|region) (\S+) ([\d.]+)\r?$", console, re.M)
    return {(what, name): float(percent) for what, name, percent in found}


def tables(*argv):
    p = e2e.kvmprof("mem", "--json", *argv)
    check(p.status == 0 and not p.err, "kvmprof mem %s: status %d: %s" % (argv, p.status, p.err))
    return json.loads(p.out)


def share(rows, key, name, field="share"):
    return sum(r[field] for r in rows if r[key] == name)


def compare(truth, got, what):
    worst = 0
    for name, value in got.items():
        off = abs(value - truth[what, name])
        worst = max(worst, off)
        check(off < POINTS, "%s %s: %.2f %%, but %.2f %% in truth" % (what, name, value, truth[what, name]))
    return worst


def check_truth():
    boot = e2e.Boot("--mem", "-F", "10000", "--stack-size", "512", "--append",
                    "mode=pages seconds=5", "-o", "pages.data").wait(120)
    truth = truth_of(boot.text())
    if not check(boot.status == 0 and len(truth) == 10, "run: %s %s" % (boot.err, truth)):
        e2e.finish()
    t = tables("-i", "pages.data", "--mode", "user")
    sizes = ("4K", "2M", "1G")
    data = {s: share(t["data_pages"], "guest", s) for s in sizes}
    code = {s: share(t["code_pages"], "guest", s) for s in sizes}
    access = {a: share(t["data_pages"], "guest", "4K", a) + share(t["data_pages"], "guest", "2M", a) +
              share(t["data_pages"], "guest", "1G", a) for a in ("read", "write")}
    region = {"stack": share(t["regions"], "region", "user stack"),
              "other": share(t["regions"], "region", "other user")}
    worst = {"data": compare(truth, data, "data"), "code": compare(truth, code, "code"),
             "access": compare(truth, access, "access"), "region": compare(truth, region, "region")}
    check(share(t["spaces"], "space", "user") > 99.9, "spaces: %s" % t["spaces"])
    check(t["addresses"]["mapped"] == 100, "not mapped: %s" % t["addresses"])
    check(t["instructions"]["with"] > 95, "instructions: %s" % t["instructions"])
    check(t["instructions"]["not_known"] + t["instructions"]["no_bytes"] == 0, "not decoded")
    say("truth %s\nfound data %s code %s access %s region %s" % (truth, data, code, access, region))
    return truth, worst, t


def check_text():
    p = e2e.kvmprof("mem", "-i", "pages.data")
    heads = re.findall(r"^# (Data by page|Code by page|Data by whose|Data by region|Data by NUMA node|Data by function|"
                       r"What huge pages would change)", p.out, re.M)
    check(p.status == 0 and len(heads) == 7, "text: %s %s" % (p.err, heads))
    p = e2e.kvmprof("mem", "-i", "pages.data", "--sort", "region")
    check(p.out.count("# Data by") == 1 and "user stack" in p.out, "--sort region: " + p.out)


# -- perf ------------------------------------------------------------------------------

# perf takes a unit only where there are two of it: a page of 1 GiB is one of 1024M.
SIZE = {"4K": "4K", "2M": "2M", "1G": "1G", "1024M": "1G"}
LOW_BITS = {"4K": 12, "2M": 21, "1G": 30}


def check_perf(t):
    if not e2e.has_tool("perf"):
        return
    p = e2e.run("perf", "script", "-i", "pages.data", "-F", FIELDS)
    check(p.status == 0 and not p.err.strip(), "perf script: " + p.err)
    data, code, wrong = Counter(), Counter(), 0
    # comm pid time: period: addr \n ip... \n phys_addr data_page code_page, in perf's own order.
    for m in re.finditer(r"^\S.*?:\s+(\d+)\s+([0-9a-f]+)\s((?:.|\n\s)*?)\s([0-9a-f]+)\s+(\S+)\s+(4K|2M|1G|1024M)\s*$",
                         p.out, re.M):
        period, addr, phys = int(m.group(1)), int(m.group(2), 16), int(m.group(4), 16)
        code[SIZE[m.group(6)]] += period
        if m.group(5) != "N/A":
            size = SIZE[m.group(5)]
            data[size] += period
            wrong += (addr ^ phys) & ((1 << LOW_BITS[size]) - 1) != 0
    check(sum(code.values()) > 0 and not wrong, "perf script: %d addresses that contradict" % wrong)
    for name, mine in (("4K", data["4K"]), ("2M", data["2M"]), ("1G", data["1G"])):
        theirs = 100.0 * mine / max(1, sum(data.values()))
        ours = share(t["data_pages"], "guest", name)
        # The kernel's few instructions with two operands count once there.
        check(abs(theirs - ours) < 0.5, "data %s: perf %.2f %%, kvmprof %.2f %%" % (name, theirs, ours))
    p = e2e.run("perf", "mem", "report", "-i", "pages.data", "--stdio", "-g", "none")
    check(p.status == 0 and "pages_read" in p.out and "Data Symbol" in p.out, "perf mem report: " + p.err)
    p = e2e.run("perf", "report", "-i", "pages.data", "--stdio", "-g", "none", "--no-children",
                "--mem-mode", "--sort", "data_page_size")
    check(p.status == 0 and re.search(r"%\s+2M", p.out), "perf report --mem-mode: " + p.err + p.out)
    p = e2e.run("perf", "report", "-i", "pages.data", "--stdio", "-g", "none", "--no-children",
                "--sort", "code_page_size")
    check(p.status == 0 and re.search(r"%\s+4K", p.out), "perf report --sort code_page_size: " + p.err)
    p = e2e.kvmprof("report", "-i", "pages.data", "--sort", "data_page_size")
    check(p.status == 0 and re.search(r" 2M$", p.out, re.M), "kvmprof report: " + p.err + p.out)


# -- forms ------------------------------------------------------------------------------

def check_forms():
    shutil.copytree("pages.data", "elsewhere")
    os.rename("elsewhere/data", "alone")
    want = tables("-i", "pages.data")
    got = tables("-i", "alone")
    for part in ("data_pages", "code_pages", "regions", "nodes", "huge", "instructions"):
        check(got[part] == want[part], "%s differs in a copied file" % part)
    if e2e.has_tool("zstd"):
        p = e2e.kvmprof("archive", "-i", "pages.data", "-o", "pages.tar.zst")
        check(p.status == 0, "archive: " + p.err)
        os.mkdir("unpacked")
        subprocess.check_call("zstd -dcq pages.tar.zst | tar -xC unpacked", shell=True)
        got = tables("-i", os.path.join("unpacked", os.listdir("unpacked")[0]))
        check(got["symbols"] == want["symbols"], "symbols differ in an archive")
    run = ["--mem", "-q", "--stack-size", "512", "--append", "mode=pages seconds=1"]
    p = e2e.kvmprof("run", *run, "--single-file", "-o", "single")
    check(p.status == 0 and tables("-i", "single")["accesses"] > 0, "--single-file: " + p.err)
    p = subprocess.run("'%s' run %s -o - | '%s' mem --json -i -" %
                       (e2e.KVMPROF, " ".join("'%s'" % a for a in run), e2e.KVMPROF),
                       shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(p.returncode == 0 and json.loads(p.stdout)["accesses"] > 0, "pipe: %s" % p.stderr)


def check_plain():
    p = e2e.kvmprof("run", "-q", "--append", "seconds=1", "-o", "plain.data")
    check(p.status == 0, p.err)
    p = e2e.kvmprof("mem", "-i", "plain.data")
    check(p.status == 1 and "run --mem" in p.err and p.err.count("\n") == 1, "plain: " + p.err)
    p = e2e.kvmprof("run", "--mem", "512M")
    check(p.status == 2 and "-m 512M" in p.err, "--mem 512M: " + p.err)


truth, worst, user = check_truth()
check_text()
check_perf(tables("-i", "pages.data"))
check_forms()
check_plain()
check(not e2e.leftovers(), "left: %s" % e2e.leftovers())
e2e.finish("worst of data %.2f, code %.2f, access %.2f, region %.2f points; 1G: %s" %
           (worst["data"], worst["code"], worst["access"], worst["region"],
            "%.0f %%" % truth["data", "1G"] if truth["data", "1G"] else "not offered by this KVM"))

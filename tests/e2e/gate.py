#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 6 s
# tests: not svm, files
"""kvmprof gate on profiles with known truth: verdicts, the function that is named, each format as
its readers read it, wrong input; and on runs of the demo guest, whose totals are known."""

import json
import os
import re
import shutil
import xml.etree.ElementTree as ET

import e2e
import gate_formats
import gate_runs
from e2e import check
from gate_formats import read

N = 10
base = gate_runs.group("base", N)
same = gate_runs.group("same", N)
slow = gate_runs.group("slow", N, more={"main;tree;left_leaf": 340})
fresh = gate_runs.group("fresh", N, more={"main;added": 400})


def gate(*argv, status=None):
    p = e2e.kvmprof("gate", *argv)
    if status is not None:
        check(p.status == status, "gate %s: status %d, not %d: %s%s" %
              (" ".join(map(str, argv))[:120], p.status, status, p.out[:600], p.err))
    return p


def write(name, text):
    with open(name, "w") as f:
        f.write(text)
    return name


# -- verdicts -------------------------------------------------------------------------

def check_verdicts():
    p = gate("--base", *base, "--head", *same, status=0)
    check(p.out.startswith("# PASS: 3 passed, 1 skipped of 4 rules\n"), p.out)
    check("with these 10 runs a side a change of" in p.out and "90 % of the time" in p.out, "power: " + p.out)
    p = gate("--base", *base, "--head", *slow, status=1)
    check(re.search(r"^fail +left_leaf +2\d\.\d\d % +2\d\.\d\d % +\+1\.\d\d points .* q 0\.00", p.out, re.M),
          "the function is not named: " + p.out)
    check(len(re.findall(r"^fail  ", p.out, re.M)) == 2, "more than that failed: " + p.out)
    check(re.search(r"^ *\+1\.\d\d points .*left_leaf$", p.out, re.M), "what moved: " + p.out)
    p = gate("--base", *base, "--head", *fresh, status=1)
    check(re.search(r"^fail +new functions\nfail +added +0\.00 %", p.out, re.M), "new: " + p.out)
    # It got faster: no failure, and not silently.
    p = gate("--base", *slow, "--head", *base, "--json", "faster.json", status=0)
    report = json.loads(read("faster.json"))
    better = [f["function"] for f in report["rules"][1]["functions"] if f["verdict"] == "better"]
    check(better == ["left_leaf"], "better: %s" % better)
    # The same runs, the same bytes; a list with commas is the same as words.
    again = gate("--base", *base, "--head", *slow, status=1)
    commas = gate("--head", ",".join(slow), "--base", ",".join(base), status=1)
    first = gate("--base", *base, "--head", *slow, status=1)
    check(again.out == first.out == commas.out, "two reports of the same runs differ")


def check_few():
    p = gate("--base", base[0], "--head", slow[0], status=3)
    check("how much runs differ can't be known from one" in p.out, p.out)
    p = gate("--base", *base[:3], "--head", *slow[:3], status=3)
    check("too few runs" in p.out, p.out)
    p = gate("--base", *base, "--head", *slow[:2])
    check(p.status in (0, 3), "two runs: " + p.out)


def check_rules():
    rules = write("rules.toml", '''
[[rule]]
name = "leaf"
metric = "share"
symbol = "left_leaf"
threshold = "2 %"
[[rule]]
name = "tree"
metric = "share"
subtree = "tree"
threshold = "0.5 points"
level = "warn"
[[rule]]
name = "others"
metric = "share"
regex = "^(copy|spin)$"
threshold = "1 points"
''')
    p = gate("-c", rules, "--base", *base, "--head", *slow, status=1)
    verdicts = dict((b, a) for a, b in re.findall(r"^(\w+) +(leaf|tree|others) ", p.out, re.M))
    check(verdicts == {"leaf": "fail", "tree": "warn", "others": "pass"}, "%s: %s" % (verdicts, p.out))
    # Only a warning: passes, and says so.
    warn = write("warn.toml", '[[rule]]\nmetric = "share"\nsymbol = "left_leaf"\nthreshold = "2 %"\nlevel = "warn"\n')
    p = gate("-c", warn, "--base", *base, "--head", *slow, status=0)
    check(p.out.startswith("# PASS with warnings: 1 warned of 1 rule\n"), p.out)
    # Nothing matches: a name that is wrong must not pass for ever.
    none = write("none.toml", '[[rule]]\nmetric = "share"\nsymbol = "lefl_leaf"\nthreshold = "2 %"\n')
    p = gate("-c", none, "--base", *base, "--head", *slow, status=3)
    check("no function that matches was sampled" in p.out, p.out)
    for text, says in (("x", "rules.toml:1:"), ('[[rule]]\nmetric = "share"\nregex = "("\n', "rules.toml:3:9: regex"),
                       ('[[rule]]\nmetric = "time"\ntreshold = "1 s"\n', "rules.toml:3:1: unknown key 'treshold'"),
                       ("", "rules.toml: ")):
        write("rules.toml", text)
        p = gate("-c", "rules.toml", "--base", *base, "--head", *slow, status=2)
        check(p.err.startswith("kvmprof: " + says) and p.err.count("\n") == 1, "%r: %s" % (text, p.err))


def check_wrong():
    write("text", "hello\n")
    wall = gate_runs.make("wall", event="wall")
    for argv, says in (
            ([], "needs runs of the base"), (["--base", base[0]], "needs runs of the change"),
            ([base[0]], "unexpected argument"), (["--base", "missing", "--head", slow[0]], "missing: "),
            (["--base", "text", "--head", slow[0]], "text: not a perf.data file"),
            (["--base", base[0], "--head", wall], "has the event wall"),
            (["-c", "missing", "--base", base[0], "--head", slow[0]], "missing: "),
            (["-f", "xml", "--base", base[0], "--head", slow[0]], "--format xml: expected"),
            (["--error-rate", "2", "--base", base[0], "--head", slow[0]], "--error-rate 2: expected"),
            (["--seed", "x"], "--seed x: expected"), (["--at", "today"], "--at today: expected"), (["--no"], "unknown option"),
            (["--base"], "needs a value"), (["--record", "--base", base[0]], "need --history"),
            (["--base", base[0], "--head", slow[0], "-o", "/nonexistent/x"], "/nonexistent/x: ")):
        p = gate(*argv, status=2)
        check(says in p.err and p.err.count("\n") == 1 and not p.out, "gate %s: %r" % (argv, p.err))


# -- independent runs -----------------------------------------------------------------

def check_independent():
    """A run counts once on its side, in whatever file; a run on both sides is a warning, which --strict refuses."""
    shutil.copytree(base[0], "copy")
    shutil.copy(os.path.join(base[0], "data"), "single")
    for again, says in ((base[0], "is given twice for the base"), ("copy", "are the same run"), ("single", "are the same run")):
        p = gate("--base", *base, again, "--head", *slow, status=2)
        check(says in p.err and p.err.count("\n") == 1 and not p.out, "%s: %r" % (again, p.err))
    p = gate("--base", *base, "--head", *slow, "copy", "single", status=2)
    check("of the head are the same run" in p.err, p.err)
    p = gate("--history", "h", "--record", "--label", "a", "--head", base[0], "copy", status=2)
    check("are the same run" in p.err and not os.path.exists("h"), p.err)
    p = gate("--base", *base, "--head", *slow, "copy")
    check("WARNING: copy is a run of the base and of the head" in p.out, p.out)
    p = gate("--strict", "--base", *base, "--head", *slow, "copy", status=2)
    check(p.err.startswith("kvmprof: --strict: copy is a run of") and not p.out, p.err)
    gate("--strict", "--base", *base, "--head", *slow, status=1)
    p = e2e.kvmprof("diff", ",".join((base[0], base[1], "copy")), ",".join(slow[:2]))
    check(p.status == 0 and p.err.count("warning:") == 1 and "copy is the same run as base0" in p.err, "diff: %r" % p.err)


# -- formats --------------------------------------------------------------------------

def check_formats():
    rules = write("four.toml", read(os.path.join(e2e.TOP, "configs", "gate-default.toml")) +
                  '\n[[rule]]\nname = "markers"\nmetric = "time"\nuntil = "up"\nthreshold = "1 s"\nlevel = "warn"\n')
    p = gate("-c", rules, "--base", *base, "--head", *slow, "--markdown", "r.md", "--junit", "r.xml", "--sarif",
             "r.sarif", "--github", "r.txt", "--json", "r.json", "--text", "r.log", "--flamegraph", "d.svg",
             "--link", "https://ci.example/a b.svg", "--view", "v.html", status=1)
    check(read("v.html").endswith("</html>\n") and "# page that compares two runs: v.html" in p.out, "--view: " + p.out)
    check("[Page that compares a run of each side](v.html)" in read("r.md") and "v.html" in read("r.xml"), "reports do not name the page")
    check(read("r.log") == p.out, "--text is not what -f text prints")
    gate_formats.check_junit("r.xml", {"run time": "passed", "functions": "failure", "new functions": "passed",
                                       "exits": "skipped", "markers": "skipped"})
    gate_formats.check_sarif(
        "r.sarif", rules, {"run time": ("pass", "none"), "functions": ("fail", "error"), "new functions": ("pass", "none"),
                           "exits": ("notApplicable", "none"), "markers": ("open", "none")}, ["left_leaf"])
    text = gate_formats.check_markdown("r.md", 2)
    check("[Flame graph of the difference](https://ci.example/a%20b.svg)" in text, "markdown: no link")
    lines = gate_formats.check_github("r.txt", "four.toml", "left_leaf")
    check(any(x.startswith("::warning") and "markers" in x for x in lines), "no warning")
    report = json.loads(read("r.json"))
    check(report["verdict"] == "fail" and report["exit_status"] == 1, "json: " + report["verdict"])
    leaf = report["rules"][1]["functions"][0]
    check(leaf["function"] == "left_leaf" and leaf["verdict"] == "fail" and len(leaf["base_runs"]) == N, "json")
    check(leaf["interval"][0] < leaf["effect"] < leaf["interval"][1] and leaf["effect"] > 1, "json: %s" % leaf)
    check(abs(sum(leaf["head_runs"]) / N - leaf["head"]) < 1e-6, "json: the mean")
    svg = ET.parse("d.svg").getroot()
    check("what changed from base to head" in "".join(svg.itertext()), "the picture's title")
    for name in "text markdown junit sarif github json".split():
        p = gate("-c", rules, "--base", *base, "--head", *slow, "-f", name, "-o", "one", status=1)
        check(not p.out and read("one"), name)


# -- the demo guest -------------------------------------------------------------------

def check_demo():
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        e2e.left_out("no /dev/kvm: the demo guest")
        return
    names = []
    for i in range(4):
        names.append("demo%d" % i)
        p = e2e.kvmprof("run", "-q", "--duration", "0.5", "--no-buildid-cache", "--mark", "up=^demo: start",
                        "-o", names[-1])
        if not check(p.status == 0, "run: " + p.err):
            return
    rules = write("demo.toml", '''
[[rule]]
metric = "time"
threshold = "50 %"
[[rule]]
metric = "exits"
threshold = "50 %"
[[rule]]
metric = "exits"
exit = "INTR"
threshold = "50 %"
[[rule]]
metric = "counter"
counter = "host.probe_ns"
threshold = "90 %"
[[rule]]
metric = "share"
subtree = "demo_main"
threshold = "50 points"
[[rule]]
metric = "function-time"
regex = "_leaf"
threshold = "10 s"
[[rule]]
metric = "boot-time"
threshold = "1 %"
optional = true
[[rule]]
metric = "time"
until = "up"
threshold = "10 s"
''')
    p = gate("-c", rules, "--base", names[0], names[2], "--head", names[1], names[3], "-f", "json", status=3)
    results = json.loads(p.out)["rules"]
    totals = [e2e.summary(n) for n in (names[0], names[2])]
    want = [[t["run_seconds"] * 1e9 for t in totals],
            [sum(t["exits"].values()) / t["run_seconds"] for t in totals],
            [t["exits"]["10_INTR"] / t["run_seconds"] for t in totals],
            [t["host"]["probe_ns"] for t in totals],
            [next(m["time_ns"] for m in t["markers"] if m["name"] == "up") for t in totals]]
    for r, w in zip(results[:4] + results[7:], want):
        got = r["result"]["base_runs"]
        check(all(abs(a - b) <= 1e-6 * b for a, b in zip(got, w)), "%s: %s, not %s" % (r["measures"], got, w))
    check(all(0 < x <= 1 for x in results[4]["result"]["base_runs"]), "share: %s" % results[4])
    check(all(0 < x < 6e8 for x in results[5]["result"]["base_runs"]), "time: %s" % results[5])
    check_means(names[0])
    check(results[6]["verdict"] == "skipped", "boot-time of the demo: %s" % results[6])


def check_means(first):
    """What is not the same of how a run was made is named; --strict refuses it."""
    p = e2e.kvmprof("run", "-q", "--duration", "0.5", "--no-buildid-cache", "-m", "64M", "-F", "499", "--vcpus", "2",
                    "--append", "work=2", "-o", "other")
    if not check(p.status == 0, "run: " + p.err):
        return
    p = gate("--base", first, "--head", "other")
    for says in ("memory 256 and 64 MiB", "vCPUs 1 and 2", "frequency 997 and 499 Hz", 'command line with "" and with "work=2"'):
        check(says in p.out, "%s is not named: %s" % (says, p.out))
    check("processor" not in p.out and "version" not in p.out, p.out)
    p = gate("--strict", "--base", first, "--head", "other", "--json", "strict.json", status=2)
    check("--strict: " in p.err and "vCPUs 1 and 2" in p.err and not os.path.exists("strict.json"), p.err)


check_verdicts()
check_few()
check_rules()
check_wrong()
check_independent()
check_formats()
check_demo()
check(not e2e.leftovers(), "left behind: %s" % e2e.leftovers())
e2e.finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 5 s
# tests: not svm, host
"""What commands say of profiles of `run --engine exact`, as their reader needs it: samples are samples,
counts are counts, and engine, QEMU and virtual time are named. Exact counts have no sampling: no word of
samples, noise, intervals or seconds between them. gate --exact in all its formats; SARIF by its schema
where that is installed."""

import json
import os
import re

import e2e
import gate_formats
from e2e import check
from exact_engine import exact, find_qemu


def said(what, p, *wanted, never=()):
    """Of a command that went well."""
    text = p.out + p.err
    check(p.status == 0, "%s: status %d: %s" % (what, p.status, text[-2000:]))
    for w in wanted:
        check(re.search(w, text), "%s: does not say '%s': %s" % (what, w, text[:2000]))
    for w in never:
        check(not re.search(w, text), "%s: says '%s': %s" % (what, w, text[:2000]))
    return text


def run():
    """Counts twice, of the same, and samples."""
    work = ("-q", "--append", "work=1")
    p = exact("--call-counts", *work, "-o", "c.data")
    text = said("summary of counts", p, r"(\d+) instructions counted, in \d+ stacks: ", r"engine exact, QEMU \d",
                never=(r"samples of instructions", "one in", "lost 0"))
    counted = int(re.search(r"(\d+) instructions counted", text).group(1))
    said("summary of samples", exact("-c", "500", *work, "-o", "s.data"),
         r"samples of instructions", r"a sample each 500, 8 ns of virtual time", "lost 0 samples")
    c, s = e2e.summary("c.data"), e2e.summary("s.data")
    check(c["engine"]["counts"] is True and s["engine"]["counts"] is False, "engine: %s" % c["engine"])
    check("freq_hz" not in c and "jitter" not in s, "an exact run has a rate")
    # Time is virtual: that of all instructions.
    check(abs(c["kernel_ns"] + c["user_ns"] + c["idle_ns"] - 8 * counted) == 0, "ns of %d instructions: %s" % (counted, c))
    return counted


def reports(counted):
    engine = r"# engine exact: QEMU \d[\d.]*, \d+ instructions in 0\.\d+ s of virtual time, "
    said("report of counts", e2e.kvmprof("report", "-i", "c.data"), r"# event instructions: %d counted, in " % counted,
         engine + "each counted", r"Count: Children +Self", never=("samples", "Samples", r"over 0\.000"))
    said("report of samples", e2e.kvmprof("report", "-i", "s.data"), engine + "a sample each 500",
         r"samples over 0\.\d+ s", "Samples")
    said("--ci of counts", e2e.kvmprof("report", "-i", "c.data", "--ci"), "there are no intervals", never=("95 %",))
    said("--header", e2e.kvmprof("report", "-i", "c.data", "--header"), "profile of an emulated machine", never=("unknown host",))
    rows = json.loads(e2e.kvmprof("report", "-i", "c.data", "--json", "-n", "0").out)["symbols"]
    check(all(r["self_ci"][0] == r["self_ci"][1] for r in rows), "an exact share has an interval")
    check(sum(r["self"] for r in rows) == counted, "rows sum to %d" % sum(r["self"] for r in rows))
    # The text has the same numbers.
    text = e2e.kvmprof("report", "-i", "c.data", "-n", "0").out
    leaf = next(r for r in rows if r["symbol"] == "left_leaf")
    # Firmware and the demo's program have names; left are some instructions before the guest has its page tables.
    by = {}
    for r in rows:
        by[r["dso"]] = by.get(r["dso"], 0) + r["self"]
    check(by.get("[unknown]", 0) < counted / 2000 and by.get("[firmware]", 0) > 0 and by.get("demo-user", 0) > 0,
          "code without a name: %s" % by)
    check(not any(r["mode"] == "user" and r["dso"] != "demo-user" for r in rows), "a program without a name")
    check(re.search(r" %d +%d  kernel  left_leaf " % (leaf["children"], leaf["self"]), text), "left_leaf: %s" % leaf)
    return leaf["self"]


def others(leaf):
    text = said("annotate", e2e.kvmprof("annotate", "-i", "c.data", "left_leaf"), r"Percent +Count \|",
                r"insn-exec \(%d counted, percent: local period\)" % leaf, never=("samples",))
    counts = [int(m) for m in re.findall(r"^ +[\d.]+ +(\d+) : +f", text, re.M)]
    check(sum(counts) == leaf, "instructions of left_leaf: %s, not %d" % (counts, leaf))
    below = json.loads(e2e.kvmprof("annotate", "-i", "c.data", "--children", "--json", "tree_top").out)
    rows = json.loads(e2e.kvmprof("report", "-i", "c.data", "--json", "-S", "tree_top,tree_left,tree_right").out)["symbols"]
    of = {r["symbol"]: r["children"] for r in rows}
    check(sum(i["children_weight"] for i in below["instructions"]) == of["tree_top"] == below["children_weight"],
          "counts below the calls of tree_top: %s, report says %s" % (below, of))
    calls = {i["target_symbol"]: i["children_weight"] - i["weight"] for i in below["instructions"]
             if i.get("target_symbol") in of}
    check(calls == {n: of[n] for n in ("tree_left", "tree_right")}, "counts below calls: %s, not %s" % (calls, of))
    said("annotate of samples", e2e.kvmprof("annotate", "-i", "s.data", "left_leaf"), r"instructions \(\d+ samples")
    for name in ("f.svg", "f.html"):
        said("flamegraph", e2e.kvmprof("flamegraph", "-i", "c.data", "-o", name))
        with open(name, encoding="utf-8") as f:
            picture = f.read()
        check(re.search(r"\d+ instructions counted, in \d+ stacks on 1 vCPU", picture) and "counted:true" in picture,
              name + " does not say what it is of")
        check(not re.search(r"\d samples", picture.split("<script")[0]), name + " counts samples")
    p = e2e.kvmprof("flamegraph", "-i", "c.data", "--chart", "-o", "chart.html")
    check(p.status == 1 and "a chart over time cannot show" in p.err, "--chart of counts: %d %s" % (p.status, p.err))
    said("diff", e2e.kvmprof("diff", "c.data", "c.data"), "exact counts, without noise", "gate --exact", r"\d+ counted",
         never=("samples", "Noise", "p-values"))
    said("diff of samples and counts", e2e.kvmprof("diff", "s.data", "c.data"), "exact counts no and yes", "Noise")
    said("tasks", e2e.kvmprof("report", "-i", "c.data", "--sort", "comm"), r"\d  guest\n", never=("4294967295", "unknown"))


def check_command():
    """It says whether this host has the engine, and what to do where it has not."""
    p = e2e.kvmprof("check")
    check(re.search(r"^ok +run --engine exact +QEMU \d+\.\d+", p.out, re.M), "check: " + p.out)
    p = e2e.kvmprof("check", env=dict(os.environ, KVMPROF_QEMU="/nowhere"))
    check(re.search(r"^note +run --engine exact +not here\n +-> .*fetch-qemu.sh", p.out, re.M), "check: " + p.out)


def calls():
    """callgrind's calls are the entries that were counted, of each function as of its callers together, and its own costs are the
    report's; a function's entries are its first instruction's count."""
    said("export", e2e.kvmprof("export", "-i", "c.data", "-F", "callgrind", "-o", "c.callgrind"))
    names, callee, got, ones, cost = {}, None, {}, {}, {}
    for line in gate_formats.read("c.callgrind").split("\n"):
        m = re.match(r"(c?)fn=\((\d+)\)(?: (.*))?$", line)
        if m:
            names.setdefault(m[2], m[3])
            # A level of recursion is one more function there.
            callee = re.sub(r"'\d+$", "", names[m[2]]) if m[1] else None
        m = re.match(r"calls=(\d+) 0$", line)
        if m:
            got[callee] = got.get(callee, 0) + int(m[1])
            ones[callee] = ones.get(callee, 0) + (m[1] == "1")
        m = re.match(r"0 (\d+)$", line)
        if m and callee:
            cost[callee] = cost.get(callee, 0) + int(m[1])
    p = e2e.kvmprof("report", "-i", "c.data", "--event", "entries", "--json", "-n", "0", "--dso", "[kernel.kallsyms]")
    rows = [r for r in json.loads(p.out)["symbols"] if r["self"]]
    check(len(rows) > 20, "entries of %d functions" % len(rows))
    check("calls=0 " not in gate_formats.read("c.callgrind"), "callgrind: calls=0")
    own = {r["symbol"]: r["self"] for r in json.loads(e2e.kvmprof(
        "report", "-i", "c.data", "--json", "-n", "0", "--dso", "[kernel.kallsyms]").out)["symbols"] if r["self"]}
    p = e2e.run("callgrind_annotate", "--threshold=100", "--auto=no", "c.callgrind")
    shown = {}
    for m in re.finditer(r"^ *([\d,]+) \( *[\d.]+%\)  \[kernel\.kallsyms\]:([^\s']+)\S* \[\[kernel\.kallsyms\]\]$", p.out, re.M):
        shown[m[2]] = shown.get(m[2], 0) + int(m[1].replace(",", ""))
    check(shown == own, "callgrind_annotate, of their own: %s" % sorted(set(shown.items()) ^ set(own.items()))[:6])
    first = {}
    script = e2e.kvmprof("export", "-F", "perf-script", "-i", "c.data", "--event", "insn-exec").out
    for m in re.finditer(r" (\d+) insn-exec:.*\n\s+[0-9a-f]+ ([^\s+]+)\+0x0 \(\[kernel", script):
        first[m[2]] = first.get(m[2], 0) + int(m[1])
    wrong = [(r["symbol"], r["self"], first.get(r["symbol"])) for r in rows if r["self"] != first.get(r["symbol"])]
    check(len(first) > 20 and not wrong and {r["symbol"] for r in rows} == set(first), "entries: %s" % wrong[:5])
    for r in rows:
        # Where a function ran that was not entered there, 1 stands: as after the beginning of a phase.
        check(0 <= got.get(r["symbol"], 0) - r["self"] <= ones.get(r["symbol"], 0), "callgrind: %s is called %s times, not %d" %
              (r["symbol"], got.get(r["symbol"]), r["self"]))
    check(got["left_leaf"] > 0 and cost["left_leaf"] > got["left_leaf"], "left_leaf: %s calls, cost %s" %
          (got.get("left_leaf"), cost.get("left_leaf")))


# -- the gate --------------------------------------------------------------------------------------------

RULES = """[[rule]]
name = "leaf"
metric = "instructions"
symbol = "left_leaf"
threshold = "1"
[[rule]]
name = "others"
metric = "function-instructions"
threshold = "1"
level = "warn"
"""


def gate(base, head, status, *options):
    p = e2e.kvmprof("gate", "--exact", "--base", base, "--head", head, "-f", "text", "-o", "r.text", "--markdown", "r.md",
                    "--junit", "r.xml", "--sarif", "r.sarif", "--github", "r.github", "--json", "r.json", *options)
    check(p.status == status, "gate: status %d, not %d: %s" % (p.status, status, p.err))
    for name in ("r.text", "r.md"):
        text = gate_formats.read(name)
        check(not re.search(r"95 %|p, q|Seen|could have seen", text), "%s has columns of statistics: %s" % (name, text[:800]))
    report = json.loads(gate_formats.read("r.json"))
    check(report["exact"] is True and report["exit_status"] == status, "json: %s" % report["text"])
    return report


def gates():
    with open("rules.toml", "w", encoding="utf-8") as f:
        f.write(RULES)
    rules = ("-c", "rules.toml")
    gate("c.data", "c.data", 0, *rules)
    gate_formats.check_junit("r.xml", {"leaf": "passed", "others": "passed"})
    gate_formats.check_sarif("r.sarif", "rules.toml", {"leaf": ("pass", "none"), "others": ("pass", "none")}, [])
    gate_formats.check_markdown("r.md", 1, "PASS: 2 passed")
    text = gate_formats.read("r.github")
    # That both sides are one run is said, and nothing else.
    check(text.startswith("::warning title=kvmprof gate::c.data is a run of the base and of the head") and
          text.count("::notice") == 1 and text.count("\n") == 2, "github, A against A: " + text)
    # One leaf of the guest works longer, and another is called as often as before.
    p = exact("--call-counts", "-q", "--append", "work=1 slow=left_leaf:500", "-o", "slow.data")
    check(p.status == 0, p.err)
    report = gate("c.data", "slow.data", 1, *rules)
    named = [f["function"] for f in report["rules"][1]["functions"]]
    gate_formats.check_junit("r.xml", {"leaf": "failure", "others": "passed"})
    gate_formats.check_sarif("r.sarif", "rules.toml", {"leaf": ("fail", "error"), "others": ("fail", "warning")}, named)
    gate_formats.check_markdown("r.md", 1)
    lines = gate_formats.check_github("r.github", "rules.toml", "leaf")
    check(any(x.startswith("::warning") and "left_leaf" in x for x in lines), "github: %s" % lines)
    text = gate_formats.read("r.text")
    check(re.search(r"^fail +\d+ +\d+ +\+\d+ \(\+[\d.e]+ %\)  leaf$", text, re.M), "both numbers: " + text)
    # Other means are told in what people read.
    p = exact("--call-counts", "-q", "-m", "128M", "--append", "work=1", "-o", "small.data")
    gate("c.data", "small.data", 0, "-c", os.path.join(e2e.TOP, "configs", "gate-exact.toml"))
    for name in ("r.text", "r.md", "r.xml", "r.json"):
        text = gate_formats.read(name)
        check("not made in the same way" in text and "memory 256 and 128 MiB" in text, name + ": " + text[:600])
    sampled()


def sampled():
    """Counts of parts are chance in a profile by samples: only the engine's own number is judged."""
    whole = '[[rule]]\nname = "all"\nmetric = "instructions"\nthreshold = "1"\n'
    with open("whole.toml", "w", encoding="utf-8") as f:
        f.write(whole)
    report = gate("c.data", "s.data", 0, "-c", "whole.toml")
    values = report["rules"][0]["result"]["base"], report["rules"][0]["result"]["head"]
    check(values[0] == values[1] > 0, "instructions by counts and by the engine's number: %s" % (values,))
    p = exact("-q", "--append", "work=1 one=more", "-o", "more.data")
    check(p.status == 0, p.err)
    report = gate("s.data", "more.data", 1, "-c", "whole.toml")["rules"][0]["result"]
    check(0 < report["head"] - report["base"] < 5000, "a word more on the command line: %s" % report)
    refusals = {"functions": 'metric = "function-instructions"', "stacks": 'metric = "stack-instructions"',
                "calls": 'metric = "syscall-instructions"', "tasks": 'metric = "task-instructions"',
                "phases": 'metric = "phase-instructions"\noptional = true', "one": 'metric = "instructions"\nsymbol = "spin"',
                "some": 'metric = "instructions"\nregex = "leaf"', "init": 'metric = "instructions"\nphase = "init"',
                "dso": 'metric = "instructions"\ndso = "x"'}
    for name, keys in refusals.items():
        with open("part.toml", "w", encoding="utf-8") as f:
            f.write(whole + '[[rule]]\nname = "%s"\n%s\nthreshold = "1"\nlevel = "warn"\n' % (name, keys))
        for base, head in (("s.data", "more.data"), ("c.data", "s.data"), ("s.data", "c.data")):
            p = e2e.kvmprof("gate", "--exact", "-c", "part.toml", "--base", base, "--head", head)
            check(p.status == 2 and '"%s"' % name in p.err and "--call-counts" in p.err and "s.data" in p.err + head,
                  "rule %s of %s and %s: status %d, %s%s" % (name, base, head, p.status, p.err, p.out[:500]))
    p = e2e.kvmprof("gate", "--exact", "--base", "s.data", "--head", "more.data")
    check(p.status == 2 and "--call-counts" in p.err, "the rules without -c: %d, %s" % (p.status, p.err))


find_qemu()
counted = run()
others(reports(counted))
check_command()
calls()
gates()
e2e.finish()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 4 s
# tests: not svm, files
"""kvmprof report on a profile whose shares are known, beside perf report: call graphs, filters,
intervals, images, CSV, colour and pager."""

import csv
import io
import json
import os
import pty
import re
import shlex
import subprocess
from collections import Counter

import compiled
import e2e
from e2e import check

PROFILE = "perf.data"


def make(*arguments):
    e2e.run("rm", "-rf", PROFILE)
    p = e2e.run("./mkprofile", *arguments)
    check(p.status == 0, "mkprofile: " + p.err)


def report(*arguments, status=0):
    p = e2e.kvmprof("report", "-i", PROFILE, *arguments)
    check(p.status == status, "report %s: status %d: %s" % (" ".join(arguments), p.status, p.err))
    return p.out if status == 0 else p.err


def report_json(*arguments):
    return json.loads(report("--json", "-n", "0", *arguments))


def samples(*arguments):
    return report_json(*arguments)["samples"]


# -- call graphs, as perf has them --------------------------------------------------------

def trees(text):
    """{function of the row: the tree's lines without bars, sorted}; equal shares have no order."""
    found, name = {}, None
    for line in text.split("\n"):
        row = re.match(r" *[0-9.]+%(?: +[0-9.]+%)? .* (\w+) *(?:\[kernel.kallsyms\]|demo-user)? *$", line)
        if row and not line.startswith("            "):
            name = row.group(1)
            found[name] = []
        elif name and re.match(r" {12}[ |]*(-|\w)", line):
            found[name].append(line.strip(" |"))
    return {n: sorted(t) for n, t in found.items() if t}


def same_trees(order, children):
    mode = "--children" if children else "--no-children"
    ours = report("-n", "0", "-g", order, "--sort", "sym", *([] if children else [mode]))
    p = e2e.run("perf", "report", "-i", PROFILE, "--stdio", "--percent-limit", "0", mode, "-g",
                "graph,0.5," + order, "--sort", "dso,sym")
    a, b = trees(ours), trees(p.out)
    check(len(a) > 2 and a.keys() == b.keys(), "-g %s %s: rows %s" % (order, mode, set(a) ^ set(b)))
    for name in sorted(a.keys() & b.keys()):
        check(a[name] == b[name], "-g %s %s: tree of %s: %s, perf: %s" % (order, mode, name, a[name], b[name]))
    return len(a)


def first_words(order):
    """The recursive function's callers, to the letter."""
    out = report("-g", order, "--sort", "sym", "--symbol", "^guest_recurse$")
    return out.split("\n")[4:]


# -- terminal -----------------------------------------------------------------------------

def on_terminal(command, **env):
    """What a terminal gets to see."""
    master, slave = pty.openpty()
    environment = dict(os.environ, TERM="xterm", **env)
    p = subprocess.Popen(["sh", "-c", command], stdout=slave, stderr=slave, stdin=subprocess.DEVNULL,
                         env=environment)
    os.close(slave)
    out = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
    os.close(master)
    return p.wait(), out.decode(errors="replace")


e2e.need_tool("perf")
compiled.tool("e2e/mkprofile.c")

make("-n", "4000", "-b", "60", PROFILE)
rows = sum(same_trees(order, children) for order in ("caller", "callee") for children in (True, False))
colours = report("--color=always", "-n", "0", "-g", "caller")
check("\033[31m" in colours and "--\033[32m" in colours, "red and green")
make(PROFILE)
rows += sum(same_trees(order, children) for order in ("caller", "callee") for children in (True, False))
check(first_words("callee") == [
    "   15.00%  15.00%       1500  guest_recurse",
    "            |",
    "            ---guest_recurse",
    "               guest_recurse",
    "               guest_recurse",
    "               guest_recurse",
    "               guest_syscall",
    "", ""], "-g callee: %r" % first_words("callee"))
check("---" not in report("-g", "none") and "---" in report("-g") and
      report("-g") == report("-g", "--sort", "mode,sym,dso") == report("--call-graph", "caller"), "-g alone or -g none")
check("guest_copy" in report("-g", "callee", "--sort", "sym", "--symbol", "guest_idle|guest_copy"), "--symbol")
# The system call is 15 % of all, with half of it in each of two branches or more.
graph = report_json("-g", "caller", "--sort", "sym", "--symbol", "^guest_syscall$")["symbols"]
check(len(graph) == 1 and sum(n["weight"] for n in graph[0]["callees"]) == graph[0]["children"],
      "--json -g: %s" % graph)

# -- what counts ------------------------------------------------------------------------------

total = samples()
check(total == 10000, "%d samples" % total)
check(samples("--parent", "^guest_recurse$") == 1500, "--parent")
check(samples("--parent", "guest_(recurse|idle)") == 5500, "--parent with an alternative")
check(samples("--time", "0%,100%") == total, "--time of all")
check(abs(samples("--time", ",50%") - total / 2) < 5, "--time in percent")
check(samples("--time", "1,2") == samples("--time", "1,") - samples("--time", "2.0000001,"), "--time in seconds")
check(samples("--time", "20%-30%") < total / 8, "--time with a dash")
check(samples("--time", "9999,") == 0, "--time behind the end")
only = report_json("--symbol", "^guest_i", "--sort", "sym")["symbols"]
check(sorted(r["symbol"] for r in only) == ["guest_idle", "guest_irq_entry"], "--symbol: %s" % only)
check([r["self"] for r in only if r["symbol"] == "guest_idle"] == [4000 * 1000000], "--symbol changes shares")
deep = report_json("--max-stack", "1", "--sort", "sym")["symbols"]
check(all(r["self"] == r["children"] for r in deep), "--max-stack 1")
check(all(r["mode"] != "user" for r in report_json("--kernel-only")["symbols"]), "--kernel-only")
limited = report("--percent-limit", "20", "--sort", "sym")
check("guest_idle" in limited and "guest_recurse" not in limited, "--percent-limit")

# -- intervals -----------------------------------------------------------------------------------

r = report_json()
check(abs(r["effective_samples"] - total) < 1, "effective samples of equal weights: %s" % r["effective_samples"])
for row in r["symbols"]:
    for what in ("self", "children"):
        low, high = row[what + "_ci"]
        share = 100 * row[what] / r["weight"]
        check(0 <= low <= share <= high <= 100 and high - low < 2.1, "%s of %s: %s" % (what, row["symbol"], row))
check("39.04-40.96%" in report("--ci", "--sort", "sym"), "--ci: 40 %% of 10000: %s" % report("--ci", "--sort", "sym"))

# -- CSV -------------------------------------------------------------------------------------------

text = report("--csv", "-n", "0", "--ci").replace("\r\n", "\n")
raw = subprocess.run([e2e.KVMPROF, "report", "--csv", "-n", "0"], stdout=subprocess.PIPE).stdout
check(raw.count(b"\r\n") == raw.count(b"\n") > 5, "CSV: lines do not end in CR LF")
table = list(csv.DictReader(io.StringIO(text)))
check([t["symbol"] for t in table] == [row["symbol"] for row in r["symbols"]], "CSV and JSON differ")
for t, row in zip(table, r["symbols"]):
    check(int(t["self_weight"]) == row["self"] and abs(float(t["self_percent"]) - 100 * row["self"] / r["weight"])
          < 1e-3 and float(t["self_low"]) == row["self_ci"][0], "CSV: %s, JSON: %s" % (t, row))

# -- images --------------------------------------------------------------------------------------------

images = [x.split() for x in report("--images").split("\n") if x and x[0] != "#"]
check(images and sum(int(i[0]) for i in images) == total and images[-1][2] == "100.00%", "--images: %s" % images)
functions = [x.split() for x in report("--images=functions", "-n", "0").split("\n") if x and x[0] != "#"]
check(sum(int(f[0]) for f in functions) == total, "--images=functions: %s" % functions)
address = {x["symbol"]: x["address"] for x in r["symbols"]}
check(functions[0] == ["4000", "40.00%", "40.00%", "%016x" % int(address["guest_idle"], 16), "guest_idle"],
      "--images=functions: %s" % functions[0])
check(all("%016x" % int(address[f[4]], 16) == f[3] for f in functions if f[4] in address), "addresses: %s" % functions)
one = report("--images=[kernel.kallsyms]")
check("# image [kernel.kallsyms]: 10000 samples, 100.00 %" in one, "--images of one: " + one)

# -- what is refused ---------------------------------------------------------------------------------------

for arguments, status, words in (
        (["--sort", "code_page_size"], 1, "do not say in which size of page their code lies"),
        (["--sort", "sym,data_page_size"], 1, "do not say in which size of page their data lies"),
        (["--event", "cycles"], 1, "no event 'cycles': there is wall"),
        (["--symbol", "("], 2, "--symbol: bad expression '('"),
        (["--time", "5"], 2, "--time 5: expected FROM,TO"), (["--time", ","], 2, "--time ,: expected"),
        (["--time", "3,2"], 2, "--time 3,2: expected"),
        (["-g", "fractal"], 2, "bad call graph 'fractal'"), (["--color", "red"], 2, "--color red: expected auto"),
        (["--percent-limit", "x"], 2, "--percent-limit x: expected"), (["--max-stack", "0"], 2, "--max-stack 0: expected"),
        (["--images", "--sort", "sym"], 2, "--images prints a table of its own")):
    err = report(*arguments, status=status)
    check(words in err and err.count("\n") == 1, "report %s says: %s" % (" ".join(arguments), err))

# -- terminal ------------------------------------------------------------------------------------------------

plain = report()
command = shlex.quote(e2e.KVMPROF) + " report"
check("\033" not in plain and "\033[31m" in report("--color=always"), "--color=always in a pipe")
status, out = on_terminal(command, PAGER="cat")
check(status == 0 and "\033[31m" in out, "no colour on a terminal: %r" % out[:300])
for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
    environment = dict(env, PAGER="cat")
    status, out = on_terminal(" ".join("%s=%s" % e for e in environment.items()) + " " + command)
    check(status == 0 and "\033" not in out and out.replace("\r\n", "\n") == plain, "colour with %s" % env)
status, out = on_terminal(command + " --color=never", PAGER="tr a-z A-Z")
check(status == 0 and out.replace("\r\n", "\n") == plain.upper(), "$PAGER is not used: %r" % out[:200])
status, out = on_terminal(command + " -n 0", PAGER="head -n 2")
check(status == 0 and out.count("\n") == 2, "a pager that leaves early: %d %r" % (status, out))
check(Counter(plain)["\033"] == 0, "colour in a pipe")
e2e.finish("%d call graphs as in perf" % rows)

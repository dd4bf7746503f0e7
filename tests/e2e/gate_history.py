#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 3 s
# tests: not svm, files
"""A gate's history in a real git repository: two clones record at the same time and merge without a
conflict, files are only added, and the change is found at the commit that made it."""

import json
import os

import e2e
import gate_runs
from e2e import check

e2e.need_tool("git")
RUNS = 3
RULES = "rules.toml"
with open(RULES, "w") as f:
    f.write('[[rule]]\nmetric = "share"\nsymbol = "left_leaf"\nthreshold = "2 %"\n'
            '[[rule]]\nname = "functions"\nmetric = "symbols"\nthreshold = "0.5 points"\n')


def git(directory, *argv, status=0):
    p = e2e.run("git", "-C", directory, "-c", "user.name=t", "-c", "user.email=t@localhost", *argv)
    check(p.status == status, "git %s in %s: %s%s" % (" ".join(argv), directory, p.out, p.err))
    return p.out


def record(directory, label, day, more=None):
    names = gate_runs.group("run-%s-" % label, RUNS, more=more)
    p = e2e.kvmprof("gate", "-c", RULES, "--history", directory, "--record", "--label", label, "--at",
                    "2026-11-%02dT12:00:00Z" % day, "--head", *names)
    check(p.status in (0, 1, 3) and "recorded %d runs of %s" % (RUNS, label) in p.err, "record: " + p.err)


def changes(directory, *argv):
    p = e2e.kvmprof("gate", "-c", RULES, "--history", directory, "-f", "json", *argv)
    check(p.status in (0, 1, 3), "history: status %d: %s" % (p.status, p.err))
    return p.status, json.loads(p.out)


def files(directory):
    return {n: os.stat(os.path.join(directory, n)).st_ino for n in os.listdir(directory) if n.endswith(".json")}


SLOW = {"main;tree;left_leaf": 400}
e2e.run("git", "init", "-q", "--bare", "origin.git")
e2e.run("git", "clone", "-q", "origin.git", "a")
git("a", "checkout", "-q", "-b", "perf-history")

# Both know the first four; then each records others, in the order of time by turns.
for day in range(1, 5):
    record("a", "c%d" % day, day)
git("a", "add", ".")
git("a", "commit", "-q", "-m", "four")
git("a", "push", "-q", "origin", "perf-history")
e2e.run("git", "clone", "-q", "-b", "perf-history", "origin.git", "b")
before = files("a")
for day in range(5, 17):
    record("ab"[day % 2], "c%d" % day, day, more=SLOW if day >= 11 else None)
for clone in "ab":
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", clone)
git("a", "push", "-q", "origin", "perf-history")
one, other = set(files("a")), set(files("b"))
git("b", "pull", "-q", "--no-rebase", "--no-edit", "origin", "perf-history")
check(set(files("b")) == one | other and len(one | other) == 16, "the merge is not the union")
check(not git("b", "diff", "--diff-filter=MD", "--name-only", "HEAD~1", "HEAD").strip(), "files were changed")
git("b", "push", "-q", "origin", "perf-history")
git("a", "pull", "-q", "--no-rebase", "--no-edit", "origin", "perf-history")
check({n: i for n, i in files("a").items() if n in before} == before, "entries were rewritten")

status, report = changes("a")
check(changes("b")[1]["changes"] == report["changes"], "the clones differ")
check([x["label"] for x in report["entries"]] == ["c%d" % d for d in range(1, 17)], "order of entries")
worse = [c for c in report["changes"] if c["verdict"] in ("fail", "older")]
check({c["label"] for c in worse} == {"c11"}, "changes: %s" % report["changes"])
check({c["function"] for c in worse} == {None, "left_leaf"}, "changes: %s" % worse)
# Six entries old: it fails only where that is recent.
check(status == 0 and changes("a", "--recent", "6")[0] == 1, "recent")
check(changes("a", "--last", "5")[0] == 3, "a short history is inconclusive")
p = e2e.kvmprof("gate", "-c", RULES, "--history", "a")
check("left_leaf" in p.out and "c11 (2026-11-11T12:00:00Z)" in p.out, "text: " + p.out)

# The page of it, by itself, and a history that is too short for any change.
p = e2e.kvmprof("gate", "-c", RULES, "--history", "a", "--html", "page.html")
with open("page.html", encoding="utf-8") as f:
    page = f.read()
check(p.status == 0 and page.startswith("<!DOCTYPE html>") and page.count("<svg ") == page.count("<h2 ") > 2 and
      ">left_leaf</a>" in page and "c11" in page and "<script" not in page and "://" not in page, "page: " + page[:300])
p = e2e.kvmprof("gate", "-c", RULES, "--history", "a", "--last", "9")
check(p.status == 3 and "INCONCLUSIVE" in p.out and "too short" in p.out, "nine entries: %d %s" % (p.status, p.out))
os.mkdir("nothing")
p = e2e.kvmprof("gate", "-c", RULES, "--history", "nothing")
check(p.status == 3 and "INCONCLUSIVE: the history has no entries" in p.out, "no entry: %d %s" % (p.status, p.out))

for argv, says in ((["--history", "missing"], "missing: cannot read"), (["--history", "a", "--record"], "--label"),
                   (["--history", "a", "--record", "--label", "x"], "needs runs"),
                   (["--history", "a", "--head", "x"], "--record only"),
                   (["--history", "a", "-f", "junit"], "text or json"),
                   (["--base", "x", "--head", "x", "--html", "y"], "--html is a page of the history"),
                   (["--history", "a", "--record", "--label", "x", "--head", "missing"], "missing: "),
                   (["--history", RULES, "--record", "--label", "x", "--head", "run-c1-0"], RULES)):
    p = e2e.kvmprof("gate", *argv)
    check(p.status == 2 and says in p.err and not p.out, "%s: %d: %s" % (argv, p.status, p.err))
check(sorted(os.listdir("a")) == sorted([".git"] + list(files("a"))), "left behind: %s" % os.listdir("a"))
e2e.finish()

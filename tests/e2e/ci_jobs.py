#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 27 s
# tests: not svm, files
"""The jobs of configs/ci as a whole, with KVM, as ci_runner.py runs them. The repository has a kernel that
`make defconfig vmlinux' builds: the demo guest, one of whose functions has another name in the commit that
shall fail. ci_exact.py: where there is no KVM."""

import os
import re
import shutil

import ci_runner
import e2e
from ci_runner import ZEROS, entries, git, verdict
from e2e import check

e2e.need_kvm()
e2e.need_tool("objcopy")

# Adapted: a gate of five short runs, which only another function fails.
ADAPTED = {"RUNS": "5", "RUN_OPTIONS": "--append work=2 --no-buildid-cache", "INCONCLUSIVE": "pass"}
RULES = '[gate]\nerror-rate = 0.05\n[[rule]]\nname = "one function"\nmetric = "share"\nsymbol = "left_slow"\n' \
    'threshold = "5 points"\noptional = true\n'
MAKEFILE = "defconfig:\n\t@touch .config\nvmlinux: guest.elf .config\n\tcp $< $@\n"


def fill(name):
    with open("work/gate.toml", "w") as f:
        f.write(RULES)
    with open("work/Makefile", "w") as f:
        f.write(MAKEFILE)
    shutil.copy(os.path.join(e2e.BUILD, "guest", "demo.elf"), "work/guest.elf")
    if name == "slower":
        p = e2e.run("objcopy", "--redefine-sym", "left_leaf=left_slow", "work/guest.elf")
        check(p.status == 0, "objcopy: " + p.err)


def gitlab(*argv, **variables):
    return ci_runner.gitlab(server, tools, ADAPTED, *argv, **variables)


def check_gitlab():
    main = {"CI_COMMIT_BRANCH": "main", "HISTORY_TOKEN": "x"}
    request = {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_DIFF_BASE_SHA": commits["same"]}
    for what, commit, before, variables, status, want, grows in (
            ("first push", "first", ZEROS, main, 0, "pass", 1),
            ("merge request of a fork", "slower", ZEROS, request, 1, "fail", 0),
            ("push that gets slower", "slower", commits["same"], main, 1, "fail", 1),
            ("push without a token", "same", commits["first"], {"CI_COMMIT_BRANCH": "main"}, 0, "pass", 0)):
        had = len(entries(server))
        p = gitlab(commits[commit], before, **variables)
        got = verdict("gitlab-builds/gate.json")
        if got == "inconclusive" and status == 0:    # five runs on a busy host
            got = "pass"
        check(p.status == status and got == want, "gitlab, %s: status %d, %s: %s%s" %
              (what, p.status, got, p.out[-3000:], p.err[-3000:]))
        check(len(entries(server)) == had + grows, "gitlab, %s: %d entries before, now %s" % (what, had, entries(server)))
        for path in ("gate.md", "gate.xml", "gate.svg", "base-1.data"):
            check(os.path.exists("gitlab-builds/" + path), "gitlab, %s: no %s to keep" % (what, path))
    with open("gitlab.log") as f:
        log = f.read()
    check(re.search("^apt-get install .*flex", log, re.M) and log.count("make -C kvmprof-source") == 3, "gitlab: " + log)
    p = gitlab(commits["same"], commits["first"], KVMPROF_REVISION="v99", **main)
    check(p.status != 0 and "v99" in p.err, "gitlab, a tag that is not there: %d %s" % (p.status, p.err[-500:]))


def calls():
    with open("github.log") as f:
        return [line for line in f.read().split("\n") if line.startswith("gh ")]


def check_github():
    ours, fork = ({"head": {"repo": {"full_name": n}}, "base": {"sha": commits["same"]}, "number": 7}
                  for n in ("us/kernel", "them/kernel"))
    comment, scan, keep, packed = "comment", "Code scanning", "Keep the reports", "Keep the profiles"
    for what, commit, event, payload, gate, grows, done, not_done in (
            ("first push", "first", "push", {"before": ZEROS}, "success", 1, (scan, keep, "history"), (comment, packed)),
            ("pull request", "slower", "pull_request", {"pull_request": ours}, "failure", 0, (comment, scan, keep, packed),
             ("entry",)),
            ("a fork's", "slower", "pull_request", {"pull_request": fork}, "failure", 0, (keep, packed), (comment, scan, "entry")),
            ("slower push", "slower", "push", {"before": commits["same"]}, "failure", 1, (scan, keep, packed, "history"),
             (comment,))):
        had = len(entries(server))
        got, said, kept, failed = ci_runner.github(server, tools, ADAPTED, commits[commit], event, payload)
        check(got.get("gate") == gate and all(got.get(n) == "success" for n in done) and
              all(got[n] == "skipped" for n in not_done), "github, %s: %s: %s" % (what, got, said[-3000:]))
        check(failed == (["gate"] if gate == "failure" else []), "github, %s: failed jobs %s" % (what, failed))
        check(len(entries(server)) == had + grows, "github, %s: %d entries before, now %s" % (what, had, entries(server)))
        check(("profiles" in kept) == (gate == "failure"), "github, %s: kept are %s" % (what, sorted(kept)))
        if gate == "failure":
            check("::error file=gate.toml,line=" in said and "one function" in said, "github, %s: annotations: %s" % (what, said[-2000:]))
    check_comment(ours)
    # A build that fails is one failure, and a refusal to scan is none.
    got, said, kept, failed = ci_runner.github(server, tools, dict(ADAPTED, HEAD_KERNEL="/nonexistent"), commits["same"],
                                               "push", {"before": commits["first"]})
    check(got["runs"] == "failure" and [n for n, o in got.items() if o == "failure"] == ["runs"],
          "github, runs that fail: %s: %s" % (got, said[-2000:]))
    got, said, kept, failed = ci_runner.github(server, tools, ADAPTED, commits["same"], "push", {"before": commits["first"]}, True)
    check(got[scan] == "failure" and not failed, "github, SARIF refused: %s, failed: %s" % (got, failed))


def check_comment(payload):
    """The first makes one, the next ones change that one."""
    os.truncate("github.log.comment", 0)
    made = []
    for _ in range(2):
        got = ci_runner.github(server, tools, ADAPTED, commits["slower"], "pull_request", {"pull_request": payload})[0]
        check(got["comment"] == "success", "github: %s" % got)
        made.append([c for c in calls() if "--jq" not in c])
    check(len(made[0]) == 1 and made[0][0].startswith("gh pr comment 7 "), "github, the first comment: %s" % made[0])
    check(len(made[1]) == 1 and made[1][0].endswith("/issues/comments/17"), "github, the second comment: %s" % made[1])
    with open("github/comment.md") as f:
        text = f.read()
    check(text.startswith("<!-- kvmprof") and "kvmprof gate" in text, "github, the comment: " + text[:200])


server, commits = ci_runner.commits_server(("first", "same", "slower"), fill)
tools = ci_runner.tools_server()
check_gitlab()
git("update-ref", "-d", "refs/heads/perf-history", cwd=server)
check_github()
e2e.finish("GitLab: 5 jobs, GitHub: 8")

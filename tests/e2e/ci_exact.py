#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 20 s
# tests: slow, at most 1800 s: all
# tests: not svm, host
"""The jobs of configs/ci as they stand there where /dev/kvm cannot be opened: the engine exact, one run a
side, on a QEMU that is fetched, as the system's is too old. The repository has a small kernel and a RAM disk
that changes: a commit with one system call more, and one with one more allocation, fail and are named by both
jobs; with `all' one that changes nothing passes, and the history has its instructions."""

import os
import shutil

import ci_runner
import e2e
from ci_kernel import VARIANTS, fetched, fill, without_kvm
from ci_runner import ZEROS, entries, verdict
from e2e import check

def adapted(job):
    return dict({"RUN_OPTIONS": "--initrd {side}/init.cpio --no-buildid-cache",
                 "KVMPROF_CACHE": os.path.abspath("cache-" + job)}, **more)


def check_log(job):
    with open(job + ".log") as f:
        check("fetch-qemu.sh" in f.read().split(), job + ": no QEMU was fetched")


def gitlab(what, commit, base, status, *names, **variables):
    shutil.rmtree("cache-gitlab", ignore_errors=True)
    p = ci_runner.gitlab(server, tools, adapted("gitlab"), commits[commit], base, **variables)
    got = verdict("gitlab-builds/gate.json")
    if not check(p.status == status and got == ("fail" if status else "pass"), "gitlab, %s: status %d, %s: %s%s" %
                 (what, p.status, got, p.out[-3000:], p.err[-3000:])):
        return    # the reports of a gate that did not run are absent
    for report in ("gate.md", "gate.xml", "gate.json"):
        with open("gitlab-builds/" + report) as f:
            text = f.read().replace("&#95;", "_").replace("\\", "")
        check(all(n in text for n in names), "gitlab, %s: %s does not name %s: %s" % (what, report, names, text[:1500]))
    check(os.path.exists("gitlab-builds/head-1.data") and not os.path.exists("gitlab-builds/head-2.data"),
          "gitlab, %s: not one run a side" % what)
    check_log("gitlab")


def github(what, commit, event, payload, outcome, *names):
    shutil.rmtree("cache-github", ignore_errors=True)
    got, said, _, _ = ci_runner.github(server, tools, adapted("github"), commits[commit], event, payload)
    check(got["engine"] == "success" and got["gate"] == outcome and "engine=exact" in said,
          "github, %s: %s: %s" % (what, got, said[-3000:]))
    if names:
        errors = [x for x in said.split("\n") if x.startswith("::error file=gate-exact.toml,line=1,")]
        check(errors and all(n in errors[0] for n in names), "github, %s: %s" % (what, said[-3000:]))
    check_log("github")


words, more = without_kvm()
ci_runner.runner.extend(words)
tools = ci_runner.tools_server(fetched())
server, commits = ci_runner.commits_server(VARIANTS, fill)
request = {"CI_PIPELINE_SOURCE": "merge_request_event"}
gitlab("one system call more", "asks", ZEROS, 1, "__x64_sys_getppid", CI_MERGE_REQUEST_DIFF_BASE_SHA=commits["same"], **request)
if e2e.EXTRA == ["all"]:
    gitlab("a push of the same", "same", commits["first"], 0, CI_COMMIT_BRANCH="main", HISTORY_TOKEN="x")
    check([os.path.dirname(e) for e in entries(server)] == ["exact"], "gitlab, history: %s" % entries(server))
pull = {"head": {"repo": {"full_name": "us/kernel"}}, "base": {"sha": commits["same"]}, "number": 7}
github("one allocation more", "maps", "pull_request", {"pull_request": pull}, "failure", "__x64_sys_mmap")
if e2e.EXTRA == ["all"]:
    github("a push of the same", "same", "push", {"before": commits["first"]}, "success")
    check([os.path.dirname(e) for e in entries(server)] == 2 * ["exact"], "github, history: %s" % entries(server))
e2e.finish("GitLab: 2 jobs, GitHub: 2")

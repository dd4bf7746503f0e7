#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The jobs of configs/ci as they stand there where /dev/kvm cannot be opened: the engine exact, one run a
side, on a QEMU that is fetched, as the system's is too old. The repository has a small kernel and a RAM disk
that changes: a commit with one system call more, and one with one more allocation, fail and are named by both
jobs; one that changes nothing passes, and the history has its instructions."""

import os
import shutil
import sys

import ci_runner
import compiled
import e2e
from ci_runner import ZEROS, entries, verdict
from e2e import check
from exact_engine import find_qemu

RULES = '[[rule]]\nname = "system calls"\nmetric = "syscall-instructions"\nthreshold = "1"\n' \
    '[[rule]]\nname = "all"\nmetric = "instructions"\nthreshold = "1 %"\n'
MAKEFILE = "defconfig:\n\t@touch .config\nvmlinux: bzImage .config\n\tcp $< $@\n"
VARIANTS = {"first": [], "same": [], "asks": ["-DPPIDS=11"], "maps": ["-DMAPS=11"]}


def fill(name):
    with open("work/gate-exact.toml", "w") as f:
        f.write(RULES)
    with open("work/Makefile", "w") as f:
        f.write(MAKEFILE)
    shutil.copy(os.path.join(e2e.built_kernel("tiny"), "bzImage"), "work/bzImage")
    compiled.freestanding("exact_init.c", "init", *VARIANTS[name])
    p = e2e.run(sys.executable, os.path.join(e2e.TOP, "scripts", "mkinitramfs.py"), "init", "work/init.cpio")
    check(p.status == 0, p.err)


def without_kvm():
    """Words before a command that then cannot open /dev/kvm; what is adapted where there are none."""
    if not os.path.exists("/dev/kvm"):
        return [], {}
    words = ["unshare", "-rm", "sh", "-c", "mount --bind /dev/kvm /dev/kvm && mount -o remount,bind,nodev /dev/kvm && "
             "exec \"$@\"", "sh"]
    if e2e.run(*words, "sh", "-c", "! (: <> /dev/kvm)").status == 0:
        return words, {}
    e2e.left_out("/dev/kvm cannot be hidden here: ENGINE=auto where there is none")
    return [], {"ENGINE": "exact"}


def fetched():
    """A cache without QEMU, a fetch-qemu.sh that has it from where it is, and a QEMU that is too old."""
    find_qemu()
    real = os.path.dirname(os.path.dirname(os.environ.pop("KVMPROF_QEMU")))
    script = "#!/bin/sh\necho fetch-qemu.sh >> \"$FAKE_LOG\"\nmkdir -p \"$KVMPROF_CACHE\"\n" \
        "ln -sfn %s \"$KVMPROF_CACHE/%s\"\n" % (real, os.path.basename(real))
    old = "echo 'QEMU emulator version 7.2.22 (Debian)'\n"
    ci_runner.FAKES["qemu-system-x86_64"] = old
    return {"scripts/fetch-qemu.sh": script}


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
    check(p.status == status and got == ("fail" if status else "pass"), "gitlab, %s: status %d, %s: %s%s" %
          (what, p.status, got, p.out[-3000:], p.err[-3000:]))
    for report in ("gate.md", "gate.xml", "gate.json"):
        with open("gitlab-builds/" + report) as f:
            text = f.read().replace("&#95;", "_").replace("\\", "")
        check(all(n in text for n in names), "gitlab, %s: %s does not name %s: %s" % (what, report, names, text[:1500]))
    check(os.path.exists("gitlab-builds/head-1.data") and not os.path.exists("gitlab-builds/head-2.data"),
          "gitlab, %s: not one run a side" % what)
    check_log("gitlab")


def github(what, commit, event, payload, outcome, *names):
    shutil.rmtree("cache-github", ignore_errors=True)
    got, said = ci_runner.github(server, tools, adapted("github"), commits[commit], event, payload)
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
gitlab("a push of the same", "same", commits["first"], 0, CI_COMMIT_BRANCH="main", HISTORY_TOKEN="x")
check([os.path.dirname(e) for e in entries(server)] == ["exact"], "gitlab, history: %s" % entries(server))
pull = {"head": {"repo": {"full_name": "us/kernel"}}, "base": {"sha": commits["same"]}, "number": 7}
github("one allocation more", "maps", "pull_request", {"pull_request": pull}, "failure", "__x64_sys_mmap")
github("a push of the same", "same", "push", {"before": commits["first"]}, "success")
check([os.path.dirname(e) for e in entries(server)] == 2 * ["exact"], "github, history: %s" % entries(server))
e2e.finish("GitLab: 2 jobs, GitHub: 2")

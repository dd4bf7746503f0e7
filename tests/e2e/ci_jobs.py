#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The jobs of configs/ci as a whole, as they stand there, from an empty checkout to the verdict.

No runner of such files is packaged, so its rules are here. GitLab's shell executor: a checkout of the
commit alone, before_script and script in one shell as `: | eval`, untracked files removed before the
next job. GitHub: steps in turn, each in a shell of its own; after one that failed only those with
always(); expressions in ${{ }}. The repository has a kernel that `make defconfig vmlinux' builds: the demo
guest, one of whose functions has another name in the commit that shall fail. Only what needs a network
is replaced, by programs before the real ones in PATH: apt-get, gh, and the build of kvmprof itself."""

import json
import os
import re
import shutil
import stat

import e2e
from e2e import check

e2e.need_kvm()
for tool in ("git", "make", "objcopy"):
    e2e.need_tool(tool)
try:
    import yaml
except ImportError:
    e2e.skip("python3-yaml is not installed")

ZEROS = "0" * 40
CI = os.path.join(e2e.TOP, "configs", "ci")
# Adapted: a gate of five short runs, which only another function fails.
ADAPTED = {"RUNS": "5", "RUN_OPTIONS": "--append work=2 --no-buildid-cache", "INCONCLUSIVE": "pass"}
RULES = '[gate]\nerror-rate = 0.05\n[[rule]]\nname = "one function"\nmetric = "share"\nsymbol = "left_slow"\n' \
    'threshold = "5 points"\noptional = true\n'
MAKEFILE = "defconfig:\n\t@touch .config\nvmlinux: guest.elf .config\n\tcp $< $@\n"
FAKES = {
    "apt-get": 'echo "apt-get $*" >> "$FAKE_LOG"\n',
    "gh": 'echo "gh $*" >> "$FAKE_LOG"\ncase $* in *--edit-last*) exit 1 ;; esac\n',
    # `make -C kvmprof... deps|-jN|install': the real program is in PATH already.
    "make": 'case "$*" in "-C kvmprof"*) [ -e "$2/Makefile" ] && echo "make $*" >> "$FAKE_LOG" ;; *) exec %s "$@" ;; esac\n'
            % shutil.which("make"),
}


class Loader(yaml.SafeLoader):
    pass


Loader.add_constructor("!reference", lambda loader, node: tuple(loader.construct_sequence(node)))


def load(name):
    with open(os.path.join(CI, name), encoding="utf-8") as f:
        return yaml.load(f, Loader)


def git(*argv, cwd="."):
    p = e2e.run("git", "-c", "user.name=t", "-c", "user.email=t@localhost", *argv, cwd=cwd)
    if not check(p.status == 0, "git %s: %s" % (" ".join(argv), p.err)):
        e2e.finish()
    return p.out.strip()


def environment(name):
    """Programs in place of those that need a network, and kvmprof as if it were installed."""
    os.makedirs("bin", exist_ok=True)
    for tool, body in FAKES.items():
        with open("bin/" + tool, "w") as f:
            f.write("#!/bin/sh\n" + body)
        os.chmod("bin/" + tool, stat.S_IRWXU)
    if not os.path.lexists("bin/kvmprof"):
        os.symlink(e2e.KVMPROF, "bin/kvmprof")
    log = os.path.abspath(name + ".log")
    open(log, "w").close()
    return {"PATH": os.path.abspath("bin") + ":" + os.environ["PATH"], "HOME": os.environ["HOME"], "FAKE_LOG": log,
            "KVMPROF_CACHE": os.environ["KVMPROF_CACHE"], "LC_ALL": "C"}


def servers():
    """(a server with commits first, same and slower on main; theirs by name; a server with kvmprof's tag)."""
    server, tools = os.path.abspath("server.git"), os.path.abspath("kvmprof.git")
    git("init", "-q", "--bare", "-b", "main", server)
    git("init", "-q", "-b", "main", "work")
    elf = os.path.join(e2e.BUILD, "guest", "demo.elf")
    commits = {}
    for name in ("first", "same", "slower"):
        with open("work/gate.toml", "w") as f:
            f.write(RULES)
        with open("work/Makefile", "w") as f:
            f.write(MAKEFILE)
        with open("work/version", "w") as f:
            f.write(name)
        shutil.copy(elf, "work/guest.elf")
        if name == "slower":
            p = e2e.run("objcopy", "--redefine-sym", "left_leaf=left_slow", "work/guest.elf")
            check(p.status == 0, "objcopy: " + p.err)
        git("add", "-A", cwd="work")
        git("commit", "-q", "-m", name, cwd="work")
        commits[name] = git("rev-parse", "HEAD", cwd="work")
    git("push", "-q", server, "HEAD:main", *("%s:refs/keep/%s" % (c, n) for n, c in commits.items()), cwd="work")
    with open(os.path.join(e2e.TOP, "VERSION")) as f:
        tag = "v" + f.read().strip()
    git("init", "-q", "-b", "main", "tools")
    with open("tools/Makefile", "w") as f:
        f.write("all:\n")
    git("add", "-A", cwd="tools")
    git("commit", "-q", "-m", "x", cwd="tools")
    git("tag", tag, cwd="tools")
    git("clone", "-q", "--bare", "tools", tools)
    for path in (server, tools):
        git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=path)
    return server, commits, tools


def checkout(server, commit, where):
    """As runners do: an empty directory, or what an earlier job left without what git does not know."""
    os.makedirs(where, exist_ok=True)
    git("init", "-q", where)
    if not git("remote", cwd=where):
        git("remote", "add", "origin", server, cwd=where)
    git("fetch", "-q", "origin", "+refs/heads/*:refs/remotes/origin/*", "+refs/keep/*:refs/keep/*", cwd=where)
    git("checkout", "-q", "-f", "--detach", commit, cwd=where)
    git("clean", "-ffdxq", cwd=where)


def entries(server):
    p = e2e.run("git", "-C", server, "ls-tree", "--name-only", "perf-history")
    return p.out.split() if p.status == 0 else []


def verdict(path):
    try:
        with open(path) as f:
            return json.load(f)["verdict"]
    except OSError:
        return "no report"


# -- GitLab -------------------------------------------------------------------------------------

def gitlab(server, tools, commit, before, **variables):
    """A job's exit status and output. Variables that a pipeline does not have are not set."""
    flow = load("gitlab-ci.yml")
    job = flow["performance gate"]
    env = environment("gitlab")
    predefined = {"CI_COMMIT_SHA": commit, "CI_COMMIT_SHORT_SHA": commit[:8], "CI_DEFAULT_BRANCH": "main",
                  "CI_COMMIT_BEFORE_SHA": before, "KVMPROF_REPOSITORY": tools, "CI_JOB_URL": "https://gitlab.example/j/1"}
    for some in (predefined, flow["variables"], job["variables"], ADAPTED, variables):
        env.update({k: str(v) for k, v in some.items()})
    # Where a token is, and the history: instead of an address on gitlab.example, ours.
    if "HISTORY_TOKEN" in env:
        env["HISTORY_URL"] = server
    lines = list(job["before_script"])
    for name, part in job["script"]:
        lines += flow[name][part]
    with open("gitlab.sh", "w") as f:
        f.write("set -eo pipefail\nset +o noclobber\n: | eval '%s'\nexit 0\n" % "\n".join(lines).replace("'", "'\\''"))
    checkout(server, commit, "gitlab-builds")
    return e2e.run("bash", "--noprofile", "--norc", os.path.abspath("gitlab.sh"), env=env, cwd="gitlab-builds", timeout=300)


def check_gitlab(server, commits, tools):
    main = {"CI_COMMIT_BRANCH": "main", "HISTORY_TOKEN": "x"}
    request = {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_DIFF_BASE_SHA": commits["same"]}
    for what, commit, before, variables, status, want, grows in (
            ("first push", "first", ZEROS, main, 0, "pass", 1),
            ("merge request of a fork", "slower", ZEROS, request, 1, "fail", 0),
            ("push that gets slower", "slower", commits["same"], main, 1, "fail", 1),
            ("push without a token", "same", commits["first"], {"CI_COMMIT_BRANCH": "main"}, 0, "pass", 0)):
        had = len(entries(server))
        p = gitlab(server, tools, commits[commit], before, **variables)
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
    p = gitlab(server, tools, commits["same"], commits["first"], KVMPROF_REVISION="v99", **main)
    check(p.status != 0 and "v99" in p.err, "gitlab, a tag that is not there: %d %s" % (p.status, p.err[-500:]))


# -- GitHub -------------------------------------------------------------------------------------

def evaluate(expression, facts):
    """GitHub's expressions, as far as the template has them."""
    def lookup(name):
        node = facts
        for word in name.split("."):
            node = node.get(word, "") if isinstance(node, dict) else ""
        return node
    text = re.sub(r"!(?!=)", " not ", expression.replace("\n", " ")).replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"\b(?:github|steps|vars)(?:\.\w+)+", lambda m: "lookup(%r)" % m.group(0), text)
    return eval(text.strip(), {"lookup": lookup, "always": lambda: True,    # pylint: disable=eval-used
                               "startsWith": lambda a, b: str(a).startswith(b)})


def expand(value, facts):
    return re.sub(r"\$\{\{(.*?)\}\}", lambda m: str(evaluate(m.group(1), facts)), str(value), flags=re.S)


def github(server, tools, commit, event, payload):
    """{id or name: outcome} of the job's steps, which run in the directory github."""
    flow = load("github-actions.yml")
    shutil.rmtree("github", ignore_errors=True)
    os.makedirs("github")
    facts = {"github": {"event_name": event, "event": payload, "sha": commit, "repository": "us/kernel", "token": "t"},
             "vars": {"KVMPROF_REPOSITORY": tools}, "steps": {}}
    env = environment("github")
    env.update({k: expand(v, facts) for k, v in flow["env"].items()}, **ADAPTED)
    env.update(GITHUB_WORKSPACE=os.path.abspath("github"), GITHUB_SHA=commit, GITHUB_REPOSITORY="us/kernel",
               GITHUB_STEP_SUMMARY=os.path.abspath("github/summary"))
    failed = False
    for step in flow["jobs"]["gate"]["steps"]:
        name = step.get("id") or step.get("name") or step["uses"]
        condition = str(step.get("if", ""))
        if (failed and "always()" not in condition) or (condition and not evaluate(condition, facts)):
            facts["steps"].setdefault(name, {"outcome": "skipped"})
            continue
        if "run" in step:
            mine = dict(env, **{k: expand(v, facts) for k, v in step.get("env", {}).items()})
            p = e2e.run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", expand(step["run"], facts), env=mine,
                        cwd=os.path.join("github", step.get("working-directory", "")), timeout=300)
            ok = p.status == 0
            facts["said"] = facts.get("said", "") + p.out + p.err
        else:
            ok = True
            if "checkout" in step["uses"]:
                options = step["with"]
                checkout(server, expand(options.get("ref", commit), facts), os.path.join("github", options["path"]))
        failed = failed or not ok
        facts["steps"][name] = {"outcome": "success" if ok else "failure"}
    return {k: v["outcome"] for k, v in facts["steps"].items()}, facts.get("said", "")


def check_github(server, commits, tools):
    ours, fork = ({"head": {"repo": {"full_name": n}}, "base": {"sha": commits["same"]}, "number": 7}
                  for n in ("us/kernel", "them/kernel"))
    comment, scan, keep = "Comment on the pull request", "Code scanning", "Keep the reports and profiles"
    for what, commit, event, payload, gate, grows, done, not_done in (
            ("first push", "first", "push", {"before": ZEROS}, "success", 1, (scan, keep, "history"), (comment,)),
            ("pull request", "slower", "pull_request", {"pull_request": ours}, "failure", 0, (comment, scan, keep), ("history",)),
            ("a fork's", "slower", "pull_request", {"pull_request": fork}, "failure", 0, (keep,), (comment, scan, "history")),
            ("slower push", "slower", "push", {"before": commits["same"]}, "failure", 1, (scan, keep, "history"), (comment,))):
        had = len(entries(server))
        got, said = github(server, tools, commits[commit], event, payload)
        check(got.get("gate") == gate and all(got[n] == "success" for n in done) and
              all(got[n] == "skipped" for n in not_done), "github, %s: %s: %s" % (what, got, said[-3000:]))
        check(len(entries(server)) == had + grows, "github, %s: %d entries before, now %s" % (what, had, entries(server)))
        if gate == "failure":
            check("::error file=gate.toml,line=" in said and "one function" in said, "github, %s: annotations: %s" % (what, said[-2000:]))


server, commits, tools = servers()
check_gitlab(server, commits, tools)
git("update-ref", "-d", "refs/heads/perf-history", cwd=server)
check_github(server, commits, tools)
# The release that is cloned is this one.
with open(os.path.join(e2e.TOP, "VERSION")) as f:
    version = f.read().strip()
for name, variables in (("github-actions.yml", "env"), ("gitlab-ci.yml", "variables")):
    check(load(name)[variables]["KVMPROF_REVISION"] == "v" + version, name + ": KVMPROF_REVISION is not v" + version)
e2e.finish("GitLab: 5 jobs, GitHub: 4")

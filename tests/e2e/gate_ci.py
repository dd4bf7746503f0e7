#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 5 s
# tests: not svm, files
"""The templates in configs/ci, as far as they can be tried without GitHub and GitLab: they parse, and
their steps that make runs, gate and keep a history are run on the demo guest with a git server in a directory."""

import os
import re
import shutil

import ci_runner
import e2e
from ci_runner import load
from e2e import check

e2e.need_kvm()

RULES = os.path.join(e2e.SCRATCH, "rules.toml")
with open(RULES, "w") as f:
    f.write('[[rule]]\nname = "functions"\nmetric = "symbols"\nthreshold = "5 points"\n')
e2e.run("git", "config", "--global", "init.defaultBranch", "main")


def run(script, env, cwd, status):
    p = e2e.run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script, env=dict(os.environ, **env), cwd=cwd)
    check(p.status == status, "status %d, not %d: %s%s\nof: %s" % (p.status, status, p.out, p.err, script[:200]))
    return p


def repository(name):
    """A git server that is a directory, and a clone of it in name/head with a commit."""
    os.makedirs(name)
    server = os.path.abspath(os.path.join(name, "server.git"))
    e2e.run("git", "init", "-q", "--bare", server)
    e2e.run("git", "clone", "-q", server, os.path.join(name, "head"))
    for argv in (["commit", "-q", "--allow-empty", "-m", "x"], ["push", "-q", "origin", "HEAD"]):
        p = e2e.run("git", "-C", os.path.join(name, "head"), "-c", "user.name=t", "-c", "user.email=t@localhost", *argv)
        check(p.status == 0, p.err)
    return server


def entries(server):
    p = e2e.run("git", "-C", server, "ls-tree", "--name-only", "perf-history")
    check(p.status == 0, "no branch perf-history: " + p.err)
    return p.out.split()


def made_runs(script, env, where):
    run(script, env, where, 0)
    names = sorted(n for n in os.listdir(where) if n.endswith(".data"))
    return check(names == ["base-1.data", "head-1.data"],
                 "runs: %s" % names)


def steps(job, env, where, event):
    """Runs GitHub's steps that have an id, from runs on, as its runner does: after a step that
    failed only those that say always(). Returns {id: succeeded} of those that were run."""
    done = {}
    for s in job["steps"]:
        condition = str(s.get("if", ""))
        if s.get("id") not in ("runs", "gate", "entry"):
            continue
        if not all(done.values()) and "always()" not in condition:
            continue
        m = re.search(r"event_name == '(\w+)'", condition)
        if (m and m.group(1) != event) or \
                any(not done.get(i) for i in re.findall(r"steps\.(\w+)\.outcome == 'success'", condition)):
            continue
        p = e2e.run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s["run"], env=dict(os.environ, **env),
                    cwd=os.path.join(where, s.get("working-directory", "")))
        done[s["id"]] = p.status == 0
    return done


# One run a side is inconclusive, whatever it shows.
ENV = {"KVMPROF": e2e.KVMPROF, "RUNS": "1", "RUN_OPTIONS": "--duration 0.3 --no-buildid-cache",
       "BASE_KERNEL": "", "HEAD_KERNEL": os.path.join(e2e.BUILD, "guest", "demo.elf")}


def check_github():
    flow = load("github-actions.yml")
    job = flow["jobs"]["gate"]
    step = {s["id"]: s["run"] for s in job["steps"] if "id" in s}
    check(set(step) == {"kvmprof", "engine", "runs", "gate", "profiles", "comment", "entry"}, "github: steps %s" % sorted(step))
    # The entry is made in one job, and joins the history in another one, which may write.
    remember = next(s["run"] for s in flow["jobs"]["history"]["steps"] if s.get("id") == "history")
    check(flow["permissions"] == {"contents": "read"} and "write" not in job["permissions"]["contents"], "github: permissions")
    # YAML reads the key `on' as a truth value.
    check(set(flow[True]) == {"pull_request", "push"}, "github: on")
    for s in job["steps"]:
        check(("run" in s) != ("uses" in s), "github: a step is run or uses: %s" % s)
        if "run" in s:
            p = e2e.run("bash", "-n", "-c", re.sub(r"\$\{\{.*?\}\}", "x", s["run"]))
            check(p.status == 0, "github: " + p.err)
    p = run(step["kvmprof"], {"KVMPROF_REPOSITORY": "", "KVMPROF_REVISION": "HEAD"}, ".", 1)
    check("variable KVMPROF_REPOSITORY" in p.out, "github, no repository: %s%s" % (p.out, p.err))
    server = repository("github")
    env = dict({k: str(v) for k, v in flow["env"].items()}, **ENV)
    # By its path in the repository.
    env.update(RULES="rules.toml", ENGINE="kvm", GITHUB_STEP_SUMMARY=os.path.abspath("summary.md"), GITHUB_SHA="0123456789abcdef" * 2,
               GITHUB_OUTPUT=os.path.abspath("output"))
    shutil.copy(RULES, "github/head/rules.toml")
    if not made_runs(step["runs"], env, "github"):
        return
    p = run(step["gate"], env, "github/head", 0)
    check("::warning file=rules.toml,line=1," in p.out and "::warning::the performance gate is inconclusive" in p.out,
          "annotations: " + p.out)
    run(step["gate"], dict(env, INCONCLUSIVE="fail"), "github/head", 3)
    run(step["gate"], dict(env, INCONCLUSIVE="pass"), "github/head", 0)
    with open("summary.md") as f:
        check(f.read().count("### kvmprof gate: INCONCLUSIVE") == 3, "the job's summary")
    for name in ("gate.svg", "gate.md", "gate.xml", "gate.sarif", "gate.json"):
        check(os.path.getsize(os.path.join("github", name)) > 100, name)
    run(step["entry"], env, "github/head", 0)
    shutil.rmtree("github/perf-history")    # each job has a directory of its own
    run(remember, env, "github/head", 0)
    check(len(entries(server)) == 1, "history: %s" % entries(server))
    # The next job, elsewhere, and the server is ahead of what it fetched.
    for name in ("github/head", "github/perf-history"):
        shutil.rmtree(name)
    e2e.run("git", "clone", "-q", server, "github/head")
    shutil.copy(RULES, "github/head/rules.toml")
    run(step["entry"], dict(env, GITHUB_SHA="fedcba9876543210" * 2), "github/head", 0)
    shutil.rmtree("github/perf-history")
    run(remember, dict(env, GITHUB_SHA="fedcba9876543210" * 2), "github/head", 0)
    check(len(entries(server)) == 2, "history: %s" % entries(server))
    run(step["runs"], dict(env, HEAD_KERNEL="/nonexistent"), "github", 1)
    # The whole job where the gate fails: the history has what was measured.
    server = repository("github-fails")
    shutil.copy(RULES, "github-fails/head/rules.toml")
    for event, want in (("pull_request", {"runs": True, "gate": False}),
                        ("push", {"runs": True, "gate": False, "entry": True})):
        done = steps(job, dict(env, INCONCLUSIVE="fail"), "github-fails", event)
        check(done == want, "github, %s, a gate that fails: %s" % (event, done))
    shutil.rmtree("github-fails/perf-history")
    run(remember, env, "github-fails/head", 0)
    check(len(entries(server)) == 1, "github: the gate failed, and the history is %s" % entries(server))
    done = steps(job, dict(env, HEAD_KERNEL="/nonexistent"), "github-fails", "push")
    check(done == {"runs": False}, "github: runs that fail: %s" % done)


def check_gitlab():
    flow = load("gitlab-ci.yml")
    job = flow["performance gate"]
    check(job["script"] == [(n, "script") for n in (".engine", ".runs", ".gate", ".history", ".verdict")],
          "gitlab: script")
    # Whoever includes it has stages and variables of its own.
    check(not {"stages", "variables", "default"} & set(flow), "gitlab: not all is in the job: %s" % sorted(flow))
    check(job["stage"] in (".pre", "build", "test", "deploy", ".post"), "gitlab: stage")
    check(not ci_runner.gitlab_refuses(job), "gitlab: artifact paths with a * beside expose_as")
    for paths, refused in ((["a", "b/"], False), (["a", "*.data"], True), (["b/**"], True)):
        check(ci_runner.gitlab_refuses({"artifacts": {"expose_as": "x", "paths": paths}}) == refused, "refusal of %s" % paths)
    script = {n: "\n".join(flow["." + n]["script"]) for n in ("engine", "runs", "gate", "history", "verdict")}
    for n in ("runs", "gate", "history"):
        script[n] = script["engine"] + "\n" + script[n]
    script["gate"] += "\n" + script["verdict"]
    for line in job["before_script"]:
        p = e2e.run("bash", "-n", "-c", line)
        check(p.status == 0, "gitlab: " + p.err)
    server = repository("gitlab")
    env = dict({k: str(v) for k, v in job["variables"].items()}, **ENV)
    env.update(RULES=RULES, CI_COMMIT_BRANCH="main", CI_DEFAULT_BRANCH="main", HISTORY_URL=server, HISTORY_TOKEN="x",
               CI_COMMIT_SHORT_SHA="01234567", CI_JOB_URL="https://gitlab.example/x/-/jobs/1")
    if not made_runs(script["runs"], env, "gitlab"):
        return
    run(script["gate"], env, "gitlab", 3)
    check(job["allow_failure"] == {"exit_codes": 3}, "gitlab: inconclusive is red")
    run(script["gate"], dict(env, INCONCLUSIVE="fail"), "gitlab", 1)
    run(script["gate"], dict(env, INCONCLUSIVE="pass"), "gitlab", 0)
    with open("gitlab/gate.md") as f:
        check("(https://gitlab.example/x/-/jobs/1/artifacts/file/gate.svg)" in f.read(), "gitlab: link")
    run(script["history"], env, "gitlab", 0)
    check(len(entries(server)) == 1, "gitlab: history")
    shutil.rmtree("gitlab/perf-history")
    run(script["history"], dict(env, CI_COMMIT_SHORT_SHA="89abcdef"), "gitlab", 0)
    check(len(entries(server)) == 2, "gitlab: history")
    run(script["history"], dict(env, CI_COMMIT_BRANCH="topic"), "gitlab", 0)
    check(len(entries(server)) == 2, "gitlab: a topic branch was recorded")
    # The whole job where the gate fails, in one shell as GitLab's: the history has what was measured.
    server = repository("gitlab-fails")
    whole = "\n".join("\n".join(flow[name]["script"]) for name, _ in job["script"])
    run(whole, dict(env, HISTORY_URL=server), "gitlab-fails", 3)
    check(len(entries(server)) == 1, "gitlab: the gate failed, and the history is %s" % entries(server))
    # What is before the first commit of a branch.
    line = next(t for t in job["before_script"] if t.startswith("case $BASE"))
    for base, want in (("0" * 40, "abc"), ("0" * 39 + "1", "0" * 39 + "1")):
        p = run(line + "\necho $BASE", {"BASE": base, "CI_COMMIT_SHA": "abc"}, ".", 0)
        check(p.out.strip() == want, "gitlab: base %s becomes %s" % (base, p.out))
    line = next(t for t in job["before_script"] if "KVMPROF_REPOSITORY" in t)
    p = run(line, {"KVMPROF_REPOSITORY": ""}, ".", 1)
    check("variable KVMPROF_REPOSITORY" in p.err, "gitlab, no repository: " + p.err)


check_github()
check_gitlab()
e2e.finish()

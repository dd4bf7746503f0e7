# SPDX-License-Identifier: GPL-2.0-or-later
"""The jobs of configs/ci, run as they stand there, from an empty checkout to the verdict.

No runner of such files is packaged, so its rules are here. GitLab's shell executor: a checkout of the
commit alone, before_script and script in one shell as `: | eval`, untracked files removed before the
next job. GitHub: steps in turn, each in a shell of its own; after one that failed only those with
always() or failure(); expressions in ${{ }}, outputs of steps and of the job before; artifacts from job to job; a
job may push only where its permissions say so. What tests change of a template is
`adapted`. Only what needs a network is replaced, by programs before the real ones in PATH: apt-get,
gh, and the build of kvmprof itself."""

import glob
import json
import os
import re
import shutil
import stat

import e2e
from e2e import check

for tool in ("git", "make"):
    e2e.need_tool(tool)
try:
    import yaml
except ImportError:
    e2e.skip("python3-yaml is not installed")

ZEROS = "0" * 40
runner = []    # words before each command
CI = os.path.join(e2e.TOP, "configs", "ci")
FAKES = {
    "apt-get": 'echo "apt-get $*" >> "$FAKE_LOG"\n',
    # Comments of a pull request: there is one of a bot once one was made.
    "gh": 'echo "gh $*" >> "$FAKE_LOG"\ncase $* in *"--method PATCH"*) ;;\n*"/comments --jq"*) cat "$FAKE_LOG.comment" ;;\n'
          '"pr comment"*) echo 17 > "$FAKE_LOG.comment" ;;\n*) exit 1 ;; esac\n',
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
    open(log + ".comment", "a").close()
    return {"PATH": os.path.abspath("bin") + ":" + os.environ["PATH"], "HOME": os.environ["HOME"], "FAKE_LOG": log,
            "KVMPROF_CACHE": os.environ["KVMPROF_CACHE"], "LC_ALL": "C"}


def tools_server(files=None):
    """A server with what is cloned to build kvmprof; files: scripts in it, text by path. It has no tag, as kvmprof's has none."""
    tools = os.path.abspath("kvmprof.git")
    git("init", "-q", "-b", "main", "tools")
    for name, text in dict({"Makefile": "all:\n"}, **(files or {})).items():
        path = os.path.join("tools", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, stat.S_IRWXU)
    git("add", "-A", cwd="tools")
    git("commit", "-q", "-m", "x", cwd="tools")
    git("clone", "-q", "--bare", "tools", tools)
    git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=tools)
    return tools


def commits_server(names, fill):
    """(a server with a commit of each name on main, as fill(name) leaves the directory work; their hashes by name)."""
    server = os.path.abspath("server.git")
    git("init", "-q", "--bare", "-b", "main", server)
    git("init", "-q", "-b", "main", "work")
    commits = {}
    for name in names:
        with open("work/version", "w") as f:
            f.write(name)
        fill(name)
        git("add", "-A", cwd="work")
        git("commit", "-q", "-m", name, cwd="work")
        commits[name] = git("rev-parse", "HEAD", cwd="work")
    git("push", "-q", server, "HEAD:main", *("%s:refs/keep/%s" % (c, n) for n, c in commits.items()), cwd="work")
    git("config", "uploadpack.allowAnySHA1InWant", "true", cwd=server)
    return server, commits


def bash(words, env, where):
    """As a runner calls it."""
    return e2e.run(*runner, "bash", "--noprofile", "--norc", *words, env=env, cwd=where, timeout=600)


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
    p = e2e.run("git", "-C", server, "ls-tree", "-r", "--name-only", "perf-history")
    return p.out.split() if p.status == 0 else []


def verdict(path):
    try:
        with open(path) as f:
            return json.load(f)["verdict"]
    except OSError:
        return "no report"


# -- GitLab -------------------------------------------------------------------------------------

def gitlab_refuses(job):
    """What lib/gitlab/ci/config/entry/artifacts.rb of GitLab validates: a * in paths beside expose_as is an error."""
    artifacts = job.get("artifacts", {})
    return "expose_as" in artifacts and any("*" in p for p in artifacts.get("paths", []))


def gitlab(server, tools, adapted, commit, before, **variables):
    """A job's exit status and output. Variables that a pipeline does not have are not set."""
    flow = load("gitlab-ci.yml")
    job = flow["performance gate"]
    env = environment("gitlab")
    predefined = {"CI_COMMIT_SHA": commit, "CI_COMMIT_SHORT_SHA": commit[:8], "CI_DEFAULT_BRANCH": "main",
                  "CI_COMMIT_BEFORE_SHA": before, "KVMPROF_REPOSITORY": tools, "CI_JOB_URL": "https://gitlab.example/j/1"}
    check(not gitlab_refuses(job), "gitlab: no pipeline is made: artifact paths can't contain '*' when used with 'expose_as'")
    for some in (predefined, flow.get("variables", {}), job["variables"], adapted, variables):
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
    return bash([os.path.abspath("gitlab.sh")], env, "gitlab-builds")


# -- GitHub -------------------------------------------------------------------------------------

def evaluate(expression, facts):
    """GitHub's expressions, as far as the template has them."""
    def lookup(name):
        node = facts
        for word in name.split("."):
            node = node.get(word, "") if isinstance(node, dict) else ""
        return node

    def has_files(pattern):
        found = glob.glob(os.path.join(facts["where"], pattern), recursive=True)
        return "a hash" if any(os.path.isfile(p) for p in found) else ""
    text = re.sub(r"!(?!=)", " not ", expression.replace("\n", " ")).replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"\b(?:github|steps|vars|needs|inputs|runner)(?:\.[\w-]+)+", lambda m: "lookup(%r)" % m.group(0), text)
    return eval(text.strip(), {"lookup": lookup, "always": lambda: True,    # pylint: disable=eval-used
                               "failure": lambda: facts["failed"], "hashFiles": has_files,
                               "startsWith": lambda a, b: str(a).startswith(b)})


def expand(value, facts):
    return re.sub(r"\$\{\{(.*?)\}\}", lambda m: str(evaluate(m.group(1), facts)), str(value), flags=re.S)


def action(step, facts, server):
    """What an action of GitHub's does, and whether it succeeds."""
    where, options = facts["where"], step.get("with", {})
    if "checkout" in step["uses"]:
        checkout(server, expand(options.get("ref", facts["github"]["sha"]), facts), os.path.join(where, options["path"]))
    elif "upload-artifact" in step["uses"]:
        found = [p for pattern in options["path"].split() for p in glob.glob(os.path.join(where, pattern))]
        check(found, "github: %s: nothing to keep" % options["name"])
        check(not any(os.path.isdir(p) for p in found), "github: kept without being packed: %s" % found)
        facts["artifacts"][options["name"]] = {os.path.basename(p): open(p, "rb").read() for p in found}
    elif "download-artifact" in step["uses"]:
        if options["name"] not in facts["artifacts"]:
            return False
        for name, data in facts["artifacts"][options["name"]].items():
            with open(os.path.join(where, name), "wb") as f:
                f.write(data)
    elif "upload-sarif" in step["uses"]:
        return os.path.exists(os.path.join(where, options["sarif_file"])) and not facts["sarif_refused"]
    else:
        check(False, "github: no such action: " + step["uses"])
    return True


def run_steps(job, facts, env, server):
    """Of one job, in order: outcomes, outputs and what was said go into facts."""
    facts["failed"] = False
    for step in job["steps"]:
        name = step.get("id") or step.get("name") or step["uses"]
        condition = str(step.get("if", ""))
        if (facts["failed"] and not re.search(r"(always|failure)\(\)", condition)) or \
                (condition and not evaluate(condition, facts)):
            facts["steps"].setdefault(name, {"outcome": "skipped"})
            continue
        outputs = {}
        if "run" in step:
            check("git push" not in step["run"] or facts["permissions"].get("contents") == "write",
                  "github: %s pushes without the permission" % name)
            mine = dict(env, **{k: expand(v, facts) for k, v in step.get("env", {}).items()})
            mine["GITHUB_OUTPUT"] = os.path.abspath("github-output")
            open("github-output", "w").close()
            p = bash(["-eo", "pipefail", "-c", expand(step["run"], facts)], mine,
                     os.path.join(facts["where"], step.get("working-directory", "")))
            ok = p.status == 0
            facts["said"] += p.out + p.err
            with open("github-output") as f:
                outputs = dict(line.strip().split("=", 1) for line in f)
        else:
            ok = action(step, facts, server)
        facts["failed"] = facts["failed"] or not (ok or step.get("continue-on-error"))
        facts["steps"][name] = {"outcome": "success" if ok else "failure", "outputs": outputs}


def github(server, tools, adapted, commit, event, payload, sarif_refused=False):
    """({id or name: outcome} of the jobs' steps; what they said; artifacts; jobs that failed). The first job that has a container
    runs in the directory github."""
    flow = load("github-actions.yml")
    facts = {"github": {"event_name": event, "event": payload, "sha": commit, "repository": "us/kernel", "token": "t"},
             "vars": {"KVMPROF_REPOSITORY": tools}, "needs": {}, "said": "", "artifacts": {}, "sarif_refused": sarif_refused}
    env = environment("github")
    env.update({k: expand(v, facts) for k, v in flow["env"].items()}, **adapted)
    env.update(GITHUB_SHA=commit, GITHUB_REPOSITORY="us/kernel", GITHUB_STEP_SUMMARY=os.path.abspath("github-summary"))
    open("github-summary", "w").close()
    outcomes, failures = {}, []
    for name, job in flow["jobs"].items():
        check(set([job["needs"]] if "needs" in job else []) <= set(facts["needs"]), "github: %s needs what comes later" % name)
        facts.update(steps={}, failed=False, where="github" if name == "gate" else "github-" + name,
                     permissions=job.get("permissions", flow.get("permissions", {})))
        if not evaluate(job.get("if", "always()"), facts):
            facts["needs"][name] = {"outputs": {}}
            continue
        check(event == "push" or facts["permissions"].get("contents") != "write", "github: a pull request may write")
        shutil.rmtree(facts["where"], ignore_errors=True)
        os.makedirs(facts["where"])
        env["GITHUB_WORKSPACE"] = os.path.abspath(facts["where"])
        # A container's device must be there, or it does not start.
        devices = expand(job.get("container", {}).get("options", ""), facts).split()[1::2]
        check(all(os.path.exists(d) for d in devices), "github: a container with %s" % devices)
        run_steps(job, facts, env, server)
        facts["needs"][name] = {"outputs": {k: expand(v, facts) for k, v in job.get("outputs", {}).items()}}
        outcomes.update({k: v["outcome"] for k, v in facts["steps"].items()})
        failures += [name] if facts["failed"] else []
    return outcomes, facts["said"], facts["artifacts"], failures

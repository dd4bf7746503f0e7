#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 2 s: refused
# tests: slow, at most 1800 s
# tests: not svm, host
"""ci_adopt.py KVMPROF SCRATCH [refused]: action.yml and templates/gate.yml. The vendors take both files, and refuse each of
many that differ from them in one place. Then both run as they stand there, with the exact engine, from an empty checkout and
an archive behind an address to the verdict: a commit with one system call more fails and is named, accepted it warns, the same again
passes with the base of the cache; there is one comment, which is brought up to date; profiles are kept, compressed, where the
gate fails."""

import copy
import glob
import hashlib
import os
import shutil
import tarfile

import ci_refusals
import ci_runner
import e2e
from ci_kernel import VARIANTS, fetched, fill, without_kvm
from ci_runner import verdict, yaml
from e2e import check

SHA = "0" * 64


def load():
    with open(os.path.join(e2e.TOP, "action.yml"), encoding="utf-8") as f:
        action = yaml.safe_load(f)
    with open(os.path.join(e2e.TOP, "templates", "gate.yml"), encoding="utf-8") as f:
        header, body = yaml.safe_load_all(f)
    return action, header, body


# -- what is refused -------------------------------------------------------------------------------

def check_action(action):
    got = ci_refusals.action_refused(action)
    check(not got, "GitHub refuses action.yml: %s" % got)
    for what, change in (
            ("missing: shell", lambda a: a["runs"]["steps"][0].pop("shell")),
            ("unexpected key timeout-minutes", lambda a: a["runs"]["steps"][0].update({"timeout-minutes": 5})),
            ("unexpected key type", lambda a: a["inputs"]["runs"].update({"type": "number"})),
            ("no such context: secrets", lambda a: a["runs"]["steps"][0]["env"].update(X="${{ secrets.TOKEN }}")),
            ("no such context: vars", lambda a: a["runs"]["steps"][0].update({"if": "vars.x == 'y'"})),
            ("no input nothing", lambda a: a["runs"]["steps"][0]["env"].update(X="${{ inputs.nothing }}")),
            ("no step gate before it", lambda a: a["runs"]["steps"][0]["env"].update(X="${{ steps.gate.outputs.verdict }}")),
            ("used twice", lambda a: a["runs"]["steps"][1].update(id="install")),
            ("identifier is invalid", lambda a: a["runs"]["steps"][0].update(id="1st")),
            ("either run or uses", lambda a: a["runs"]["steps"][0].update(uses="actions/checkout@v4")),
            ("in the text of a script", lambda a: a["runs"]["steps"][0].update(run="echo ${{ inputs.rules }}")),
            ("unexpected key env", lambda a: a.update(env={"X": "y"})),
            ("the default is no text", lambda a: a["inputs"]["runs"].update(default=10)),
            ("missing: description", lambda a: a.pop("description")),
            ("not a composite", lambda a: a["runs"].update(using="node20")),
            ("branding", lambda a: a["branding"].update(color="pink"))):
        other = copy.deepcopy(action)
        change(other)
        got = ci_refusals.action_refused(other)
        check(any(what in x for x in got), "GitHub takes an action with %s: %s" % (what, got))


def check_component(header, body):
    given = {"kvmprof-url": "https://example.org/x.tar.gz", "kvmprof-sha256": SHA}
    got = ci_refusals.component_refused(header, body, given)
    check(not got, "GitLab refuses templates/gate.yml: %s" % got)
    for wrong, what in (({"kvmprof-url": "x"}, "has not been provided"), (dict(given, runs="10"), "not a number"),
                        (dict(given, engine="tcg"), "allowed options"), (dict(given, colour="red"), "unknown input"),
                        (dict(given, stage="measure"), "does not exist"), (dict(given, **{"kvmprof-sha256": "abc"}), "does not match")):
        got = ci_refusals.component_refused(header, body, wrong)
        check(any(what in x for x in got), "GitLab takes the inputs %s: %s" % (wrong, got))
    job = next(iter(body))
    for what, change in (
            ("can't contain '*'", lambda h, b: b[job]["artifacts"]["paths"].append("*.data")),
            ("can't be blank with expose_as", lambda h, b: b[job]["artifacts"].pop("paths")),
            ("expose_as: at most", lambda h, b: b[job]["artifacts"].update(expose_as="a/b")),
            ("artifacts when", lambda h, b: b[job]["artifacts"].update(when="sometimes")),
            ("artifacts: unknown key", lambda h, b: b[job]["artifacts"].update(path=["x"])),
            ("cache key", lambda h, b: b[job]["cache"].update(key="a/b")),
            ("exit_codes", lambda h, b: b[job].update(allow_failure={"exit_codes": "3"})),
            ("unknown key env", lambda h, b: b[job].update(env={})),
            ("script can't be blank", lambda h, b: b[job].pop("script")),
            ("nested array of strings", lambda h, b: b[job]["script"].append({"a": "b"})),
            ("reaches other jobs: stages", lambda h, b: b.update(stages=["x"])),
            ("reaches other jobs: variables", lambda h, b: b.update(variables={"RUNS": "1"})),
            ("unknown input: nothing", lambda h, b: b[job].update(image="$[[ inputs.nothing ]]")),
            ("variables X", lambda h, b: b[job]["variables"].update(X=True)),
            ("unknown key required", lambda h, b: h["spec"]["inputs"]["runs"].update(required=True)),
            ("the default is no number", lambda h, b: h["spec"]["inputs"]["runs"].update(default="10")),
            ("unknown type", lambda h, b: h["spec"]["inputs"]["runs"].update(type="int")),
            ("rules: unknown key", lambda h, b: b[job]["rules"].append({"iff": "x"}))):
        h, b = copy.deepcopy(header), copy.deepcopy(body)
        change(h, b)
        got = ci_refusals.component_refused(h, b, given)
        check(any(what in x for x in got), "GitLab takes a component with %s: %s" % (what, got))


# -- a noisy runner --------------------------------------------------------------------------------

NOISY = """#!/bin/sh
# Times are inconclusive; instructions say $EXACT, where they can be counted ($COUNTS).
command=$1 status=3
echo "$*" >> "$LOG"
case " $* " in *" --exact "*) status=$EXACT ;; esac
for word; do
  case $last in
  --markdown) echo "### $status" > "$word" ;;
  --json) echo '{"version":1, "verdict": "pass"' > "$word" ;;
  --github) echo "::notice::$status" > "$word" ;;
  -o) [ "$COUNTS" != 0 ] || echo > "$word" ;;
  esac
  last=$word
done
[ "$command" != run ] || exit "$COUNTS"
exit "$status"
"""


def noisy(script, where, exact, counts, **more):
    """(status, what was said, what kvmprof was called with) of the step that judges times that tell nothing."""
    shutil.rmtree(where, ignore_errors=True)
    for name in ("program/bin", "measured", "base/run-1.data", "head/run-1.data"):
        os.makedirs(os.path.join(where, name))
    tool = os.path.abspath(os.path.join(where, "program", "bin", "kvmprof"))
    with open(tool, "w", encoding="ascii") as f:
        f.write(NOISY)
    os.chmod(tool, 0o755)
    env = dict(os.environ, PATH=os.path.dirname(tool) + ":" + os.environ["PATH"], EXACT=exact, COUNTS=counts,
               LOG=os.path.abspath("log"), work=os.path.abspath(where), **more)
    open("log", "w", encoding="ascii").close()
    p = e2e.run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script, env=env, cwd=where)
    with open("log", encoding="ascii") as f:
        return p.status, p.out + p.err, f.read()


def check_noisy(action, header, body):
    """Times that are inconclusive: instructions decide if the engine is auto and they can be counted, else it is a warning."""
    cases = (("auto", "0", "0", 0, True), ("auto", "1", "0", 1, True), ("auto", "0", "1", 3, True), ("auto", "2", "0", 3, True),
             ("kvm", "0", "0", 3, False))
    step = next(s for s in action["runs"]["steps"] if s.get("id") == "gate")
    names = set(step["env"])
    job, = ci_refusals.interpolated(body, ci_refusals.inputs_of(header, {"kvmprof-url": "x", "kvmprof-sha256": SHA})[0]).values()
    script = "gate_status=0 options= chosen=$KVMPROF_ENGINE KVMPROF_ENGINE=kvm\n" + job["script"][-1]
    for chosen, exact, counts, want, tried in cases:
        what = "engine %s, exact %s, counts %s" % (chosen, exact, counts)
        more = dict({k: "" for k in names}, ENGINE="kvm", CHOSEN=chosen, INCONCLUSIVE="warn", RUNNER_TEMP=os.path.abspath("noisy-hub"),
                    KERNEL="vmlinux", OPTIONS="--initrd {side}/x.cpio", GITHUB_OUTPUT=os.path.abspath("output"),
                    GITHUB_STEP_SUMMARY=os.path.abspath("summary"))
        open("output", "w", encoding="ascii").close()
        status, text, log = noisy(step["run"], "noisy-hub/kvmprof", exact, counts, **more)
        with open("output", encoding="ascii") as f:
            out = dict(line.strip().split("=", 1) for line in f)
        check(status == 0 and out["status"] == str(0 if want == 3 else want), "github, %s: %d %s %s" % (what, status, out, text))
        check(("::warning::" in text) == (want == 3) and out["engine"] == ("kvm" if want == 3 else "exact"), "github, %s: %s" % (what, text))
        check(("run --engine exact" in log) == tried, "github, %s: %s" % (what, log))
        if want != 3:
            check("--initrd %s/head/x.cpio" % os.path.abspath("noisy-hub/kvmprof") in log, "github, %s: %s" % (what, log))
            with open("noisy-hub/kvmprof/gate.md", encoding="ascii") as f:
                check("Times, which are inconclusive" in f.read(), "github: no word of the times")
        variables = {k: str(v) for k, v in job["variables"].items()}
        variables.update(KVMPROF_ENGINE=chosen, CI_PROJECT_DIR=os.path.abspath("noisy-lab"))
        status, text, log = noisy(script, "noisy-lab", exact, counts, **variables)
        check(status == want and ("run --engine exact" in log) == tried, "gitlab, %s: %d %s%s" % (what, status, text, log))


# -- running both ----------------------------------------------------------------------------------

def archive():
    """An archive as `make release` makes it, as far as both need it: the address and the SHA-256."""
    top = "kvmprof-x-linux-amd64"
    os.makedirs(top + "/bin")
    os.makedirs(top + "/share/kvmprof/scripts")
    os.symlink(e2e.KVMPROF, top + "/bin/kvmprof")
    for name, text in fetched().items():
        path = os.path.join(top, "share", "kvmprof", name)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(path, 0o755)
    with tarfile.open("release.tar.gz", "w:gz") as t:
        t.add(top)
    with open("release.tar.gz", "rb") as f:
        return "file://" + os.path.abspath("release.tar.gz"), hashlib.sha256(f.read()).hexdigest()


def adapted(**more_inputs):
    return dict({"kvmprof-url": address, "kvmprof-sha256": digest, "build": "make defconfig && make vmlinux", "keep": "init.cpio",
                 "run-options": "--initrd {side}/init.cpio --no-buildid-cache", "rules": "gate-exact.toml"}, **more_inputs)


def uses(step, facts, cache):
    """What the actions do that the action uses: outputs."""
    options = {k: ci_runner.expand(v, facts) for k, v in step["with"].items()}
    if "cache/restore" in step["uses"]:
        hit = options["key"] in cache
        if hit:
            shutil.rmtree(options["path"])
            shutil.copytree(cache[options["key"]], options["path"], symlinks=True)
        return {"cache-hit": "true" if hit else ""}
    if "cache/save" in step["uses"]:
        cache[options["key"]] = os.path.abspath("cache-%d" % len(cache))
        shutil.copytree(options["path"], cache[options["key"]], symlinks=True)
        return {}
    found = [p for pattern in options["path"].split() for p in glob.glob(pattern)]
    check(found and not any(os.path.isdir(p) for p in found), "github: kept: %s" % found)
    facts["kept"][options["name"]] = found
    return {}


def github(action, commit, base, cache, number=7, **inputs):
    """(outcomes by id or name, what was said, facts) of the action in a job of a pull request."""
    env = ci_runner.environment("github")
    temp = os.path.abspath("github-temp")
    shutil.rmtree(temp, ignore_errors=True)
    shutil.rmtree("github", ignore_errors=True)
    os.makedirs(temp)
    ci_runner.checkout(server, commit, "github")
    given = adapted(**inputs)
    pull = {"base": {"sha": base}, "head": {"repo": {"full_name": "us/kernel"}}, "number": number}
    facts = {"github": {"event": {"pull_request": pull}, "repository": "us/kernel", "token": "t", "actor": "somebody"},
             "inputs": {}, "steps": {}, "runner": {"temp": temp}, "failed": False, "where": "github", "kept": {}, "said": ""}
    facts["inputs"] = {k: given.get(k, ci_runner.expand(x.get("default", ""), facts)) for k, x in action["inputs"].items()}
    env.update(GITHUB_SHA=commit, GITHUB_REPOSITORY="us/kernel", RUNNER_TEMP=temp, KVMPROF_CACHE=os.path.abspath("cache-qemu"),
               **{k: os.path.abspath("github-" + k) for k in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")})
    for step in action["runs"]["steps"]:
        name, condition = step.get("id") or step["name"], str(step.get("if", ""))
        if (facts["failed"] and "always()" not in condition) or (condition and not ci_runner.evaluate(condition, facts)):
            facts["steps"][name] = {"outcome": "skipped", "outputs": {}}
            continue
        ok, outputs = True, {}
        if "uses" in step:
            outputs = uses(step, facts, cache)
        else:
            for k in ("GITHUB_OUTPUT", "GITHUB_PATH"):
                open(env[k], "w", encoding="ascii").close()
            mine = dict(env, **{k: ci_runner.expand(v, facts) for k, v in step.get("env", {}).items()})
            p = ci_runner.bash(["-eo", "pipefail", "-c", step["run"]], mine, "github")
            ok = p.status == 0
            facts["said"] += p.out + p.err
            with open(env["GITHUB_OUTPUT"], encoding="ascii") as f:
                outputs = dict(line.strip().split("=", 1) for line in f)
            with open(env["GITHUB_PATH"], encoding="ascii") as f:
                env["PATH"] = ":".join(f.read().split() + [env["PATH"]])
        facts["failed"] = facts["failed"] or not ok
        facts["steps"][name] = {"outcome": "success" if ok else "failure", "outputs": outputs}
    return {k: v["outcome"] for k, v in facts["steps"].items()}, facts


def said(facts):
    return facts["said"][-3000:]


def run_action(action):
    cache = {}
    got, facts = github(action, commits["asks"], commits["same"], cache, **{"history-url": "https://example.org/history"})
    check(got["gate"] == "success" and got["verdict"] == "failure" and facts["steps"]["gate"]["outputs"]["verdict"] == "fail" and
          facts["steps"]["engine"]["outputs"]["engine"] == "exact", "github, one call more: %s %s" % (got, said(facts)))
    check("::error file=gate-exact.toml" in facts["said"] and "__x64_sys_getppid" in facts["said"], "github: not named: " + said(facts))
    check(set(facts["kept"]) == {"kvmprof-profiles", "kvmprof-gate"} and len(cache) == 1, "github: kept %s" % facts["kept"])
    with open("github-temp/kvmprof/comment.md", encoding="utf-8") as f:
        check("[History](https://example.org/history)" in f.read(), "github: no link to the history")
    with open("github-temp/kvmprof/badge.svg", encoding="utf-8") as f:
        check("performance: fail" in f.read(), "github: the badge")
    with open("github.log", encoding="utf-8") as f:
        calls = [line for line in f if line.startswith("gh ")]
    check([c for c in calls if "pr comment" in c] and not [c for c in calls if "PATCH" in c], "github: the first comment: %s" % calls)
    got, facts = github(action, commits["asks"], commits["same"], cache, accept="system calls", **{"accept-why": "it is wanted"})
    check(got["verdict"] == "success" and facts["steps"]["gate"]["outputs"]["verdict"] == "warn" and "by somebody: it is wanted" in facts["said"],
          "github, accepted: %s %s" % (got, said(facts)))
    check(facts["steps"]["cache"]["outputs"]["cache-hit"] == "true" and set(facts["kept"]) == {"kvmprof-gate"}, "github: cache, kept: %s" % facts["kept"])
    with open("github.log", encoding="utf-8") as f:
        calls = [line for line in f if line.startswith("gh ")]
    check([c for c in calls if "PATCH" in c and "comments/17" in c] and not [c for c in calls if "pr comment" in c],
          "github: the comment is repeated: %s" % calls)
    got, facts = github(action, commits["same"], commits["same"], cache)
    check(got["verdict"] == "success" and facts["steps"]["gate"]["outputs"]["verdict"] == "pass", "github, the same: %s %s" % (got, said(facts)))
    got, facts = github(action, commits["same"], commits["same"], cache, **{"kvmprof-sha256": SHA})
    check(got["install"] == "failure" and got["runs"] == "skipped" and "SHA-256" in facts["said"], "github, another archive: %s" % got)


def gitlab(header, body, commit, base, **inputs):
    given, refused = ci_refusals.inputs_of(header, adapted(prepare="true", **inputs))
    check(not refused, "gitlab: %s" % refused)
    (_, job), = ci_refusals.interpolated(body, given).items()
    env = ci_runner.environment("gitlab")
    env.update({k: str(v) for k, v in job["variables"].items()})
    env.update(CI_COMMIT_SHA=commit, CI_MERGE_REQUEST_DIFF_BASE_SHA=base, CI_PROJECT_DIR=os.path.abspath("gitlab-builds"),
               CI_JOB_URL="https://gitlab.example/j/1", GITLAB_USER_LOGIN="somebody", KVMPROF_CACHE=os.path.abspath("cache-qemu"))
    kept = "gitlab-cache"
    ci_runner.checkout(server, commit, "gitlab-builds")
    if os.path.exists(kept):
        shutil.copytree(kept, "gitlab-builds/.kvmprof/base", symlinks=True)
    lines = "\n".join(job["before_script"] + job["script"])
    with open("gitlab.sh", "w", encoding="utf-8") as f:
        f.write("set -eo pipefail\nset +o noclobber\n: | eval '%s'\nexit 0\n" % lines.replace("'", "'\\''"))
    p = ci_runner.bash([os.path.abspath("gitlab.sh")], env, "gitlab-builds")
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree("gitlab-builds/.kvmprof/base", kept, symlinks=True)
    return p


def run_component(header, body):
    p = gitlab(header, body, commits["asks"], commits["same"])
    check(p.status == 1 and verdict("gitlab-builds/gate.json") == "fail" and "__x64_sys_getppid" in p.out, "gitlab, one call more: %d %s%s" %
          (p.status, p.out[-2000:], p.err[-2000:]))
    check(os.path.exists("gitlab-builds/profiles/profiles.tar.gz") and os.path.exists("gitlab-builds/badge.svg"), "gitlab: nothing is kept")
    before = os.stat("gitlab-cache/run-1.data/data").st_mtime_ns
    p = gitlab(header, body, commits["asks"], commits["same"], accept="system calls", **{"accept-why": "it is wanted"})
    check(p.status == 0 and "by somebody: it is wanted" in p.out, "gitlab, accepted: %d %s%s" % (p.status, p.out[-2000:], p.err[-2000:]))
    p = gitlab(header, body, commits["same"], commits["same"])
    check(p.status == 0 and verdict("gitlab-builds/gate.json") == "pass" and not os.path.exists("gitlab-builds/profiles"), "gitlab, the same: %s" % p.err[-2000:])
    check(os.stat("gitlab-cache/run-1.data/data").st_mtime_ns == before, "gitlab: the base was made again")


the_action, the_header, the_body = load()
check_action(the_action)
check_component(the_header, the_body)
check_noisy(the_action, the_header, the_body)
if "refused" in e2e.EXTRA:
    e2e.finish("16 actions and 24 components are refused")
e2e.need_tool("curl")
words, more = without_kvm()
ci_runner.runner.extend(words)
address, digest = archive()
server, commits = ci_runner.commits_server(VARIANTS, fill)
run_action(the_action)
run_component(the_header, the_body)
e2e.finish("GitHub: 4 runs, GitLab: 3")

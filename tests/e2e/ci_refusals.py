# SPDX-License-Identifier: GPL-2.0-or-later
"""What GitHub and GitLab refuse of the files that make kvmprof's gate a step or a component: each function gives a list of
sentences, which is empty where the vendor takes the file.

GitHub: its schema of an action (action-yml in the runner's sources, and "Metadata syntax for GitHub Actions"). GitLab: the
validations of lib/gitlab/ci/config/entry/*.rb, header/*.rb and interpolation of the keys that are used here; a key that is
not known here is refused, too."""

import re

# -- GitHub ----------------------------------------------------------------------------------------

ACTION = {"name", "author", "description", "inputs", "outputs", "runs", "branding"}
STEP = {"id", "name", "if", "run", "shell", "env", "working-directory", "uses", "with", "continue-on-error"}
COLOURS = {"white", "black", "yellow", "blue", "green", "orange", "red", "purple", "gray-dark"}
# What an expression of a composite action may name. There is neither `secrets' nor `vars' nor `needs'.
CONTEXTS = {"github", "inputs", "steps", "env", "job", "runner", "strategy", "matrix", "always", "success", "failure", "cancelled",
            "hashFiles", "startsWith", "endsWith", "contains", "format", "join", "toJSON", "fromJSON", "true", "false", "null"}


def expressions(value):
    return re.findall(r"\$\{\{(.*?)\}\}", str(value), flags=re.S)


def contexts(expression):
    text = re.sub(r"'[^']*'", "", expression)
    return set(re.findall(r"(?<![\w.-])([A-Za-z_][\w-]*)", text))


def expression_refused(where, expression, inputs, ids):
    wrong = ["%s: no such context: %s" % (where, x) for x in sorted(contexts(expression) - CONTEXTS)]
    for name in re.findall(r"inputs\.([\w-]+)", expression):
        wrong += [] if name in inputs else ["%s: no input %s" % (where, name)]
    for name in re.findall(r"steps\.([\w-]+)", expression):
        wrong += [] if name in ids else ["%s: no step %s before it" % (where, name)]
    return wrong


def step_refused(step, inputs, ids):
    where = "step %s" % (step.get("id") or step.get("name"))
    wrong = ["%s: unexpected key %s" % (where, k) for k in sorted(set(step) - STEP)]
    if ("run" in step) == ("uses" in step):
        wrong.append(where + ": needs either run or uses")
    if "run" in step and "shell" not in step:
        wrong.append(where + ": required property is missing: shell")
    if "uses" in step and {"shell", "working-directory"} & set(step):
        wrong.append(where + ": shell goes with run only")
    if "uses" in step and not re.fullmatch(r"[\w.-]+/[\w./-]+@[\w./-]+|\./.*|docker://.*", step["uses"]):
        wrong.append(where + ": uses names no version")
    if "with" in step and "uses" not in step:
        wrong.append(where + ": with goes with uses only")
    if "id" in step:
        if not re.fullmatch(r"[A-Za-z_][\w-]*", step["id"]) or step["id"].startswith("__"):
            wrong.append(where + ": the identifier is invalid")
        if step["id"] in ids:
            wrong.append(where + ": the identifier is used twice")
    texts = [step.get("run", ""), step.get("name", "")] + list(step.get("env", {}).values()) + list(step.get("with", {}).values())
    for text in texts:
        if isinstance(text, (dict, list)):
            wrong.append(where + ": a value that is no text")
        for expression in expressions(text):
            wrong += expression_refused(where, expression, inputs, ids)
    condition = str(step.get("if", ""))
    for expression in expressions(condition) or [condition]:
        wrong += expression_refused(where, expression, inputs, ids)
    # What a user writes into a title or a branch becomes code of the shell so.
    if expressions(step.get("run", "")):
        wrong.append(where + ": an expression in the text of a script")
    return wrong


def action_refused(action):
    """Of the file action.yml."""
    wrong = ["unexpected key " + k for k in sorted(set(action) - ACTION)]
    wrong += ["required property is missing: " + k for k in ("name", "description", "runs") if k not in action]
    inputs = action.get("inputs", {})
    for name, x in inputs.items():
        if not re.fullmatch(r"[A-Za-z_][\w-]*", name):
            wrong.append("input %s: the name is invalid" % name)
        wrong += ["input %s: unexpected key %s" % (name, k)
                  for k in sorted(set(x) - {"description", "required", "default", "deprecationMessage"})]
        if "description" not in x:
            wrong.append("input %s: no description" % name)
        if "default" in x and not isinstance(x["default"], str):
            wrong.append("input %s: the default is no text" % name)
        for expression in expressions(x.get("default", "")):
            wrong += ["input %s: no such context: %s" % (name, c) for c in sorted(contexts(expression) - {"github", "runner", "job"})]
    runs = action.get("runs", {})
    if runs.get("using") != "composite" or set(runs) != {"using", "steps"}:
        wrong.append("runs: not a composite action")
    ids = set()
    for step in runs.get("steps", []):
        wrong += step_refused(step, inputs, ids)
        ids.add(step.get("id"))
    for name, x in action.get("outputs", {}).items():
        if set(x) != {"description", "value"}:
            wrong.append("output %s: needs description and value" % name)
        for expression in expressions(x.get("value", "")):
            wrong += expression_refused("output " + name, expression, inputs, ids)
    branding = action.get("branding", {})
    if set(branding) - {"icon", "color"} or branding.get("color", "red") not in COLOURS:
        wrong.append("branding: unknown")
    return wrong


# -- GitLab ----------------------------------------------------------------------------------------

JOB = {"stage", "image", "rules", "variables", "allow_failure", "cache", "before_script", "script", "after_script", "artifacts", "tags",
       "needs", "timeout", "retry", "interruptible", "resource_group", "coverage", "extends", "services", "when", "except", "only"}
ARTIFACTS = {"name", "untracked", "paths", "reports", "when", "expire_in", "expose_as", "exclude", "public", "access"}
CACHE = {"key", "untracked", "paths", "when", "policy", "unprotect", "fallback_keys"}
RULE = {"if", "changes", "exists", "when", "start_in", "allow_failure", "variables", "needs", "auto_cancel", "interruptible"}
INPUT = {"default", "description", "options", "regex", "type"}
TYPES = {"string": str, "number": (int, float), "boolean": bool, "array": list}
WHEN = ("on_success", "on_failure", "always")


def header_refused(header):
    """Of the part before the line ---, lib/gitlab/ci/config/header."""
    wrong = ["header: unknown key %s" % k for k in sorted(set(header) - {"spec"})]
    spec = header.get("spec") or {}
    wrong += ["spec: unknown key %s" % k for k in sorted(set(spec) - {"inputs", "component"})]
    for name, x in (spec.get("inputs") or {}).items():
        x = x or {}
        wrong += ["input %s: unknown key %s" % (name, k) for k in sorted(set(x) - INPUT)]
        kind = x.get("type", "string")
        if kind not in TYPES:
            wrong.append("input %s: unknown type %s" % (name, kind))
        elif "default" in x and (not isinstance(x["default"], TYPES[kind]) or (kind == "number" and isinstance(x["default"], bool))):
            wrong.append("input %s: the default is no %s" % (name, kind))
        if "options" in x and "default" in x and x["default"] not in x["options"]:
            wrong.append("input %s: the default is none of the options" % name)
        if "regex" in x and kind != "string":
            wrong.append("input %s: a regex with a %s" % (name, kind))
    return wrong


def interpolated(value, inputs):
    """The value with its inputs, as lib/gitlab/ci/config/interpolation does it: a block that is the whole value keeps its type."""
    if isinstance(value, dict):
        return {interpolated(k, inputs): interpolated(v, inputs) for k, v in value.items()}
    if isinstance(value, list):
        return [interpolated(v, inputs) for v in value]
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\$\[\[ *inputs\.([\w-]+) *\]\]", value)
    if whole:
        return inputs[whole[1]]
    return re.sub(r"\$\[\[ *inputs\.([\w-]+) *\]\]", lambda m: str(inputs[m[1]]), value)


def inputs_of(header, given):
    """(inputs with their defaults, what is refused of those that are given)."""
    declared = header["spec"]["inputs"]
    wrong = ["unknown input %s" % k for k in sorted(set(given) - set(declared))]
    got = {}
    for name, x in declared.items():
        x = x or {}
        if name not in given and "default" not in x:
            wrong.append("required value of input %s has not been provided" % name)
            continue
        value = got[name] = given.get(name, x.get("default"))
        kind = x.get("type", "string")
        if not isinstance(value, TYPES[kind]):
            wrong.append("input %s: provided value is not a %s" % (name, kind))
        if "options" in x and value not in x["options"]:
            wrong.append("input %s: %s is not in the list of allowed options" % (name, value))
        if "regex" in x and not re.search(x["regex"], str(value)):
            wrong.append("input %s: %s does not match" % (name, value))
    return got, wrong


def paths_refused(where, paths):
    if not isinstance(paths, list) or not all(isinstance(p, str) for p in paths):
        return [where + " should be an array of strings"]
    return []


def artifacts_refused(artifacts):
    """entry/artifacts.rb"""
    wrong = ["artifacts: unknown key %s" % k for k in sorted(set(artifacts) - ARTIFACTS)]
    paths = artifacts.get("paths", [])
    wrong += paths_refused("artifacts paths", paths)
    if "expose_as" in artifacts:
        name = artifacts["expose_as"]
        if "paths" not in artifacts:
            wrong.append("artifacts paths can't be blank with expose_as")
        if any("*" in p for p in paths):
            wrong.append("artifacts paths can't contain '*' when used with 'expose_as'")
        if not isinstance(name, str) or len(name) > 100 or not re.fullmatch(r"[\w. -]+", name):
            wrong.append("artifacts expose_as: at most 100 letters, digits, blanks, dots, underscores and dashes")
    if artifacts.get("when", "always") not in WHEN:
        wrong.append("artifacts when should be one of: " + ", ".join(WHEN))
    return wrong


def cache_refused(cache):
    """entry/cache.rb"""
    wrong = ["cache: unknown key %s" % k for k in sorted(set(cache) - CACHE)] + paths_refused("cache paths", cache.get("paths", []))
    if cache.get("when", "always") not in WHEN:
        wrong.append("cache when should be one of: " + ", ".join(WHEN))
    if cache.get("policy", "pull") not in ("pull", "push", "pull-push"):
        wrong.append("cache policy should be one of: pull-push, push, pull")
    key = cache.get("key", "default")
    if not isinstance(key, str) or "/" in key or key in (".", "..") or "%2F" in key:
        wrong.append("cache key: no name of a directory")
    return wrong


def job_refused(name, job, stages=(".pre", "build", "test", "deploy", ".post")):
    """entry/job.rb, processable.rb and those of its keys."""
    wrong = ["unknown key %s" % k for k in sorted(set(job) - JOB)]
    if not isinstance(name, str) or not 0 < len(name) <= 255:
        wrong.append("the name of a job: 1 to 255 characters")
    if "script" not in job:
        wrong.append("script can't be blank")
    if job.get("stage", "test") not in stages:
        wrong.append("chosen stage %s does not exist" % job["stage"])
    for key in ("script", "before_script", "after_script"):
        lines = job.get(key, [])
        if not isinstance(lines, list) or not all(isinstance(x, str) for x in lines):
            wrong.append(key + " should be a string or a nested array of strings")
    for key, value in job.get("variables", {}).items():
        if isinstance(value, (bool, list)) or value is None:
            wrong.append("variables %s: neither text nor number" % key)
    for rule in job.get("rules", []):
        wrong += ["rules: unknown key %s" % k for k in sorted(set(rule) - RULE)]
    if "rules" in job and {"only", "except"} & set(job):
        wrong.append("may not be used with rules: only, except")
    allow = job.get("allow_failure", False)
    if isinstance(allow, dict):
        codes = allow.get("exit_codes", [])
        codes = codes if isinstance(codes, list) else [codes]
        if set(allow) != {"exit_codes"} or not codes or not all(isinstance(c, int) and not isinstance(c, bool) for c in codes):
            wrong.append("allow_failure: exit_codes should be an integer or an array of integers")
    elif not isinstance(allow, bool):
        wrong.append("allow_failure should be a boolean or a hash")
    return wrong + artifacts_refused(job.get("artifacts", {})) + cache_refused(job.get("cache", {}))


def component_refused(header, body, given):
    """Of a component with the inputs that are given; and what it would change of the project that includes it."""
    wrong = header_refused(header)
    if wrong:
        return wrong
    inputs, refused = inputs_of(header, given)
    wrong += refused
    names = set(re.findall(r"\$\[\[ *inputs\.([\w-]+)", repr(body)))
    wrong += ["interpolation of an unknown input: " + n for n in sorted(names - set(header["spec"]["inputs"]))]
    wrong += ["reaches other jobs: " + k for k in ("stages", "variables", "default", "workflow", "image", "before_script", "cache") if k in body]
    if wrong:
        return wrong
    for name, job in interpolated(body, inputs).items():
        wrong += job_refused(name, job)
    return wrong

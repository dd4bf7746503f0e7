# SPDX-License-Identifier: GPL-2.0-or-later
"""The reports of `kvmprof gate` as those read them that they are for: JUnit, SARIF, GitHub, Markdown."""

import json
import os
import re
import xml.etree.ElementTree as ET

import e2e
import exported
from e2e import check

DETAILS = 2 # of a report with a table of what moved: that, and what could have been seen


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


# What Jenkins' and GitLab's readers take in common.
CASE_CHILDREN = {"failure", "error", "skipped", "system-out"}


def check_junit(path, want):
    root = ET.parse(path).getroot()
    check(root.tag == "testsuites" and [s.tag for s in root] == ["testsuite"], "junit: " + root.tag)
    suite = root[0]
    cases = suite.findall("testcase")
    for node in (root, suite):
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            n = sum(c.find(tag) is not None for c in cases)
            check(node.get(key) == str(n), "junit: %s=%s, but %d" % (key, node.get(key), n))
        check(node.get("tests") == str(len(cases)) and node.get("name") and float(node.get("time")) >= 0, "counts")
    check({c.tag for c in suite} <= {"testcase", "system-out"}, "junit: children of the suite")
    ends = {}
    for c in cases:
        check(set(c.attrib) == {"classname", "name", "time"}, "testcase: %s" % c.attrib)
        check({x.tag for x in c} <= CASE_CHILDREN and len([x for x in c if x.tag != "system-out"]) <= 1, "children")
        for x in c:
            check(x.tag == "system-out" or x.get("message"), "no message")
        ends[c.get("name")] = next((x.tag for x in c if x.tag != "system-out"), "passed")
    check(ends == want, "junit: %s" % ends)


# The part of OASIS' sarif-schema-2.1.0.json that these files have to keep to.
SARIF = {
    "type": "object", "required": ["version", "runs"], "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "format": "uri"}, "version": {"enum": ["2.1.0"]},
        "runs": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["tool", "results"], "additionalProperties": False,
            "properties": {
                "tool": {"type": "object", "required": ["driver"], "properties": {"driver": {
                    "type": "object", "required": ["name"], "properties": {
                        "rules": {"type": "array", "uniqueItems": True, "items": {
                            "type": "object", "required": ["id"], "properties": {
                                "id": {"type": "string"},
                                "shortDescription": {"type": "object", "required": ["text"]},
                                "defaultConfiguration": {"type": "object", "properties": {
                                    "level": {"enum": ["none", "note", "warning", "error"]}}}}}}}}}},
                "invocations": {"type": "array", "items": {"type": "object", "required": ["executionSuccessful"]}},
                "results": {"type": "array", "items": {
                    "type": "object", "required": ["message"],
                    "properties": {
                        "ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": -1},
                        "kind": {"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
                        "level": {"enum": ["none", "note", "warning", "error"]},
                        "message": {"type": "object", "required": ["text"],
                                    "properties": {"text": {"type": "string", "minLength": 1}}},
                        "locations": {"type": "array", "items": {"type": "object", "properties": {
                            "physicalLocation": {"type": "object", "required": ["artifactLocation"], "properties": {
                                "artifactLocation": {"type": "object", "properties": {"uri": {"type": "string"}}},
                                "region": {"type": "object", "properties": {
                                    "startLine": {"type": "integer", "minimum": 1}}}}},
                            "logicalLocations": {"type": "array", "items": {"type": "object", "properties": {
                                "fullyQualifiedName": {"type": "string"}, "kind": {"type": "string"}}}}}}},
                        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                        "properties": {"type": "object"}},
                    # 3.27.10: what is no failure has no level.
                    "if": {"properties": {"kind": {"const": "fail"}}}, "then": {},
                    "else": {"properties": {"level": {"const": "none"}}}}}}}}}}


def check_sarif(path, rules, want, functions):
    """want: kind and level by rule; functions: that are named by its results."""
    report = json.loads(read(path))
    try:
        import jsonschema
    except ImportError:
        e2e.left_out("python3-jsonschema is not installed: the SARIF schema")
    else:
        jsonschema.validate(report, SARIF)
        package, why = exported.npm_package("@microsoft/jest-sarif", exported.JEST_SARIF)
        if package:
            whole = json.loads(read(os.path.join(package, "package", "lib", "schemas", "sarif-2.1.0-rtm.5.json")))
            jsonschema.validate(report, whole)
            # It is the schema, which refuses what is none of it.
            report["runs"][0]["results"][0]["kind"] = "nonsense"
            check(list(jsonschema.Draft7Validator(whole).iter_errors(report)), "the whole schema takes everything")
            report = json.loads(read(path))
        else:
            e2e.left_out(why + ": the whole schema of SARIF")
    run = report["runs"][0]
    ids = [r["id"] for r in run["tool"]["driver"]["rules"]]
    found = {r["ruleId"]: (r["kind"], r["level"]) for r in run["results"]}
    check(all(ids[r["ruleIndex"]] == r["ruleId"] for r in run["results"]), "sarif: ruleIndex")
    check(found == want, "sarif: %s" % found)
    for r in run["results"]:
        where = r["locations"][0]["physicalLocation"]
        check(where["artifactLocation"]["uri"] == rules, "sarif: %s" % where)
        line = read(rules).split("\n")[where["region"]["startLine"] - 1]
        check(line.startswith("[[rule]]"), "sarif: a rule is not at %s" % where)
    names = [x["fullyQualifiedName"] for r in run["results"] for x in r["locations"][0].get("logicalLocations", [])]
    check(names == functions, "sarif: functions %s" % names)


def check_markdown(path, wanted, verdict="FAIL"):
    """Its text, of so many tables; all but the first are in details."""
    text = read(path)
    tables = re.findall(r"(?:^\|.*\|\n)+", text, re.M)
    check(len(tables) == wanted, "markdown: %d tables" % len(tables))
    for t in tables:
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in t.strip().split("\n")}
        check(len(widths) == 1, "markdown: rows of %s columns" % widths)
    check(text.startswith("### kvmprof gate: " + verdict), "markdown: " + text[:80])
    check(text.count("<details>") == text.count("</details>") == DETAILS * (wanted - 1), "markdown: details")
    return text


def check_github(path, rules, named):
    """Its lines; one is an error of that file's that names what got worse."""
    lines = read(path).strip().split("\n")
    for line in lines:
        check(re.match(r"::(error|warning|notice) (\w+=[^:,]*)(,\w+=[^:,]*)*::.+$", line), "github: " + line)
    check(any(x.startswith("::error file=%s,line=" % rules) and named in x for x in lines), "github: %s" % lines)
    return lines

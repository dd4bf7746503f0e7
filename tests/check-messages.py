#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/troubleshooting.md has an entry for each message of these lists, which the source yields:

* notes and warnings of a run, with their beginning, "kvmprof: note:" or "kvmprof: warning:";
* each line of `kvmprof check` that can be a note or a failure, by its name;
* what the start of a run refuses for: each error of vmm/kvm.c;
* each name for a stack's end.

In an entry a message stands in backticks. What the program fills in is a word in capitals there, or
three dots, or an example. And the other way round: a message that the page quotes is in the source.

check-messages.py [--list]: with --list the messages are printed, and nothing is checked.
"""

import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join("docs", "troubleshooting.md")
# Folders with what `kvmprof run` and `attach` say of a run.
RUN = ("profile/record/run", "profile/record/summary", "profile/record/libvirt")
# These are made of texts that other places have.
MADE_ELSEWHERE = 12    # characters of its own that a message needs to have an entry

LITERAL = r'"(?:\\.|[^"\\\n])*"'
MACRO = re.compile(r'#define (\w+) ("(?:\\.|[^"\\\n])*")')
DIRECTIVE = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j)?[a-zA-Z]")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def unquoted(literal):
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), literal[1:-1])


def joined(text, at, macros):
    """The string that begins at or after `at`: literals side by side, and macros between them."""
    out, part = [], re.compile(r'\s*(?:(%s)|(PRI[dux]64)|([A-Z_]+)(?=\s*"|\s*,|\s*\)))' % LITERAL)
    while True:
        m = part.match(text, at)
        if not m or (m.group(3) and m.group(3) not in macros):
            return "".join(out)
        out.append(unquoted(m.group(1)) if m.group(1) else "d" if m.group(2) else macros[m.group(3)])
        at = m.end()


def plain(text):
    return " ".join(text.split())


def sources(folder):
    for name in sorted(os.listdir(os.path.join(TOP, folder))):
        if name.endswith(".c"):
            yield os.path.join(folder, name)


def notes():
    """(where, message) of what stands behind "kvmprof: "."""
    for folder in RUN:
        for path in sources(folder):
            text = read(path)
            for m in re.finditer(r'"kvmprof: (?=note: |warning: )', text):
                line = text.count("\n", 0, m.start()) + 1
                yield "%s:%d" % (path, line), plain(joined(text, m.start(), {})[len("kvmprof: "):])


def refusals():
    path = "vmm/kvm.c"
    text = read(path)
    macros = {name: unquoted(value) for name, value in MACRO.findall(text)}
    for m in re.finditer(r"err_set\(e, \w+,\s*", text):
        yield "%s:%d" % (path, text.count("\n", 0, m.start()) + 1), plain(joined(text, m.end(), macros))


def check_lines():
    """Names of lines that can be other than good."""
    path = "profile/cmd/check.c"
    text = read(path)
    name = re.compile(r"\bcheck_(line|cap|counter)\(\s*&?c,\s*(?:([^,\"]+),\s*)?(%s)" % LITERAL)
    for m in name.finditer(text):
        if m.group(2) != "GOOD":
            yield "%s:%d" % (path, text.count("\n", 0, m.start()) + 1), unquoted(m.group(3))


def stack_ends():
    path = "symbolizer/core/stack.h"
    for m in re.finditer(r"case STACK_END_\w+:\s*return (%s)" % LITERAL, read(path)):
        yield path, unquoted(m.group(1))


def pattern(message):
    """What an entry has to match: anything stands where the program fills in."""
    parts = [re.escape(plain(p)) for p in DIRECTIVE.split(message.replace("%%", "\0"))]
    return r"\s*\S.*?\s*".join(parts).replace("\0", "%")


def main():
    groups = {"notes and warnings": list(notes()), "refusals": list(refusals()),
              "lines of check": list(check_lines()), "ends of stacks": list(stack_ends())}
    if "--list" in sys.argv:
        for what, found in groups.items():
            print("== " + what)
            for where, message in found:
                print("%s: %s" % (where, message))
        return 0
    problems = ["no %s found in the source: this test reads it wrongly" % what
                for what, found in groups.items() if not found]
    page = read(PAGE)
    quoted = [plain(q) for _, q in re.findall(r"(``?)(.+?)\1", page, re.S)]
    count = 0
    for what, found in groups.items():
        for where, message in dict((m, (w, m)) for w, m in found).values():
            fixed = "".join(DIRECTIVE.split(message))
            if what == "notes and warnings" and len(fixed) < MADE_ELSEWHERE:
                continue
            count += 1
            if not any(re.fullmatch(pattern(message), q) for q in quoted):
                problems.append("%s: no entry in %s for `%s`" % (where, PAGE, message))
    known = [pattern(m) for w, m in groups["notes and warnings"] + groups["refusals"]]
    for q in quoted:
        if re.match(r"(note|warning): |/dev/kvm: ", q) and not any(re.fullmatch(p, q) for p in known):
            problems.append("%s: quotes `%s`, which is not in the source" % (PAGE, q))
    print("\n".join(problems) if problems else "%d messages, each with an entry" % count)
    return 1 if problems else 0


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules of tests/check-source.py about names and headers:

* a function that a header declares begins with the name of its file, with the first words of that name, with the name of
  its folder, or with the prefix that the folder's README.md declares (`Prefix: ...`); a prefix belongs to one folder;
* no two structs of the product share a tag;
* a .c file includes first its own header or the private.h of its folder; INTERFACES are the exception;
* no header of vmm is included by more than 60 objects, and none declares functions of more than three .c files;
* in vmm no file calls one that stands above it: a file stands above all that it includes, a folder counts as one file;
* of all rooms at most SHORT_FILES .c files have less than 100 lines: one topic is one file, not several.
"""

import os
import re

TOO_MANY_OBJECTS = 60
TOO_MANY_FILES = 3
CALLS_UP = 0
SHORT_LINES = 100
SHORT_FILES = 50
HOUSES = ("base/", "vmm/", "symbolizer/", "profile/")
# The declarations of these are another program's.
FOREIGN = ("vmm/exact/plugin/qemu_api.h",)
ALTERNATIVE = "vmm/pvm_none.c"    # is built in place of vmm/pvm, with the same structs
# Two implementations of one interface: that of vmm/pvm, and ALTERNATIVE, which is built without it. Each includes the interface first.
INTERFACES = {"vmm/pvm/ops.c": "vmm/pvm.h", "vmm/pvm/quirks.c": "vmm/quirks.h", ALTERNATIVE: "vmm/pvm.h"}
# Each file of a command has one function, which this table of all commands declares.
COMMANDS = "profile/cmd/cmd.h"
CALLED = re.compile(r"(\w+)\s*\(")
NOT_FUNCTIONS = ("__attribute__", "_Static_assert", "_Alignas")
TAG = re.compile(r"^\t*(?:static |const )*struct (\w+)\s*\{", re.M)
PREFIX = re.compile(r"Prefix: `(\w+)`")
PRIVATE = "private"


def without_macros(code):
    """Preprocessor lines with their continuations become blank, and so do braces that are characters."""
    code = re.sub(r"'[{};]'", "' '", code)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group(0).count("\n"), code, flags=re.M)


def functions(code):
    """(name, whether it is static, whether it has a body) of each function that stands at the top level."""
    at, depth = 0, 0
    for m in re.finditer(r"[;{}]", code):
        if m.group(0) == "}":
            depth -= 1
        if depth == 0 and m.group(0) != "}":
            words = code[at:m.start()]
            names = [n for n in CALLED.findall(words) if n not in NOT_FUNCTIONS] if "=" not in words else []
            # A name of capitals is a macro that makes a declaration.
            if names and not names[0].isupper() and not re.match(r"\s*(typedef|struct \w+\s*$)", words):
                yield names[0], re.match(r"\s*static\b", words) is not None, m.group(0) == "{"
        if m.group(0) == "{":
            depth += 1
        at = m.end()


class Names:
    def __init__(self, top, problem):
        self.top, self.problem = top, problem
        self.code, self.text = {}, {}

    def add(self, path, text, code):
        """code: text without comments and strings."""
        self.text[path], self.code[path] = text, without_macros(code)

    def line(self, path, name):
        m = re.search(r"\b%s\b" % re.escape(name), self.code[path])
        return self.code[path].count("\n", 0, m.start()) + 1 if m else 1

    def declared_prefix(self, folder):
        path = os.path.join(self.top, folder, "README.md")
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as f:
            m = PREFIX.search(f.read())
        return m.group(1) if m else None

    def prefixes(self, path):
        """All that functions of a header may begin with, the longest first."""
        words = os.path.splitext(os.path.basename(path))[0].split("_")
        if words[-1] == PRIVATE:
            words.pop()
        folder = os.path.dirname(path)
        own = ["_".join(words[:n]) for n in range(len(words), 0, -1)]
        others = [os.path.basename(folder), self.declared_prefix(folder)]
        return sorted((p for p in own + others if p), key=len, reverse=True)

    def check_prefixes(self):
        owner = {}    # prefix: {folder: a place}
        for path in sorted(self.code):
            if not path.endswith(".h") or path in FOREIGN:
                continue
            allowed = self.prefixes(path)
            code = self.code[path]
            for name, _, _ in functions(code):
                prefix = next((p for p in allowed if name == p or name.startswith(p + "_")), None)
                if not prefix:
                    self.problem(path, self.line(path, name), "%s() begins neither with its file's nor with its folder's name" % name)
                else:
                    owner.setdefault(prefix, {}).setdefault(os.path.dirname(path), (path, name))
        for prefix, folders in sorted(owner.items()):
            outer = min(folders, key=len)
            for folder in sorted(folders):
                # A folder within a folder is a part of it.
                if folder != outer and not folder.startswith(outer + "/"):
                    path, name = folders[folder]
                    self.problem(path, self.line(path, name), "%s(): the prefix %s_ is that of %s" % (name, prefix, outer))

    def check_tags(self):
        first = {}
        for path in sorted(self.code):
            # A BPF program names the structs of its kernel.
            if path == ALTERNATIVE or path.endswith(".bpf.c"):
                continue
            for m in TAG.finditer(self.code[path]):
                other = first.setdefault(m.group(1), path)
                if other != path:
                    self.problem(path, self.code[path].count("\n", 0, m.start(1)) + 1,
                                 "struct %s has the tag of one in %s" % (m.group(1), other))

    def includes(self, path):
        return [x for x in re.findall(r'^#\s*include "([^"]+)"', self.text[path], re.M) if x in self.text]

    def check_own_header(self):
        for path in sorted(self.code):
            own = os.path.splitext(path)[0] + ".h"
            if not path.endswith(".c") or own in self.code or path.endswith(".bpf.c") or path == ALTERNATIVE:
                continue
            first = (self.includes(path) or [""])[0]
            private = os.path.join(os.path.dirname(path), PRIVATE + ".h")
            if first not in (private, COMMANDS, INTERFACES.get(path)):
                self.problem(path, 1, "includes %s first, expected its own header or %s" % (first or "nothing", private))

    def check_headers(self):
        defined = {}
        for path, code in self.code.items():
            if path.endswith(".c"):
                defined.update((name, path) for name, static, body in functions(code) if body and not static)
        direct = {path: self.includes(path) for path in self.text}
        objects = {}
        for path in self.text:
            if not path.endswith((".c", ".cc")):
                continue
            seen, todo = set(), [path]
            while todo:
                more = set(direct[todo.pop()]) - seen
                seen |= more
                todo += more
            for header in seen:
                objects.setdefault(header, set()).add(path)
        for path in sorted(self.code):
            if not path.startswith("vmm/") or not path.endswith(".h"):
                continue
            if len(objects.get(path, ())) > TOO_MANY_OBJECTS:
                self.problem(path, 1, "is included by %d objects, at most %d" % (len(objects[path]), TOO_MANY_OBJECTS))
            files = {defined[name] for name, _, body in functions(self.code[path]) if name in defined and not body}
            if len(files) > TOO_MANY_FILES:
                self.problem(path, 1, "declares functions of %d files, at most %d: %s" % (
                    len(files), TOO_MANY_FILES, " ".join(sorted(os.path.basename(f) for f in files))))

    def check_order(self):
        """Counts the pairs of files of vmm of which the lower one calls a function that only the higher one defines."""
        def part(path):
            parts = path.split("/")
            return parts[1] + "/" if len(parts) > 2 else os.path.splitext(parts[1])[0]

        paths = [path for path in sorted(self.code) if path.startswith("vmm/")]
        below = {part(path): set() for path in paths}
        definers, own, calls = {}, {}, {}
        for path in paths:
            below[part(path)].update(part(x) for x in self.includes(path) if x.startswith("vmm/"))
            own[path] = {name for name, _, body in functions(self.code[path]) if body}
            for name, static, body in functions(self.code[path]):
                if body and not static and path.endswith(".c"):
                    definers.setdefault(name, set()).add(part(path))
        while True:
            more = {p: set().union(q, *(below[x] for x in q)) for p, q in below.items()}
            if more == below:
                break
            below = more
        for path in (p for p in paths if p.endswith(".c")):
            for name in set(CALLED.findall(self.code[path])) - own[path]:
                above = definers.get(name, ())
                if len(above) == 1 and part(path) not in above and part(path) in below[min(above)]:
                    calls.setdefault((part(path), min(above)), (path, name))
        if len(calls) > CALLS_UP:
            for (_, above), (path, name) in sorted(calls.items()):
                self.problem(path, self.line(path, name), "calls %s() of %s, which stands above it" % (name, above))

    def check_short_files(self):
        short = sorted(p for p, text in self.text.items()
                       if p.startswith(HOUSES) and p.endswith(".c") and text.count("\n") < SHORT_LINES)
        if len(short) > SHORT_FILES:
            self.problem(short[0], 1, "one of %d .c files of less than %d lines, at most %d: %s" % (
                len(short), SHORT_LINES, SHORT_FILES, " ".join(short)))

    def check(self):
        self.check_prefixes()
        self.check_tags()
        self.check_own_header()
        self.check_headers()
        self.check_order()
        self.check_short_files()

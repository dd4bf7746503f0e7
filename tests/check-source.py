#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules about the source that no compiler checks (CONTRIBUTING.md):

* a room (a folder of the table in docs/architecture.md) includes headers of itself, of base and
  of the rooms that its row names, each by its path from the top; no room reaches itself, and one
  with `never` does not reach vmm through others either; a row names nothing in vain;
* each folder with sources has a README.md of 10 to 20 lines, which names as public what other
  rooms include; no source stands outside of a room;
* a .c or .S file includes its own header first, and each header compiles alone;
* what is not a command neither prints to stdout nor exits;
* each source begins with an SPDX line and has no more than 800 lines, each function no more than 100
  and no more than six parameters;
* file-local functions carry their module's word where the verb is one of many files;
* a script uses each name that it imports, and no name that it does not have;
* files of this tree that a comment or a page names, and those that a page links to, are there, and so are
  the headings that links to a part of a page mean; docs/README.md links to each page of docs/.

Prints one line for each break of a rule, as file:line: text.
"""

import ast
import builtins
import fnmatch
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# check-source.py [--includes-only [DIRECTORY]]: without compiling headers; of another copy of the tree.
COMPILE = "--includes-only" not in sys.argv
TOP = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join("docs", "architecture.md")
ROW = re.compile(r"^\| `([\w/]+)` \| ([\w ]*) \| *(never)? *\|")
HOUSES = ("base", "vmm", "symbolizer", "profile")
README_LINES = range(10, 21)
MAX_LINES = 800
MAX_FUNCTION = 100
MAX_PARAMETERS = 6
# As names of file-local functions they stand in many files, and a profile can't tell them apart.
BARE = re.compile(r"^static [^;={}]*[ *](take|look|ask|put|hold|tell|settle|judge|place|find|add|reset|kick)\(")
# Linux has a scripts/, too, of which comments speak.
NAMED = re.compile(r"(?<![\w/.*$})-])((?:base|vmm|guest|symbolizer|profile|tests|docs)/[\w/.-]+"
                   r"\.(?:c|h|cc|S|py|sh|md|toml|js|proto))(?![\w*])")
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
SPDX = "SPDX-License-Identifier: GPL-2.0-or-later"
SOURCES = (".c", ".cc", ".h", ".S", ".lds", ".mk", ".sh", ".py", ".pl", ".config")
INCLUDE = re.compile(r'\s*#\s*include\s+(["<])([^">]+)[">]')
SPEAKS = re.compile(r"(?<![\w.>])(printf|puts|putchar|perror|exit|_exit|abort)\s*\(")
COMMANDS = "profile/cmd"

problems = []


def problem(path, line, text):
    problems.append("%s:%d: %s" % (path, line, text))


def sources():
    """Paths from the top, of all that people write."""
    for top, dirs, files in os.walk(TOP):
        at = os.path.relpath(top, TOP)
        dirs[:] = sorted(d for d in dirs if d != ".git" and d != "corpus" and
                         not (at == "." and d.startswith("build")))
        for name in sorted(files):
            path = os.path.normpath(os.path.join(at, name))
            if name.endswith(SOURCES + (".md",)) or path in ("Makefile", os.path.join(".ci", "run")):
                yield path


def without_comments(text):
    """Comments and strings become blanks; lines keep their numbers."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


class Rooms:
    """The table, and what the sources say of it."""

    def __init__(self):
        self.may, self.listed, self.never = {}, {}, set()
        self.why = {}       # (room, room): the first place that includes
        self.public = {}    # folder: names, None: all
        self.used = set()   # headers that other rooms include
        with open(os.path.join(TOP, TABLE), encoding="utf-8") as f:
            rows = [ROW.match(line) for line in f]
        rows = [m.groups() for m in rows if m]
        short = {m[0].split("/")[-1]: m[0] for m in rows}
        for room, others, never in rows:
            self.listed[room] = [] if others == "all" else others.split()
            names = [n for n in short if n != "pvm"] if others == "all" else others.split() + ["base"]
            for name in names:
                if name not in short:
                    problem(TABLE, 1, "`%s` includes %s, which is no room" % (room, name))
            self.may[room] = {short[n] for n in names if n in short} | {room}
            if never:
                self.never.add(room)

    def of(self, path):
        """The room of a file: the longest in the table."""
        at = os.path.dirname(path)
        while at and at not in self.may:
            at = os.path.dirname(at)
        return at

    def check_folder(self, at):
        """A README.md of the right length; its public headers."""
        path = os.path.join(at, "README.md")
        if not os.path.exists(os.path.join(TOP, path)):
            problem(path, 1, "missing: a room says its question, where to begin, what is public")
            return
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            text = f.read()
        if text.count("\n") not in README_LINES:
            problem(path, 1, "%d lines, expected 10 to 20" % text.count("\n"))
        said = re.search(r"^Public: (.*?)(\n\n|\Z)", text, re.M | re.S)
        self.public[at] = (None if said and said.group(1).startswith("all headers") else
                           re.findall(r"`([\w*]+\.h)`", said.group(1)) if said else [])

    def check_include(self, path, number, what):
        room, other = self.of(path), self.of(what)
        if not other:
            problem(path, number, '"%s" is in no room' % what)
        elif other not in self.may[room]:
            problem(path, number, '%s must not see "%s": %s says what it may' % (room, what, TABLE))
        elif other != room:
            self.why.setdefault((room, other), "%s:%d" % (path, number))
            folder, name = os.path.split(what)
            self.used.add(what)
            public = self.public.get(folder)
            inside = room.startswith(other + "/")    # vmm/pvm is a part of vmm
            if not inside and public is not None and not any(fnmatch.fnmatchcase(name, p) for p in public):
                problem(path, number, '"%s" is not public in %s/README.md' % (what, folder))

    def reached(self, room):
        seen, todo = set(), [room]
        while todo:
            at = todo.pop()
            more = {b for a, b in self.why if a == at} - seen
            seen |= more
            todo += more
        return seen

    def check_order(self):
        for folder, names in sorted(self.public.items()):
            for name in names or []:
                if os.path.join(folder, name) not in self.used:
                    problem(os.path.join(folder, "README.md"), 1, "%s is public in vain" % name)
        for room in sorted(self.may):
            for name in self.listed[room]:
                if not any(a == room and b.split("/")[-1] == name for a, b in self.why):
                    problem(TABLE, 1, "`%s` lists %s, and includes nothing of it" % (room, name))
            reached = self.reached(room)
            if room in reached:
                problem(TABLE, 1, "`%s` reaches itself" % room)
            if room in self.never and "vmm" in reached:
                problem(TABLE, 1, "`%s` reaches vmm" % room)


def check_includes(rooms, path, lines):
    if path.split("/")[0] not in HOUSES:
        return
    if not rooms.of(path):
        problem(path, 1, "is in no room of " + TABLE)
        return
    first = True
    own = os.path.splitext(path)[0] + ".h"
    for number, line in enumerate(lines, 1):
        m = INCLUDE.match(line)
        if not m:
            continue
        kind, what = m.groups()
        if first and path.endswith((".c", ".cc", ".S")) and os.path.exists(os.path.join(TOP, own)) and what != own:
            problem(path, number, 'includes %s first, expected its own header "%s"' % (what, own))
        first = False
        if kind == "<":
            continue
        if not os.path.exists(os.path.join(TOP, what)):
            problem(path, number, '"%s" is not a path from the top directory' % what)
        else:
            rooms.check_include(path, number, what)


def anchors(path):
    """What a forge makes of a page's headings: small letters, digits and dashes for blanks."""
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        text = re.sub(r"^```.*?^```", "", f.read(), flags=re.M | re.S)
    found = set()
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.M):
        base = name = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        count = 0
        while name in found:
            count += 1
            name = "%s-%d" % (base, count)
        found.add(name)
    return found


def check_named(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        for m in NAMED.finditer(line):
            if not os.path.exists(os.path.join(TOP, m.group(1))):
                problem(path, number, "names %s, which is not there" % m.group(1))
        for m in LINK.finditer(line) if path.endswith(".md") else ():
            file, anchor = m.groups()
            file = os.path.join(os.path.dirname(path), file) if file else path
            if not os.path.exists(os.path.join(TOP, file)):
                problem(path, number, "links to %s, which is not there" % m.group(1))
            elif anchor and anchor not in anchors(file):
                problem(path, number, "links to #%s, which is no heading of %s" % (anchor, file))


def check_index(paths):
    index = os.path.join("docs", "README.md")
    with open(os.path.join(TOP, index), encoding="utf-8") as f:
        linked = {m.group(1) for m in LINK.finditer(f.read())}
    for path in paths:
        at, name = os.path.split(path)
        if at == "docs" and name.endswith(".md") and path != index and name not in linked:
            problem(index, 1, "does not link to %s" % name)


def check_python(path, text):
    """Names, wherever in the file: that is found in a test's rare branches, too."""
    had, used, imported = set(dir(builtins)) | {"__file__"}, {}, {}
    for n in ast.walk(ast.parse(text)):
        if isinstance(n, (ast.Import, ast.ImportFrom)):
            for a in n.names:
                imported[(a.asname or a.name).split(".")[0]] = n.lineno
        elif isinstance(n, (ast.FunctionDef, ast.ClassDef)):
            had.add(n.name)
        elif isinstance(n, ast.arg):
            had.add(n.arg)
        elif isinstance(n, ast.ExceptHandler):
            had.add(n.name)
        elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load):
            used.setdefault(n.id, n.lineno)
        elif isinstance(n, ast.Name):
            had.add(n.id)
    for name in used.keys() - had - imported.keys():
        problem(path, used[name], "uses %s, which it does not have" % name)
    for name in imported.keys() - used.keys():
        problem(path, imported[name], "imports %s and does not use it" % name)


def check_functions(path, lines):
    start = 0
    for number, line in enumerate(lines, 1):
        m = BARE.match(line)
        if m:
            problem(path, number, "%s() lacks the word of its module" % m.group(1))
        if line == "{":
            start = number
        elif line == "}" and start:
            if number - start - 1 > MAX_FUNCTION:
                problem(path, start, "a function of %d lines, at most %d" % (number - start - 1, MAX_FUNCTION))
            start = 0


def check_parameters(path, code):
    """code: without comments."""
    for m in re.finditer(r"\)\n\{\n", code):
        depth, parameters, at = 1, 1, m.start()
        while depth and at:    # back to the parenthesis that opens the list
            at -= 1
            depth += {")": 1, "(": -1}.get(code[at], 0)
            parameters += depth == 1 and code[at] == ","
        if parameters > MAX_PARAMETERS:
            problem(path, code.count("\n", 0, at) + 1, "%s() has %d parameters, at most %d" % (
                re.search(r"\w*$", code[:at]).group(0), parameters, MAX_PARAMETERS))


def check_header(path):
    # What a BPF program includes is never compiled for this machine.
    bpf = path.endswith(".bpf.h")
    compiler = [os.environ.get("CLANG", "clang"), "-target", "bpf", "-O2", "-g"] if bpf else os.environ.get("CC", "gcc").split()
    p = subprocess.run(compiler + ["-std=gnu11", "-D_GNU_SOURCE", "-I.", "-Wall", "-Wextra", "-Werror",
                                   "-fsyntax-only", "-include", path, "-x", "c", "/dev/null"],
                       cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return path, p.returncode, p.stdout.strip().split("\n")[0]


def main():
    headers, count = [], 0
    rooms = Rooms()
    paths = list(sources())
    for at in sorted({os.path.dirname(p) for p in paths if p.endswith((".c", ".cc", ".h"))}):
        if at.split("/")[0] in HOUSES:
            rooms.check_folder(at)
    for path in paths:
        count += 1
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            text = f.read()
        if path != os.path.join("tests", "e2e", "source_rules.py"):    # it names what must not be
            check_named(path, text)
        if path.endswith(".md"):
            continue
        lines = text.split("\n")
        head = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
        if SPDX not in head:
            problem(path, 1, "does not begin with an SPDX line")
        if text.count("\n") > MAX_LINES:
            problem(path, MAX_LINES, "%d lines, at most %d" % (text.count("\n"), MAX_LINES))
        if path.endswith(".py"):
            check_python(path, text)
        if path.endswith((".c", ".cc", ".h", ".S")):
            check_includes(rooms, path, lines)
        if not path.endswith((".c", ".cc", ".h")):
            continue
        if path.split("/")[0] not in HOUSES:
            continue
        code = without_comments(text)
        check_functions(path, lines)
        check_parameters(path, code)
        if path.endswith(".h"):
            headers.append(path)
        if os.path.dirname(path) != COMMANDS:
            for number, line in enumerate(code.split("\n"), 1):
                m = SPEAKS.search(line)
                if m:
                    problem(path, number, "calls %s(): only commands print and exit" % m.group(1))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, status, message in pool.map(check_header, headers if COMPILE else []):
            if status:
                problem(path, 1, "does not compile alone: " + message)
    check_index(paths)
    rooms.check_order()
    for p in problems:
        print(p)
    print("%d files, %d headers, %d problems" % (count, len(headers), len(problems)))
    return 1 if problems else 0


sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules about the source that no compiler checks (CONTRIBUTING.md):

* a wing (a row of the table in docs/architecture.md) includes headers of itself, of base and of the wings
  that its row names, each by its path from the top; it does not reach those under `never` through others
  either; a row names nothing in vain; no wing and no room, which is a folder with sources, reaches itself;
* each folder with sources has a README.md of 10 to 30 lines, which names as public what other
  rooms include; no source stands outside of a wing;
* a .c or .S file includes its own header first, and each header compiles alone;
* what is not a command neither prints to stdout nor exits; what is not base/json puts no JSON together in strings;
* each source begins with an SPDX line and has no more than 1,000 lines, each function no more than 100
  and no more than six parameters;
* names and headers are as tests/source_names.py says;
* file-local functions carry their module's word where the verb is one of many files;
* a script uses each name that it imports, and no name that it does not have;
* each script of tests/e2e is run by a tier that it names itself (tests/e2e/tiers.py) or imported by one that is; the
  other files there are used by a script, and the Makefile builds each test_*.c;
* files of this tree that a comment or a page names, and those that a page links to, are there, and so are
  the headings that links to a part of a page mean; functions that docs/architecture.md names are there; docs/README.md links to each page of docs/.

Prints one line for each break of a rule, as file:line: text.
"""

import ast
import builtins
import fnmatch
import functools
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

E2E = os.path.join("tests", "e2e")
sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), E2E))
import tiers
sys.path.insert(1, os.path.dirname(os.path.abspath(__file__)))
from source_names import Names

# check-source.py [--includes-only [DIRECTORY]]: without compiling headers; of another copy of the tree.
COMPILE = "--includes-only" not in sys.argv
TOP = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join("docs", "architecture.md")
ROW = re.compile(r"^\| `([\w/]+)` \| ([\w ]*) \| ([\w ]*) \|")
HOUSES = ("base", "vmm", "symbolizer", "profile")
# Wings whose folders include each other.
ONE_ROOM = ("vmm",)
README_LINES = range(10, 31)
MAX_LINES = 1000
MAX_FUNCTION = 100
MAX_PARAMETERS = 6
# As names of file-local functions they stand in many files, and a profile can't tell them apart.
BARE = re.compile(r"^static [^;={}]*[ *](take|look|ask|put|hold|tell|settle|judge|place|find|add|reset|kick)\(")
# Linux has a scripts/, too, of which comments speak.
NAMED = re.compile(r"(?<![\w/.*$})-])((?:base|vmm|guest|symbolizer|profile|tests|docs)/[\w/.-]+"
                   r"\.(?:c|h|cc|S|py|sh|md|toml|js|proto))(?![\w*])")
# A function that a page names.
FUNCTION = re.compile(r"`(\w+)\(\)`")
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
SPDX = "SPDX-License-Identifier: GPL-2.0-or-later"
SOURCES = (".c", ".cc", ".h", ".S", ".lds", ".mk", ".sh", ".py", ".pl", ".config")
INCLUDE = re.compile(r'\s*#\s*include\s+(["<])([^">]+)[">]')
SPEAKS = re.compile(r"(?<![\w.>])(v?printf|puts|putchar|perror|exit|_exit|abort)\s*\(")
# Library code prints through the struct reporter that the command hands down.
STREAMS = re.compile(r"(?<![\w.>])(stdout|stderr)\b")
RAW = re.compile(r"(?<![\w.>])(v?dprintf|write)\s*\(\s*(STDOUT_FILENO|STDERR_FILENO|[12]\b)")
RAW_PLACE = "base/reporter.c"
IN_QEMU = "vmm/exact/plugin/"    # is loaded into another program
COMMANDS = "profile/cmd"
# String literals in a row, with what the preprocessor puts between them.
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*(?:PRI\w+\s*)?"(?:[^"\\\n]|\\.)*")*')
# What follows a key of JSON.
MEMBER = re.compile(r'\\":($|[\[{%\d-]|\\"|true|false|null)')
# What may: the writer.
NO_WRITER = ("base/json.c",)
# Its own test, which names what must not be.
RULES = os.path.join(E2E, "source_rules.py")

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
    """The table of wings, and what the sources say of wings and rooms."""

    def __init__(self):
        self.may, self.listed, self.never = {}, {}, {}    # wing: wings
        self.why = {}       # (room, room): the first place that includes
        self.public = {}    # room: names, None: all
        self.used = set()   # headers that other rooms include
        with open(os.path.join(TOP, TABLE), encoding="utf-8") as f:
            rows = [m.groups() for m in map(ROW.match, f) if m]
        short = {m[0].split("/")[-1]: m[0] for m in rows}
        for wing, others, never in rows:
            names = [n for n in short if n != "pvm"] if others == "all" else others.split() + ["base"]
            for name in names + never.split():
                if name not in short:
                    problem(TABLE, 1, "`%s` names %s, which is no wing" % (wing, name))
            self.listed[wing] = [] if others == "all" else [short[n] for n in others.split() if n in short]
            self.may[wing] = {short[n] for n in names if n in short} | {wing}
            self.never[wing] = {short[n] for n in never.split() if n in short}

    def wing(self, path):
        """The wing of a file or folder: the longest in the table."""
        while path and path not in self.may:
            path = os.path.dirname(path)
        return path

    def room(self, path):
        """The folder of a file; all of a wing of ONE_ROOM is one."""
        wing = self.wing(path)
        return wing if wing in ONE_ROOM else os.path.dirname(path)

    def check_folder(self, at):
        """A README.md of the right length; its public headers."""
        path = os.path.join(at, "README.md")
        if not os.path.exists(os.path.join(TOP, path)):
            problem(path, 1, "missing: a room says its question, where to begin, what is public")
            return
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            text = f.read()
        if text.count("\n") not in README_LINES:
            problem(path, 1, "%d lines, expected 10 to 30" % text.count("\n"))
        said = re.search(r"^Public: (.*?)(\n\n|\Z)", text, re.M | re.S)
        self.public[at] = (None if said and said.group(1).startswith("all headers") else
                           re.findall(r"`([\w*]+\.h)`", said.group(1)) if said else [])

    def check_include(self, path, number, what):
        wing, other = self.wing(path), self.wing(what)
        if not other:
            problem(path, number, '"%s" is in no wing' % what)
            return
        if other not in self.may[wing]:
            problem(path, number, '%s must not see "%s": %s says what it may' % (wing, what, TABLE))
            return
        room, folder = self.room(path), os.path.dirname(what)
        if room == self.room(what):
            return
        self.why.setdefault((room, self.room(what)), "%s:%d" % (path, number))
        self.used.add(what)
        public = self.public.get(folder)
        # A folder within a folder is a part of it, and vmm/pvm is a part of vmm.
        inside = room.startswith(folder + "/") or other in ONE_ROOM and room.startswith(other + "/")
        if not inside and public is not None and not any(fnmatch.fnmatchcase(os.path.basename(what), p) for p in public):
            problem(path, number, '"%s" is not public in %s/README.md' % (what, folder))

    def reached(self, start, edges):
        seen, todo = set(), [start]
        while todo:
            at = todo.pop()
            more = {b for a, b in edges if a == at} - seen
            seen |= more
            todo += more
        return seen

    def check_order(self):
        for folder, names in sorted(self.public.items()):
            for name in names or []:
                if os.path.join(folder, name) not in self.used:
                    problem(os.path.join(folder, "README.md"), 1, "%s is public in vain" % name)
        for room in sorted({a for a, _ in self.why}):
            if room in self.reached(room, self.why):
                problem(room, 1, "reaches itself through includes of other rooms")
        wings = {(self.wing(a), self.wing(b)) for a, b in self.why}
        wings = {(a, b) for a, b in wings if a != b}
        for wing in sorted(self.may):
            for other in self.listed[wing]:
                if (wing, other) not in wings:
                    problem(TABLE, 1, "`%s` lists %s, and includes nothing of it" % (wing, other))
            reached = self.reached(wing, wings)
            if wing in reached:
                problem(TABLE, 1, "`%s` reaches itself" % wing)
            for other in sorted(self.never[wing] & reached):
                problem(TABLE, 1, "`%s` reaches %s" % (wing, other))


def check_includes(rooms, path, lines):
    if path.split("/")[0] not in HOUSES:
        return
    if not rooms.wing(path):
        problem(path, 1, "is in no wing of " + TABLE)
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


def check_walk(defined):
    """The page that walks through the program names functions that the sources have."""
    with open(os.path.join(TOP, TABLE), encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            for name in FUNCTION.findall(line):
                if name not in defined:
                    problem(TABLE, number, "names %s(), which no source has" % name)


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
    for n in nodes(text):
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


def check_json(path, text):
    """A string that is JSON, or members of an object, as it stands is a constant and may be written so."""
    for m in LITERALS.finditer(text):
        literal = "".join(LITERAL.findall(m.group(0)))
        if not MEMBER.search(literal):
            continue
        try:
            constant = literal.replace(r'\"', '"').replace(r"\n", "\n")
            json.loads(constant if constant.startswith(("{", "[")) else "{%s}" % constant)
        except ValueError:
            constant = "%"
        if "%" in constant:
            problem(path, text.count("\n", 0, m.start()) + 1, "writes JSON by hand: base/json.h has a writer")


@functools.lru_cache(maxsize=None)
def nodes(text):
    return list(ast.walk(ast.parse(text)))


def uses(text):
    """The modules that a script imports, and the scripts whose file names it has as strings."""
    found = set()
    for n in nodes(text):
        if isinstance(n, ast.Import):
            found |= {a.name for a in n.names}
        elif isinstance(n, ast.ImportFrom):
            found.add(n.module)
        elif isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.endswith(".py"):
            found.add(n.value[:-len(".py")])
    return found


def check_script(path):
    """Whether a tier runs a script of tests/e2e; its lines are as tests/e2e/tiers.py has them."""
    try:
        lines = [line.tier for line in tiers.lines(os.path.join(TOP, path))]
    except ValueError as e:
        problem(path, 1, str(e))
        return True
    run = [tier for tier in lines if tier in tiers.TIERS]
    if run and ("svm" in lines) == ("not svm" in lines):
        problem(path, 1, "has no line `# tests: svm, ...' or `# tests: not svm, ...', or both")
    if run and not os.access(os.path.join(TOP, path), os.X_OK):
        problem(path, 1, "is not executable")
    return bool(run)


def check_tests():
    """No test is left that nothing runs."""
    texts = {}
    with open(os.path.join(TOP, "Makefile"), encoding="utf-8") as f:
        texts["Makefile"] = f.read()
    for top, dirs, files in os.walk(os.path.join(TOP, "tests")):
        dirs[:] = [d for d in dirs if d not in ("corpus", "__pycache__")]
        for name in files:
            with open(os.path.join(top, name), encoding="utf-8", errors="replace") as f:
                texts[os.path.relpath(os.path.join(top, name), TOP)] = f.read()
    here = [p for p in texts if os.path.dirname(p) == E2E]
    scripts = [p for p in here if p.endswith((".py", ".sh"))]
    todo = [p for p in scripts if check_script(p)] + [p for p in texts if p.endswith(".py") and p not in here]
    reached = set(todo)
    while todo:
        path = todo.pop()
        names = uses(texts[path]) if path.endswith(".py") else set()
        more = {os.path.join(E2E, name + ".py") for name in names} & set(scripts) - reached
        reached |= more
        todo += more
    for path in sorted(set(scripts) - reached):
        problem(path, 1, "no tier runs it, and no script that is run uses it")
    for path in sorted(set(here) - set(scripts)):
        word = re.compile(r"(?<![\w.])%s(?!\w)" % re.escape(os.path.splitext(os.path.basename(path))[0]))
        if not any(word.search(text) for other, text in texts.items() if other not in (path, RULES)):
            problem(path, 1, "no script uses it")
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    p = subprocess.run(["make", "-s", "-C", TOP, "print-unit-tests"], env=env, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, universal_newlines=True)
    if p.returncode:
        problem("Makefile", 1, p.stdout.strip())
    for path in sorted(texts.keys() - set(p.stdout.split())):
        if re.match(r"test_.*\.c$", os.path.basename(path)):
            problem(path, 1, "the Makefile does not build it")


def check_speech(path, code):
    """code: without comments and strings; calls may go over several lines."""
    rules = [(SPEAKS, "calls %s(): only commands print and exit")]
    if not path.startswith(IN_QEMU):
        rules.append((STREAMS, "uses %s: only commands print; library code reports (base/reporter.h)"))
        if path != RAW_PLACE:
            rules.append((RAW, "calls %s() on a standard stream, which only " + RAW_PLACE + " may"))
    for pattern, text in rules:
        for m in pattern.finditer(code):
            problem(path, code.count("\n", 0, m.start()) + 1, text % m.group(1))


def check_header(path):
    # What a BPF program includes is never compiled for this machine.
    bpf = path.endswith(".bpf.h")
    compiler = [os.environ.get("CLANG", "clang"), "-target", "bpf", "-O2", "-g"] if bpf else os.environ.get("CC", "gcc").split()
    p = subprocess.run(compiler + ["-std=gnu11", "-D_GNU_SOURCE", "-I.", "-Wall", "-Wextra", "-Werror",
                                   "-fsyntax-only", "-include", path, "-x", "c", "/dev/null"],
                       cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return path, p.returncode, p.stdout.strip().split("\n")[0]


def main():
    headers, count, defined = [], 0, set()
    names = Names(TOP, problem)
    rooms = Rooms()
    paths = list(sources())
    for at in sorted({os.path.dirname(p) for p in paths if p.endswith((".c", ".cc", ".h"))}):
        if at.split("/")[0] in HOUSES:
            rooms.check_folder(at)
    for path in paths:
        count += 1
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            text = f.read()
        if path != RULES:
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
        defined.update(re.findall(r"\b(\w+)\(", code))
        names.add(path, text, code)
        check_functions(path, lines)
        check_parameters(path, code)
        if not path.startswith(NO_WRITER):
            check_json(path, text)
        if path.endswith(".h"):
            headers.append(path)
        if not path.startswith(COMMANDS + "/"):
            check_speech(path, code)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, status, message in pool.map(check_header, headers if COMPILE else []):
            if status:
                problem(path, 1, "does not compile alone: " + message)
    names.check()
    check_walk(defined)
    check_index(paths)
    check_tests()
    rooms.check_order()
    for p in problems:
        print(p)
    print("%d files, %d headers, %d problems" % (count, len(headers), len(problems)))
    return 1 if problems else 0


sys.exit(main())

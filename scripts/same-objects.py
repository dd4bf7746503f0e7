#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Shows that a change of comments changes no object code.

  scripts/same-objects.py BASE [HEAD]     HEAD: the current commit unless given

Exports both commits, compiles each C file that changed, or that includes a header that changed,
with `-g0 -DNDEBUG -D__LINE__=0`, because comments move lines, and compares the object files byte by
byte. Sources of guest/ are left out, because their rules differ. Exit status: 0 if all objects are
equal, 1 if some differ, 2 if something cannot be compiled.
"""

import os
import re
import subprocess
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def git(*argv, **more):
    return subprocess.run(["git", *argv], check=True, stdout=subprocess.PIPE, **more).stdout


def sources(tree):
    """The texts of all C files below a tree, by path."""
    out = {}
    for folder, folders, names in os.walk(tree):
        folders[:] = [f for f in folders if os.path.relpath(os.path.join(folder, f), tree) not in ("build", "guest")]
        for name in names:
            if name.endswith((".c", ".h")):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as f:
                    out[os.path.relpath(path, tree)] = f.read()
    return out


def affected(text, changed):
    """The .c files among `text` that are in `changed` or include one of these, also indirectly."""
    users = {}
    for path, t in text.items():
        for name in INCLUDE.findall(t):
            for found in (name, os.path.normpath(os.path.join(os.path.dirname(path), name))):
                users.setdefault(found, set()).add(path)
    found, todo = set(), list(changed)
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo += users.get(path, ())
    return sorted(p for p in found if p.endswith(".c") and p in text)


def compile_all(tree, files):
    objects = [f"build/obj/{f[:-2]}.o" for f in files]
    made = subprocess.run(["make", "-C", tree, f"-j{os.cpu_count()}", "OPT=-O2 -g0 -DNDEBUG",
                           "CFLAGS=-w -D__LINE__=0 -Wno-builtin-macro-redefined", *objects],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if made.returncode:
        print(made.stdout[-2000:], end="")
        sys.exit(2)
    out = {}
    for f, o in zip(files, objects):
        with open(os.path.join(tree, o), "rb") as data:
            out[f] = data.read()
    return out


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    commits = [git("rev-parse", "--short", c, text=True).strip() for c in (sys.argv[1], (sys.argv + ["HEAD"])[2])]
    changed = git("diff", "--name-only", *commits, text=True).split()
    with tempfile.TemporaryDirectory() as top:
        trees = [os.path.join(top, str(i)) for i in range(2)]
        for tree, commit in zip(trees, commits):
            os.mkdir(tree)
            subprocess.run(["tar", "-x", "-C", tree], input=git("archive", commit), check=True)
        files = affected(sources(trees[0]), changed)
        same = [f for f in files if os.path.exists(os.path.join(trees[1], f))]
        gone = sorted(set(files) - set(same)) + [f for f in changed if f.endswith((".c", ".h")) and
                                                 not os.path.exists(os.path.join(trees[0], f))]
        before, after = (compile_all(tree, same) for tree in trees)
    different = [f for f in same if before[f] != after[f]] + gone
    for f in different:
        print(f"{f}: its object is another one")
    print(f"{'..'.join(commits)}: {len(changed)} files changed, {len(same)} objects compared, {len(different)} differ")
    return 1 if different else 0


sys.exit(main())

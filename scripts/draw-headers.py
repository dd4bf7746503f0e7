#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws headers by chance for a review of their comments.

  scripts/draw-headers.py [SEED [COUNT]]     COUNT: 40 unless given

Prints the seed, and for each header that was drawn the functions that it declares, as a table to
fill in. The reviewer reads the header and docs/writing.md, but not the .c file, and writes what
each function returns, who frees what, and which thread may call it; then compares with the code. An
answer that the header does not state counts as wrong. At least 95 % of all answers must be right.
"""

import os
import random
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMENT = re.compile(r"/\*.*?\*/", re.S)
# A declaration in column 0 that is neither a macro nor a type nor a static function.
FUNCTION = re.compile(r"^(?!static|typedef|struct \w+ \{|enum \w* ?\{|#)[A-Za-z_][^\n;{}()=]*?\b(\w+)\([^;{}]*\)[^;{}()]*;", re.M)


def functions(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return FUNCTION.findall(COMMENT.sub("", f.read()))


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().randrange(10 ** 6)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    files = subprocess.run(["git", "ls-files", "base", "profile", "symbolizer", "vmm"], cwd=TOP, check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    headers = [f for f in files if f.endswith(".h") and functions(f)]
    drawn = sorted(random.Random(seed).sample(headers, min(count, len(headers))))
    print(f"seed {seed}: {len(drawn)} of {len(headers)} headers that declare functions\n")
    print("| header | function | returns | who frees what | thread |\n|---|---|---|---|---|")
    for path in drawn:
        for name in functions(path):
            print(f"| {path} | {name} | | | |")


main()

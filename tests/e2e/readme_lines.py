#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 15 s
# tests: slow, at most 10800 s: bookworm
# tests: slow, at most 10800 s: trixie
# tests: not svm, files
"""readme_lines.py KVMPROF SCRATCH [bookworm|trixie]: the lines of README.md, in order, in a fresh clone, with the
output that README shows; then every file of build/ that a page of docs/ names is there. Boots of Debian's kernel end
after some seconds, and `make test`, which runs this test, is left out.

Without a release it runs on this system. The clone has no product of a build: the objects alone are copies of those
beside KVMPROF, with their sources' times, so make decides itself which of them to compile again, and links, packs and
embeds all anew. With a release it runs in a bare Debian, in which nothing is installed but make and git: all is compiled
from nothing, and `make check` is tried without its packages and with them."""

import glob
import os
import re
import shutil

import doc_examples
import e2e
from e2e import check, say

# `make test` runs this test.
LEFT_OUT = ("make test",)
# What make needs of a build to find objects current, and nothing that a target of `make demo` is.
SEEDS = ("obj/**/*.[od]", "gen/*.[ch]", "bpf/*.[od]", "guest/**/*.[od]", "harden-*", "pvm-*")
MARK = "@@ readme"


def lines_of(text):
    """[(command, output)] of a page's indented lines: a command stands behind "$ ", with its output below, or, in a
    block without such a prompt, is a line."""
    found, prompted = [], False
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M):
        prompted = any(line.startswith("    $ ") for line in block.split("\n"))
        for line in block.split("\n"):
            line = line[4:]
            if line.startswith("$ ") or (not prompted and line.strip()):
                found.append((re.sub(r"\s{2,}# .*", "", line[2:] if prompted else line).strip(), []))
            elif prompted and line.strip() and found:
                found[-1][1].append(line)
    return found


def shortened(command):
    """The same, for some seconds only."""
    command = re.sub(r"seconds=\d+", "seconds=1", command)
    if "vmlinuz" in command:
        command += " --duration 3"
    return command


def script_of(commands):
    """A script that runs all in one shell, with a marked line and the status behind each."""
    text = "export DEMO_SECONDS=1\n"
    for i, command in enumerate(commands):
        text += "%s\necho; echo '%s' %d $?\n" % (shortened(command), MARK, i)
    return text


def examine(lines, printed):
    """Whether each line ended well, and printed what README shows of it. Returns the number of compared ones."""
    parts = re.split(r"^%s (\d+) (\d+)$" % MARK, printed, flags=re.M)
    status = {int(n): int(s) for n, s in zip(parts[1::3], parts[2::3])}
    text = dict(zip(status, parts[0::3]))
    compared = 0
    for i, (command, output) in enumerate(lines):
        if not check(status.get(i) == 0, "`%s`: status %s: %s" % (command, status.get(i), text.get(i, printed)[-3000:])):
            continue
        for lacks in doc_examples.missing_lines(output, text[i]):
            check(False, "`%s` prints no line like %r; it prints:\n%s" % (command, lacks, text[i][-3000:]))
        compared += bool(output)
    first = next((text[i] for i, (command, _) in enumerate(lines) if command == "make demo" and i in text), "")
    for bad in ("No such file", "not found", r":\d+: warning:", "[Ee]rror:"):
        check(not re.search(bad, first), "make demo prints %r:\n%s" % (bad, first[:3000]))
    return compared


def named_files(clone):
    """Files of build/ that the pages name as something to use."""
    found = set()
    for page in [os.path.join(clone, "README.md")] + glob.glob(os.path.join(clone, "docs", "*.md")):
        for line in doc_examples.read(page).split("\n"):
            if line.startswith("    "):
                found |= set(re.findall(r"(?<![\w/])build/(?:guest/)?[a-z][\w.-]*(?=[\s:,]|$)", line))
    return found


def check_files(clone):
    files = named_files(clone)
    check({"build/kvmprof", "build/guest/initramfs.cpio", "build/guest/worker.cpio"} <= files, "pages name %s" % files)
    for name in sorted(files):
        check(os.path.exists(os.path.join(clone, name)), "make demo does not build %s, which a page uses" % name)


def cloned(path):
    """A clone, with what is changed in the tree that it is of."""
    import debian_root
    p = e2e.run("git", "clone", "-q", "--no-hardlinks", e2e.TOP, path)
    check(p.status == 0 or not os.path.isdir(os.path.join(e2e.TOP, ".git")), "git clone: " + p.err)
    debian_root.sources(path)


def seed(clone):
    """Objects, with their times; sources have those of the tree that they were compiled in."""
    copied = 0
    for pattern in SEEDS:
        for path in glob.glob(os.path.join(e2e.BUILD, pattern), recursive=True):
            to = os.path.join(clone, "build", os.path.relpath(path, e2e.BUILD))
            if os.path.isfile(path):
                os.makedirs(os.path.dirname(to), exist_ok=True)
                shutil.copy2(path, to)
                copied += 1
    return copied


def here(lines):
    """On this system. Nothing of it is changed: `make install` goes to a directory of the test."""
    clone = os.path.abspath("kvmprof")
    cloned(clone)
    copied = seed(clone)
    with open("lines.sh", "w") as f:
        f.write("exec 2>&1\ncd kvmprof\nexport DESTDIR=%s\n" % os.path.abspath("installed") + script_of([c for c, _ in lines]))
    p = e2e.run("bash", "lines.sh", timeout=1200)
    if re.search(r"fetch-debian-kernel: .*(cannot be fetched|can be fetched|no network)", p.out):
        lines = [x for x in lines if not re.search(r"\$D|\$\(scripts/fetch", x[0])]
        e2e.left_out("Debian's kernel cannot be fetched")
    compared = examine(lines, p.out)
    check(os.path.exists("installed/usr/local/bin/kvmprof"), "make install installs no program")
    check_files(clone)
    no_packages(clone)
    e2e.finish("%d lines, the output of %d compared; %d objects taken, %d compiled" %
               (len(lines), compared, copied, len(re.findall(r"^  (?:CC|CXX|AS) ", p.out, re.M))))


def no_packages(clone):
    """A compiler without headers: the packages are named, all of them, and nothing is compiled."""
    for goal, package in (("check", "libcmocka-dev"), ("all", "libcapstone-dev"), ("install", "libbpf-dev")):
        p = e2e.run("make", "-C", clone, goal, "CC=gcc -nostdinc", "BUILD=" + os.path.abspath("lacking"),
                    "DESTDIR=" + os.path.abspath("installed"))
        check(p.status != 0 and re.search(r"^needs: not installed: .*\b%s\b.*scripts/deps.sh" % package, p.err, re.M),
              "make %s does not name %s: %s" % (goal, package, (p.out + p.err)[-1000:]))
        check("fatal error" not in p.err, "make %s: the compiler's error: %s" % (goal, p.err[-1000:]))


def check_without(root):
    """`make check` in the system in which the build's packages are, and nothing else."""
    p = root.run("make check")
    m = re.search(r"needs: not installed: (.*) \(", p.err)
    if not check(p.status != 0 and m and "fatal error" not in p.err,
                 "make check without its packages: %s" % (p.out + p.err)[-2000:]):
        return "?"
    root.must("apt-get -qy install --no-install-recommends " + m.group(1), "the packages that make check names")
    p = root.must("make check", "make check", 5400)
    # What failed stands with its output anywhere among the tests.
    for failed in re.findall(r"^FAIL .*\n(?: .*\n)*", p.out, re.M):
        say(failed)
    m = re.search(r"\d+ passed, \d+ failed, \d+ skipped", p.out)
    return m.group(0) if m else "?"


def bare(release, lines):
    import debian_root
    root = debian_root.Root(release)
    source = os.path.join(root.path, "src")
    os.rename(source, os.path.join(root.path, "origin"))
    os.mkdir(source)
    root.must("apt-get -q update && apt-get -qy install --no-install-recommends make git && rm -rf /var/lib/apt/lists/*",
              "make and git")
    root.must("git config --global user.name t; git config --global user.email t@localhost; cd /origin && git init -q && "
              "git add -A && git commit -qm all && git clone -q /origin /src", "git clone")
    with open(os.path.join(root.path, "lines.sh"), "w") as f:
        f.write("exec 2>&1\n" + script_of([c for c, _ in lines]))
    p = root.must("bash /lines.sh", "the lines of README", 5400)
    compared = examine(lines, p.out)
    check_files(source)
    say("\n".join(line for line in p.out.split("\n") if not re.match(r"  [A-Z]+ +\S", line)))
    e2e.finish("%s: %d lines, the output of %d compared; make check: %s" %
               (release, len(lines), compared, check_without(root)))


e2e.need_kvm()
every = lines_of(doc_examples.read(os.path.join(e2e.TOP, "README.md")))
for part in LEFT_OUT + ("make demo", "make install", "$(scripts/fetch-debian-kernel.sh", "initramfs.cpio"):
    check(any(part in c for c, _ in every), "README has no line %r" % part)
chosen = [x for x in every if x[0] not in LEFT_OUT]
if e2e.EXTRA:
    bare(e2e.EXTRA[0], chosen)
here(chosen)

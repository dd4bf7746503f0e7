#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 20 s
# tests: not svm, disk
"""tests/check-source.py finds what breaks a rule: the changes below, in a copy of the tree. And scripts/commit-msg
accepts the messages of the right form alone."""

import glob
import os
import re
import shutil

import e2e
from e2e import check

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHECK = os.path.join(TOP, "tests", "check-source.py")
SPDX = "SPDX-License-Identifier: GPL-2.0-or-later"
GATE = "profile/compare/gate/gate.c"


def problems():
    p = e2e.run(CHECK, "--includes-only", "copy")
    last = re.search(r"(\d+) files, \d+ headers, (\d+) problems\n$", p.out)
    if not check(last and int(last.group(1)) > 700, "check-source.py: " + p.out[-300:] + p.err):
        return []
    found = p.out.split("\n")[:-2]
    check(len(found) == int(last.group(2)) and p.status == (1 if found else 0),
          "%d problems, %s told, status %d" % (len(found), last.group(2), p.status))
    return found


def include(path, header):
    def change():
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:    # behind the own header
            f.write(re.sub(r'(#include "[^"]*"\n)', r'\1#include "%s"\n' % header, text, count=1))
    return change


def add(path, text="/* %s */\n" % SPDX):
    def change():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
    return change


def edit(path, old, new):
    def change():
        with open(path) as f:
            text = f.read()
        check(old in text, "no %s in %s" % (old, path))
        with open(path, "w") as f:
            f.write(text.replace(old, new, 1))
    return change


CHANGES = [
    ("a page that no index names", "docs/lost.md", add("docs/lost.md"), "does not link to lost.md"),
    ("a link to a heading that is not there", "docs/README.md",
     edit("docs/README.md", "(tasks.md)", "(tasks.md#no-such-question)"), "is no heading of docs/tasks.md"),
    ("a name that is not imported", "tests/e2e/exact_counts.py",
     edit("tests/e2e/exact_counts.py", "import subprocess\n", ""), "uses subprocess, which it does not have"),
    ("an import in vain", "tests/e2e/exact.py", edit("tests/e2e/exact.py", "import time\n", "import time\nimport uuid\n"),
     "imports uuid and does not use it"),
    ("a forbidden include", "profile/format/sink/sink.c", include("profile/format/sink/sink.c", "vmm/vm.h"),
     "profile/format must not see"),
    ("a header that is not public", GATE, include(GATE, "profile/compare/stats/permute.h"), "is not public in"),
    ("a file in profile/", "profile/lost.c", add("profile/lost.c"), "is in no wing"),
    ("a room without README", "profile/compare/gate/README.md", lambda: os.unlink("profile/compare/gate/README.md"), "missing"),
    ("a README of one line", "profile/compare/gate/README.md",
     lambda: open("profile/compare/gate/README.md", "w").write("# gate\n"), "1 lines"),
    ("a circle of wings", "docs/architecture.md",
     lambda: [edit("docs/architecture.md", "| `profile/format` | symbolizer |", "| `profile/format` | symbolizer compare |")(),
              include("profile/format/files/userfile.c", "profile/compare/stats/change.h")()], "`profile/format` reaches itself"),
    ("a wing that must work without a machine", "docs/architecture.md",
     lambda: [edit("docs/architecture.md", "| `profile/analyse` | format symbolizer |",
                   "| `profile/analyse` | format symbolizer vmm |")(),
              include("profile/analyse/tables/agg.c", "vmm/vm.h")()], "`profile/analyse` reaches vmm"),
    ("a circle of rooms in a wing", "symbolizer/core/elf64.c", include("symbolizer/core/elf64.c", "symbolizer/types/btf.h"),
     "reaches itself through includes"),
    ("a function of 101 lines", GATE,
     edit(GATE, "\nint ", "\nvoid said(int *at);\nvoid said(int *at)\n{\n%s}\n\nint " % ("\t*at += 1;\n" * 101)),
     "a function of 101 lines"),
    ("a function of seven parameters", GATE,
     edit(GATE, "\nint ", "\nstatic void said(int (*a)(int, int), int b,\n\t\t int c, int d, int e, int f, int g)\n"
          "{\n}\n\nint "), "said() has 7 parameters"),
    ("a bare verb", GATE, edit(GATE, "\nint ", "\nstatic int take(void)\n{\n\treturn 0;\n}\n\nint "),
     "lacks the word"),
    ("a row that names a wing in vain", "docs/architecture.md",
     edit("docs/architecture.md", "| `profile/format` | symbolizer |", "| `profile/format` | symbolizer compare |"), "includes nothing of it"),
    ("a file that prints", GATE, edit(GATE, "\nint ", "\nvoid said(void);\nvoid said(void)\n{\n\tputs(\"\");\n}\n\nint "),
     "only commands print"),
    ("a message on standard error", GATE,
     edit(GATE, "\nint ", "\nvoid said(void);\nvoid said(void)\n{\n\tfprintf(stderr,\n\t\t\"\");\n}\n\nint "), "uses stderr"),
    ("a text on standard output", "profile/record/run/tune.c",
     edit("profile/record/run/tune.c", "\nvoid ", "\nvoid said(void);\nvoid said(void)\n{\n\tfputs(\"\"\n\t\"\", stdout);\n}\n\nvoid "),
     "uses stdout"),
    ("a write to standard error", "base/fault.c",
     edit("base/fault.c", "reporter_write_raw(", "(void)!write(STDERR_FILENO, "), "calls write() on a standard stream"),
    ("JSON that is put together by hand", GATE,
     edit(GATE, "\nint ", "\nvoid said(struct buf *b);\nvoid said(struct buf *b)\n{\n"
          "\tbuf_printf(b, \",\\\"%s\\\":%d\", \"a\", 1);\n}\n\nint "), "writes JSON by hand"),
    ("a comment that names a file that is gone", GATE, edit(GATE, "\nint ", "\n/* As vmm/lost.c has it. */\nint "),
     "names vmm/lost.c"),
    ("a script that no tier runs", "tests/e2e/gate.py", edit("tests/e2e/gate.py", "# tests: beside", "# once: beside"),
     "gate.py:1: no tier runs it"),
    ("a tier that there is not", "tests/e2e/sbom.py", edit("tests/e2e/sbom.py", "# tests: beside", "# tests: behind"),
     "sbom.py:1: not as tests/e2e/tiers.py has it"),
    ("a script that says nothing of the emulated host", "tests/e2e/pmu.py",
     edit("tests/e2e/pmu.py", "# tests: svm", "# once: svm"), "has no line `# tests: svm"),
    ("a module that only an unused one imports", "tests/e2e/lost.py",
     lambda: [add("tests/e2e/lost.py", "# %s\nimport lost_too\nprint(lost_too)\n" % SPDX)(), add("tests/e2e/lost_too.py", "# %s\n" % SPDX)()],
     "lost_too.py:1: no tier runs it"),
    ("a source that no script uses", "tests/e2e/unused_probe.c", add("tests/e2e/unused_probe.c"), "no script uses it"),
    ("a unit test in a folder of no room", "tests/unit/profile/nowhere/test_lost.c", add("tests/unit/profile/nowhere/test_lost.c"),
     "does not build it"),
    ("a walk through functions that are gone", "docs/architecture.md",
     edit("docs/architecture.md", "`cmd_run()`", "`cmd_lost()`"), "names cmd_lost()"),
    ("a link to a page that is gone", "docs/README.md", lambda: os.unlink("docs/hosts.md"), "links to hosts.md"),
    ("too many short files", "profile/compare/gate/short0.c",
     lambda: [add("profile/compare/gate/short%d.c" % i)() for i in range(51)], "files of less than 100 lines, at most 50"),
    ("a function without the word of its file", "profile/compare/gate/write.h",
     edit("profile/compare/gate/write.h", "\n#endif", "\nint lost_word(void);\n\n#endif"), "lost_word() begins neither"),
    ("a prefix of another folder", "profile/compare/diff/gate_side.h",
     add("profile/compare/diff/gate_side.h", "/* %s */\nint gate_lost(void);\n" % SPDX), "the prefix gate_ is that of"),
    ("two structs of one tag", "profile/compare/gate/family.c",
     edit("profile/compare/gate/family.c", "\nint ", "\nstruct merge {\n\tint a;\n};\n\nint "), "struct merge has the tag of one in"),
    ("a file without a header", "profile/compare/gate/headless.c",
     add("profile/compare/gate/headless.c", "/* %s */\n#include \"base/buf.h\"\n" % SPDX), "headless.c:1: includes base/buf.h first"),
    ("a header that all include", "vmm/many0.c",
     lambda: [add("vmm/many%d.c" % i, "/* %s */\n#include \"vmm/end.h\"\n" % SPDX)() for i in range(61)], "vmm/end.h:1: is included by"),
    ("a header of four files", "vmm/disk_config.h",
     edit("vmm/disk_config.h", "\n#endif", "\nvoid devices_destroy(struct vm *vm);\nvoid io_log_destroy(struct vm *vm);\n"
          "void vm_control_init(struct vm *vm);\nvoid gmem_alloc_free(struct gmem *m);\n\n#endif"), "declares functions of"),
    ("a call to a file above", "vmm/kvm.c",
     edit("vmm/kvm.c", "\nint ", "\nstatic void lost_call(struct vm *vm)\n{\n\tvm_destroy(vm);\n}\n\nint "), "which stands above it"),
]


def copy():
    shutil.rmtree("copy", ignore_errors=True)
    for at in ("base", "vmm", "guest", "symbolizer", "profile", "docs", "tests", "configs", "scripts"):
        shutil.copytree(os.path.join(TOP, at), os.path.join("copy", at), ignore=shutil.ignore_patterns("corpus"))
    for path in glob.glob(os.path.join(TOP, "*.md")) + [os.path.join(TOP, "Makefile")]:
        shutil.copy(path, "copy")


WHY = "\n\nThe counter was too narrow.\n"
# (message, words of the refusal; None where it is accepted)
MESSAGES = [
    ("pipeline: count lost samples in 64 bits" + WHY, None),
    ("record/pipeline, docs: count lost samples" + WHY, None),
    ("gate: do not pass one\n# a comment of git's\n\nBecause.\n# ---- >8 ----\n# a diff\n", None),
    ("docs: name \u00b5s" + "s" * 59 + WHY, None),
    ("Merge branch 'x'\n", None),
    ("fixup! pipeline: count lost samples\n", None),
    ("docs: name \u00b5s" + "s" * 60 + WHY, "has 73 characters"),
    ("count lost samples" + WHY, "write the subject as"),
    ("Pipeline: count lost samples" + WHY, "write the subject as"),
    ("pipeline:count lost samples" + WHY, "write the subject as"),
    ("cellar: count lost samples" + WHY, "called 'cellar'"),
    ("pipeline: Count lost samples" + WHY, "in lower case, not with 'Count'"),
    ("pipeline: counts lost samples" + WHY, "imperative ('add', 'fix'), not with 'counts'"),
    ("pipeline: the samples are counted" + WHY, "not with 'the'"),
    ("pipeline: pass lost samples on." + WHY, "without a full stop"),
    ("pipeline: count lost samples\nThe counter was too narrow.\n", "leave the second line blank"),
    ("pipeline: count lost samples\n", "the body is missing"),
    ("pipeline: count lost samples\n\nSigned-off-by: A <a@localhost>\n", "the body is missing"),
    ("", "write the subject as"),
]


def check_messages():
    """The hook, on each message, and as git runs it."""
    hook = os.path.join(TOP, "scripts", "commit-msg")
    if not shutil.which("git"):
        return
    e2e.run("git", "init", "-q", "messages")
    os.chdir("messages")
    for path in ("profile/record/pipeline/x.c", "profile/gate/x.c", "docs/x.md"):
        add(path)()
    e2e.run("git", "add", ".")
    for message, words in MESSAGES:
        with open("message", "w", encoding="utf-8") as f:
            f.write(message)
        p = e2e.run(hook, "message")
        fine = p.status == 0 and not p.err if words is None else p.status == 1 and words in p.err
        check(fine, "commit-msg, of %r: status %d: %s" % (message, p.status, p.err))
    os.symlink(hook, ".git/hooks/commit-msg")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-q"]
    p = e2e.run(*git, "-m", "pipeline: counts samples", "-m", "Why.")
    check(p.status != 0 and "not with 'counts'" in p.err, "a commit of the wrong form: status %d: %s" % (p.status, p.err))
    p = e2e.run(*git, "-m", "pipeline: count samples", "-m", "Why.")
    check(p.status == 0, "a commit of the right form: status %d: %s" % (p.status, p.err))
    os.chdir("..")


check_messages()
copy()
check(problems() == [], "the tree itself: %s" % problems())
left = CHANGES
while left:
    # At once as many as do not change the same place; what goes into GATE stands one behind the other.
    together = {c[1]: c for c in reversed(left) if c[1] != GATE}
    batch = [c for c in left if c[1] == GATE or c is together[c[1]]]
    left = [c for c in left if c not in batch]
    copy()
    os.chdir("copy")
    for _, _, change, _ in batch:
        change()
    os.chdir("..")
    found = problems()
    for title, place, _, words in batch:
        check(any(words in line for line in found), "%s (%s) was not found: %s" % (title, place, found))
e2e.finish("%d broken rules found, %d messages judged" % (len(CHANGES), len(MESSAGES)))

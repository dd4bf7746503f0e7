#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The help texts, the manual pages and the completion say what the program does.

* Each option of a command's --help is taken by the command and stands in its manual page, and
  the other way round. The pages render without a warning and name each other.
* Each example of `kvmprof help`, the manual pages, README.md and docs/tour.md is run, in order, on profiles of
  the demo guest, which also stands in for Linux images. What can't be is in NOT_RUN with a reason.
* The completion gives the right words, asked directly and by the TAB key of a real bash.
"""

import os
import pty
import re
import select
import shutil
import subprocess
import time

import e2e
from e2e import check

e2e.need_kvm()
BASH = os.path.join(e2e.TOP, "configs", "completion", "kvmprof.bash")
OVERVIEW = os.path.join(e2e.TOP, "docs", "kvmprof.1")
PAGES = os.path.join(e2e.TOP, "docs", "man")

# Examples (parts of them) that the demo guest can't stand in for; other tests run their like.
NOT_RUN = {
    "kvmprof attach": "needs a VMM that runs: attach_qemu.py",
    "$I": "needs a disk image: disk_images.py and disk_boot.py",
    "--domain": "needs a libvirt: attach_libvirt.py",
    "kvmprof ps": "needs a guest that runs: tasks.py",
    "off-cpu": "needs a Linux guest: tasks.py",
    "kvmprof ctl": "needs a run that goes on: control.py",
    "--boot bzimage": "needs a real bzImage: kaslr_boot.py",
    "--snapshot": "needs a kernel that comes to the marker: snapshots.py",
    "xen-4.17": "needs Debian's packages: other_kernels.py",
    "--symbols live": "needs a Linux kernel: live_symbols.py",
    "--exec": "needs a Linux kernel: exec.py",
    "kvmprof bench": "takes minutes, or needs two kernels: bench_command.py",
    "kvmprof push": "needs a server: push_profile.py",
    "--disk": "needs a disk and a Linux kernel: disk_io.py",
    "pvclock_clocksource_read": "a function of Linux: check of annotate in the unit tests",
}

os.mkdir("bin")
os.symlink(e2e.KVMPROF, "bin/kvmprof")
os.environ["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


# -- options --------------------------------------------------------------------------

SPEC = re.compile(r"(-[A-Za-z]|--[a-z][-a-z]*)(\[?[ =][^ a-z-][^ ]*)?,? *(.*)$")


def help_options(text):
    """{option: whether a value follows} of the lines that begin with an option. The value of
    `-o, --output FILE' is that of both."""
    found = {}
    for line in text.split("\n"):
        m = re.match(r" {2,8}(-.*)$", line)
        rest = m.group(1) if m else ""
        while rest:
            m = SPEC.match(rest)
            if not m:
                break
            rest = m.group(3)
            found[m.group(1)] = bool(m.group(2)) or bool(re.match(r"--[a-z][-a-z]*[ =][^ a-z-]", rest))
    return found


def plain(roff):
    """A line of a manual page without macros and escapes."""
    text = re.sub(r"^\.[A-Z]+ ", "", roff).replace("\\-", "-").replace("\\(aq", "'").replace('"', "")
    return re.sub(r"\\f.", "", text)


def man_options(page):
    """The options in the heads of .TP paragraphs."""
    heads = re.findall(r"^\.TP\n(.*)$", page, re.M)
    words = [w for h in heads if plain(h).startswith("-") for w in re.split(r"[ ,=\[]+", plain(h))]
    return {w for w in words if re.match(r"-[A-Za-z]$|--[a-z]", w)}


def command_names():
    text = e2e.kvmprof("help").out.split("\nExamples")[0]
    return re.findall(r"^  ([a-z]+) +\S", text, re.M)


def check_options(command):
    p = e2e.kvmprof("help", command)
    direct = e2e.kvmprof(command, "--help")
    check(p.status == 0 and p.out == direct.out and not p.err, "help %s is not %s --help" % (command, command))
    options = help_options(p.out)
    check("--help" in options and "-h" in options, "%s --help does not tell of --help" % command)
    path = os.path.join(PAGES, "kvmprof-%s.1" % command)
    if not check(os.path.exists(path), "no manual page: " + path):
        return 0
    page = man_options(read(path))
    check(not set(options) - page, "not in kvmprof-%s.1: %s" % (command, sorted(set(options) - page)))
    check(not page - set(options), "not in %s --help: %s" % (command, sorted(page - set(options))))
    for option, value in options.items():
        p = e2e.kvmprof(command, option, *(["1"] if value else []), "--no-such-option")
        ends = option in ("-h", "--help", "--list")
        check("option '%s'" % option not in p.err and p.status == (0 if ends else 2),
              "%s does not know %s of its help: %s" % (command, option, p.err))
    return len(options)


# -- manual pages ---------------------------------------------------------------------

def check_page(path):
    page = read(path)
    for argv in (["groff", "-man", "-Tutf8", "-ww", "-z", path], ["man", "--warnings", "-l", path]):
        p = e2e.run(*argv, env=dict(os.environ, LC_ALL="C.UTF-8", MANPAGER="cat"))
        check(p.status == 0 and not p.err.strip(), "%s: %s" % (" ".join(argv), p.err.strip()[:300]))
    for name in re.findall(r"^\.BR (kvmprof\S*) \(1\)", page, re.M):
        name = name.replace("\\-", "-") + ".1"
        check(os.path.exists(os.path.join(PAGES, name)) or name == "kvmprof.1",
              "%s refers to %s, which is not there" % (path, name))


def check_pages(commands):
    pages = sorted(os.listdir(PAGES))
    check(pages == sorted("kvmprof-%s.1" % c for c in commands), "pages: %s" % pages)
    overview = read(OVERVIEW).replace("\\-", "-")
    also = overview[overview.index(".SH SEE ALSO"):]
    for c in commands:
        check(overview.count(".BR kvmprof-%s (1)" % c) >= 2 and "kvmprof-%s (1)" % c in also,
              "docs/kvmprof.1 does not list " + c)
    for path in [OVERVIEW] + [os.path.join(PAGES, p) for p in pages]:
        check_page(path)
    page = read(os.path.join(PAGES, "kvmprof-export.1")).split(".SH OPTIONS")[0]
    told = [plain(x) for x in re.findall(r"^\.TP\n(.*)$", page, re.M)]
    formats = re.findall(r"^  (\S+)", e2e.kvmprof("export", "--list").out, re.M)
    check(told == formats, "kvmprof-export.1 has the formats %s, not %s" % (told, formats))
    p = e2e.run("make", "-s", "-C", e2e.TOP, "install", "BUILD=" + e2e.BUILD,
                "DESTDIR=" + os.path.abspath("root"), "PREFIX=/usr")
    share = os.path.join("root", "usr", "share")
    check(p.status == 0, "make install: " + p.err)
    check(sorted(os.listdir(os.path.join(share, "man", "man1"))) == sorted(["kvmprof.1"] + pages),
          "make install leaves pages out")
    check(read(os.path.join(share, "bash-completion", "completions", "kvmprof")) == read(BASH),
          "make install does not install the completion")


# -- examples -------------------------------------------------------------------------

def help_examples():
    return re.findall(r"^      ((?:kvmprof|perf) .*)$", e2e.kvmprof("help").out, re.M)


def man_examples(path):
    blocks = re.findall(r"^\.EX\n(.*?)^\.EE$", read(path), re.M | re.S)
    return [plain(x) for b in blocks for x in b.split("\n") if x]


def text_examples(name):
    lines = re.findall(r"^    \$ ((?:build/kvmprof|perf)\b.*)$", read(os.path.join(e2e.TOP, name)), re.M)
    return [re.sub(r"\s{2,}# .*", "", x.replace("build/kvmprof", "kvmprof")) for x in lines]


def make_fixtures():
    """What the examples find in their directory; all of it is the demo guest's."""
    os.mkdir("fixtures")
    os.chdir("fixtures")
    demo = os.path.join(e2e.BUILD, "guest", "demo.elf")
    os.makedirs("rootfs/lib")
    os.makedirs("dbg")
    os.makedirs("build/guest")
    for name in ("vmlinux", "bzImage", "vmlinuz-demo", "rootfs/lib/kernel", "dbg/vmlinux"):
        shutil.copy(demo, name)
    for name in ("initramfs.cpio", "build/guest/initramfs.cpio", "build/guest/worker.cpio"):
        shutil.copy(e2e.INITRAMFS, name)
    made = "demo boot old1 new1".split()
    for name in made:
        p = e2e.kvmprof("run", "-q", "--append", "seconds=1", "-o", name + ".data")
        check(p.status == 0, "run: " + p.err)
    shutil.copy(os.path.join(e2e.TOP, "configs", "gate-share.toml"), "gate.toml")
    for i in "23":
        shutil.copytree("old1.data", "old%s.data" % i)
        shutil.copytree("new1.data", "new%s.data" % i)
    shutil.copytree("boot.data", "perf.data")
    for out, argv in (("System.map", ["symbols", "vmlinux"]), ("stacks.folded",
                      ["export", "--format", "folded", "-i", "demo.data"])):
        p = e2e.kvmprof(*argv)
        check(p.status == 0 and p.out, "%s: %s" % (argv, p.err))
        with open(out, "w") as f:
            f.write(p.out)
    os.chdir("..")


def shortened(line):
    """The same with a demo that ends after a second, and without scripts that are not there."""
    line = re.sub(r"seconds=\d+", "seconds=1", line)
    if line.startswith("kvmprof run") and "seconds=1" not in line:
        line += " --append seconds=1"
    if not shutil.which("stackcollapse-perf.pl"):
        line = line.replace("| stackcollapse-perf.pl | flamegraph.pl >", ">")
    return line


def run_examples(source, lines):
    check(lines, "%s has no examples" % source)
    here = os.getcwd()
    work = "work-" + os.path.basename(source)
    shutil.copytree("fixtures", work)
    os.chdir(work)
    env = dict(os.environ, K=os.getcwd(), D=os.getcwd())
    ran = 0
    for line in lines:
        if any(part in line for part in NOT_RUN):
            continue
        if "perf " in line and not shutil.which("perf"):
            continue
        p = e2e.run("bash", "-o", "pipefail", "-c", shortened(line), env=env)
        # A gate's answer is no failure of the example.
        fine = (0, 1, 3) if line.startswith("kvmprof gate") else (0,)
        check(p.status in fine, "%s: `%s`: status %d: %s" % (source, line, p.status, p.err.strip()[-400:]))
        ran += 1
    os.chdir(here)
    shutil.rmtree(work)
    return ran


def check_examples():
    make_fixtures()
    sources = [("help", help_examples()), ("README.md", text_examples("README.md")),
               ("docs/tour.md", text_examples("docs/tour.md"))]
    sources += [(os.path.basename(p), man_examples(p)) for p in
                [OVERVIEW] + [os.path.join(PAGES, f) for f in sorted(os.listdir(PAGES))]]
    ran = sum(run_examples(*s) for s in sources)
    lines = [x for _, example in sources for x in example]
    for part in NOT_RUN:
        check(any(part in x for x in lines), "no example has what NOT_RUN lists: " + part)
    return ran, len(lines)


# -- completion -----------------------------------------------------------------------

ASK = '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kvmprof; printf "%s\\n" "${COMPREPLY[@]}"'


def complete(*words):
    p = e2e.run("bash", "-c", ASK, BASH, "kvmprof", *words)
    check(p.status == 0 and not p.err, "completion of %s: %s" % (words, p.err))
    return sorted(set(p.out.split()))


def check_words(commands):
    check(complete("re") == ["report"], "re: %s" % complete("re"))
    check(complete("") == sorted(commands + ["help", "--help", "--version"]), "commands: %s" % complete(""))
    check(complete("help", "topi") == ["topics"] and complete("help", "an") == ["annotate"], "help")
    for c in commands:
        want = sorted(help_options(e2e.kvmprof(c, "--help").out))
        check(complete(c, "-") == want, "options of %s: %s, not %s" % (c, complete(c, "-"), want))
    check(complete("flamegraph", "--inv") == ["--inverted"], "flamegraph --inv")
    formats = re.findall(r"^  (\S+)", e2e.kvmprof("export", "--list").out, re.M)
    check(complete("export", "--format", "") == sorted(formats), "formats")
    check(complete("export", "--format", "=", "fol") == ["folded"], "--format=fol")
    check(complete("report", "--sort", "comm,ds") == ["comm,dso"], "a list of keys")
    check(complete("report", "--top", "") == [], "a number is no file")
    with open("a b.data", "w"):
        pass
    p = e2e.run("bash", "-c", ASK, BASH, "kvmprof", "report", "-i", "a")
    check(p.out == "a b.data\n", "files: %r" % p.out)
    check_values()


def check_values():
    """Each word that is offered as a value is taken; a wrong one is not."""
    for command, option, rest in (("report", "--sort", []), ("report", "--order", []), ("diff", "--order", ["x", "x"]),
                                  ("flamegraph", "--by", []), ("flamegraph", "--lanes", ["--chart"]),
                                  ("script", "-F", []), ("annotate", "-M", ["x"]), ("run", "--boot", ["/none"]),
                                  ("export", "--names", ["--format", "folded"])):
        words = complete(command, option, "")
        check(words, "no values for %s %s" % (command, option))
        files = [] if command in ("diff", "run") else ["-i", "/none"]
        for word in words + ["nonsense"]:
            p = e2e.kvmprof(command, option, word, *files, *rest)
            check(p.status == (2 if word == "nonsense" else 1), "%s %s %s: status %d: %s" %
                  (command, option, word, p.status, p.err.strip()))


def type_in(argv, rc, lines, until):
    """What an interactive shell prints when these lines are typed."""
    pid, fd = pty.fork()
    if not pid:
        os.execvpe(argv[0], argv, dict(os.environ, TERM="dumb", PS1="ready> ", HISTFILE="/dev/null"))
    text, end = "", time.monotonic() + 60
    todo = [rc] + lines
    try:
        while time.monotonic() < end and until not in text:
            # A line goes in when the shell asks for it.
            if todo and len(re.findall("ready> ", text)) > len(lines) - len(todo) + 1:
                os.write(fd, todo.pop(0).encode())
            if select.select([fd], [], [], 0.2)[0]:
                text += os.read(fd, 65536).decode(errors="replace")
    except OSError:
        pass    # the shell is gone
    os.close(fd)
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        pass
    os.waitpid(pid, 0)
    return text


def check_tab_key():
    # What is typed is told instead of run; only the completion's questions reach the program.
    stand_in = 'kvmprof() { case " $* " in *" help "*|*" --help "*) command kvmprof "$@";; ' \
               '*) echo "typed:$*:";; esac; }; . "%s"\n' % BASH
    want = "typed:flamegraph --inverted demo.svg:"
    with open("demo.svg", "w"):
        pass
    text = type_in(["bash", "--norc", "--noprofile", "-i"], stand_in, ["kvmprof fl\t--inv\tdemo.s\t\n"], want)
    check(want in text, "the TAB key in bash: %r" % text[-500:])


commands = command_names()
check({"run", "report", "annotate", "diff", "check"} <= set(commands), "kvmprof help lists %s" % commands)
for wrong in (["help", "nonsense"], ["nonsense"], ["help", "run", "more"], []):
    p = e2e.kvmprof(*wrong)
    check(p.status == 2 and p.err and not p.out, "%s: status %d" % (wrong, p.status))
topics = re.findall(r"^  ([a-z]+) +\S", e2e.kvmprof("help", "topics").out, re.M)
check(topics and not set(topics) & set(commands), "topics: %s" % topics)
for topic in topics:
    p = e2e.kvmprof("help", topic)
    check(p.status == 0 and p.out.startswith(topic + ": "), "help " + topic)

options = sum(check_options(c) for c in commands)
e2e.need_tool("groff")
e2e.need_tool("man")
check_pages(commands)
check_words(commands)
check_tab_key()
if shutil.which("zsh"):
    p = subprocess.run(["zsh", "-n", os.path.join(e2e.TOP, "configs", "completion", "_kvmprof")],
                       stderr=subprocess.PIPE)
    check(p.returncode == 0, "zsh: %r" % p.stderr)
ran, examples = check_examples()
e2e.finish("%d commands, %d options, %d of %d examples run" % (len(commands), options, ran, examples))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 48 s
# tests: not svm, files
"""The help texts, the manual pages and the completion say what the program does.

* Each option of a command's --help is taken by the command and stands in its manual page, and
  the other way round. The pages render without a warning and name each other.
* Each example of `kvmprof help` and of the manual pages is run, in order (doc_examples.py; those of README.md
  and docs/ are doc_pages.py's).
* The completion gives the right words, asked directly and by the TAB key of a real bash; that of zsh gives the same words.
"""

import json
import os
import pty
import re
import select
import time

import doc_examples
import e2e
from doc_examples import Example, read
from e2e import check

e2e.need_kvm()
BASH = os.path.join(e2e.TOP, "configs", "completion", "kvmprof.bash")
OVERVIEW = os.path.join(e2e.TOP, "docs", "kvmprof.1")
PAGES = os.path.join(e2e.TOP, "docs", "man")

os.mkdir("bin")
os.symlink(e2e.KVMPROF, "bin/kvmprof")
os.environ["PATH"] = os.path.abspath("bin") + ":" + os.environ["PATH"]


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
    """A line of a manual page without macros, their quotes and escapes."""
    text = re.sub(r"^\.[A-Z]+ ", "", roff)
    text = text if text == roff else text.replace('"', "")
    return re.sub(r"\\f.", "", text.replace("\\-", "-").replace("\\(aq", "'"))


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

def check_json(commands):
    """`kvmprof help --json` has the options that the texts have."""
    p = e2e.kvmprof("help", "--json")
    page = json.loads(p.out)
    told = {c["name"]: c for c in page["commands"]}
    check(p.status == 0 and not p.err and sorted(told) == sorted(commands), "help --json: %d, %s" % (p.status, sorted(told)))
    for name, c in told.items():
        text = help_options(e2e.kvmprof(name, "--help").out)
        have = {"--" + o["name"]: "value" in o for o in c["options"]}
        have.update({"-" + o["letter"]: "value" in o for o in c["options"] if "letter" in o})
        check(set(have) == set(text), "help --json, %s: %s" % (name, sorted(set(have) ^ set(text))))
        check(c["usage"].startswith("Usage: kvmprof " + name) and c["group"] and c["help"], str(c)[:300])


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
    version = "kvmprof " + read(os.path.join(e2e.TOP, "VERSION")).strip()
    for page in sorted(os.listdir(os.path.join(share, "man", "man1"))):
        head = re.search(r"^\.TH .*$", read(os.path.join(share, "man", "man1", page)), re.M).group(0)
        check('"%s"' % version in head, "%s, installed, has another version than VERSION: %s" % (page, head))
    check(read(os.path.join(share, "bash-completion", "completions", "kvmprof")) == read(BASH),
          "make install does not install the completion")


# -- examples -------------------------------------------------------------------------

def help_examples():
    lines = re.findall(r"^      ((?:kvmprof|perf) .*)$", e2e.kvmprof("help").out, re.M)
    return [Example(x, [], "help") for x in lines]


def man_examples(path):
    blocks = re.findall(r"^\.EX\n(.*?)^\.EE$", read(path), re.M | re.S)
    return [Example(plain(x), [], os.path.basename(path)) for b in blocks for x in b.split("\n") if x]


def check_examples():
    doc_examples.make_fixtures()
    sources = [("help", help_examples())]
    sources += [(os.path.basename(p), man_examples(p)) for p in
                [OVERVIEW] + [os.path.join(PAGES, f) for f in sorted(os.listdir(PAGES))]]
    ran = 0
    for source, examples in sources:
        check(examples, "%s has no examples" % source)
        ran += doc_examples.run_examples(source, examples)[0]
    return ran, sum(len(x) for _, x in sources)


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
    # The formats that the help of `import` names.
    named = e2e.kvmprof("import", "--help").out.split("--format FORM")[1].split("(default")[0]
    check(complete("import", "--format", "") == sorted(re.findall(r"([-a-z]+):(?: |\n|$)", named)), "import --format: " + named)
    check_values()


def check_values():
    """Each word that is offered as a value is taken; a wrong one is not."""
    for command, option, rest in (("report", "--sort", []), ("report", "--order", []), ("diff", "--order", ["x", "x"]),
                                  ("flamegraph", "--by", []), ("flamegraph", "--lanes", ["--chart"]),
                                  ("script", "-F", []), ("annotate", "-M", ["x"]), ("run", "--boot", ["/none"]),
                                  ("export", "--names", ["--format", "folded"]), ("import", "--format", ["/none"])):
        words = complete(command, option, "")
        check(words, "no values for %s %s" % (command, option))
        files = [] if command in ("diff", "run", "import") else ["-i", "/none"]
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


# The TAB key stores the words that are offered and the line that came of them.
ZSH = r"""
PS1='ready> '; unset zle_bracketed_paste; unsetopt beep
fpath=(%s $fpath); autoload -Uz compinit; compinit -D -u
compadd() {
	local -a offered
	if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
		builtin compadd -A offered "$@"
		(( $#offered )) && print -rl -- $offered >> zsh.words
	fi
	builtin compadd "$@"
}
tab() { zle expand-or-complete; print -r -- "line:$BUFFER" >> zsh.words; zle kill-whole-line }
zle -N tab; bindkey '^I' tab; : > zsh.words
"""


def zsh_words(lines):
    """What is offered for each of these lines, and what they become."""
    with open("zsh.rc", "w", encoding="ascii") as f:
        f.write(ZSH % os.path.dirname(BASH))
    pid, fd = pty.fork()
    if not pid:
        os.execvpe("zsh", ["zsh", "-f", "-i"], dict(os.environ, TERM="dumb", HISTFILE="/dev/null"))
    text, told, found, end = "", "", [], time.monotonic() + 120
    todo = [". ./zsh.rc\n"] + [line + "\t" for line in lines]
    try:
        while len(found) < len(lines) and time.monotonic() < end:
            if todo and (len(found) == len(lines) - len(todo) if os.path.exists("zsh.words") else len(todo) > len(lines)):
                os.write(fd, todo.pop(0).encode())
            if select.select([fd], [], [], 0.05)[0]:
                text += os.read(fd, 65536).decode(errors="replace")
            told = read("zsh.words") if os.path.exists("zsh.words") else ""
            found = re.findall(r"((?:(?!line:).*\n)*)line:(.*)\n", told)
    except OSError:
        pass    # the shell is gone
    os.kill(pid, 9)
    os.close(fd)
    os.waitpid(pid, 0)
    check(len(found) == len(lines), "zsh: %r, %r" % (told[-500:], text[-500:]))
    return [(sorted(set(words.split())), line) for words, line in found]


def check_zsh():
    """The words are those of bash. A value in one word with its option is two words to bash."""
    values = [("report", "--sort"), ("report", "-s"), ("report", "-g"), ("report", "--color"), ("report", "--order"), ("report", "--phase"),
              ("mem", "--sort"), ("mem", "--mode"), ("flamegraph", "--by"), ("flamegraph", "--lanes"), ("export", "--format"), ("export", "--names"),
              ("import", "--format"), ("gate", "-f"), ("bench", "--format"), ("push", "--protocol"), ("annotate", "-M"), ("attach", "--technique"),
              ("dmesg", "-l"), ("ps", "--sort"), ("ps", "--control"), ("run", "--virtio"), ("run", "--rootfs-as"), ("run", "--boot"),
              ("run", "--hugepages"), ("run", "--cwd"), ("report", "--top")]
    typed = [(c, o, "") for c, o in values] + [("re",), ("help", "topi"), ("attach", "-"), ("list", "--"), ("ctl", ""), ("ctl", "collect", ""),
                                               ("ctl", "vcpu", ""), ("check", ""), ("report", "--sort", "comm,ds")]
    lines = [" ".join(("kvmprof",) + words) for words in typed] + ["kvmprof export --format=fol", "kvmprof report -i demo.s"]
    got = zsh_words(lines)
    for words, (offered, _) in zip(typed, got):
        want = [x.rsplit(",", 1)[-1] for x in complete(*words)]
        check(offered == sorted(want), "zsh, %s: %s, bash: %s" % (words, offered, want))
    check([line for _, line in got[-2:]] == ["kvmprof export --format=folded ", "kvmprof report -i demo.svg "], "zsh: %s" % got[-2:])


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
check_json(commands)
e2e.need_tool("groff")
e2e.need_tool("man")
check_pages(commands)
check_words(commands)
check_tab_key()
if e2e.has_tool("zsh"):
    check_zsh()
ran, examples = check_examples()
e2e.finish("%d commands, %d options, %d of %d examples run" % (len(commands), options, ran, examples))

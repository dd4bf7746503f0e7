#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 9 s
# tests: not svm, files
"""What people type who do not know kvmprof yet: each gets what was meant, or one line that says what to type.

Names of commands and options that are mistyped or perf's, profiles that are not there or half given, images
and sockets that are something else; the first words of the program; how to keep it quiet.
"""

import os
import pty
import re
import select
import socket
import time

import e2e
from e2e import check

e2e.need_kvm()


def told(argv, status, *patterns, err_lines=None, env=None):
    """Runs it; each pattern is in what it prints. Returns what it prints."""
    p = e2e.kvmprof(*argv, env=env)
    name = "kvmprof " + " ".join(argv)
    check(p.status == status, "%s: status %d, expected %d: %s" % (name, p.status, status, p.err[-300:]))
    for pattern in patterns:
        check(re.search(pattern, p.out + p.err, re.M), "%s: no %r in %r" % (name, pattern, (p.out + p.err)[-600:]))
    if err_lines is not None:
        check(p.err.count("\n") == err_lines, "%s: %d lines, expected %d: %s" %
              (name, p.err.count("\n"), err_lines, p.err[-600:]))
    return p


def names():
    p = told([], 2, r"^kvmprof: profile ", r"kvmprof run ", r"kvmprof check", r"kvmprof help")
    check(not p.out and 5 <= p.err.count("\n") <= 7, "kvmprof alone prints %d lines" % p.err.count("\n"))
    version = told(["--version"], 0, r"^kvmprof \d+\.\d+").out
    for word in ("version", "-v", "-V"):
        check(told([word], 0).out == version, "kvmprof %s is not --version" % word)
    told(["rnu"], 2, r"did you mean run\?", err_lines=1)
    told(["flamegrpah"], 2, r"did you mean flamegraph\?", err_lines=1)
    told(["help", "evnets"], 2, r"did you mean events\?", err_lines=1)
    told(["record"], 2, r"`kvmprof run`", err_lines=1)
    told(["evlist"], 2, r"`kvmprof report --header`", err_lines=1)
    p = told(["zzzzzz"], 2, r"unknown command 'zzzzzz'", err_lines=1)
    check("did you mean" not in p.err, "a word like no command suggests one: " + p.err)
    told(["run", "--durtion", "3"], 2, r"did you mean --duration\?", err_lines=1)
    told(["run", "--durtion=3"], 2, r"did you mean --duration\?", err_lines=1)
    told(["report", "--ordre", "self"], 2, r"did you mean --order\?", err_lines=1)
    told(["gate", "--hsitory", "x"], 2, r"did you mean --history\?", err_lines=1)
    told(["top", "--append", "x"], 2, r"kvmprof top -- --append", err_lines=1)


def profiles():
    p = e2e.kvmprof("run", "-q", "--append", "seconds=1", "-o", "demo.data")
    check(p.status == 0, "run: " + p.err)
    by_option = told(["report", "-i", "demo.data", "-n", "3"], 0, "demo_main").out
    for argv in (["report", "demo.data", "-n", "3"], ["report", "-n", "3", "demo.data"],
                 ["report", "-i", "demo.data/data", "-n", "3"], ["report", "--stdio", "-n", "3", "demo.data"]):
        check(told(argv, 0).out == by_option, "%s is not report -i demo.data" % argv)
    told(["report", "demo.data", "other.data"], 2, "give one profile only", err_lines=1)
    p = told(["report", "-i", "demo.data", "-S", "left_leaf,right_leaf"], 0)
    shown = re.findall(r"%.* (\S+) +\[kernel", p.out)
    check(sorted(shown) == ["left_leaf", "right_leaf"], "report -S shows %s" % shown)
    told(["report", "-i", "demo.data", "-S", "left.leaf"], 1, "did you mean left_leaf", err_lines=1)
    told(["report", "-F", "overhead", "-i", "demo.data"], 2, "--sort", err_lines=1)
    told(["script", "-F", "ip,sym", "-i", "demo.data"], 2, r"\+srcline", err_lines=1)
    told(["flamegraph", "demo.data"], 0, "wrote flamegraph.svg")
    told(["run", "-F", "max"], 2, "0.1 to 50000", err_lines=1)
    p = e2e.kvmprof("annotate", "-i", "demo.data", "-s", "left_leaf")
    check(p.status == 0 and p.out == e2e.kvmprof("annotate", "-i", "demo.data", "left_leaf").out, "annotate -s")
    told(["flamegraph", "-i", "demo.data", "-o", "demo.svg"], 0, "wrote demo.svg")
    home = os.path.abspath("nowhere")
    told(["run", "-q", "--append", "seconds=1", "-o", "homeless.data"], 0, "warning: HOME is not",
         env=dict(os.environ, HOME=home))
    check(not os.path.exists(home), "a HOME that is not there is made")
    os.mkdir("empty")
    os.chdir("empty")
    told(["report"], 1, r"perf\.data: there is no profile; `kvmprof run` records one", err_lines=1)
    os.chdir("..")
    told(["report", "-i", "empty"], 1, "empty: this directory is not a profile", err_lines=1)
    told(["inspect", "demo.data"], 1, "is a profile, .*kvmprof report -i demo.data", err_lines=1)


def images():
    demo = os.path.join(e2e.BUILD, "guest", "demo.elf")
    at = told(["symbols", demo, "left_leaf"], 0, r"^[0-9a-f]{16} left_leaf\+0x0$").out.split()[0]
    check(at in told(["symbols", demo, at], 0, "left_leaf").out, "symbols by the address that it tells")
    told(["symbols", demo, "no_such_function"], 1, "neither a function of it nor a hexadecimal address", err_lines=1)
    with open("odd.img", "wb") as f:
        f.write(b"x" * 1221)
    told(["run", "-q", "--disk", "odd.img", "--append", "mode=default seconds=1"], 0,
         "note: odd.img is no whole number of sectors: .* last 197 bytes")
    with open("script.sh", "w") as f:
        f.write("exit 7\n")
    # With a Linux kernel: the demo guest takes no command and no RAM disk.
    kernel = os.path.join(e2e.debian_kernel("6.1"))
    told(["run", "-q", "--initrd", "script.sh", "--duration", "0.1", kernel], 0,
         "note: script.sh is neither a cpio archive nor compressed")
    told(["run", "-q", "--exec", "exit 7", kernel], 1, "exit: is a word of the shell", err_lines=1)
    told(["ctl", "--control", "script.sh", "status"], 1, "not a control socket", err_lines=1)
    s = socket.socket(socket.AF_UNIX)
    s.bind("gone")
    s.close()
    told(["ctl", "--control", "gone", "status"], 1, "the run that listened there has ended", err_lines=1)


def console():
    """The guest's command line is all that --append says, in order."""
    for texts in (["seconds=1", "slow=left_leaf:50"], ["slow=left_leaf:50", "seconds=1"]):
        told(["run", "--append", texts[0], "--append", texts[1]], 0, "seconds 1", "wrote perf.data")
    told(["run", "-q", "--no-summary", "--append", "seconds=1"], 0)
    p = e2e.kvmprof("run", "-q", "--no-summary", "--append", "seconds=1")
    left = [x for x in p.err.split("\n") if x and not x.startswith(("kvmprof: warning: ", "kvmprof: no IMAGE: "))]
    check(p.status == 0 and not p.out and not left, "--no-summary leaves %r" % left)


def colours(argv, env):
    """Whether it colours what it prints on a terminal."""
    pid, fd = pty.fork()
    if not pid:
        os.execve(e2e.KVMPROF, [e2e.KVMPROF] + argv, env)
    text = b""
    try:
        while select.select([fd], [], [], 30)[0]:
            piece = os.read(fd, 65536)
            if not piece:
                break
            text += piece
    except OSError:
        pass    # its end
    os.close(fd)
    os.waitpid(pid, 0)
    check(b"left_leaf" in text, "%s in a terminal: %r" % (argv, text[-300:]))
    return bool(re.search(rb"\x1b\[[0-9;]*m", text))


def terminals():
    plain = dict(os.environ, TERM="xterm", PAGER="cat")
    plain.pop("NO_COLOR", None)
    for argv in (["report", "-i", "demo.data"], ["annotate", "-i", "demo.data", "left_leaf"]):
        check(colours(argv, plain), "%s has no colours on a terminal" % argv[0])
        check(not colours(argv, dict(plain, NO_COLOR="1")), "%s ignores NO_COLOR" % argv[0])


def short_text():
    """A list that fits is printed: nobody has to leave a pager; one that does not goes through less."""
    if not e2e.has_tool("less") or not e2e.has_tool("tmux"):
        return
    plain = ["env", "-u", "PAGER", "-u", "LESS", "TERM=xterm", e2e.KVMPROF, "report", "-i", os.path.abspath("demo.data")]
    tmux = ["tmux", "-S", os.path.abspath("tmux"), "-f", "/dev/null"]
    for rows, ends in ((["-n", "2"], True), (["-n", "0"], False)):
        line = " ".join(plain + rows) + "; echo ENDED; exec cat"
        e2e.run(*tmux, "new-session", "-d", "-s", "t", "-x", "40", "-y", "20", line)
        shown, until = "", time.monotonic() + 20
        while time.monotonic() < until and not ("ENDED" in shown if ends else ":" in shown.rstrip().split("\n")[-1]):
            time.sleep(0.1)
            shown = e2e.run(*tmux, "capture-pane", "-p", "-t", "t").out
        check(("ENDED" in shown) == ends, "report %s on a small terminal %s: %r" %
              (" ".join(rows), "waits for a key" if ends else "does not go through less", shown))
        check(not ends or "demo_" in shown.replace("\n", ""), "report on a small terminal has no symbols: %r" % shown)
        e2e.run(*tmux, "kill-server")


names()
profiles()
console()
terminals()
short_text()
images()
e2e.finish()

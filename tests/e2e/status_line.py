#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: alone, 9 s
# tests: not svm, threads
"""The status line of `kvmprof run` on a terminal: it stands below the guest's console, whose lines
stay whole; it fits the window; and elsewhere there is none."""

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

import e2e
from e2e import check

e2e.need_kvm()


def on_terminal(*args, columns=70, stdout=None, term="xterm", shrink=None):
    """All bytes that the terminal got."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = dict(os.environ, TERM=term)
    p = e2e.subprocess.Popen([e2e.KVMPROF, "run", "-o", "s.data", "--no-buildid-cache", "--append",
                              "seconds=2", *args], stdin=e2e.subprocess.DEVNULL,
                             stdout=stdout if stdout is not None else slave, stderr=slave, env=env)
    os.close(slave)
    out, start = b"", time.monotonic()
    while True:
        ready, _, _ = select.select([master], [], [], 0.1)
        if shrink and time.monotonic() - start > 1.0:
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, shrink, 0, 0))
            shrink = None
        if not ready and p.poll() is not None:
            break
        try:
            got = os.read(master, 65536) if ready else b" "[:0]
        except OSError:
            break
        out += got
    os.close(master)
    check(p.wait() == 0, "status %d: %r" % (p.returncode, out[-300:]))
    return out.decode(errors="replace")


def screen(text):
    """What a terminal shows: CR, LF and ECMA-48's EL and CUU, which is all that is used."""
    lines, row, col, widest = [""], 0, 0, 0
    for m in re.finditer(r"\x1b\[K|\x1b\[A|\r|\n|[^\x1b\r\n]+|\x1b", text):
        s = m.group(0)
        if s == "\r":
            col = 0
        elif s == "\n":
            row += 1
            while len(lines) <= row:
                lines.append("")
        elif s == "\x1b[K":
            lines[row] = lines[row][:col]
        elif s == "\x1b[A":
            row = max(0, row - 1)
        elif s.startswith("\x1b"):
            check(False, "an escape sequence that is not understood: %r" % text[m.start():m.start() + 8])
        else:
            lines[row] = lines[row][:col].ljust(col) + s + lines[row][col + len(s):]
            col += len(s)
        widest = max(widest, len(lines[row]) if lines[row].startswith("kvmprof: ") else 0)
    return lines


STATUS = re.compile(r"\rkvmprof: (\d+\.\d) s, \d+ samples, user \d+ % kernel \d+ % idle \d+ %, lost \d+")

text = on_terminal()
drawn = STATUS.findall(text)
check(len(drawn) >= 4, "drawn %d times: %r" % (len(drawn), text[:500]))
check([float(x) for x in drawn] == sorted(float(x) for x in drawn), "time goes on: %s" % drawn)
lines = screen(text)
check(not any(re.match(r"kvmprof: \d+\.\d s,", line) for line in lines), "it stays:\n" + "\n".join(lines))
plain = e2e.kvmprof("run", "-o", "p.data", "--no-buildid-cache", "--append", "seconds=2")
check("\x1b" not in plain.out + plain.err and not STATUS.search(plain.err), "in a pipe: " + plain.err)


def console(some):
    """The guest's lines, without their numbers."""
    some = [re.sub(r"[\d.]+", "N", line.rstrip("\r ")) for line in some]
    return [line for line in some if line.startswith(("demo:", "truth"))]


check(console(lines) == console(plain.out.split("\n")) and console(lines),
      "the console is another one:\n%s\nnot\n%s" % (console(lines), console(plain.out.split("\n"))))

narrow = on_terminal(columns=40)
for m in re.finditer(r"\r(kvmprof: \d+\.\d s,[^\r\n\x1b]*)", narrow):
    if not check(len(m.group(1)) <= 39, "wider than the window: %r" % m.group(1)):
        break
shrunk = on_terminal(columns=100, shrink=30)
check("\r\x1b[K\x1b[A\r\x1b[K" in shrunk, "a broken line is not taken away: %r" % shrunk[-2000:])
for args in (["--no-status"], ["-q"]):
    check("\r\x1b[K" not in on_terminal(*args), "a status line with " + args[0])
check("\x1b" not in on_terminal(term="dumb"), "a status line on a dumb terminal")
with open("console", "wb") as f:
    apart = on_terminal(stdout=f)
check(len(STATUS.findall(apart)) >= 4, "the console is elsewhere: %r" % apart[:500])
check("\x1b" not in open("console").read(), "the console's file has some of it")
e2e.finish("%d times in 2 s" % len(drawn))

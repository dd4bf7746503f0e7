#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Pictures of kvmprof at work in a terminal, as SVG, for the documents.

    scripts/terminal-pictures.py KVMPROF OUT

Runs the demo guest, and in a terminal of tmux `kvmprof top`, `report` and `gate` on its profiles. What the
screen then shows, with its colours, becomes OUT/top.svg, report.svg and gate.svg. A picture has both a
dark and a light form: it follows the reader's setting (prefers-color-scheme). `make docs-pictures` calls this.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
import time

CELL, LINE, SIZE = 8.43, 18, 14    # of a character, in pixels; Menlo and its kind are 0.602 wide
MARGIN, BAR = 14, 30

# The sixteen colours, and the text's and window's own: light, dark.
COLOURS = {
    "fg": ("#24292f", "#d8dee9"), "bg": ("#ffffff", "#1e2430"), "bar": ("#e6e9ee", "#2b3342"),
    "30": ("#24292f", "#4c566a"), "31": ("#b3261e", "#f07178"), "32": ("#1a7f37", "#a3be8c"),
    "33": ("#8a5a00", "#ebcb8b"), "34": ("#0b57d0", "#88aaff"), "35": ("#8250df", "#c792ea"),
    "36": ("#0f6f84", "#7fdbca"), "37": ("#57606a", "#e5e9f0"), "90": ("#6e7781", "#7b869b"),
}
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SGR = re.compile(r"\x1b\[([0-9;]*)m")


class Style:
    """Of a piece of text: what escape sequences have turned on."""

    def __init__(self):
        self.fg, self.bg, self.bold, self.dim, self.reverse = "fg", None, False, False, False

    def take(self, codes):
        for code in codes.split(";") if codes else ["0"]:
            n = int(code or 0)
            if n == 0:
                self.__init__()
            elif n in (1, 2, 7):
                setattr(self, {1: "bold", 2: "dim", 7: "reverse"}[n], True)
            elif n in (22, 27):
                self.bold = self.bold and n != 22
                self.dim = self.dim and n != 22
                self.reverse = self.reverse and n != 27
            elif 30 <= n <= 37 or n == 39:
                self.fg = "fg" if n == 39 else str(n)
            elif 40 <= n <= 47 or n == 49:
                self.bg = None if n == 49 else str(n - 10)
            elif 90 <= n <= 97:
                self.fg = "90" if n == 90 else str(n - 60)

    def colours(self):
        fg, bg = self.fg, self.bg
        return (bg or "bg", fg) if self.reverse else (fg, bg)


def pieces(line, style):
    """(column, text, style's colours, bold, dim) of a line; style goes on into the next one."""
    column, at, found = 0, 0, []
    for m in list(SGR.finditer(line)) + [None]:
        text = line[at:m.start() if m else len(line)]
        if text:
            found.append((column, text, style.colours(), style.bold, style.dim))
            column += len(text)
        if m:
            style.take(m.group(1))
            at = m.end()
    return found


def svg(title, lines):
    """The picture of a window with these lines."""
    width = max(len(SGR.sub("", line).rstrip()) for line in lines)
    w, h = round(width * CELL + 2 * MARGIN), round(len(lines) * LINE + BAR + MARGIN)
    css = [":root{%s}" % "".join("--c%s:%s;" % (k, v[0]) for k, v in COLOURS.items()),
           "@media(prefers-color-scheme:dark){:root{%s}}" % "".join("--c%s:%s;" % (k, v[1])
                                                                       for k, v in COLOURS.items()),
           "text{font:%dpx ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre}" % SIZE]
    css += [".f%s{fill:var(--c%s)}" % (k, k) for k in COLOURS]
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">' % (w, h, w, h),
           "<title>%s</title>" % html.escape(title), "<style>%s</style>" % "".join(css),
           '<rect width="%d" height="%d" rx="8" class="fbg" stroke="var(--cbar)"/>' % (w, h),
           '<path d="M0 %d V8 Q0 0 8 0 H%d Q%d 0 %d 8 V%d Z" class="fbar"/>' % (BAR - 8, w - 8, w, w, BAR - 8)]
    out += ['<circle cx="%d" cy="11" r="5" fill="%s"/>' % (16 + 18 * i, c)
            for i, c in enumerate(("#ec6a5e", "#f4bf4f", "#61c554"))]
    out.append('<text x="%d" y="16" text-anchor="middle" class="f90">%s</text>' % (w / 2, html.escape(title)))
    style = Style()
    for i, line in enumerate(lines):
        y = BAR + (i + 1) * LINE - 4
        for column, text, (fg, bg), bold, dim in pieces(line, style):
            x, length = MARGIN + column * CELL, len(text) * CELL
            if bg:
                out.append('<rect x="%.1f" y="%d" width="%.1f" height="%d" class="f%s"/>' % (x, y - 14, length, LINE, bg))
            if text.strip():
                blanks = len(text) - len(text.lstrip())
                text = text.strip()
                out.append('<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs" class="f%s"%s%s>%s</text>' % (
                    x + blanks * CELL, y, len(text) * CELL, fg, ' font-weight="bold"' if bold else "",
                    ' opacity=".65"' if dim else "", html.escape(text)))
    return "\n".join(out + ["</svg>", ""])


class Terminal:
    """A terminal of tmux, with a server of its own."""

    def __init__(self):
        self.servers = 0
        self.open = False

    def socket(self):
        return "tmux%d" % self.servers    # in the working directory; a server that ends keeps its name for a moment

    def tmux(self, *args):
        return subprocess.run(["tmux", "-S", self.socket(), "-f", "/dev/null", *args], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout

    def run(self, command, columns):
        self.close()
        self.servers += 1
        self.tmux("new-session", "-d", "-s", "t", "-x", str(columns), "-y", "26", "-e", "PAGER=cat",
                  "TERM=xterm-256color %s; exec cat" % command)
        self.open = True

    def screen(self):
        return self.tmux("capture-pane", "-e", "-p", "-t", "t").rstrip("\n").split("\n")

    def wait_for(self, pattern, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lines = self.screen()
            if any(re.search(pattern, SGR.sub("", line)) for line in lines):
                return self.screen()
            time.sleep(0.2)
        sys.exit("terminal-pictures: nothing like %r on the screen:\n%s" % (pattern, "\n".join(self.screen())))

    def close(self):
        if self.open:
            subprocess.run(["tmux", "-S", self.socket(), "kill-server"], stderr=subprocess.DEVNULL, check=False)
        self.open = False


def kvmprof(program, *args):
    p = subprocess.run([program, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if p.returncode not in (0, 3):
        sys.exit("terminal-pictures: kvmprof %s: %s" % (" ".join(args), p.stderr))


def runs(program):
    """Profiles of the demo guest: eight runs as it is, eight with one function that does a half more."""
    for i in range(1, 9):
        kvmprof(program, "run", "-q", "-F", "4999", "--append", "work=100", "-o", "old%d.data" % i)
        kvmprof(program, "run", "-q", "-F", "4999", "--append", "work=100 slow=left_leaf:500", "-o", "new%d.data" % i)
    kvmprof(program, "run", "-q", "--append", "seconds=4", "-o", "demo.data")


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: terminal-pictures.py KVMPROF OUT")
    program, out = (os.path.abspath(a) for a in sys.argv[1:])
    os.makedirs(out, exist_ok=True)
    terminal = Terminal()
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        os.mkdir("bin")
        os.symlink(program, "bin/kvmprof")
        os.symlink(os.path.join(TOP, "configs", "gate-busy.toml"), "gate-busy.toml")
        os.environ["PATH"] = os.path.join(work, "bin") + ":" + os.environ["PATH"]
        try:
            terminal.run("kvmprof top -d 0.5 -- --append seconds=60", 100)
            terminal.wait_for(r"kernel +\S+ +demo_main")
            time.sleep(6)    # counts gather
            terminal.tmux("send-keys", "-t", "t", "Down", "Down", "Down", "Enter")
            time.sleep(2)
            pictures = {"top": ("kvmprof top", terminal.screen())}
            runs(program)
            for name, command, columns, last in (
                    ("report", "kvmprof report -i demo.data -n 14", 100, r"-n 0 shows all"),
                    ("gate", "kvmprof gate -c gate-busy.toml --base old*.data --head new*.data | cut -c1-124 | head -21", 132, r"^# ")):
                terminal.run(command, columns)
                terminal.wait_for(last)
                time.sleep(1)
                pictures[name] = (command.split(" |")[0], terminal.screen())
        finally:
            terminal.close()
            os.chdir("/")
    for name, (title, lines) in pictures.items():
        with open(os.path.join(out, name + ".svg"), "w", encoding="utf-8") as f:
            f.write(svg(title, lines))


main()

# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that guest/villain attacks, and what it says of its attacks."""

import os
import re
import subprocess
import threading
import time
from collections import namedtuple

import e2e

import blk_guest

ELF = os.path.join(e2e.BUILD, "guest", "villain.elf")
RAM = 64 << 20
SECTORS = 8192
CLASSES = ("ring", "transport", "pci", "blk", "net", "console", "rng", "p9", "cpu", "ports", "stack", "race")
SECRET = "nobody may read or change this\n"

Verdict = namedtuple("Verdict", "attack got expected")
LINE = re.compile(r"^villain: got (\S+ \S+ .+) (PASS|REJECT|WRONG|WEDGED) \(expected (\w+)\)$", re.M)


def make_files():
    """The disk, and a directory that is shared, with one beside it that is not."""
    blk_guest.write_image("disk.img", SECTORS)
    for d in ("share", "share/dir", "outside"):
        os.makedirs(d, exist_ok=True)
    for name, text in (("share/file", "hello\n"), ("outside/secret", SECRET)):
        with open(name, "w") as f:
            f.write(text)
    if not os.path.lexists("share/link"):
        os.symlink("/etc", "share/link")


def outside_is_untouched():
    with open("outside/secret") as f:
        return os.listdir("outside") == ["secret"] and f.read() == SECRET


def arguments(words, *options):
    return ["--memory", "%dM" % (RAM >> 20), "--disk", "disk.img", "--net", "user,restrict", "--rng",
            "--virtio-console", "--share", "share:share", "--append", words, *options, ELF]


def verdicts(console):
    return [Verdict(*m) for m in LINE.findall(console.replace("\r", ""))]


def judge(what, status, console, err, found):
    """The guest went through to its end, and no attack came to what it must not come to."""
    text = console.replace("\r", "")
    tried = re.findall(r"^villain: try (.*)$", text, re.M)
    done = re.search(r"^villain: done (\d+)$", text, re.M)
    if not e2e.check(status == 0 and done, "%s: status %s, the last attack: %s; %s %s" % (
            what, status, tried[-1:], text[-600:], err[-3000:])):
        return 0
    for v in found:
        ok = v.got in ("PASS", "REJECT") and v.expected in (v.got, "ANY")
        e2e.check(ok, "%s: %s: %s, expected %s" % (what, v.attack, v.got, v.expected))
    return int(done.group(1))


class Memory(threading.Thread):
    """What a process has of its own besides the guest's memory: the most of it, in bytes."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.most, self.first, self.ending = pid, 0, None, False
        self.start()

    def now(self):
        total, size = 0, 0
        with open("/proc/%d/smaps" % self.pid) as f:
            for line in f:
                w = line.split()
                if w[0] == "Size:":
                    size = int(w[1]) << 10
                # Anonymous memory and that of a memfd is dirty; files of programs are clean.
                elif w[0] in ("Shared_Dirty:", "Private_Dirty:") and size != RAM:
                    total += int(w[1]) << 10
        return total

    def run(self):
        while not self.ending:
            try:
                n = self.now()
            except (OSError, IndexError):
                return
            self.first = n if self.first is None else self.first
            self.most = max(self.most, n)
            time.sleep(0.25)


def run(kvmprof, words, *options, timeout=300):
    """Done, and the most memory; kvmprof is watched meanwhile."""
    argv = [kvmprof, "run", *arguments(words, *options)]
    start = time.monotonic()
    p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    memory = Memory(p.pid)
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
    memory.ending = True
    memory.join()
    return e2e.Done(p.returncode, out.decode(errors="replace"), err.decode(errors="replace"),
                    time.monotonic() - start), memory

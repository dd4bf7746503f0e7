# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds the names in a profile of several kernels against the kernels' images, with arithmetic alone.

It knows nothing of how kvmprof found a kernel: all frames of one kernel must lie by one and the same distance from the addresses that the
image gives their names, and a task that is named after a kernel's release must run under that kernel."""

import os
import re
from collections import Counter

import e2e
from e2e import check, say

FRAME = re.compile(r"^\t\s*([0-9a-f]+) (\S+?)(?:\+0x([0-9a-f]+))? \((.*)\)$")
HEAD = re.compile(r"^(.+?)\s+(-?\d+) \[")
HALF = 1 << 63
KERNEL = "[kernel.kallsyms]"


def symbols_of(image):
    """Addresses of each name, as the image has them."""
    p = e2e.kvmprof("symbols", image)
    check(p.status == 0, "symbols: " + p.err)
    found = {}
    for line in p.out.split("\n"):
        words = line.split()
        if len(words) >= 3:
            found.setdefault(words[2], set()).add(int(words[0], 16))
    return found


def samples_of(profile, epoch):
    """(command, [(address, name or None, offset, DSO)]) of each sample."""
    p = e2e.kvmprof("script", "-i", profile, "--epoch", str(epoch))
    check(p.status == 0, "script --epoch %d: %s" % (epoch, p.err))
    out, comm = [], None
    for line in p.out.split("\n"):
        frame = FRAME.match(line)
        if frame and out:
            at, name, off, dso = frame.groups()
            named = name != "[unknown]"
            out[-1][1].append((int(at, 16), name if named else None, int(off or "0", 16), dso))
        elif HEAD.match(line):
            comm = HEAD.match(line).group(1).strip()
            out.append((comm, []))
    return out


def judge(profile, epoch, release, known):
    """Holds one kernel's samples against its image. Returns how many frames have a name, and how many there are."""
    wrong, named, frames, slides = [], 0, 0, Counter()
    for comm, stack in samples_of(profile, epoch):
        check(not re.match(r"\d+\.\d", comm) or comm == release[:15],
              "kernel %d, %s: a sample of the task %s" % (epoch, release, comm))
        for at, name, off, dso in stack:
            if at < HALF or (dso != KERNEL and dso.startswith("[") and name):
                continue
            frames += 1
            if not name:
                continue
            named += 1
            places = known.get(name)
            if not places:
                wrong.append(name)
            elif len(places) == 1:
                slides[at - off - next(iter(places))] += 1
    slide, most = slides.most_common(1)[0] if slides else (0, 0)
    check(not wrong, "%s: names that it does not have: %s" % (release, Counter(wrong).most_common(5)))
    check(most == sum(slides.values()), "%s: names at the wrong address: %s" % (release, slides.most_common(4)))
    check(most > 200, "%s: only %d frames to judge by" % (release, most))
    check(slide % 4096 == 0, "%s: slide %#x" % (release, slide))
    return named, frames, slide


def judge_all(what, profile, releases, known):
    count = 1
    while os.path.exists(os.path.join(profile, "epoch-%d" % (count + 1))):
        count += 1
    check(count == len(releases), "%s: %d kernels instead of %d" % (what, count, len(releases)))
    slides = []
    for i, release in enumerate(releases[:count]):
        named, frames, slide = judge(profile, i + 1, release, known[release])
        slides.append(slide)
        say("%s: kernel %d, %s: 0 wrong, %d of %d frames named, slide %#x" % (what, i + 1, release, named, frames, slide))
        check(named >= 0.99 * frames, "%s: kernel %d: %d of %d frames have a name" % (what, i + 1, named, frames))
    p = e2e.kvmprof("report", "-i", profile)
    for i, release in enumerate(releases):
        check("# kernel %d: Linux %s" % (i + 1, release) in p.out, "%s: the report does not list %s" % (what, release))
    return slides

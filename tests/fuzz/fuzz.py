#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs fuzz targets that were built with libFuzzer side by side, keeps what is new, and prints what they ran.

    tests/fuzz/fuzz.py DIR SECONDS [--jobs N] [TARGET...]

DIR: build/libfuzzer of `make fuzz`. Each target runs for so many seconds of processor time. What is new stays in
DIR/corpus/TARGET; an input that crashes, hangs or leaks is DIR/TARGET-KIND-HASH, and the status is 1. At the end: how
often each was executed, and how many of the edges are covered in each source file, of the functions that were reached at all.
"""

import argparse
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FUNCTION = re.compile(r"^COVERED_FUNC: hits: \d+ edges: (\d+)/(\d+) \S+ (\S+):\d+$", re.M)
EXECUTED = re.compile(r"^stat::number_of_executed_units: (\d+)$", re.M)
OURS = re.compile(r"\b(?:vmm|symbolizer|profile)/\S+\.(?:c|cc|h)$")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def corpora(folder, target):
    new = os.path.join(folder, "corpus", target)
    os.makedirs(new, exist_ok=True)
    return [new, os.path.join(TOP, "tests", "fuzz", "corpus", target)]


def start(folder, target, log, *options):
    out = open(log, "w", encoding="utf-8")
    return subprocess.Popen([os.path.join(folder, "fuzz", target), *options, *corpora(folder, target)],
                            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)


def used(pid):
    """Seconds of a processor (proc(5), fields 14 and 15)."""
    fields = read("/proc/%d/stat" % pid).rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def coverage(text):
    """File -> edges covered, edges."""
    found = {}
    for have, all_of_it, path in FUNCTION.findall(text):
        m = OURS.search(path)
        if m:
            old = found.get(m.group(), (0, 0))
            found[m.group()] = (old[0] + int(have), old[1] + int(all_of_it))
    return found


def fuzz(folder, target, seconds):
    """libFuzzer's own limit is of the clock: it is asked to end when the processor's time is used."""
    log, cover = (os.path.join(folder, target + end) for end in (".log", ".coverage"))
    before, spent = len(os.listdir(corpora(folder, target)[0])), 0
    p = start(folder, target, log, "-print_final_stats=1", "-timeout=60", "-artifact_prefix=%s/%s-" % (folder, target))
    while p.poll() is None and spent < seconds:
        time.sleep(0.1)
        spent = used(p.pid)
    p.send_signal(signal.SIGUSR1)
    if p.wait():
        return target, p.returncode, read(log)[-3000:], {}
    executed = sum(map(int, EXECUTED.findall(read(log))))
    start(folder, target, cover, "-runs=0", "-print_coverage=1").wait()
    new = len(os.listdir(corpora(folder, target)[0])) - before
    return target, 0, "%10d executions in %.0f s of a processor, %d new inputs" % (executed, spent, new), coverage(
        read(cover))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("folder")
    p.add_argument("seconds", type=int)
    p.add_argument("targets", nargs="*")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    a = p.parse_intermixed_args()
    built = sorted(f for f in os.listdir(os.path.join(a.folder, "fuzz")) if f.startswith("fuzz_") and "." not in f)
    missing = sorted(set(a.targets) - set(built))
    if missing:
        p.error("there is no target %s in %s/fuzz" % (missing[0], a.folder))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(fuzz, a.folder, t, a.seconds) for t in a.targets or built]):
            target, status, text, files = done.result()
            failed += status != 0
            print("%-22s %s" % (target, text if not status else "status %d\n%s" % (status, text)))
            for name, (have, all_of_it) in sorted(files.items()):
                print("    %-40s %5d of %5d edges, %3.0f %%" % (name, have, all_of_it, 100.0 * have / all_of_it))
            sys.stdout.flush()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the tests, one line for each; `make test` builds what they need and calls this.

    tests/run.py [--build DIR] [--slow] [--list] [--exact] [PATTERN...]

A PATTERN selects tests whose name contains it, or with --exact the one of that name. A test is
a program: it exits with 0, or with 77 and the reason on its last line (skipped), or it failed,
and then its output is shown. Each test's output is in DIR/test-logs. The last line is
`N passed, N failed, N skipped`. Scripts and fuzz targets say in their first lines how they are
run (e2e/tiers.py).

A unit test has sub-tests, and cmocka exits with 0 when some or all of them were skipped. Where
all were, the test was skipped. Where some were, it passed or failed, is named with them, and each
of them counts as skipped, too. A line "skipped: REASON" of another test is a part of it that was skipped.
"""

import argparse
import glob
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
E2E = os.path.join(TOP, "tests", "e2e")
sys.path.insert(1, E2E)
import kernel_matrix
import tiers
SKIP = 77
SHOWN_LINES = 60

FUZZ = os.path.join(TOP, "tests", "fuzz")
UNIT_LIMIT = 120
# Seconds that a test of a tier may take; a slow one says so itself.
LIMITS = {"kernel": 1800, "beside": 1800, "without_kvm": 1800, "alone": 900, "together": 1800}


class Test:
    def __init__(self, name, argv, limit, together=False, lane=False):
        self.name, self.argv, self.limit, self.together = name, argv, limit, together
        self.lane = lane    # one after the other, beside others


SUBTESTS = re.compile(r"^\[=+\] (?:\S+: )?Running (\d+) test")    # newer ones name the group
SUBTEST = re.compile(r"^\[ +(RUN|OK|FAILED|SKIPPED|ERROR) +\] (\S+)")
PART = re.compile(r"^skipped: (.*)")    # e2e.left_out()


def skipped_subtests(lines):
    """What cmocka tells: the number of sub-tests, and (name, reason) of those that were skipped.
    The reason is what such a one printed last."""
    total, skipped, running, said = 0, [], None, ""
    for line in lines:
        m = SUBTESTS.match(line)
        if m:
            total += int(m.group(1))
        m = SUBTEST.match(line)
        if not m:
            said = line.strip() or said
        elif m.group(1) == "RUN":
            running, said = m.group(2), ""
        elif running == m.group(2):
            if m.group(1) == "SKIPPED":
                skipped.append((running, re.sub(r"^skipped: *", "", said)))
            running = None
    return total, skipped


def skipped_parts(lines):
    """[("", reason)] of a test that is no unit test."""
    return [("", m.group(1)) for m in map(PART.match, lines) if m]


def stem(path):
    return os.path.splitext(os.path.basename(path))[0]


def each_kernel(arguments):
    """The arguments, with {booted} and {debian} replaced by each of the kernels that they stand for."""
    kernels = [k for k in kernel_matrix.kernels().values() if k.boot != "-"]
    if "{booted}" in arguments:
        return [[k.name] + ([k.boot] if k.boot == "svm" else []) for k in kernels]
    if "{debian}" in arguments:
        return [[a.replace("{debian}", k.name) for a in arguments] for k in kernels if k.source.startswith("debian:")]
    return [arguments]


def e2e_tests(build, tier):
    tests = []
    for line in tiers.of_tier(tier):
        for arguments in each_kernel(line.arguments):
            arguments = [a.format(asan=os.path.join(build, "asan"), tsan=os.path.join(build, "tsan")) for a in arguments]
            shown = [a for a in arguments if "/" not in a]
            argv = [os.path.join(E2E, line.script), os.path.join(build, "kvmprof"), "{scratch}"]
            tests.append(Test("-".join(["e2e/" + stem(line.script)] + shown), argv + arguments,
                              LIMITS.get(tier, line.seconds), together=tier in ("kernel", "beside", "without_kvm", "together"),
                              lane=tier == "kernel"))
    return tests


def needs_kernels(unit):
    """Whether a unit test reads a guest kernel from the cache of the scripts."""
    with open(os.path.join(TOP, "tests", "unit", unit + ".c"), encoding="utf-8") as f:
        return "cached_kernel.h" in f.read()


def left_out(build, name):
    """Whether a build with PVM=0 has no such unit test or fuzz target (the Makefile's LEFT_OUT)."""
    return (os.path.exists(os.path.join(build, "pvm-0")) and
            (name.startswith("vmm/pvm/") or name == "fuzz_simd_form"))


def tests_of(build, slow):
    top = os.path.join(TOP, "tests", "unit")
    units = [os.path.splitext(os.path.relpath(p, top))[0]
             for p in sorted(glob.glob(os.path.join(top, "**", "test_*.c"), recursive=True))]
    units = [u for u in units if not left_out(build, u)]
    # They come when the kernels are there.
    late = [Test("unit/" + u, [os.path.join(build, "unit", u)], UNIT_LIMIT, True)
            for u in units if needs_kernels(u)]
    asan = os.path.join(build, "asan")
    sanitized = [Test("asan/" + u, [os.path.join(asan, "unit", u)], 3 * UNIT_LIMIT, True)
                 for u in units if tiers.slow_with_sanitizers(os.path.join(top, u + ".c")) == slow]
    if slow:
        return sanitized + e2e_tests(build, "slow") + late
    fuzz = [stem(p) for p in sorted(glob.glob(os.path.join(FUZZ, "fuzz_*.c")))
            if not left_out(build, stem(p))]
    tests = [Test("check/" + stem(p)[len("check-"):],
                  [p] + (["--build", build] if stem(p) == "check-binary" else []), 3 * UNIT_LIMIT)
             for p in sorted(glob.glob(os.path.join(TOP, "tests", "check-*")))]
    tests += [Test("unit/" + u, [os.path.join(build, "unit", u)], UNIT_LIMIT)
              for u in units if not needs_kernels(u)]
    for test in sanitized:
        (late if needs_kernels(test.name[len("asan/"):]) else tests).append(test)
    tests += [Test("asan/" + f, [os.path.join(asan, "fuzz", f),
                                 os.path.join(FUZZ, "corpus", f)], 3 * UNIT_LIMIT)
              for f in fuzz]
    runs = {f: tiers.fuzz_runs(os.path.join(FUZZ, f + ".c")) for f in fuzz}
    tests += [Test("fuzz/" + f[len("fuzz_"):], [os.path.join(asan, "fuzz", f), "--runs", str(runs[f]),
                                                os.path.join(FUZZ, "corpus", f)], 3 * UNIT_LIMIT)
              for f in fuzz if runs[f]]
    for t in tests:
        t.together = True
    for tier in tiers.TIERS:
        if tier != "slow" and (tier != "without_kvm" or not os.path.exists("/dev/kvm")):
            tests += e2e_tests(build, tier)
    return tests + late


def not_to_be_had():
    """Packages that scripts/deps.sh asked apt for, which could not give them."""
    cache = os.environ.get("KVMPROF_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kvmprof")
    try:
        with open(os.path.join(cache, "deps-without"), encoding="utf-8") as f:
            return set(re.split(r"[\s|]+", f.read().strip()))
    except OSError:
        return set()


def accepted_skips(without=None):
    """[(test, reason)], expressions, of tests/skips.txt; without: packages that cannot be had."""
    without, rows = not_to_be_had() if without is None else without, []
    with open(os.path.join(TOP, "tests", "skips.txt"), encoding="utf-8") as f:
        for line in f:
            if line.startswith("#"):
                continue
            test, reason, why, *package = line.rstrip("\n").split(" | ")
            if not package or package[0] in without:
                rows.append((re.compile(test.strip()), re.compile(reason)))
    return rows


def checks_of(build):
    """Rules of the source, units and corpora, without sanitizers."""
    tests = [t for t in tests_of(build, False) if t.name.startswith(("check/", "unit/")) or
             t.name.startswith("asan/fuzz_")]
    for t in tests:
        t.name = t.name.replace("asan/", "corpus/")
        t.argv = [a.replace(os.path.join(build, "asan", "fuzz"), os.path.join(build, "fuzz")) for a in t.argv]
    return [t for t in tests if not (t.name.startswith("unit/") and needs_kernels(t.name[len("unit/"):]))]


class Runner:
    def __init__(self, build, accepted=None):
        """accepted: skips that are not among these fail; None: none does."""
        self.build, self.accepted = build, accepted
        self.logs = os.path.join(build, "test-logs")
        self.scratch = os.path.join(build, "test-tmp.%d" % os.getpid())
        self.running = set()
        self.lock = threading.Lock()    # of running, count and the output
        self.ending = False
        self.count = {"ok": 0, "FAIL": 0, "skip": 0}
        os.makedirs(self.logs, exist_ok=True)
        os.makedirs(self.scratch, exist_ok=True)

    def stop(self, process):
        """Ends a test with all that it started: its process group is its own. A test
        that still runs is asked first, so that it can remove its temporary files."""
        try:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(5)
        except (subprocess.TimeoutExpired, ProcessLookupError):
            pass
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def clean(self):
        with self.lock:
            self.ending = True
            left = list(self.running)
        for process in left:
            self.stop(process)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def execute(self, test, log, scratch):
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1",
                   ASAN_OPTIONS="detect_stack_use_after_return=1",
                   UBSAN_OPTIONS="print_stacktrace=1")
        argv = [scratch if a == "{scratch}" else a for a in test.argv]
        with self.lock:
            if self.ending:
                return -1
            try:
                process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                           cwd=TOP, env=env, start_new_session=True)
            except OSError as e:
                log.write(("cannot start: %s\n" % e).encode())
                return -1
            self.running.add(process)
        try:
            status = process.wait(test.limit)
        except subprocess.TimeoutExpired:
            log.write(("\nno end after %d s\n" % test.limit).encode())
            status = -1
        self.stop(process)    # also what a test left running
        with self.lock:
            self.running.discard(process)
        return status

    def run(self, test):
        path = os.path.join(self.logs, test.name.replace("/", "-") + ".log")
        scratch = os.path.join(self.scratch, test.name.replace("/", "-"))
        os.makedirs(scratch)
        # On a terminal one sees what is being waited for.
        if sys.stdout.isatty():
            print("...   %s" % test.name, end="\r", flush=True)
        start = time.monotonic()
        with open(path, "wb") as log:
            status = self.execute(test, log, scratch)
        seconds = time.monotonic() - start
        shutil.rmtree(scratch, ignore_errors=True)
        with self.lock:
            if not self.ending:
                self.tell(test, path, status, seconds)

    def unaccepted(self, test, skipped):
        return ["%s %s" % s for s in skipped if self.accepted is not None and
                not any(t.search(test.name) and r.search(s[1]) for t, r in self.accepted)]

    def tell(self, test, path, status, seconds):
        with open(path, errors="replace") as log:
            lines = log.read().rstrip("\n").split("\n")
        result = "ok" if status == 0 else "skip" if status == SKIP else "FAIL"
        note, (total, skipped) = "", skipped_subtests(lines)
        if skipped:
            note = "%d of %d skipped: %s" % (len(skipped), total, "; ".join(
                "%s (%s)" % (name, reason) if reason else name for name, reason in skipped))
            if result == "ok" and len(skipped) == total:
                result = "skip"
            else:
                self.count["skip"] += len(skipped)
        elif result == "skip":
            note = lines[-1]
        else:
            skipped = skipped_parts(lines)
            self.count["skip"] += len(skipped)
            note = "; ".join("skipped: " + reason for _, reason in skipped)
        bad = self.unaccepted(test, skipped or ([("", note)] if result == "skip" else []))
        if bad and result != "FAIL":
            result, lines = "FAIL", ["a skip that tests/skips.txt does not accept: " + b for b in bad]
        self.count[result] += 1
        if result == "ok" and lines[-1].startswith("figures: "):
            note = "; ".join([lines[-1][len("figures: "):]] + ([note] if note else []))
        text = "%-5s %-28s %7.1f s  %s" % (result + ":" if result == "skip" else result,
                                           test.name, seconds, note)
        print(text.rstrip(), flush=True)
        if result == "FAIL":
            if len(lines) > SHOWN_LINES:
                print("      (%d lines above)" % (len(lines) - SHOWN_LINES))
            for line in lines[-SHOWN_LINES:]:
                print("      " + line)
            print("      status %d; all of it: %s" % (status, os.path.relpath(path, TOP)), flush=True)

    def run_together(self, tests):
        """Two at a time; the main thread only waits, so that it takes signals. One thread begins with
        those of the lane, and goes on with the others."""
        lane = [t for t in reversed(tests) if t.lane]
        left = [t for t in reversed(tests) if not t.lane]

        def worker(*queues):
            for queue in queues:
                while True:
                    with self.lock:
                        if not queue or self.ending:
                            break
                        test = queue.pop()
                    self.run(test)

        threads = [threading.Thread(target=worker, args=queues, daemon=True)
                   for queues in [(lane, left), (left,)][:os.cpu_count() or 1]]
        for t in threads:
            t.start()
        for t in threads:
            while t.is_alive():
                t.join(0.2)

    def run_all(self, tests):
        for together, some in itertools.groupby(tests, lambda t: t.together):
            if together:
                self.run_together(list(some))
            else:
                for test in some:
                    self.run(test)


def main():
    parser = argparse.ArgumentParser(description="runs kvmprof's tests")
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--slow", action="store_true", help="the tests that take long instead")
    parser.add_argument("--list", action="store_true", help="only name the tests")
    parser.add_argument("--no-skip", action="store_true", help="a skip that tests/skips.txt does not name fails")
    parser.add_argument("--check", action="store_true", help="what needs no KVM, no network, no root and no kernel")
    parser.add_argument("--exact", action="store_true", help="each PATTERN is the whole name of a test")
    parser.add_argument("pattern", nargs="*")
    args = parser.parse_args()

    build = os.path.abspath(args.build)
    tests = [t for t in (checks_of(build) if args.check else tests_of(build, args.slow))
             if not args.pattern or any(p == t.name if args.exact else p in t.name for p in args.pattern)]
    if args.list:
        print("\n".join(t.name for t in tests))
        return 0
    if not tests:
        print("no test is called so; --list names them", file=sys.stderr)
        return 2

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    start = time.monotonic()
    runner = Runner(os.path.abspath(args.build), accepted_skips() if args.no_skip else None)
    try:
        runner.run_all(tests)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    finally:
        runner.clean()
    print("%d tests in %.0f s" % (len(tests), time.monotonic() - start))
    print("%d passed, %d failed, %d skipped" %
          (runner.count["ok"], runner.count["FAIL"], runner.count["skip"]))
    return 1 if runner.count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())

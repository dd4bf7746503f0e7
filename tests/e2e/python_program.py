# SPDX-License-Identifier: GPL-2.0-or-later
"""A program that knows its own stacks: it runs its workload once under a tracer, which notes each
stack of functions and lines, prints these, and runs the same for SECONDS.

    python_program.py SECONDS [shares]

The guest of tests/e2e/python_frames.py and attach_python.py. A line is `known FUNCTION:LINE;...` from run_for() on, outermost
first, or `first FUNCTION:FILE LINE`. With `shares` a second process spends its time in one(), two() and three(), and
says how much in each: `shares SECONDS SECONDS SECONDS`, in all so far.
"""
import functools
import os
import re
import sys
import threading
import time

known = set()
first = {}


def name(code):
    return "%s:%s" % (code.co_qualname, code.co_filename)


def chain(frame):
    """From run_for() on; "": it is none of its callees."""
    out = []
    while frame and frame.f_code is not run_for.__code__:
        first[name(frame.f_code)] = frame.f_code.co_firstlineno
        out.append("%s:%d" % (name(frame.f_code), frame.f_lineno))
        frame = frame.f_back
    return ";".join(reversed(out)) if frame else ""


def note(frame, event, arg):
    known.add(chain(frame))
    return note


def spin(n):
    total = 0
    for i in range(n):
        total += i * i
        total ^= i
    return total


class Shape:
    def area(self, depth):
        if depth:
            return self.inner(depth - 1)
        return spin(60)

    def inner(self, depth):
        return (spin(20) +
                self.area(depth))

    @property
    def size(self):
        return spin(30)


def made(n):
    for i in range(n):
        yield spin(10) + i


def by_c(n):
    return sorted(range(n), key=lambda v: spin(15) ^ v)


def by_c_deeper(n):
    return functools.reduce(lambda a, b: a + by_c(3)[0], range(n))


def replaced(match):
    return str(spin(12))


def by_re(n):
    return re.sub("a+", replaced, "bab" * n)


def deep(n):
    return deep(n - 1) if n else spin(40)


def näme(n):
    return spin(n)


def failing(n):
    try:
        raise ValueError(spin(n))
    except ValueError:
        return spin(n)


def workload():
    s = Shape()
    s.area(5)
    s.size
    sum(made(5))
    by_c(6)
    by_c_deeper(4)
    by_re(4)
    deep(30)
    näme(25)
    failing(20)
    [spin(9) for _ in range(4)]
    list(map(spin, range(8)))


def run_for(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        workload()


def one(n):
    return spin(n)


def two(n):
    return spin(2 * n)


def three(n):
    return spin(3 * n)


def tell_shares(seconds):
    """Time of this thread, which the kernel counts, whoever else runs: long ones, as asking takes time, too."""
    took = [0.0] * 3
    end = time.monotonic() + seconds
    told = time.monotonic()
    while time.monotonic() < end:
        for i, function in enumerate((one, two, three)):
            begin = time.thread_time()
            function(100000)
            took[i] += time.thread_time() - begin
        if time.monotonic() - told >= 0.5:
            told = time.monotonic()
            print("shares %.6f %.6f %.6f" % tuple(took), flush=True)


def main():
    seconds = float(sys.argv[1])
    # What is done once and never again: a pattern is compiled, names are bound.
    workload()
    sys.settrace(note)
    run_for(0.001)
    sys.settrace(None)
    for stack in sorted(known):
        print("known " + stack)
    for function, line in sorted(first.items()):
        print("first %s %d" % (function, line))
    print("end of truth", flush=True)
    if sys.argv[2:] == ["shares"] and os.fork() == 0:
        tell_shares(seconds)
        return
    threads = [threading.Thread(target=run_for, args=(seconds,)) for _ in range(2)]
    for t in threads:
        t.start()
    run_for(seconds)
    for t in threads:
        t.join()


main()

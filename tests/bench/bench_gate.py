#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""How often a gate is wrong on identical code, and what it finds of changes of known size.

    bench_gate.py KVMPROF SCRATCH

Runs are made one by one, in an order by chance within each turn, and judged by `kvmprof gate`:

* A/A: SETS times 5 pairs of runs of the demo guest. Judged 5 and 5, by one rule (among many functions so
  few can't fail at all), then 10 and 10 by rules on all functions: each 10 pairs of their own, and
  GATES random draws of 10 pairs. And GATES random deals of a pool of BOOTS boots of the tiny Linux into 10
  and 10. Draws and deals share runs, so they are not independent: they tell less than their number.
* A change of 0.5, 1, 2 and 5 % of the work of left_leaf, ROUNDS turns of base and all changes: how often
  10 runs a side find it and name it, in blocks of 10 turns of their own and in DRAWS random draws of 10
  turns (which share runs), and how many runs would do.
* A function that moves by 0.2 points: the estimate of how many runs see that, and whether so many do.

An hour or so with the defaults, on a quiet machine. SETS (0: no A/A), GATES, BOOTS, ROUNDS, DRAWS, DIR and
CHANGES (of the work, in 1/1000) are taken from the environment, as
KVMPROF_BENCH_GATES and so on; runs that are already in DIR (default: SCRATCH) are used again."""

import glob
import json
import math
import os
import random
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KVMPROF, SCRATCH = (os.path.abspath(a) for a in sys.argv[1:3])


def setting(name, default):
    return type(default)(os.environ.get("KVMPROF_BENCH_" + name, default))


SETS, GATES, BOOTS, ROUNDS, DRAWS = (setting(n, d) for n, d in (("SETS", 200), ("GATES", 200), ("BOOTS", 30),
                                                                ("ROUNDS", 40), ("DRAWS", 100)))
DIR = os.path.abspath(setting("DIR", SCRATCH))
PERMILLE = tuple(int(x) for x in setting("CHANGES", "5,10,20,50").split(","))
RUNS = 10
FUNCTION = "left_leaf"
rng = random.Random(1)

# Small changes of one function, on a host that may be busy: configs/gate-busy.toml with a lower bar.
FINE = """
[gate]
kernel-only = true
count-samples = true
[[rule]]
name = "functions"
metric = "symbols"
threshold = "0.3 %"
min-share = "2 %"
"""
# The same change as a rule of its own, in points.
POINTS = """
[gate]
kernel-only = true
count-samples = true
[[rule]]
name = "left_leaf"
metric = "share"
symbol = "left_leaf"
threshold = "0.05 points"
"""


def make(path, *argv, limit=300):
    """A profile at path, if it is not there yet. A run that fails is told of, and missing."""
    if os.path.exists(path):
        return
    try:
        p = subprocess.run([KVMPROF, "run", "-q", "--no-buildid-cache", "-o", path, *argv],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=limit)
        if p.returncode:
            print("run failed: %s" % p.stderr.decode(errors="replace").strip().split("\n")[-1], flush=True)
    except subprocess.TimeoutExpired:
        print("run failed: no end after %d s" % limit, flush=True)


def demo(path, append):
    make(path, "-F", "10000", "-m", "32M", "--append", append)


def gate(rules, base, head):
    p = subprocess.run([KVMPROF, "gate", "-c", rules, "--format", "json", "--base", *base, "--head", *head],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode not in (0, 1, 3):
        sys.exit("kvmprof gate: " + p.stderr.decode())
    return json.loads(p.stdout)


def build_many():
    """The program that judges many gates; linked with what kvmprof is made of."""
    program = os.path.join(SCRATCH, "gate_many")
    build = os.path.dirname(KVMPROF)
    subprocess.run([*shlex.split(os.environ.get("CC", "gcc")), "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I" + TOP,
                    "-o", program, os.path.join(TOP, "tests", "bench", "gate_many.c"),
                    os.path.join(build, "libkvmprof.a"), *shlex.split(os.environ["LIBS"])], check=True)
    return program


def gates(rules, sets, pairing="auto"):
    """[(exit status, {rule:function that failed})] of [(base, head)]."""
    text = "".join("%s | %s\n" % (" ".join(b), " ".join(h)) for b, h in sets)
    p = subprocess.run([os.path.join(SCRATCH, "gate_many"), rules or "-", pairing], input=text.encode(),
                       stdout=subprocess.PIPE)
    lines = p.stdout.decode().split("\n")[:-1]
    if p.returncode or len(lines) != len(sets):
        sys.exit("gate_many failed")
    return [(int(x.split("\t")[0]), set(x.split("\t")[1:])) for x in lines]


def wilson(k, n, z=1.96):
    if not n:
        return 0.0, 1.0
    p = k / n
    mid, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (mid - half) / (1 + z * z / n), (mid + half) / (1 + z * z / n)


def rate(k, n):
    low, high = wilson(k, n)
    return "%5.1f %% (%d of %d; 95 %%: %.1f to %.1f)" % (100 * k / max(n, 1), k, n, 100 * low, 100 * high)


# -- A/A --------------------------------------------------------------------------------

def aa_demo():
    """[([base], [head])] of 5 pairs each."""
    sets = []
    for g in range(SETS):
        d = os.path.join(DIR, "aa", "%03d" % g)
        os.makedirs(d, exist_ok=True)
        for i in range(5):
            for side in rng.sample(("base", "head"), 2):
                demo("%s/%s-%03d" % (d, side, i + 1), "work=12 user_work=1000")
        sides = [sorted(glob.glob(d + "/" + s + "-*[0-9]")) for s in ("base", "head")]
        if all(len(s) == 5 for s in sides):
            sets.append(sides)
    return sets


def tiny_kernel():
    p = subprocess.run([os.path.join(TOP, "scripts", "build-guest-kernel.sh"), "tiny"], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, universal_newlines=True)
    if p.returncode:
        print("no tiny kernel: " + (p.stderr.strip().split("\n") or [""])[-1])
        return None
    return os.path.join(p.stdout.strip(), "vmlinux")


def aa_tiny():
    """Random splits of one pool."""
    kernel = tiny_kernel()
    if not kernel:
        return []
    initrd = os.path.join(os.path.dirname(KVMPROF), "guest", "initramfs.cpio")
    os.makedirs(os.path.join(DIR, "tiny"), exist_ok=True)
    for i in range(BOOTS):
        make(os.path.join(DIR, "tiny", "boot-%03d" % i), kernel, "--initrd", initrd, "-m", "64M", "-F", "4000")
    pool = sorted(glob.glob(os.path.join(DIR, "tiny", "boot-*[0-9]")))
    if len(pool) < 2 * RUNS:
        print("%d boots are too few to deal 10 and 10" % len(pool))
        return []
    draws = [rng.sample(pool, 2 * RUNS) for _ in range(GATES)]
    return [(d[:RUNS], d[RUNS:]) for d in draws]


def tell_aa(name, sets, rules, pairing="auto"):
    result = gates(rules, sets, pairing)
    count = Counter(status for status, _ in result)
    n = len(result)
    print("%-58s %5d %6d %13d %5d   %s" % (name, n, count[0], count[3], count[1], rate(count[1], n)), flush=True)
    for what, k in Counter(f for _, failed in result for f in failed).most_common(5):
        print("    failed: %s %d" % (what, k), flush=True)


def unzip(pairs):
    return [p[0] for p in pairs], [p[1] for p in pairs]


def aa(fine, busy, points):
    sets, tiny = aa_demo(), aa_tiny()
    pairs = [pair for base, head in sets for pair in zip(base, head)]
    blocks = [unzip(pairs[i:i + RUNS]) for i in range(0, len(pairs) - RUNS + 1, RUNS)]
    # Which of two runs of the same code is called the base is drawn anew.
    draws = [unzip([rng.sample(pairs[i], 2) for i in sorted(rng.sample(range(len(pairs)), RUNS))])
             for _ in range(GATES if len(pairs) > 2 * RUNS else 0)]
    print("A/A: identical code\n%-58s %5s %6s %13s %5s   false alarms" % ("", "gates", "pass", "inconclusive", "fail"))
    tell_aa("demo, 5 a side, one rule", sets, points)
    for name, rules in (("default rules", None), ("gate-busy.toml", busy), ("0.3 % of any function", fine)):
        tell_aa("demo, 10 a side of their own, " + name, blocks, rules)
        tell_aa("demo, 10 a side drawn from %d, %s" % (len(pairs), name), draws, rules)
    if tiny:
        pool = len({b for s in tiny for side in s for b in side})
        # Runs of one pool dealt by chance: their order in time is not that of a bench.
        for name, rules in (("default rules", None), ("gate-busy.toml", busy), ("0.3 % of any function", fine)):
            tell_aa("tiny Linux, 10 a side of %d, %s" % (pool, name), tiny, rules, "free")


# -- changes of known size -----------------------------------------------------------------

def changes():
    """{permille: [profile of each turn]} of turns that are complete."""
    d = os.path.join(DIR, "changes")
    os.makedirs(d, exist_ok=True)
    for r in range(ROUNDS):
        for x in rng.sample((0,) + PERMILLE, 1 + len(PERMILLE)):
            # The base says slow=, too: reading it takes an interpreted guest its time.
            demo("%s/s%02d-%03d" % (d, x, r), "work=300 slow=%s:%d" % (FUNCTION, x))
    turns = {x: {int(p[-3:]): p for p in glob.glob("%s/s%02d-*[0-9]" % (d, x))} for x in (0,) + PERMILLE}
    return turns


def find(fine, turns, x, draws):
    """For each draw of turns: was the function found and named? Was another one?"""
    result = gates(fine, [([turns[0][r] for r in d], [turns[x][r] for r in d]) for d in draws])
    want = "functions:" + FUNCTION
    return [(status == 1 and want in failed, bool(failed - {want})) for status, failed in result]


def draw(turns, n):
    return sorted(rng.sample(turns, n))


def tell_changes(fine, turns):
    print("\n%s does more work; rules: 0.3 %% of any function, kernel samples" % FUNCTION)
    print("change  its share             found by %d runs a side: own ones    drawn from all" % RUNS)
    for x in PERMILLE:
        both = sorted(set(turns[0]) & set(turns[x]))
        if len(both) < RUNS:
            print("%4.1f %%  only %d turns" % (x / 10, len(both)))
            continue
        some = both[:250]
        report = gate(fine, [turns[0][r] for r in some], [turns[x][r] for r in some])
        row = next(f for f in report["rules"][0]["functions"] if f["function"] == FUNCTION)
        blocks = [both[i:i + RUNS] for i in range(0, len(both) - RUNS + 1, RUNS)]
        result = find(fine, turns, x, blocks + [draw(both, RUNS) for _ in range(DRAWS)])
        own, drawn = result[:len(blocks)], result[len(blocks):]
        print("%4.1f %%  %.2f %% %+.2f points  %6d of %d        %s   others named in %d" % (
            x / 10, 100 * row["base"], 100 * row["diff"], sum(f for f, _ in own), len(own),
            rate(sum(f for f, _ in drawn), len(drawn)), sum(o for _, o in result)), flush=True)
    print("\nfound by so many runs a side (%d random draws each)" % DRAWS)
    for x in PERMILLE:
        both = sorted(set(turns[0]) & set(turns[x]))
        cells = []
        for n in (8, 10, 12, 15, 20, 30, 40):
            if n + 2 <= len(both):
                k = sum(f for f, _ in find(fine, turns, x, [draw(both, n) for _ in range(DRAWS)]))
                cells.append("%d: %3.0f %%" % (n, 100 * k / DRAWS))
        print("%4.1f %%   %s" % (x / 10, "   ".join(cells)), flush=True)


def tell_points(points, turns):
    """1 % of a function that has 29 % of the time is 0.2 points."""
    x = 10
    both = sorted(set(turns[0]) & set(turns.get(x, ())))
    if len(both) < 12:
        return
    report = gate(points, [turns[0][r] for r in both], [turns[x][r] for r in both])
    rule = report["rules"][0]
    seen = rule.get("result", {}).get("seen")
    if not seen:
        print("\n0.2 points: no estimate: %s" % rule["text"])
        return
    # What is seen goes with the square root of the number of runs.
    needed = max(7, math.ceil(len(both) * (seen / 0.2) ** 2))
    print("\n0.2 points: by the estimate %d runs a side see %.2f points 90 %% of the time, so 0.2 points take %d\n"
          "runs; the change that is there: %+.2f points" % (len(both), seen, needed, 100 * rule["result"]["diff"]))
    if needed + 2 > len(both):
        print("%d turns are too few to try; more: KVMPROF_BENCH_ROUNDS=%d" % (len(both), 2 * needed))
        return
    draws = [draw(both, needed) for _ in range(DRAWS)]
    k = sum(s == 1 for s, _ in gates(points, [([turns[0][r] for r in d], [turns[x][r] for r in d]) for d in draws]))
    print("found by %d runs a side: %s" % (needed, rate(k, DRAWS)))


def main():
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR))
    except OSError as e:
        print("/dev/kvm: %s" % e.strerror)
        return
    os.makedirs(SCRATCH, exist_ok=True)
    rules = {}
    for name, text in (("fine", FINE), ("points", POINTS)):
        rules[name] = os.path.join(SCRATCH, name + ".toml")
        with open(rules[name], "w") as f:
            f.write(text)
    start = time.monotonic()
    build_many()
    if SETS:
        aa(rules["fine"], os.path.join(TOP, "configs", "gate-busy.toml"), rules["points"])
    turns = changes()
    tell_changes(rules["fine"], turns)
    tell_points(rules["points"], turns)
    print("%.0f s, load average at the end %.1f" % (time.monotonic() - start, os.getloadavg()[0]))
    if DIR == SCRATCH:
        shutil.rmtree(SCRATCH, ignore_errors=True)


main()

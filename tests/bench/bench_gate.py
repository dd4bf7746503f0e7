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

An hour or so with the defaults, on a quiet machine. SETS, GATES, BOOTS, ROUNDS, DRAWS and DIR are taken from the environment, as
KVMPROF_BENCH_GATES and so on; runs that are already in DIR (default: SCRATCH) are used again."""

import glob
import json
import math
import os
import random
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
PERMILLE = (5, 10, 20, 50)
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


def gate(rules, base, head, *argv):
    p = subprocess.run([KVMPROF, "gate", *(["-c", rules] if rules else []), "--format", "json", *argv,
                        "--base", *base, "--head", *head], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode not in (0, 1, 3):
        sys.exit("kvmprof gate: " + p.stderr.decode())
    return p.returncode, json.loads(p.stdout)


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


def tell_aa(name, sets, rules, *argv):
    count, named = Counter(), Counter()
    for base, head in sets:
        status, report = gate(rules, base, head, *argv)
        count[status] += 1
        for r in report["rules"]:
            named[r["rule"]] += r["verdict"] == "fail"
    n = sum(count.values())
    print("%-52s %5d %6d %13d %5d   %s" % (name, n, count[0], count[3], count[1], rate(count[1], n)), flush=True)
    for rule, k in named.items():
        if k:
            print("    by rule: %s %d" % (rule, k))
    return count[1], n


def unzip(pairs):
    return [p[0] for p in pairs], [p[1] for p in pairs]


def aa(fine, busy, points):
    sets, tiny = aa_demo(), aa_tiny()
    pairs = [pair for base, head in sets for pair in zip(base, head)]
    blocks = [unzip(pairs[i:i + RUNS]) for i in range(0, len(pairs) - RUNS + 1, RUNS)]
    draws = [unzip([pairs[i] for i in sorted(rng.sample(range(len(pairs)), RUNS))])
             for _ in range(GATES if len(pairs) > 2 * RUNS else 0)]
    print("A/A: identical code\n%-52s %5s %6s %13s %5s   false alarms" % ("", "gates", "pass", "inconclusive", "fail"))
    tell_aa("demo, 5 a side, one rule", sets, points)
    for name, rules in (("default rules", None), ("gate-busy.toml", busy), ("0.3 % of any function", fine)):
        tell_aa("demo, 10 a side of their own, " + name, blocks, rules)
        tell_aa("demo, 10 a side drawn from %d, %s" % (len(pairs), name), draws, rules)
    if tiny:
        pool = len({b for s in tiny for side in s for b in side})
        # Runs of one pool dealt by chance: their order in time is not that of a bench.
        for name, rules in (("default rules", None), ("gate-busy.toml", busy), ("0.3 % of any function", fine)):
            tell_aa("tiny Linux, 10 a side of %d, %s" % (pool, name), tiny, rules, "--unpaired")


# -- changes of known size -----------------------------------------------------------------

def changes():
    """{permille: [profile of each turn]} of turns that are complete."""
    d = os.path.join(DIR, "changes")
    os.makedirs(d, exist_ok=True)
    for r in range(ROUNDS):
        for x in rng.sample((0,) + PERMILLE, 5):
            # The base says slow=, too: reading it takes an interpreted guest its time.
            demo("%s/s%02d-%03d" % (d, x, r), "work=120 slow=%s:%d" % (FUNCTION, x))
    turns = {x: {int(p[-3:]): p for p in glob.glob("%s/s%02d-*[0-9]" % (d, x))} for x in (0,) + PERMILLE}
    return turns


def found(rules, turns, x, rounds):
    status, report = gate(rules, [turns[0][r] for r in rounds], [turns[x][r] for r in rounds])
    failed = {f["function"] for r in report["rules"] for f in r.get("functions", []) if f["verdict"] == "fail"}
    return status == 1 and FUNCTION in failed, len(failed - {FUNCTION}), report


def tell_changes(fine, turns):
    print("\nleft_leaf does more work; %d samples/s; rules: 0.3 %% of any function, kernel samples" % 10000)
    print("change  share before and after    by blocks of %d turns          by random draws of %d turns        "
          "others named" % (RUNS, RUNS))
    for x in PERMILLE:
        both = sorted(set(turns[0]) & set(turns[x]))
        if len(both) < RUNS:
            print("%4.1f %%  only %d turns" % (x / 10, len(both)))
            continue
        _, _, report = found(fine, turns, x, both[:250])
        row = next((f for r in report["rules"] for f in r["functions"] if f["function"] == FUNCTION), None)
        blocks = [found(fine, turns, x, both[i:i + RUNS]) for i in range(0, len(both) - RUNS + 1, RUNS)]
        draws = [found(fine, turns, x, sorted(rng.sample(both, RUNS))) for _ in range(DRAWS)]
        print("%4.1f %%  %.2f -> %.2f (%+.2f points)  %d of %d   %s   %d in %d gates" % (
            x / 10, 100 * row["base"], 100 * row["head"], 100 * row["diff"], sum(b[0] for b in blocks), len(blocks),
            rate(sum(d[0] for d in draws), len(draws)), sum(b[1] > 0 for b in blocks + draws),
            len(blocks + draws)), flush=True)
    print("\nruns a side: how often found by that many (random draws of turns, %d each)" % (DRAWS // 2))
    for x in PERMILLE:
        both = sorted(set(turns[0]) & set(turns[x]))
        cells = []
        for n in (6, 8, 10, 14, 20, 30):
            if n + 2 <= len(both):
                k = sum(found(fine, turns, x, sorted(rng.sample(both, n)))[0] for _ in range(DRAWS // 2))
                cells.append("%d: %3.0f %%" % (n, 100 * k / (DRAWS // 2)))
        print("%4.1f %%   %s" % (x / 10, "   ".join(cells)), flush=True)


def tell_points(points, turns):
    """1 % of a function that has 29 % of the time is 0.2 points."""
    x = 10
    both = sorted(set(turns[0]) & set(turns[x]))
    if len(both) < 12:
        return
    _, report = gate(points, [turns[0][r] for r in both], [turns[x][r] for r in both])
    rule = report["rules"][0]
    seen = rule.get("result", {}).get("seen")
    if not seen:
        print("\n0.2 points: no estimate: %s" % rule["text"])
        return
    # What is seen goes with the square root of the number of runs.
    needed = math.ceil(len(both) * (seen / 0.2) ** 2)
    print("\n0.2 points: with %d runs a side the estimate says that %.2f points are seen 90 %% of the time, so 0.2\n"
          "points take %d runs; the change that is there: %+.2f points" % (
              len(both), seen, needed, 100 * rule["result"]["diff"]))
    n = max(needed, 7)
    if n + 2 <= len(both):
        k = sum(gate(points, [turns[0][r] for r in draw], [turns[x][r] for r in draw])[0] == 1
                for draw in (sorted(rng.sample(both, n)) for _ in range(DRAWS)))
        print("found by %d runs a side: %s" % (n, rate(k, DRAWS)))
    else:
        print("%d turns are too few to try; more: KVMPROF_BENCH_ROUNDS=%d" % (len(both), 2 * n))


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
    aa(rules["fine"], os.path.join(TOP, "configs", "gate-busy.toml"), rules["points"])
    turns = changes()
    tell_changes(rules["fine"], turns)
    tell_points(rules["points"], turns)
    print("%.0f s, load average at the end %.1f" % (time.monotonic() - start, os.getloadavg()[0]))
    if DIR == SCRATCH:
        shutil.rmtree(SCRATCH, ignore_errors=True)


main()

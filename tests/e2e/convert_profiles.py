#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 1 s
# tests: not svm, files
"""Stacks as text to profiles and back, two groups of runs compared, a profile packed and
read elsewhere: each against numbers worked out here, and against stock perf."""

import csv
import io
import json
import os
import random
import re
import shutil
import tarfile
from collections import Counter

import e2e
from e2e import check


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def done(p, what, status=0):
    check(p.status == status, "%s: status %d: %s" % (what, p.status, p.err.strip()))
    return p


def kvmprof(*argv, **kw):
    return done(e2e.kvmprof(*argv, **kw), "kvmprof " + " ".join(argv))


def perf(*argv):
    return done(e2e.run("perf", *argv), "perf " + " ".join(argv)).out


def folded(stacks):
    return "".join("%s %d\n" % (s, n) for s, n in stacks.items())


def bare(name):
    return re.sub(r"_\[[kij]\]$", "", name)


def shares(stacks):
    """{name: (self %, children %)}, recursion counted once."""
    total = sum(stacks.values())
    self, children = Counter(), Counter()
    for stack, n in stacks.items():
        frames = [bare(f) for f in stack.split(";")[1:]]
        self[frames[-1]] += n
        for f in set(frames):
            children[f] += n
    return {f: (100.0 * self[f] / total, 100.0 * children[f] / total) for f in children}


def reported(path):
    j = json.loads(kvmprof("report", "--json", "-n", "0", "--sort", "sym", "-i", path).out)
    return {s["symbol"]: (100.0 * s["self"] / j["weight"], 100.0 * s["children"] / j["weight"])
            for s in j["symbols"]}


def perf_reported(path):
    rows = re.findall(r"^ *([0-9.]+)% +([0-9.]+)% +\[[k.]\] (.*\S) *$",
                      perf("report", "-i", path, "--stdio", "--children", "-g", "none",
                           "--sort", "sym", "--percent-limit", "0"), re.M)
    return {name: (float(own), float(children)) for children, own, name in rows}


def same(got, want, within, what):
    check(set(got) == set(want), "%s: %s instead of %s" % (what, sorted(got), sorted(want)))
    for f in set(got) & set(want):
        check(all(abs(g - w) <= within for g, w in zip(got[f], want[f])),
              "%s: %s has %s instead of %s" % (what, f, got[f], want[f]))


def imports_folded():
    stacks = {
        "sh;main;work": 300,
        "sh;main;work;work": 45,
        "sh;main;read;entry_[k];sys_read_[k]": 155,
        "my prog;main;operator new[];a b 7": 100,
        "my prog;start;sys_read_[k]": 50,
        "swapper;start_kernel_[k];halt_[k]": 350,
    }
    p = kvmprof("import", write("a.folded", folded(stacks)), "-o", "a.data")
    check("1000 samples" in p.err, "import says: " + p.err)
    # demangle_shown() has nothing to demangle here.
    same(reported("a.data"), shares(stacks), 1e-9, "report of folded stacks")
    same(perf_reported("a.data"), shares(stacks), 0.006, "perf report of folded stacks")
    tasks = json.loads(kvmprof("report", "--json", "--sort", "comm", "-i", "a.data").out)
    check({t["comm"]: t["self"] for t in tasks["symbols"]} ==
          {"sh": 500, "my prog": 150, "swapper": 350}, "tasks of folded stacks: %s" % tasks)
    # Without a task's name in front the first frame is one, and the whole is a stack of the same task.
    plain = {"main;read;copy": 30, "main;sum": 70}
    kvmprof("import", "--no-comm", write("n.folded", folded(plain)), "-o", "n.data")
    p = kvmprof("export", "-F", "folded", "-i", "n.data")
    got = dict(line.rsplit(" ", 1) for line in p.out.splitlines())
    check({k.split(";", 1)[1]: int(v) for k, v in got.items()} == plain and len({k.split(";")[0] for k in got}) == 1,
          "import --no-comm: %s" % got)
    kvmprof("import", "n.folded", "-o", "n2.data")
    p = kvmprof("export", "-F", "folded", "-i", "n2.data")
    check(sorted(x.rsplit(" ", 1)[0] for x in p.out.splitlines()) == sorted(plain), "import without it: " + p.out)
    # From a pipe, and into one file.
    text = open("a.folded").read()
    p = e2e.subprocess.run([e2e.KVMPROF, "import", "-", "--single-file", "-o", "pipe.data"],
                           input=text.encode(), stderr=e2e.subprocess.PIPE)
    check(p.returncode == 0 and os.path.isfile("pipe.data"), "import from a pipe: %s" % p.stderr)
    same(reported("pipe.data"), shares(stacks), 1e-9, "report of a pipe")


def names_beyond_ascii():
    """Each program that writes JSON writes the name that was read."""
    name = "gr\u00f6\u00dfe_\u540d"
    with open("u.folded", "wb") as f:
        f.write(("sh;main;%s 10\n" % name).encode() + b"sh;main;cut\xc3 5\n")
    kvmprof("import", "u.folded", "-o", "u.data")
    want = {"main", name, "cut\ufffd"}
    check(set(reported("u.data")) == want, "report --json: %s" % sorted(reported("u.data")))
    d = json.loads(kvmprof("diff", "--json", "-n", "0", "u.data", "u.data").out)
    got = {r["symbol"] for r in d["rows"]}
    check(got == want, "diff --json: %s" % sorted(got))
    tree = kvmprof("report", "--json", "-g", "caller", "-n", "0", "-i", "u.data").out
    check(name in tree and "\u00c3" not in tree, "report --json -g: %s" % tree[:500])


def imports_script():
    """What either program prints of a profile, imported, folds as before."""
    want = e2e.fold(kvmprof("script", "-i", "a.data").out)
    check(sum(want.values()) == 1000, "%d stacks" % sum(want.values()))
    for name, text in (("ours", kvmprof("script", "-i", "a.data").out),
                       ("perf", e2e.perf_script("a.data"))):
        kvmprof("import", write(name + ".script", text), "-o", name + ".data")
        check(e2e.fold(kvmprof("script", "-i", name + ".data").out) == want,
              "what %s's script became folds differently" % name)
        check(e2e.fold(e2e.perf_script(name + ".data")) == want,
              "what %s's script became folds differently in perf" % name)
        same(reported(name + ".data"), reported("a.data"), 1e-9, "report of %s's script" % name)


def runs_of(side, share, n):
    paths = []
    for i in range(n):
        leaf = share + i
        name = "%s%d" % (side, i)
        kvmprof("import", write(name + ".folded", folded(
            {"t;main;hot": leaf, "t;main;rest": 700 - leaf, "t;main;same": 300})),
            "-o", name + ".data")
        paths.append(name + ".data")
    return paths


def compares():
    base, head = runs_of("b", 100, 4), runs_of("h", 200, 4)
    j = json.loads(kvmprof("diff", "--json", ",".join(base), ",".join(head)).out)
    rows = {r["symbol"]: r for r in j["rows"]}
    check(j["tested"] and j["exact"] and j["deals"] == 70, "statistics: %s" % j)
    hot = rows["hot"]
    check(abs(hot["change"] - 10) < 1e-4 and abs(hot["p"] - 2 / 70) < 1e-5, "hot: %s" % hot)
    check(abs(hot["q"] - 2 / 70 * 4 / 2) < 1e-5, "hot: %s" % hot)
    # Four values 0.1 apart a side: Student's interval of 6 degrees of freedom is 10 +- 2.447 * 0.0913. Resamples of t are a little wider.
    low, high = (abs(x - 10) / (2.447 * 0.0913) for x in hot["interval"])
    check(hot["interval"][0] < 10 < hot["interval"][1] and 0.95 < low < 1.15 and 0.95 < high < 1.15, "hot: %s" % hot)
    check(rows["same"]["p"] == 1 and rows["same"]["change"] == 0, "same: %s" % rows["same"])
    check({j["rows"][0]["symbol"], j["rows"][1]["symbol"]} == {"hot", "rest"}, "order of rows")
    again = kvmprof("diff", "--json", *sum((["--base", b] for b in base), []),
                    *sum((["--head", h] for h in head), []))
    check(json.loads(again.out) == j, "--base and --head tell something else")

    p = kvmprof("diff", base[0], head[0])
    check("noise" in p.out and not re.search(r"\bp\b +q\b", p.out), "one run a side: " + p.out)
    table = list(csv.DictReader(io.StringIO(kvmprof("diff", "--csv", base[0], head[0]).out)))
    ours = {r["symbol"]: float(r["change"]) for r in table}
    check(all(r["p"] == "" for r in table), "CSV has p of one run")
    check(float(table[0]["noise"]) > 1, "CSV: %s" % table[0])
    theirs = dict((name, float(delta)) for delta, name in re.findall(
        r"^ *[0-9.]+% +([+-][0-9.]+)% .*\[[k.]\] (\S+)", perf("diff", base[0], head[0]), re.M))
    for f in ("hot", "rest"):
        check(f in theirs and abs(theirs[f] - ours[f]) < 0.02,
              "perf diff: %s, ours %s" % (theirs, ours))
    stacks = json.loads(kvmprof("diff", "--stacks", "--json", base[0], head[0]).out)["rows"]
    check(abs({r["stack"]: r["change"] for r in stacks}["main;hot"] - 10) < 1e-4,
          "stacks: %s" % stacks)
    for argv, status in ((["diff", base[0]], 2), (["diff", base[0], "missing.data"], 1),
                         (["diff", "--order", "x", base[0], head[0]], 2),
                         (["diff", "--comm", "nobody", base[0], head[0]], 1)):
        p = done(e2e.kvmprof(*argv), " ".join(argv), status)
        check(len(p.err.strip().split("\n")) == 1 and not p.out, "%s: %s" % (argv, p.err))


def packs():
    elsewhere = os.path.abspath("elsewhere")
    for path in ("a.data", "pipe.data"):
        want = kvmprof("report", "-i", path).out
        check("work" in want, "%s has no names" % path)
        for form in ("tar", "tar.gz", "tar.zst"):
            name = "x." + form
            kvmprof("archive", "-i", path, "-o", name)
            first = open(name, "rb").read()
            os.utime(path)
            kvmprof("archive", "-i", os.path.abspath(path), "-o", name)
            check(open(name, "rb").read() == first, "%s of %s differs when packed again" % (form, path))
            if form != "tar.zst":
                with tarfile.open(name) as t:
                    names = t.getnames()
                    check(path + "/data" in names and path + "/kcore_dir/kallsyms" in names and
                          any(n.startswith(path + "/dso/") for n in names), "%s: %s" % (name, names))
                    check(all(m.mtime == 0 and m.uid == 0 for m in t), name + " has times or owners")
            shutil.rmtree(elsewhere, ignore_errors=True)
            os.mkdir(elsewhere)
            done(e2e.run("tar", "xf", os.path.abspath(name), cwd=elsewhere), "tar xf " + name)
            env = dict(os.environ, HOME=os.path.join(elsewhere, "nobody"))
            got = done(e2e.kvmprof("report", "-i", path, cwd=elsewhere, env=env), "report elsewhere")
            check(got.out == want, "%s of %s reads differently elsewhere" % (form, path))
            kernel = done(e2e.run("perf", "report", "-i", path, "--stdio", "-g", "none",
                                  cwd=elsewhere, env=env), "perf report elsewhere").out
            check("sys_read" in kernel, "perf finds no kernel names in what was unpacked")
    for argv, status in ((["archive", "-i", "a.data", "-o", "x.zip"], 2),
                         (["archive", "-i", "missing"], 1), (["archive", "a.data", "b.data"], 2)):
        p = done(e2e.kvmprof(*argv), " ".join(argv), status)
        check(len(p.err.strip().split("\n")) == 1, "%s: %s" % (argv, p.err))
    check(not [f for f in os.listdir(".") if ".tmp-" in f], "temporary files stay behind")


NASTY = ["exec<void (*)()>(void (*)())", "f(int)", "f(long)", "operator()<int>(int) const", "=1+1", "@x", "-y,\"z\"", "+w", "a b"]


def round_trip():
    """What is exported reads back as it was, and no cell of CSV begins a formula."""
    text = "".join("my task;%s;%s %d\n" % (NASTY[i - 1], name, i + 1) for i, name in enumerate(NASTY))
    kvmprof("import", write("nasty.folded", text), "-o", "nasty.data")
    first = kvmprof("export", "-F", "folded", "-i", "nasty.data").out
    check(sorted(first.splitlines()) == sorted(text.splitlines()), "folded changed names: " + first)
    tidied = kvmprof("export", "-F", "folded", "--tidy", "-i", "nasty.data").out
    check("f;f 3" in tidied and "my_task;" in tidied, "--tidy: " + tidied)
    kvmprof("export", "-F", "kp", "-i", "nasty.data", "-o", "nasty.kp")
    kvmprof("import", "nasty.kp", "-o", "kp.data")
    again = kvmprof("export", "-F", "folded", "-i", "kp.data").out
    want = sorted(x.split(";", 1)[1].replace("+", "_") for x in text.splitlines())
    check(sorted(x.split(";", 1)[1] for x in again.splitlines()) == want, "kp changed stacks: " + again)
    for argv in (["report", "--csv", "-n", "0", "-i", "nasty.data"], ["diff", "--csv", "nasty.data", "kp.data"]):
        raw = e2e.subprocess.run([e2e.KVMPROF] + argv, stdout=e2e.subprocess.PIPE).stdout.decode("utf-8")
        rows = list(csv.DictReader(io.StringIO(raw)))
        check(rows and not [r for r in rows for k in ("symbol", "dso") if r[k] and r[k][0] in "=+-@"], "formulas: " + raw)
        check("'=1+1" in [r["symbol"] for r in rows], "CSV changed more: " + raw)


def refuses():
    random.seed(1)
    for name, data in (("empty", b""), ("noise", bytes(random.randrange(256) for _ in range(5000))),
                       ("prose", b"It was a dark and stormy night;\nthe rain fell.\n")):
        with open(name, "wb") as f:
            f.write(data)
        for form in ("folded", "perf-script"):
            p = e2e.kvmprof("import", "--format", form, name, "-o", "bad.data")
            check(p.status == 1 and len(p.err.strip().split("\n")) == 1 and name in p.err,
                  "import --format %s %s: %d %s" % (form, name, p.status, p.err))
            check(not os.path.exists("bad.data"), "a profile of " + name)
    done(e2e.kvmprof("import", "missing", "-o", "bad.data"), "import missing", 1)
    done(e2e.kvmprof("import"), "import", 2)


e2e.need_tool("perf")
imports_folded()
names_beyond_ascii()
imports_script()
compares()
packs()
round_trip()
refuses()
e2e.finish()

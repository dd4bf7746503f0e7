#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 5 s
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
import exported
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
    rows = json.loads(kvmprof("diff", "--json", "-S", "hot", "-g", "callee", base[0], head[0]).out)["rows"]
    check([r["symbol"] for r in rows] == ["hot"] and
          [(n["function"], n["change"]) for n in rows[0]["callers"]] == [("main", rows[0]["change"])],
          "diff -S -g callee: %s" % rows)
    rows = json.loads(kvmprof("diff", "--json", "-S", "main", "-g", "caller", base[0], head[0]).out)["rows"]
    check({n["function"]: n["share"] for n in rows[0]["callees"]} == {r: [x["self"][0], x["self"][1]] for r, x in (
        (s["symbol"], s) for s in json.loads(kvmprof("diff", "--json", base[0], head[0]).out)["rows"]) if r != "main"},
          "diff -S -g caller: %s" % rows)
    table = list(csv.DictReader(io.StringIO(kvmprof("diff", "--csv", base[0], head[0]).out)))
    want = [sum(int(n) for n in re.findall(r"hot (\d+)$", open(x).read(), re.M)) for x in ("b0.folded", "h0.folded")]
    check([int(r["count_base"]) for r in table if r["symbol"] == "hot"] == want[:1] and
          [int(r["count_head"]) for r in table if r["symbol"] == "hot"] == want[1:], "counts: %s, not %s" % (table, want))
    for argv, words in ((["-S", "hto"], "(did you mean hot?)"), (["-g", "callee", "-p", "("], "bad expression"),
                        (["-g", "up"], "caller or callee"), (["-g", "caller", "--stacks"], "drop --stacks")):
        p = e2e.kvmprof("diff", *argv, base[0], head[0])
        check(p.status and words in p.err and p.err.count("\n") == 1 and not p.out, "diff %s: %s" % (argv, p.err))
    for name in ("flat0", "flat1"):
        kvmprof("import", write(name + ".folded", folded({"t;one": 10, "t;two": 5})), "-o", name + ".data")
    for argv in (["diff", "-g", "callee", "flat0.data", "flat1.data"], ["annotate", "--children", "-i", "flat0.data", "one"]):
        p = e2e.kvmprof(*argv)
        check(p.status == 1 and "call chains" in p.err and p.err.count("\n") == 1 and not p.out, "%s: %s" % (argv, p.err))
    for argv, words in ((["script", "-S", "noe"], "(did you mean one?)"), (["export", "-F", "folded", "-d", "x"], "the samples are in"),
                        (["flamegraph", "-o", "x.svg", "-p", "zz"], "no function in the samples' stacks"),
                        (["report", "-c", "nobody"], "no sample has the command name")):
        p = e2e.kvmprof(*argv, "-i", "flat0.data")
        check(p.status == 1 and words in p.err and p.err.count("\n") == 1, "%s: %s" % (argv, p.err))
    for argv, status in ((["diff", base[0]], 2), (["diff", base[0], "missing.data"], 1),
                         (["diff", "--order", "x", base[0], head[0]], 2),
                         (["diff", "--comm", "nobody", base[0], head[0]], 1)):
        p = done(e2e.kvmprof(*argv), " ".join(argv), status)
        check(len(p.err.strip().split("\n")) == 1 and not p.out, "%s: %s" % (argv, p.err))


def script_json():
    """An object for each sample, with what the text has."""
    samples = e2e.parse_script(kvmprof("script", "-i", "a.data").out)
    lines = [json.loads(line) for line in kvmprof("script", "--json", "-i", "a.data").out.splitlines()]
    check(len(samples) == len(lines) > 0, "%d objects for %d samples" % (len(lines), len(samples)))
    for sample, o in zip(samples, lines):
        stack = ";".join(f["symbol"] or "[unknown]" for f in reversed(o["frames"]))
        same = (stack == sample.stack and o["comm"] == sample.comm and o["weight"] == sample.period and
                abs(o["time_ns"] / 1e9 - sample.seconds) < 2e-6)
        if not check(same, "script --json: %s, not %s" % (o, sample)):
            break


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
            p = kvmprof("archive", "--json", "-i", os.path.abspath(path), "-o", name)
            facts = json.loads(p.out)
            check(not p.err and facts["archive"] == name and facts["profile"] == os.path.abspath(path) and
                  facts["files"] > 1 and facts["bytes"] > 0 and not facts["partial"], "archive --json: %s%s" % (p.out, p.err))
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


# What means something to a shell, a spreadsheet, C++, one of the formats, or nobody.
NASTY = [b"exec<void (*)()>(void (*)())", b"f(int)", b"f(long)", b"operator()<int>(int) const", b"=1+1", b"@x", b'-y,"z"',
         b"+w", b"a b", b" lead", b"trail ", "gr\u00f6\u00dfe".encode(), b"bad\xff\xfe\xc3", b"\xed\xa0\x80", b"x" * 5000, b"\xff" * 5000,
         b"operator+", b"a/b", b"a!b", b"a`b", b"a: b", b"a%2bb", b"a%", b"[unknown]", b"[x]", b"u_[k]", b"u_[j]_[i]", b"0x1234",
         b"+0x1", b"a+0x10/0x20", b"12", b"# c", b"(x) (y)", b"\x01\x1b[31m", b"a'b\\c", b"name (/bin/x)", b"name [mod]"]
TASKS = [b"my task", b"#c", b"a-12/34", b"1 [0] 2.0:", b"\xff" * 15, b"x:y", b"=z", b"kworker/0:1-ev"]
FILES = ["/bin/a b", "/x (2)/lib.so", "/x (2/l.so", "[vdso]", "/a [b]/c", "/tmp/perf-12.map", "/a%2bb", "/u: v", "!x", "=cmd"]
EVENTS = ["wall", "my event:u", "page-faults"]


def nasty_folded():
    """Each name as a program's, the kernel's and a JIT compiler's. Another mark keeps one that belongs to the name."""
    lines = []
    for i, name in enumerate(NASTY):
        for mark in (b"", b"_[k]", b"_[j]"):
            names = [n + (b"_[i]" if re.search(rb"_\[[kijw]\]$", n) else b"") for n in (NASTY[i - 1], name)]
            task = TASKS[len(lines) % len(TASKS)]
            task += b"-5/6" * (b"/34" in task)
            lines.append(b"%s%s;%s;%s %d\n" % (b" " * task.startswith(b"#"), task, names[0], name + mark if mark else names[1], len(lines)))
    return b"".join(lines)


def nasty_script():
    """Several events; kernel, modules, files with odd names, and frames without a name in each."""
    text = []

    def sample(*frames):
        i = len(text)
        text.append(b"%s %d/%d [%03d] 5.%06d: %d %s: \n" % (TASKS[i % 3], i % 3 + 1, i % 3 + 1, i % 2, i, i, EVENTS[i // 2 % 3].encode()) +
                    b"".join(b"\t%16x %s (%s)\n" % (at + i * 64, name, dso.encode()) for at, name, dso in frames) + b"\n")

    for i, name in enumerate(NASTY):
        at = name.replace(b"\n", b"?") + b"+0x%x" % i
        module, path = ("[ext4]", "[kvm]")[i % 2], FILES[i % len(FILES)]
        kernel = ((0xffffffff81000000, at, "[kernel.kallsyms]"), (0xffffffffc0000000, at, module),
                  (0xffffffff81000007, b"[unknown]", "[kernel.kallsyms]"), (0xffffffffc0000007, b"[unknown]", module))
        user = ((0x401000, at, path), (0x401009, b"[unknown]", path), (0x7f0000001009, b"[unknown]", "[unknown]"))
        for frames in (kernel[:2] + user, user, kernel[1:] + user, kernel[2:], kernel[3:], user[1:], user[2:]):
            sample(*frames)
    return b"".join(text)


def without_addresses(form, text):
    """Addresses of imported profiles are made up, and times have no ns in them."""
    if form == "perf-script":
        return re.sub(rb"(?m)^\t *[0-9a-f]+ ", b"\t", text)
    if form != "kp":
        return text
    summary, *stacks, end = re.sub(rb"(?m)^ 0x[0-9a-f]+ : (0x[0-9a-f]{16}\+0x0/0x0)?", b" ", text).split(b"!\n")
    check(not end, "kp: behind the last stack: %s" % end)
    # Equal stacks of two processes have different addresses there, and the same ones here.
    sums = Counter()
    for stack in stacks:
        frames, count = stack[:-1].rsplit(b"\t", 1)
        sums[frames] += int(count)
    return summary + b"".join(b"!\n%s\t%d\n" % x for x in sums.items())


def exported_as(form, path, event, out):
    """What a format holds: bytes, or of a directory {name: bytes}. All of it is UTF-8."""
    shutil.rmtree(out, ignore_errors=True)
    argv = ["export", "-F", form, "-i", path] + (["--event", event] if event else [])
    kvmprof(*argv, "-o", out)
    if form != "iprof":
        with open(out, "rb") as f:
            text = f.read()
        text.decode("utf-8")
        return without_addresses(form, text)
    files = {}
    for name in os.listdir(out):
        with open(os.path.join(out, name), "rb") as f:
            files[name] = f.read()
        files[name].decode("utf-8")
        check(name == "kernel.syms" or files[name].startswith(b"# image: ") and b"\n# profiler: kvmprof " in files[name],
              "%s has no header: %s" % (name, files[name][:100]))
    return files


def survives(path, event, what):
    """Each format that `import` reads gives the same text again, line by line."""
    forms = re.findall(r"([-a-z]+):(?: |\n|$)", e2e.kvmprof("import", "--help").out.split("--format FORM")[1].split("(default")[0])
    check(set(forms) == {"folded", "perf-script", "kp", "iprof"}, "formats that import reads: %s" % forms)
    for form in forms:
        first = exported_as(form, path, event, "first." + form)
        kvmprof("import", "first." + form, "-o", "again.data")
        again = exported_as(form, "again.data", None, "again." + form)
        if form == "iprof":
            check(first == again, "%s: iprof: %s" % (what, [n for n in set(first) | set(again) if first.get(n) != again.get(n)]))
            continue
        first, again = Counter(first.split(b"\n")), Counter(again.split(b"\n"))
        check(first == again, "%s: %s: lost %s, new %s" % (what, form, list((first - again).items())[:5], list((again - first).items())[:5]))


def rows_of(path):
    """What a report says: tasks, functions, files, and which are the kernel's."""
    return {(r["comm"], r["symbol"], r["dso"]): (r["self"], r["children"]) for r in json.loads(
        kvmprof("report", "--json", "-n", "0", "--sort", "comm,sym,dso", "-i", path).out)["symbols"]}


def round_trip():
    """What is exported reads back as it was, and no cell of CSV begins a formula."""
    text = nasty_folded()
    with open("nasty.folded", "wb") as f:
        f.write(text)
    with open("nasty.script", "wb") as f:
        f.write(nasty_script())
    kvmprof("import", "nasty.folded", "-o", "nasty.data")
    first = e2e.subprocess.run([e2e.KVMPROF, "export", "-F", "folded", "-i", "nasty.data"], stdout=e2e.subprocess.PIPE).stdout
    # But for bytes that no text may have, and names beyond 4096 bytes, it is the very text.
    plain = [x for x in text.split(b"\n") if re.match(rb"[ -~]{1,4000}$", x)]
    check(len(plain) > 50 and set(plain) <= set(first.split(b"\n")), "folded changed %s" % (set(plain) - set(first.split(b"\n"))))
    check(len(first.split(b"\n")) == len(text.split(b"\n")), "folded has other stacks")
    survives("nasty.data", None, "nasty.folded")
    kvmprof("import", "first.folded", "-o", "again.data")
    check(rows_of("nasty.data") == rows_of("again.data"), "reports differ")
    kvmprof("import", "nasty.script", "-o", "odd.data")
    for event in EVENTS:
        survives("odd.data", event, "nasty.script, " + event)
    # Addresses of programs, code without files, modules that come and go.
    for profile in exported.make_profiles():
        survives(profile.path, None, profile.path)
    tidied = kvmprof("export", "-F", "folded", "--tidy", "-i", "nasty.data").out
    check(re.search(r"(?m)^my_task;.*\(\) const", tidied) is None and re.search(r"(?m);f;f \d+$", tidied), "--tidy: " + tidied)
    bare_names = kvmprof("export", "-F", "folded", "--no-marks", "-i", "nasty.data").out
    check(re.search(r"(?m);f\(int\) \d+$", bare_names) and "_[i]" not in bare_names.replace("u_[j]_[i]", ""), "--no-marks: " + bare_names)
    for argv in (["report", "--csv", "-n", "0", "-i", "nasty.data"], ["diff", "--csv", "-n", "0", "nasty.data", "odd.data"]):
        raw = e2e.subprocess.run([e2e.KVMPROF] + argv, stdout=e2e.subprocess.PIPE).stdout.decode("utf-8")
        rows = list(csv.DictReader(io.StringIO(raw)))
        bad = [r for r in rows for k in ("symbol", "dso") if r[k] and r[k][0] in "=+-@"]
        check(rows and not bad, "formulas: %s" % bad)
        check("'=1+1" in [r["symbol"] for r in rows], "CSV changed more: " + raw[:1000])


def refuses_directories():
    os.mkdir("none.iprof")
    os.mkdir("fifo.iprof")
    os.mkfifo("fifo.iprof/a.prof")
    os.mkdir("prose.iprof")
    write("prose.iprof/a.prof", "# image: /bin/a\nIt was a dark night\n")
    for argv, status, want in ((["none.iprof"], 1, ".prof"), (["fifo.iprof"], 1, "a.prof: is not a regular file"),
                               (["prose.iprof"], 1, "no counts"), (["--format", "iprof", "nasty.folded"], 1, "not a directory"),
                               (["prose.iprof/a.prof"], 1, "name the directory"), (["--format", "kp", "none.iprof"], 1, "none.iprof")):
        p = done(e2e.kvmprof("import", *argv, "-o", "bad.data"), " ".join(argv), status)
        check(want in p.err.strip().split("\n")[-1] and not os.path.exists("bad.data"), "import %s: %s" % (argv, p.err))
    # One file without a header, as other versions write them.
    os.mkdir("old.iprof")
    write("old.iprof/kernel-0123456789abcdef.prof", "0x10 3\n0x200 1\n")
    write("old.iprof/kernel.syms", "0x0 0x100 outer [kernel.kallsyms]\n")
    kvmprof("import", "old.iprof", "-o", "old.data")
    p = kvmprof("export", "-F", "folded", "-i", "old.data")
    check(sorted(x.split(";")[1] for x in p.out.splitlines()) == ["[unknown]_[k] 1", "outer_[k] 3"], "old.iprof: " + p.out)


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
    # A program's strings may look like any of the formats.
    for name, data, want in (("program", b"\x7fELF\2\1\1\0\n!\nmain\n 12\n!\n", "binary file"),
                             ("utf-16", "task;main;work 12\n".encode("utf-16"), "binary file"),
                             ("of-perf", b"PERFILE2" + bytes(200), "`kvmprof report -i` reads it"),
                             ("of-perf-swapped", b"2ELIFREP" + bytes(200), "`kvmprof report -i` reads it")):
        with open(name, "wb") as f:
            f.write(data)
        for form in ([], ["--format", "kp"], ["--format", "folded"]):
            p = e2e.kvmprof("import", *form, name, "-o", "bad.data")
            check(p.status == 1 and len(p.err.strip().split("\n")) == 1 and want in p.err and not os.path.exists("bad.data"),
                  "import %s: %d %s" % (form + [name], p.status, p.err))
    done(e2e.kvmprof("import", "missing", "-o", "bad.data"), "import missing", 1)
    done(e2e.kvmprof("import"), "import", 2)


e2e.need_tool("perf")
imports_folded()
names_beyond_ascii()
imports_script()
compares()
script_json()
packs()
round_trip()
refuses()
refuses_directories()
e2e.finish()

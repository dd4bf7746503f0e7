#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 7 s
# tests: not svm, files
"""`kvmprof export`: each format as its readers read it, on profiles whose contents are
known (mkprofile.c, mktasks.c). In each the weights add up to the profile's."""

import gzip
import json
import os
import re
from collections import Counter

import e2e
import exported
from e2e import check


def folded_lines(text):
    got = {}
    for line in text.splitlines():
        stack, weight = line.rsplit(" ", 1)
        check(stack not in got, "folded: twice: " + stack)
        got[stack] = int(weight)
    return got


def folded(p):
    want = e2e.fold(p.script)
    check(folded_lines(p.export("folded", "--tidy", "--samples")) == want,
          "%s: folded differs from what stackcollapse-perf.pl makes of the script" % p.path)
    got = folded_lines(p.export("folded", "--tidy"))
    check(sum(got.values()) == p.weight and got.keys() == want.keys(), "%s: folded: weights" % p.path)
    by_thread = folded_lines(p.export("folded", "--tidy", "--per-thread"))
    check(sum(by_thread.values()) == p.weight, "%s: folded --per-thread" % p.path)
    check(all("/" in s.split(";")[0] for s in by_thread), "--per-thread without a tid")
    both, off = (folded_lines(p.export("folded", "--tidy", "--names", n)) for n in ("both", "offset"))
    check(sum(both.values()) == sum(off.values()) == p.weight and len(off) >= len(got),
          "%s: --names: weights" % p.path)
    check(any("+0x" in s for s in off) and not any("+0x" in s for s in got), "--names offset has no offsets")
    check({";".join([s.split(";")[0]] + s.split(";")[1::2]) for s in both} == got.keys() and
          {";".join(s.split(";")[::2]) for s in both} == off.keys(), "--names both: not the names and the offsets")
    for s in both:
        frames = s.split(";")[1:]
        check(len(frames) % 2 == 0 and all(b.startswith(a + "+0x") or b.startswith("0x") and a[0] == "["
                                           for a, b in zip(frames[::2], frames[1::2])),
              "--names both: " + s)
    check(p.export("perf-script") == p.script, "%s: perf-script differs from `kvmprof script`" % p.path)


def filters(p):
    for name, weight in p.comms.items():
        got = folded_lines(p.export("folded", "--tidy", "--comm", name))
        check(sum(got.values()) == weight, "--comm %s: %d of %d" % (name, sum(got.values()), weight))
    first, last = p.samples[0].seconds, p.samples[-1].seconds
    middle = (last - first) / 2
    # Samples at both ends count, as in perf.
    parts = [p.export("folded", "--tidy", "--samples", "--time", t)
             for t in (",%.9f" % middle, "%.9f," % (middle + 1e-9))]
    check(sum(sum(folded_lines(x).values()) for x in parts) == len(p.samples), "--time: two halves are not the whole")
    kernel = folded_lines(p.export("folded", "--tidy", "--kernel-only"))
    check(kernel and not any(n in s for s in kernel for n in ("demo_", "prog_", "lib_")), "--kernel-only: " + str(kernel)[:200])


def refusals(p):
    for argv in ([], ["--format", "nonsense"], ["--format", "folded", "--names", "x"], ["--format", "folded", "extra"],
                 ["--format", "folded", "--pid", "-1"], ["--format", "folded", "--time", "3,1"], ["--format"],
                 ["--format", "perf-script", "--names", "offset"]):
        r = e2e.kvmprof("export", "-i", p.path, *argv)
        check(r.status == 2 and r.err.count("\n") == 1 and not r.out, "export %s: %d %s" % (argv, r.status, r.err))
    for argv in (["-i", "missing"], ["-i", p.path, "--comm", "nobody"], ["-i", p.path, "-o", "no/such/place"]):
        r = e2e.kvmprof("export", "--format", "folded", *argv)
        check(r.status == 1 and r.err.count("\n") == 1 and not r.out, "export %s: %d %s" % (argv, r.status, r.err))
    check(not e2e.leftovers(), "temporary files are left: " + str(e2e.leftovers()))
    listed = [x.split()[0] for x in e2e.kvmprof("export", "--list").out.splitlines()]
    check("folded" in listed and len(listed) == len(set(listed)), "--list: %s" % listed)
    return listed


def speedscope(p):
    for argv in ([], ["--per-thread"], ["--names", "both"]):
        d = json.loads(p.export("speedscope", *argv))
        check(sum(sum(x["weights"]) for x in d["profiles"]) == p.weight, "%s: speedscope %s: weights" % (p.path, argv))
        frames = d["shared"]["frames"]
        leaves = Counter()
        for x in d["profiles"]:
            check(len(x["samples"]) == len(x["weights"]) and sum(x["weights"]) == x["endValue"] and
                  x["unit"] == "nanoseconds", "speedscope: profile " + x["name"])
            for stack, weight in zip(x["samples"], x["weights"]):
                leaves[frames[stack[-1]]["name"].split("+0x")[0]] += weight
        check(p.named(leaves) == p.named(p.self_weight), "%s: speedscope %s: %s" % (p.path, argv, leaves))
        names = [x["name"] for x in d["profiles"]]
        check(len(set(names)) == len(names), "speedscope: names of profiles: %s" % names)
        if schema:
            jsonschema.validate(d, schema)
    cpus = {s.cpu for s in p.samples}
    d = json.loads(p.export("speedscope"))
    check([x["name"] for x in d["profiles"]] == ["vCPU %d" % c for c in sorted(cpus)], "speedscope: a profile for each vCPU")


def pprof(p, pb):
    p.export("pprof", out="p.pb.gz")
    with gzip.open("p.pb.gz") as f:
        d = pb.Profile.FromString(f.read())
    text = d.string_table
    check(text[0] == "" and len(set(text)) == len(text), "pprof: string table")
    types = [(text[t.type], text[t.unit]) for t in d.sample_type]
    check(types == [("samples", "count"), ("wall", "nanoseconds")], "pprof: types %s" % types)
    check(all(len(s.value) == 2 for s in d.sample), "pprof: values")
    check(sum(s.value[0] for s in d.sample) == len(p.samples) and sum(s.value[1] for s in d.sample) == p.weight,
          "%s: pprof: sums" % p.path)
    location = {x.id: x for x in d.location}
    function = {x.id: text[x.name] for x in d.function}
    mapping = {x.id: x for x in d.mapping}
    check(len(location) == len(d.location) and 0 not in location and 0 not in function and 0 not in mapping, "pprof: ids")
    for x in d.location:
        m = mapping[x.mapping_id]
        check(m.memory_start <= x.address < m.memory_limit, "pprof: address outside of its mapping %s" % text[m.filename])
    leaves, comms, cpus = Counter(), Counter(), Counter()
    for s in d.sample:
        leaf = location[s.location_id[0]] if s.location_id else None
        leaves[function[leaf.line[0].function_id] if leaf and leaf.line else "[none]"] += s.value[1]
        labels = {text[x.key]: text[x.str] or x.num for x in s.label}
        comms[labels["comm"]] += s.value[1]
        cpus[labels["cpu"]] += s.value[1]
    check(p.named(leaves) == p.named(p.self_weight), "%s: pprof: %s" % (p.path, leaves))
    check(comms == p.comms, "%s: pprof: comms %s" % (p.path, comms))
    check(sorted(cpus) == sorted({s.cpu for s in p.samples}), "pprof: cpus %s" % cpus)
    if e2e.has_tool("go"):
        r = e2e.run("go", "tool", "pprof", "-top", "-unit=ns", "-sample_index=wall", "-nodecount=100000",
                    "-nodefraction=0", "p.pb.gz")
        flat = {m.group(3): float(m.group(1)) for m in
                re.finditer(r"^ *([\d.]+)(?:ns)? +[\d.]+% +[\d.]+% +([\d.]+)(?:ns)? +[\d.]+%  (.+)$", r.out, re.M)}
        wrong = {n: (w, flat.get(n)) for n, w in p.named(p.self_weight).items() if abs(flat.get(n, 0) - w) > 1}
        check(r.status == 0 and flat and not wrong, "%s: go tool pprof: %s %s %s" % (p.path, wrong, r.err, r.out[:500]))


COLUMNS = {"stackTable": "frame prefix", "nativeSymbols": "libIndex address name functionSize",
           "frameTable": "address inlineDepth category subcategory func nativeSymbol innerWindowID line column",
           "funcTable": "name isJS relevantForJS resource source lineNumber columnNumber",
           "resourceTable": "lib name host type", "samples": "stack time weight threadCPUDelta",
           "markers": "data name startTime endTime phase category"}


def firefox(p):
    """The tables by src/types/profile.ts of the profiler, version 59."""
    p.export("firefox", out="firefox.json")
    with open("firefox.json") as f:
        d = json.load(f)
    check(d["meta"]["preprocessedProfileVersion"] == 59, "firefox: version")
    strings, categories = d["shared"]["stringArray"], [c["name"] for c in d["meta"]["categories"]]
    check(len(set(strings)) == len(strings), "firefox: strings")
    leaves, idle, comms = Counter(), 0, Counter()
    for t in d["threads"]:
        for table, columns in COLUMNS.items():
            for c in columns.split():
                check(len(t[table][c]) == t[table]["length"], "firefox: %s.%s" % (table, c))
        st, fr, fn, sm = t["stackTable"], t["frameTable"], t["funcTable"], t["samples"]
        check(all(x is None or x < i for i, x in enumerate(st["prefix"])), "firefox: a prefix behind its stack")
        check(all(strings[t["resourceTable"]["name"][r]] for r in fn["resource"]), "firefox: resources")
        check(sm["time"] == sorted(sm["time"]) and sm["weightType"] == "tracing-ms", "firefox: times")
        for stack, w in zip(sm["stack"], sm["weight"]):
            frame = st["frame"][stack]
            leaves[strings[fn["name"][fr["func"][frame]]]] += round(w * 1e6)
            idle += round(w * 1e6) if categories[fr["category"][frame]] == "Idle" else 0
            comms[t["name"]] += round(w * 1e6)
    check(sum(leaves.values()) == p.weight, "%s: firefox: weights" % p.path)
    check(p.named(leaves) == p.named(p.self_weight), "%s: firefox: %s" % (p.path, leaves))
    ids = [(t["pid"], str(t["tid"])) for t in d["threads"]]
    check(len(set(ids)) == len(ids), "firefox: threads with one id: %s" % ids)
    halted = [t for t in d["threads"] if t["pid"] == "0"]
    check(len(halted) == len({s.cpu for s in p.samples if s.comm.startswith("swapper")} or {0}),
          "%s: firefox: %d idle threads" % (p.path, len(halted)))
    check(idle == p.idle(), "%s: firefox: %d ns idle, not %d" % (p.path, idle, p.idle()))


def firefox_reads(p, package):
    """What the profiler's own code makes of it: its command line tool."""
    cli = ["node", os.path.join(package, "package/dist/profiler-cli.js")]
    # It gives its daemon half a second to come up: on a busy machine that takes some attempts.
    for _ in range(20):
        r = e2e.run(*cli, "load", os.path.abspath("firefox.json"), timeout=60)
        if "did not become ready" not in r.err + r.out:
            break
    if "did not become ready" in r.err + r.out:
        return e2e.left_out("this host is too busy for profiler-cli's daemon")
    if not check(r.status == 0, "profiler-cli load: " + (r.err + r.out).strip()[:300]):
        return
    try:
        with open("firefox.json") as f:
            n = len(json.load(f)["threads"])
        own = Counter()
        for i in range(n):
            r = e2e.run(*cli, "thread", "functions", "--thread", "t-%d" % i, "--include-idle", "--json")
            check(r.status == 0, "profiler-cli thread functions: " + r.err)
            for f in json.loads(r.out)["functions"]:
                own[f["name"]] += f["selfSamples"]
        for name, w in p.named(p.self_weight).items():
            check(abs(own[name] * 1e6 - w) < 10, "%s: profiler-cli: %s %.6f ms, not %.6f" % (p.path, name, own[name], w / 1e6))
        check(abs(sum(own.values()) * 1e6 - p.weight) < 100, "%s: profiler-cli: %f ms in all" % (p.path, sum(own.values())))
    finally:
        e2e.run(*cli, "stop", "--all")


def number(text):
    return int(text.replace(",", ""))


def annotated(*argv):
    """{function: ns} as callgrind_annotate prints it, and the total."""
    r = e2e.run("callgrind_annotate", "--threshold=100", "--auto=no", *argv, "out.callgrind")
    check(r.status == 0 and not r.err, "callgrind_annotate: " + r.err)
    got = Counter()
    for m in re.finditer(r"^ *([\d,]+) \( *[\d.]+%\)  (\S.*?):(.*) \[\2\]$", r.out, re.M):
        got[m.group(3)] += number(m.group(1))
    total = re.search(r"^ *([\d,]+) \(100.0%\)  PROGRAM TOTALS", r.out, re.M)
    return got, number(total.group(1)) if total else 0


def callgrind(p):
    p.export("callgrind", out="out.callgrind")
    own, total = annotated()
    check(total == p.weight, "%s: callgrind: %d of %d" % (p.path, total, p.weight))
    # Levels of recursion are functions of their own.
    merged = Counter()
    for name, w in own.items():
        merged[re.sub(r"'\d+$", "", name)] += w
    check(p.named(merged) == p.named(p.self_weight), "%s: callgrind: %s" % (p.path, merged))
    inclusive, _ = annotated("--inclusive=yes")
    for name, w in p.named(p.children).items():
        check(inclusive[name] == w, "%s: callgrind: inclusive %s: %d, not %d" % (p.path, name, inclusive[name], w))
    twice = any(len(set(s.stack.split(";"))) < len(s.stack.split(";")) for s in p.samples)
    check(any(n.endswith("'2") for n in inclusive) == twice, "%s: callgrind: recursion" % p.path)


def read_kp(text):
    """As the post-processing scripts read it: only what stands between lines with a '!', a name
    from behind the last ': ' or '`' to the first '/' and then '+'; the last line is the count."""
    inclusive, exclusive, stack, inside = Counter(), Counter(), [], False
    for line in text.split("\n"):
        if "!" in line:
            if inside and len(stack) > 1:
                names = [re.sub(r"\+.*", "", re.sub(r"/.*", "", re.sub(r"^.*(: |`)", "", x))) for x in stack[:-1]]
                exclusive[names[0]] += int(stack[-1])
                for n in set(names):
                    inclusive[n] += int(stack[-1])
            inside, stack = True, []
        elif inside and line:
            stack.append(line)
    check(not stack, "kp: lines behind the last '!'")
    return inclusive, exclusive


def kp(p):
    text = p.export("kp")
    inclusive, exclusive = read_kp(text)
    own, children = Counter(), Counter()
    for s in p.samples:
        names = s.stack.split(";")
        own[names[-1]] += 1
        for n in set(names):
            children[n] += 1
    own.pop("[unknown]", None)
    children.pop("[unknown]", None)
    check(sum(exclusive.values()) == len(p.samples), "%s: kp: %d samples" % (p.path, sum(exclusive.values())))
    check(p.named({n: w for n, w in exclusive.items() if w}) == own, "%s: kp: exclusive %s" % (p.path, exclusive))
    check(p.named(inclusive) == children, "%s: kp: inclusive %s" % (p.path, inclusive))
    told = {}
    for line in text.split("!")[0].splitlines()[1:]:
        m = re.match(r"(.*?) +([\d.]+)%\((\d+)\) +([\d.]+)%\((\d+)\)$", line)
        if check(m, "kp: summary: " + line):
            i, e = told.get(m.group(1), (0, 0))
            told[m.group(1)] = (i + int(m.group(3)), e + int(m.group(5)))
            check(abs(float(m.group(2)) - 100 * int(m.group(3)) / len(p.samples)) < 0.01, "kp: " + line)
    check(p.named(told) == {n: (children[n], own[n]) for n in children}, "%s: kp: summary %s" % (p.path, told))


def iprof(p):
    dsos = Counter(s.dsos for s in p.samples)
    for argv in ([], ["--per-pid"]):
        e2e.shutil.rmtree("iprof", ignore_errors=True)
        p.export("iprof", *argv, out="iprof")
        files, total, kernel = sorted(os.listdir("iprof")), 0, Counter()
        for name in files:
            if name == "kernel.syms":
                continue
            m = re.match(r"([\w.-]+?)-([0-9a-f]{16})(-\d+)?\.prof$", name)
            check(m and bool(m.group(3)) == bool(argv), "iprof: file " + name)
            with open("iprof/" + name) as f:
                text = f.read().splitlines()
            keys = dict(x[2:].split(": ", 1) for x in text if x.startswith("# ") and not x.startswith("# function: "))
            lines = [(int(a, 16), int(b)) for a, b in (x.split() for x in text if x[0] != "#")]
            check(keys["image"] in dsos and keys["profiler"] == e2e.kvmprof("--version").out.strip() and keys["unit"] == "samples" and
                  keys["mode"] == ("kernel" if re.match(r"\[(kernel\.kallsyms|early|late)\]$", keys["image"]) else "user") and
                  keys.get("pid") == (m.group(3)[1:] if argv else None), "iprof: header of %s: %s" % (name, keys))
            check(lines == sorted(lines) and len({a for a, _ in lines}) == len(lines), "iprof: order in " + name)
            total += sum(n for _, n in lines)
            if m.group(1) == "kernel":
                for a, n in lines:
                    kernel[a] += n
        check(total == len(p.samples), "%s: iprof %s: %d of %d samples" % (p.path, argv, total, len(p.samples)))
        if not argv:
            check(len(files) - 1 == len(dsos), "iprof: %s for %s" % (files, dsos))
        # The kernel's offsets and its map tell what the script told.
        with open("iprof/kernel.syms") as f:
            syms = [(int(a, 16), int(b, 16), n) for a, b, n, image in (x.split(" ", 3) for x in f)
                    if image.startswith("[kernel")]
        check(syms == sorted(syms), "kernel.syms: order")
        own = Counter()
        for a, n in kernel.items():
            hit = [s for s in syms if s[0] <= a < s[0] + s[1]]
            own[hit[-1][2] if hit else "?"] += n
        want = Counter(s.stack.split(";")[-1] for s in p.samples if s.dsos.startswith("[kernel"))
        check(own == want, "%s: iprof %s: %s, not %s" % (p.path, argv, own, want))
    r = e2e.kvmprof("export", "--format", "iprof", "-i", p.path, "-o", "iprof")
    check(r.status == 1 and "name a new one" in r.err and not e2e.leftovers(), "iprof into a directory in use: " + r.err)
    r = e2e.kvmprof("export", "--format", "iprof", "-i", p.path)
    check(r.status == 2, "iprof without a directory")


try:
    import jsonschema
except ImportError:
    jsonschema = None
profiles = exported.make_profiles()
package, why = exported.npm_package("speedscope", exported.SPEEDSCOPE)
schema = None
if package and jsonschema:
    with open(os.path.join(package, "package/dist/release/file-format-schema.json")) as f:
        schema = json.load(f)
else:
    e2e.left_out((why or "python3-jsonschema is not installed") + ": speedscope's schema")
pb, why = exported.pprof_decoder()
cli, no_cli = exported.npm_package("@firefox-devtools/profiler-cli", exported.PROFILER_CLI)
if not cli:
    e2e.left_out(no_cli + ": the Firefox Profiler")
if not pb:
    e2e.left_out(why + ": pprof")
for profile in profiles:
    folded(profile)
    speedscope(profile)
    if pb:
        pprof(profile, pb)
    if e2e.has_tool("callgrind_annotate"):
        callgrind(profile)
    kp(profile)
    iprof(profile)
    firefox(profile)
    if cli:
        firefox_reads(profile, cli)
    filters(profile)
listed = refusals(profiles[0])
e2e.finish("%d formats" % len(listed))

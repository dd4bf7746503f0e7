#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`kvmprof export`: each format as its readers read it, on profiles whose contents are
known (mkprofile.c, mktasks.c). In each the weights add up to the profile's."""

import gzip
import json
import os
import sys
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
    check(folded_lines(p.export("folded", "--samples")) == want,
          "%s: folded differs from what stackcollapse-perf.pl makes of the script" % p.path)
    got = folded_lines(p.export("folded"))
    check(sum(got.values()) == p.weight and got.keys() == want.keys(), "%s: folded: weights" % p.path)
    by_thread = folded_lines(p.export("folded", "--per-thread"))
    check(sum(by_thread.values()) == p.weight, "%s: folded --per-thread" % p.path)
    check(all("/" in s.split(";")[0] for s in by_thread), "--per-thread without a tid")
    both, off = (folded_lines(p.export("folded", "--names", n)) for n in ("both", "offset"))
    check(sum(both.values()) == sum(off.values()) == p.weight and len(off) >= len(got),
          "%s: --names: weights" % p.path)
    check(any("+0x" in s for s in off) and not any("+0x" in s for s in got), "--names offset has no offsets")
    check({tuple(s.split(";")[::2]) for s in both} != set(), "--names both")
    for s in both:
        frames = s.split(";")[1:]
        check(len(frames) % 2 == 0 and all(b.startswith(a + "+0x") or b.startswith("0x") and a[0] == "["
                                           for a, b in zip(frames[::2], frames[1::2])),
              "--names both: " + s)
    check(p.export("perf-script") == p.script, "%s: perf-script differs from `kvmprof script`" % p.path)


def filters(p):
    for name, weight in p.comms.items():
        got = folded_lines(p.export("folded", "--comm", name))
        check(sum(got.values()) == weight, "--comm %s: %d of %d" % (name, sum(got.values()), weight))
    first, last = p.samples[0].seconds, p.samples[-1].seconds
    middle = (last - first) / 2
    parts = [p.export("folded", "--samples", "--time", t) for t in (",%.6f" % middle, "%.6f," % middle)]
    check(sum(sum(folded_lines(x).values()) for x in parts) == len(p.samples), "--time: two halves are not the whole")
    kernel = folded_lines(p.export("folded", "--kernel-only"))
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


def decoder():
    """A module made by protoc out of the schema, or None and why."""
    for need, package in (("protoc", "protobuf-compiler"),):
        if not e2e.shutil.which(need):
            return None, package + " is not installed"
    p = e2e.run("protoc", "--python_out=.", "-I" + os.path.join(e2e.TOP, "profile"), "pprof.proto")
    check(p.status == 0, "protoc: " + p.err)
    sys.path.insert(0, os.getcwd())
    # Debian's packages, also where python3 is not Debian's.
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        import pprof_pb2
    except ImportError as e:
        return None, "python3-protobuf: " + str(e)
    return pprof_pb2, None


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
    if e2e.shutil.which("go"):
        r = e2e.run("go", "tool", "pprof", "-raw", "p.pb.gz")
        check(r.status == 0 and "wall/nanoseconds" in r.out, "go tool pprof: " + r.err)


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
    r = e2e.run(*cli, "load", os.path.abspath("firefox.json"), timeout=60)
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
    e2e.say("not checked by speedscope's schema: " + (why or "no python3-jsonschema"))
pb, why = decoder()
cli, no_cli = exported.npm_package("@firefox-devtools/profiler-cli", exported.PROFILER_CLI)
if not cli:
    e2e.say("not read by the Firefox Profiler: " + no_cli)
if not pb:
    e2e.say("pprof not decoded: " + why)
for profile in profiles:
    folded(profile)
    speedscope(profile)
    if pb:
        pprof(profile, pb)
    firefox(profile)
    if cli:
        firefox_reads(profile, cli)
    filters(profile)
listed = refusals(profiles[0])
e2e.finish("%d formats" % len(listed))

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: together, 30 s
# tests: not svm, disk
"""kvmprof annotate: the demo's loops and a Linux that patches itself.

Each percentage is that of the samples of kvmprof script at the address, and what perf
annotate prints; patched instructions are marked, with what vmlinux has there; on another
machine (moved, no cache, no image) it is all the same."""

import json
import os
import re
import shutil
import struct
from collections import Counter, defaultdict

import e2e
from e2e import check

ROW = re.compile(r"^ +([0-9.]+) +[0-9]+ : +([0-9a-f]+):  ([* ])", re.M)
PERF_ROW = re.compile(r"^ +([0-9.]+) +: +([0-9a-f]+):", re.M)
HEAD = re.compile(r"\S+:\s*(\d+) \S+:\s*$")
FRAME = re.compile(r"^\s+([0-9a-f]+) (\S+?)\+0x([0-9a-f]+) \((.*)\)$")


def annotate(path, name, *options, status=0):
    p = e2e.kvmprof("annotate", "-i", path, *options, name)
    check(p.status == status, "annotate %s: status %d: %s" % (name, p.status, p.err))
    return p


def rows(path, name, *options):
    p = annotate(path, name, "--json", *options)
    return json.loads(p.out) if p.status == 0 else {"instructions": [], "weight": 0, "samples": 0}


def self_weights(path):
    """(name, dso) -> offset -> weight of the samples whose innermost frame that is."""
    out, period = defaultdict(lambda: defaultdict(int)), None
    for line in e2e.kvmprof("script", "-i", path).out.split("\n"):
        head = HEAD.search(line) if line[:1] not in (" ", "\t", "") else None
        if head:
            period = int(head.group(1))
            continue
        m = FRAME.match(line)
        if m and period is not None:
            out[m.group(2), m.group(4)][int(m.group(3), 16)] += period
        period = None
    return out


def same_as_script(path, truth, name, dso):
    r = rows(path, name, "--dso", dso)
    start = int(r.get("address", "0"), 16)
    got = {int(i["address"], 16) - start: i["weight"] for i in r["instructions"] if i["samples"]}
    # A kernel patches itself: what was between two instructions once may be inside of one now.
    begins = sorted(int(i["address"], 16) - start for i in r["instructions"])
    want = defaultdict(int)
    for off, weight in truth[name, dso].items():
        want[max((b for b in begins if b <= off), default=off)] += weight
    check(got == dict(want), "%s: weights %s, kvmprof script says %s" % (name, got, dict(want)))
    total = sum(got.values())
    for i in r["instructions"]:
        check(abs(i["percent"] - 100 * i["weight"] / max(total, 1)) < 0.001, "%s: wrong percentage %r" % (name, i))
    return r


def same_as_perf(path, name):
    p = e2e.run("perf", "annotate", "-i", path, "--stdio", name)
    perf = {a: float(v) for v, a in PERF_ROW.findall(p.out)}
    ours = {a: float(v) for v, a, _ in ROW.findall(annotate(path, name).out)}
    # perf goes on through the padding to the next function.
    more = {a for a in perf if a > max(ours, default="")}
    check(len(ours) > 3 and set(ours) == set(perf) - more and not any(perf[a] for a in more),
          "%s: perf has the instructions %s, we %s; %s" % (name, sorted(perf), sorted(ours), p.err))
    bad = [(a, ours[a], perf[a]) for a in ours if abs(ours[a] - perf.get(a, -1)) > 0.011]
    check(not bad, "%s: percentages differ from perf annotate: %s" % (name, bad))


e2e.need_kvm()
e2e.need_tool("perf")
e2e.need_tool("objdump")  # perf annotate runs it

# -- the demo: known loops, in the kernel and in ring 3 ------------------------------------
boot = e2e.Boot("-o", "demo.data", "--append", "seconds=4").wait(90)
check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
truth = self_weights("demo.data")
# Below each call instruction: the samples whose stacks pass through it, as `kvmprof script` prints them.
passes = Counter(re.findall(r" tree_top\+0x([0-9a-f]+) ", e2e.kvmprof("script", "-i", "demo.data").out))
r = rows("demo.data", "tree_top", "--children")
below = {}
for i in r["instructions"]:
    at = int(i["address"], 16) - int(r["address"], 16)
    size = len(i["bytes"]) // 2
    below[at] = sum(n for off, n in passes.items() if at <= int(off, 16) < at + size)
    check(i["children_samples"] == below[at], "tree_top+%#x: %s, script says %d" % (at, i, below[at]))
check(sum(below.values()) == r["children_samples"], "tree_top calls from two places: %s" % below)
calls = [i for i in r["instructions"] if i["children_samples"] > i["samples"]]
check([i.get("target_symbol") for i in calls] == ["tree_right", "tree_left"], "calls of tree_top: %s" % calls)
check(abs(sum(i["children_percent"] for i in r["instructions"]) - 100) < 0.01, "children of tree_top: %s" % calls)
report = json.loads(e2e.kvmprof("report", "-i", "demo.data", "--json", "-S", "tree_top").out)
check([x["children"] for x in report["symbols"]] == [r["children_weight"]] and
      r["total_weight"] == report["weight"], "report says of tree_top: %s" % report["symbols"])
# A profile compared with itself.
d = json.loads(e2e.kvmprof("annotate", "-i", "demo.data", "--children", "--diff", "demo.data", "--json", "tree_top").out)
check(len(d["instructions"]) == len(r["instructions"]) and
      all(i["change"] == 0 and i["base"] == i["head"] for i in d["instructions"]), "diff with itself: %s" % d)
check([i["base"]["samples"] for i in d["instructions"]] == list(below.values()), "samples of --diff: %s" % d)
text = e2e.kvmprof("annotate", "-i", "demo.data", "--diff", "demo.data", "left_leaf").out
check("% of the profile" in text and len(re.findall(r"^ +\+0\.00 ", text, re.M)) > 3, "--diff as text: " + text)
for argv, said in ((["tree_tpo", "--children"], "(did you mean tree_top?)"), (["left_leaf", "-p", "("], "bad expression"),
                   (["left_leaf", "-c", "nobody"], "no sample has the command name"),
                   (["left_leaf", "--diff", "none.data"], "none.data")):
    p = e2e.kvmprof("annotate", "-i", "demo.data", *argv)
    check(p.status and said in p.err and p.err.count("\n") == 1 and not p.out, "%s: %s" % (argv, p.err))
for name in ("left_leaf", "right_leaf", "shared_leaf"):
    r = same_as_script("demo.data", truth, name, "[kernel.kallsyms]")
    same_as_perf("demo.data", name)
    check(r["image_known"] and not r["patched"], name + ": the demo does not patch itself")
    # A backward jump closes each of its loops, one for so much time and one for so much work. All
    # time is in the first.
    jumps = [(int(i["target"], 16), int(i["address"], 16)) for i in r["instructions"]
             if "target" in i and int(i["target"], 16) <= int(i["address"], 16)]
    check(len(jumps) == 2, "%s: backward jumps %s" % (name, jumps))
    inside = max((sum(i["weight"] for i in r["instructions"] if a <= int(i["address"], 16) <= b) for a, b in jumps),
                 default=0)
    check(inside > 0.9 * r["weight"], "%s: %d of %d in the loop" % (name, inside, r["weight"]))
    check(r["weight"] == sum(truth[name, "[kernel.kallsyms]"].values()), name + ": wrong total")
user = same_as_script("demo.data", truth, "user_leaf_long", "demo-user")
check(user["code_from"] == "the program's file", "user_leaf_long: code from %r" % user.get("code_from"))
text = annotate("demo.data", "right_leaf").out
check(re.search(r"/-> rdtsc", text) and re.search(r"\\-- jb +[0-9a-f]+ <right_leaf\+0x[0-9a-f]+>", text), "no arrow:\n" + text)
check("demo.h:" in text and "spin():" in text, "no source lines:\n" + text)
check("\033" not in text, "colours although nobody looks")
check("mov     rbp, rsp" in annotate("demo.data", "right_leaf", "-M", "intel").out, "-M intel is not Intel's syntax")
check("movq    %rsp, %rbp" in annotate("demo.data", "right_leaf", "--att").out, "--att is not AT&T's syntax")
address = rows("demo.data", "right_leaf")["address"]
check(rows("demo.data", hex(int(address, 16) + 7))["symbol"] == "right_leaf", "not found by address")
p = annotate("demo.data", "leaf", status=1)
check("right_leaf" in p.err and "no sample" in p.err, "a part of a name: " + p.err)
# Each name of a function finds it; the one that is not weak is shown.
with open("demo.data/kcore_dir/kallsyms") as f:
    lines = f.read()
shutil.copytree("demo.data", "other.data")
with open("other.data/kcore_dir/kallsyms", "w") as f:
    f.write(re.sub(r"(?m)^([0-9a-f]+) . right_leaf$", r"\1 W another_name\n\g<0>", lines))
check(annotate("other.data", "another_name").out.replace("other.data", "demo.data") == annotate("demo.data", "right_leaf").out,
      "right_leaf is not found by another name")
p = e2e.kvmprof("report", "-i", "other.data", "--json", "--symbol", "^another_name$")
check([r["symbol"] for r in json.loads(p.out)["symbols"]] == ["right_leaf"], "report --symbol another_name: " + p.out[:500])
for wrong in ([], [""], ["a", "b"], ["-M", "masm", "x"], ["--nothing", "x"]):
    check(e2e.kvmprof("annotate", "-i", "demo.data", *wrong).status == 2, "wrong usage %s is accepted" % wrong)
p = e2e.kvmprof("run", "-q", "--single-file", "-o", "one.data", "--append", "seconds=2")
p = annotate("one.data", "right_leaf", status=1)
check("--single-file" in p.err and p.err.count("\n") == 1, "a single file: " + p.err)

# -- a Linux that patches itself -----------------------------------------------------------
tiny = e2e.built_kernel("tiny")
boot = e2e.Boot(os.path.join(tiny, "vmlinux"), "--initrd", e2e.INITRAMFS, "-m", "64M", "-o", "tiny.data").wait(300)
check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
truth = self_weights("tiny.data")
# What lies behind _einittext is no function, but pieces that belong to many.
kernel = sorted(((sum(w.values()), n) for (n, dso), w in truth.items()
                 if dso == "[kernel.kallsyms]" and n != "_einittext"), reverse=True)
for _, name in kernel[:40]:
    same_as_script("tiny.data", truth, name, "[kernel.kallsyms]")
for _, name in kernel[:8]:
    same_as_perf("tiny.data", name)


def segments(path):
    """(address, bytes) of an ELF file's PT_LOADs."""
    with open(path, "rb") as f:
        elf = f.read()
    phoff, phentsize, phnum = struct.unpack_from("<32xQ14xHH", elf)
    for i in range(phnum):
        kind, _, off, va, _, size = struct.unpack_from("<IIQQQQ", elf, phoff + i * phentsize)
        if kind == 1:
            yield va, elf[off:off + size]


IMAGE = list(segments(os.path.join(tiny, "vmlinux")))


def image_bytes(start, size):
    va, data = next((va, d) for va, d in IMAGE if va <= start < va + len(d))
    return data[start - va:start - va + size]


patched = functions = 0
examples = []
for _, name in kernel:
    # Static functions may share a name.
    p = e2e.kvmprof("annotate", "-i", "tiny.data", "--json", "--no-source", name)
    if not check(p.status == 0 or "choose by address" in p.err, "annotate %s: %s" % (name, p.err)) or p.status:
        continue
    r = json.loads(p.out)
    functions += 1
    image, at = image_bytes(int(r["address"], 16), r["size"]), 0
    for i in r["instructions"]:
        live = bytes.fromhex(i["bytes"])
        differs = live != image[at:at + len(live)]
        check(i.get("differs", False) == differs, "%s+%#x: marked %s, but vmlinux has %s, memory %s" %
              (name, at, i.get("differs"), image[at:at + len(live)].hex(), live.hex()))
        patched += differs
        if i.get("image"):
            examples.append((name, i["text"], i["image"]))
        at += len(live)
    # kallsyms tell no sizes: to perf and to us a function reaches to the next one.
    check(0 <= len(image) - at < 64, "%s: %d of %d bytes" % (name, at, len(image)))
check(functions > 200 and patched > 50, "%d functions, %d patched instructions" % (functions, patched))
# Alternatives: rdtsc_ordered() becomes lfence; rdtsc. static_cpu_has(): a jump becomes a nop.
check(any(now == "lfence" and any("rdtsc" in x for x in then) for _, now, then in examples), "no patched rdtsc")
check(any(now.startswith("nop") and any(x.startswith("jmp ") for x in then) for _, now, then in examples),
      "no jump that was made a nop")
marked = next(n for n, now, then in examples if now == "lfence" and any("rdtsc" in x for x in then))
text = annotate("tiny.data", marked).out
check(re.search(r":  \* .*lfence +# image: rdtsc", text) and "# * " in text, "no mark in the text:\n" + text)

# -- another machine -------------------------------------------------------------------------
before = {(d, n): annotate(d, n, "--no-source").out for d, n in (("tiny.data", marked), ("demo.data", "right_leaf"),
                                                                  ("demo.data", "user_leaf_long"))}
shutil.rmtree("elsewhere", ignore_errors=True)
os.mkdir("elsewhere")
for d in ("tiny.data", "demo.data"):
    shutil.copytree(d, "elsewhere/copy-of-" + d)
    shutil.rmtree(d)
e2e.new_home()
for (d, name), want in before.items():
    got = annotate("elsewhere/copy-of-" + d, name, "--no-source").out
    check(got == want and want, "%s of %s is not the same on another machine" % (name, d))

# A damaged file is refused in one line.
with open("elsewhere/copy-of-tiny.data/text", "r+b") as f:
    f.truncate(os.path.getsize(f.name) - 1)
p = annotate("elsewhere/copy-of-tiny.data", marked, status=1)
check("damaged" in p.err and p.err.count("\n") == 1, "a damaged text: " + p.err)
e2e.finish("%d functions of a kernel against its image, %d patched instructions" % (functions, patched))

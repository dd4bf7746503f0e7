#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 3 s
# tests: not svm, files
"""Where debug files are found, and why others are not used: --debuginfo with a file and with
directories, maps of `kvmprof scan`, a debuginfod server on this machine through the real
client library. And source lines in `kvmprof script`, also of a kernel that was moved."""

import collections
import http.server
import json
import os
import re
import shutil
import struct
import subprocess
import threading

import e2e
from e2e import check

DEMO = os.path.join(e2e.BUILD, "guest", "demo.elf")
for tool in ("readelf", "objcopy", "nm", "gcc"):
    e2e.need_tool(tool)
for variable in ("DEBUGINFOD_URLS", "DEBUGINFOD_CACHE_PATH"):
    os.environ.pop(variable, None)


def build_id(path):
    return re.search(r"Build ID: (\w+)", e2e.run("readelf", "-n", path).out).group(1)


ID = build_id(DEMO)
ADDRESS = re.search(r"^(\w+) \w left_leaf$", e2e.run("nm", DEMO).out, re.M).group(1)
shutil.copy(DEMO, "stripped")
e2e.run("objcopy", "--strip-debug", "stripped")
e2e.run("objcopy", "--only-keep-debug", DEMO, "demo.debug")
with open("other.c", "w") as f:
    f.write("void _start(void) { for (;;) ; }\n")
e2e.run("gcc", "-g", "-nostdlib", "-static", "-Wl,--build-id=sha1", "other.c", "-o", "other")


def lookup(*options, env=None):
    return e2e.kvmprof("symbols", *options, "stripped", ADDRESS, env=env)


def finds(what, *options, env=None):
    p = lookup(*options, env=env)
    check(p.status == 0 and "left_leaf at " in p.out and ".c:" in p.out,
          "%s: no lines: status %d: %s%s" % (what, p.status, p.out, p.err))


def refuses(what, words, *options):
    p = lookup(*options)
    check(p.status == 1 and not p.out and p.err.count("\n") == 1 and all(w in p.err for w in words),
          "%s: status %d: %s%s" % (what, p.status, p.out, p.err))


def below(directory, path, source="demo.debug"):
    path = os.path.join(directory, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(source, path)
    return directory


p = lookup()
check(p.status == 0 and p.out == ADDRESS + " left_leaf+0x0\n", "no debug file: " + p.out)
check("no source lines: no debug information for build id " + ID in p.err and
      "DEBUGINFOD_URLS is not set" in p.err and "/usr/lib/debug" in p.err, "reasons: " + p.err)

BY_ID = ".build-id/%s/%s.debug" % (ID[:2], ID[2:])
finds("a file", "--debuginfo", "demo.debug")
finds("the unstripped file", "--debuginfo", DEMO)
finds("DIR/.build-id", "--debuginfo", below("tree", BY_ID))
finds("DIR/usr/lib/debug", "--debuginfo", below("root", "usr/lib/debug/" + BY_ID))
finds("a file in DIR", "--debuginfo", below("plain", "vmlinux-of-mine"))
refuses("a wrong file", [ID, build_id("other")], "--debuginfo", "other")
refuses("no ELF file", ["other.c"], "--debuginfo", "other.c")
refuses("a stripped file", ["has no debug information"], "--debuginfo", "stripped")
refuses("a missing file", ["missing", "No such file"], "--debuginfo", "missing")
refuses("a wrong file by name", [ID, build_id("other"), "wrong/.build-id"], "--debuginfo",
        below("wrong", BY_ID, "other"))
refuses("a vmlinux of another build", [ID, build_id("other"), "vmlinux"], "--debuginfo",
        below("another", "vmlinux", "other"))
cache = os.path.join(os.environ["HOME"], ".debug", ".build-id", ID[:2], ID[2:])
os.makedirs(cache)
shutil.copy("stripped", os.path.join(cache, "elf"))
check("no source lines" in lookup().err, "a stripped file in perf's cache")
shutil.copy(DEMO, os.path.join(cache, "elf"))
finds("perf's cache")
e2e.new_home()

# -- maps -----------------------------------------------------------------------------------
p = e2e.kvmprof("scan", "-o", "map", "tree", "stripped", "other")
check(p.status == 0 and "3 files, 3 with a build id" in p.err, "scan: " + p.err)
finds("a map", "--build-id-map", "map")
with open("map") as f:
    lines = f.read().splitlines()
check(lines == sorted(lines) and len(lines) == 3 and all(re.match(r"[0-9a-f]{40} /", x) for x in lines),
      "the map: %s" % lines)
os.rename("tree", "moved")
refuses("a map of files that are gone", ["no usable file", "stripped"], "--build-id-map", "map")
with open("stale", "w") as f:
    f.write("%s %s\n" % (ID, os.path.abspath("other")))
refuses("a map that is wrong", [ID, build_id("other")], "--build-id-map", "stale")
with open("bad", "w") as f:
    f.write("# ours\n\n%s /x\nzz /y\n" % ID)
refuses("a map with a bad line", ["bad:4: expected"], "--build-id-map", "bad")


# -- debuginfod -------------------------------------------------------------------------------
class Server(http.server.BaseHTTPRequestHandler):
    asked = []
    answer = None

    def do_GET(self):
        self.asked.append(self.path)
        if self.path != "/buildid/%s/debuginfo" % ID or not self.answer:
            self.send_error(404)
            return
        with open(self.answer, "rb") as f:
            body = f.read()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def debuginfod():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d" % server.server_address[1]

    def env(cache):
        clean = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
        return dict(clean, DEBUGINFOD_URLS=url, DEBUGINFOD_CACHE_PATH=os.path.abspath(cache))

    p = lookup(env=env("cache-1"))
    check(p.status == 0 and "no source lines" in p.err and "debuginfod: " + url + " does not provide it" in p.err,
          "a server without the file: " + p.err)
    check(Server.asked == ["/buildid/%s/debuginfo" % ID], "asked for %s" % Server.asked)
    Server.answer = "other"
    p = lookup(env=env("cache-2"))
    check(p.status == 0 and ID in p.err and build_id("other") in p.err, "a server with a wrong file: " + p.err)
    Server.answer = "demo.debug"
    finds("debuginfod", env=env("cache-3"))
    check(not lookup(env=env("cache-3b")).err, "progress is shown although there is no terminal")
    count = len(Server.asked)
    finds("debuginfod's cache", env=env("cache-3"))
    check(len(Server.asked) == count, "fetched a second time")
    finds("a file before debuginfod", "--debuginfo", "demo.debug", env=env("cache-4"))
    check(len(Server.asked) == count, "asked a server although there is a file")
    # Nothing is asked for without an address.
    p = e2e.kvmprof("symbols", "stripped", env=env("cache-5"))
    check(p.status == 0 and len(Server.asked) == count, "asked a server for nothing")
    server.shutdown()
    p = lookup(env=dict(env("cache-6"), DEBUGINFOD_URLS="http://127.0.0.1:1"))
    check(p.status == 0 and "no source lines" in p.err, "no server: " + p.err)


def has_client():
    p = subprocess.run(["sh", "-c", "ldconfig -p | grep -q libdebuginfod.so.1"])
    return p.returncode == 0


# -- script -----------------------------------------------------------------------------------
# A frame of the VMM has a name of two words, and no lines.
FRAME = re.compile(r"^\t *([0-9a-f]+) (\[vmm\] \S+|\S+?)(?:\+0x([0-9a-f]+))?(?: \((.*)\))?$")
PLACE = re.compile(r"^  (\S+:\d+)( \(inlined\))?$")


def script(path, *options):
    p = e2e.kvmprof("script", "-i", path, *options)
    check(p.status == 0, "script %s: %s" % (options, p.err))
    return p


def frames(text):
    """[(address, function, place, inlined)] of all frames, in order."""
    result = []
    for line in text.split("\n"):
        m = FRAME.match(line)
        if m:
            result.append([int(m[1], 16), m[2], None, m[4] is None])
        m = PLACE.match(line)
        if m:
            check(result[-1][3] == bool(m[2]), "inlined or not: " + line)
            result[-1][2] = m[1]
    return result


KERNEL = range(0xffffffff81000000, 0xffffffff82000000)


def moved(path, slide):
    """The profile of the same kernel at another address: each kernel address of chains and maps."""
    shutil.rmtree("slid", ignore_errors=True)
    shutil.copytree(path, "slid")
    with open("slid/data", "rb") as f:
        data = bytearray(f.read())
    offset, size = struct.unpack_from("<QQ", data, 40)
    for at in range(offset, offset + size - 7, 8):
        v, = struct.unpack_from("<Q", data, at)
        if v in KERNEL:
            struct.pack_into("<Q", data, at, v + slide)
    with open("slid/data", "wb") as f:
        f.write(data)
    with open("slid/kcore_dir/kallsyms") as f:
        rows = [x.split(" ", 1) for x in f]
    with open("slid/kcore_dir/kallsyms", "w") as f:
        f.writelines("%x %s" % (int(a, 16) + slide * (rest[-6:] != "[vmm]\n"), rest) for a, rest in rows)
    return "slid"


def innermost(text):
    """How many samples each line has by script --srcline: that of a sample's first frame, "??:0"
    where there is none."""
    count = collections.Counter()
    for sample in text.split("\n\n"):
        got = frames(sample)
        if got:
            count[got[0][2] or "??:0"] += 1
    return count


def report(*options, profile="demo.data"):
    p = e2e.kvmprof("report", "-i", profile, "--sort", "srcline", "-n", "0", "--json", *options)
    check(p.status == 0, "report --sort srcline %s: %s" % (options, p.err))
    return p, json.loads(p.out)


def report_lines(scripted):
    """Rows by line, against the text of script --srcline; slid/ is the kernel that was moved."""
    want = innermost(scripted)
    _, whole = report("--debuginfo", DEMO)
    rows = [r for r in whole["symbols"] if r["self_samples"]]
    have = collections.Counter()
    for r in rows:
        have[os.path.basename(r["srcline"])] += r["self_samples"]
    check(have == want and len(rows) > 10, "report --sort srcline: %s; script: %s" % (have, want))
    check(all("/" in r["srcline"] for r in rows if r["srcline"] != "??:0") and
          len({r["srcline"] for r in rows}) == len(rows), "rows that are not apart: %s" % rows)
    check(sum(r["self"] for r in rows) == whole["weight"], "the rows are not the whole")
    with open("lines.map", "w") as f:
        f.write("%s %s\n" % (ID, DEMO))
    check(report("--build-id-map", "lines.map")[1] == whole, "report --build-id-map differs")
    p, slid = report("--debuginfo", DEMO, profile="slid")
    check(slid["symbols"] == whole["symbols"], "report of a kernel that was moved differs: %s" % p.err)
    p, none = report()
    check("no source lines" in p.err and [r["srcline"] for r in none["symbols"]] == ["??:0"],
          "report --sort srcline without a debug file: %s%s" % (p.err, p.out))
    p = e2e.kvmprof("report", "-i", "demo.data", "--sort", "sym,srcline", "--order", "self", "--debuginfo", DEMO)
    check(p.status == 0 and "Source:Line" in p.out and re.search(r"\w+ +\w+\.[chS]:\d+$", p.out, re.M) and
          not p.err, "report --sort sym,srcline: %s%s" % (p.out, p.err))
    # Nothing is searched for when nobody asked for lines.
    p = e2e.kvmprof("report", "-i", "demo.data", "--debuginfo", "missing")
    check(p.status == 0 and not p.err, "report looks for lines without --sort srcline: " + p.err)


def source_lines():
    p = e2e.kvmprof("run", "-q", "-o", "demo.data", "--no-buildid-cache", "--append", "seconds=2")
    check(p.status == 0, "run: " + p.err)
    plain = script("demo.data")
    p = script("demo.data", "--srcline")
    check(p.out == plain.out and "no source lines" in p.err, "script without debug file: " + p.err)
    p = script("demo.data", "--srcline", "--debuginfo", DEMO)
    check(p.out == script("demo.data", "-F", "+srcline", "--debuginfo", DEMO).out, "-F +srcline differs")
    got = frames(p.out)
    kept = "".join(x + "\n" for x in p.out.split("\n")[:-1]
                   if not PLACE.match(x) and not (FRAME.match(x) and not FRAME.match(x)[4]))
    check(kept == plain.out, "script --srcline is not script with lines added")
    kernel = [f for f in got if f[0] in KERNEL]
    lined = [f for f in kernel if f[2]]
    check(len(lined) > 0.99 * len(kernel) and any(f[3] for f in lined), "%d of %d kernel frames have lines" %
          (len(lined), len(kernel)))
    some = sorted({"%x" % f[0] for f in lined})[:400]
    truth = e2e.run("addr2line", "-i", "-e", DEMO, *some).out.split("\n")
    known = {os.path.basename(x).split(" ")[0] for x in truth}
    strange = {f[2] for f in lined if "%x" % f[0] in some} - known
    check(not strange, "lines that addr2line does not know: %s" % sorted(strange)[:5])
    full = script("demo.data", "--srcline", "--full-source-path", "--debuginfo", DEMO).out
    check("guest/demo/" in full and "guest/demo/" not in p.out, "--full-source-path")

    slide = 0x1e00000
    q = script(moved("demo.data", slide), "--srcline", "--debuginfo", DEMO)
    slid = frames(q.out)
    check([(f[0] - slide if f[0] - slide in KERNEL else f[0], *f[1:]) for f in slid] == [tuple(f) for f in got],
          "a kernel that was moved has other lines")
    report_lines(p.out)
    for options, words in ((["--debuginfo", "other"], [ID, build_id("other")]),
                           (["--build-id-map", "bad"], ["bad:4"])):
        for command in (["script", "--srcline"], ["report", "--sort", "srcline"]):
            p = e2e.kvmprof(*command, "-i", "demo.data", *options)
            check(p.status == 1 and not p.out and all(w in p.err for w in words),
                  "%s %s: %s" % (command, options, p.err))
    p = e2e.kvmprof("script", "-i", "demo.data", "-F", "ip,sym")
    check(p.status == 2 and "+srcline" in p.err, "script -F ip,sym: " + p.err)
    return len(lined)


if has_client():
    debuginfod()
else:
    e2e.left_out("libdebuginfod1 is not installed")
if os.access("/dev/kvm", os.R_OK | os.W_OK):
    e2e.need_tool("addr2line")
    e2e.finish("%d kernel frames with lines in script" % source_lines())
e2e.left_out("no /dev/kvm: script is not tested")
e2e.finish()

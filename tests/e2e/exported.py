# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of exported profiles have in common: the profiles, and speedscope."""

import base64
import html
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections import Counter

import compiled
import e2e
from e2e import check

USER = "void demo_leaf(void){__asm__ volatile(\"nop;nop\");} void demo_loop(void){for(;;)demo_leaf();}" \
       "void demo_start(void){demo_loop();}"
PROG = "void prog_work(void){__asm__ volatile(\"nop;nop;nop\");} void prog_main(void){for(;;)prog_work();}"
LIB = "void lib_work(void){__asm__ volatile(\"nop;nop\");} void lib_entry(void){lib_work();}"
VDSO = "long vdso_time(void){__asm__ volatile(\"nop;nop\"); return 5;}"
JEST_SARIF = "1.0.0-beta.0"    # a package that has OASIS' whole schema of SARIF 2.1.0
SPEEDSCOPE = "1.25.0"
PROFILER_CLI = "0.10.0"


def elf(name, text, *flags):
    with open(name + ".c", "w") as f:
        f.write(text)
    compiled.cc("-O0", "-fno-omit-frame-pointer", "-nostdlib", "-Wl,--build-id=sha1", *flags, "-o", name, name + ".c")


class Profile:
    """A profile, and the truth about it: its samples as `kvmprof script` tells them."""

    def __init__(self, path):
        self.path = path
        self.script = e2e.kvmprof("script", "-i", path).out
        self.samples = e2e.parse_script(self.script)
        self.weight = sum(s.period for s in self.samples)
        self.self_weight, self.children, self.comms = Counter(), Counter(), Counter()
        for s in self.samples:
            names = s.stack.split(";")
            self.self_weight[names[-1]] += s.period
            self.comms[s.comm] += s.period
            for n in set(names):
                self.children[n] += s.period

    def named(self, weights):
        """Those of functions; of addresses without a name formats show different things."""
        return {n: w for n, w in weights.items() if not re.match(r"\[|0x", n)}

    def idle(self):
        """Halted time, as `kvmprof report` sees it."""
        percent = float(re.search(r"^# time: ([\d.]+) % idle", e2e.kvmprof("report", "-i", self.path).out, re.M).group(1))
        return round(self.weight * percent / 100)

    def export(self, fmt, *argv, out=None):
        p = e2e.kvmprof("export", "--format", fmt, "-i", self.path, *argv, *(["-o", out] if out else []))
        check(p.status == 0, "export %s: status %d: %s" % (fmt, p.status, p.err))
        check(not p.err, "export %s says: %s" % (fmt, p.err))
        return p.out


def make_profiles():
    compiled.tool("e2e/mkprofile.c")
    compiled.tool("e2e/mktasks.c")
    elf("user.elf", USER, "-static", "-no-pie", "-Wl,-e,demo_start")
    elf("prog.elf", PROG, "-static", "-no-pie", "-Wl,-e,prog_main")
    elf("lib.so", LIB, "-fPIC", "-fvisibility=hidden", "-shared")
    elf("vdso.so", VDSO, "-fPIC", "-shared")
    made = []
    for argv in (["mkprofile", "plain.data", "user.elf"],
                 ["mktasks", "tasks.data", "prog.elf", "lib.so", "vdso.so"]):
        p = e2e.run("./" + argv[0], *argv[1:])
        check(p.status == 0, "%s: %s" % (argv[0], p.err))
        total = next(int(x.split()[1]) for x in p.out.split("\n") if x.startswith("total "))
        profile = Profile(argv[1])
        check(len(profile.samples) == total, "%s: %d samples of %d" % (argv[1], len(profile.samples), total))
        made.append(profile)
    return made


# -- pprof ----------------------------------------------------------------------------

def pprof_decoder():
    """A module made by protoc out of the schema, or None and why."""
    for need, package in (("protoc", "protobuf-compiler"),):
        if not shutil.which(need):
            return None, package + " is not installed"
    p = e2e.run("protoc", "--python_out=.", "-I" + os.path.join(e2e.TOP, "profile", "analyse", "export"), "pprof.proto")
    check(p.status == 0, "protoc: " + p.err)
    sys.path.insert(0, os.getcwd())
    # Debian's packages, also where python3 is not Debian's.
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        import pprof_pb2
    except ImportError as e:
        return None, "python3-protobuf: " + str(e)
    return pprof_pb2, None


# -- speedscope -----------------------------------------------------------------------

def npm_package(name, version):
    """(directory, None), or (None, why not). Kept beside the guest kernels."""
    d = os.path.join(os.environ["KVMPROF_CACHE"], "npm-%s-%s" % (os.path.basename(name), version))
    if os.path.isdir(d):
        return d, None
    if not shutil.which("npm"):
        return None, "npm is not installed"
    try:
        p = e2e.run("npm", "pack", "--silent", "%s@%s" % (name, version), timeout=120)
    except subprocess.TimeoutExpired:
        return None, "npm gets no answer from its registry"
    if p.status:
        return None, "npm cannot get %s: %s" % (name, (p.err.strip().split("\n") or ["?"])[0])
    tmp = "%s.tmp-%d" % (d, os.getpid())
    with tarfile.open(p.out.strip().split("\n")[-1]) as tar:
        for m in tar.getmembers():
            check(m.name.startswith("package/") and ".." not in m.name, "%s holds %s" % (name, m.name))
        tar.extractall(tmp)
    if not os.path.isdir(d):
        os.rename(tmp, d)
    return d, None


def browser_why_not():
    return None if shutil.which("chromium") else "chromium is not installed"


def dump_dom(url):
    p = e2e.run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader",
                "--user-data-dir=" + os.path.abspath("chromium"), "--allow-file-access-from-files",
                "--virtual-time-budget=10000", "--window-size=1400,1000", "--dump-dom", url, timeout=180)
    return p.out


SECONDS = {"ns": 1e-9, "\u00b5s": 1e-6, "ms": 1e-3, "s": 1.0}


def speedscope_table(package, path):
    """What speedscope's "sandwich" view shows: {function: (total seconds, self seconds)}."""
    with open(path, "rb") as f:
        data = base64.b64encode(f.read()).decode()
    with open("load.js", "w") as f:
        f.write("speedscope.loadFileFromBase64('profile', '%s')" % data)
    dom = dump_dom("file://%s/package/dist/release/index.html#localProfilePath=%s&view=sandwich" %
                   (package, os.path.abspath("load.js")))
    table = {}
    value = r"([\d.]+)(ns|\u00b5s|ms|s) \(&?l?t?;?[\d.]+%\)"
    text = re.sub(r"<[^>]*>", "|", dom)
    for m in re.finditer(value + r"\|+" + value + r"\|+([^|]+)\|", text):
        t, tu, s, su, name = m.groups()
        table[html.unescape(name)] = (float(t) * SECONDS[tu], float(s) * SECONDS[su])
    return table


def close(a, b):
    """As near as three digits tell."""
    return abs(a - b) <= 0.006 * max(a, b) + 1e-8

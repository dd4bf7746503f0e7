# SPDX-License-Identifier: GPL-2.0-or-later
"""What the end-to-end tests have in common.

Each test is a program, `TEST KVMPROF SCRATCH [ARGUMENT]`, that exits with 0, with
77 and a reason on its last line (skipped), or with anything else (failed). A test that has
failed in part does not skip: it ends as failed. A last
line "figures: ..." is shown by tests/run.py beside the test's result.

HOME is a directory of the test's own, so that perf's build-id cache starts empty
and nothing of the user's is touched.
"""

import glob
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, namedtuple

SKIP = 77
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HZ = 997

if len(sys.argv) < 3:
    sys.exit("usage: %s KVMPROF SCRATCH" % sys.argv[0])
KVMPROF = os.path.abspath(sys.argv[1])
SCRATCH = os.path.abspath(sys.argv[2])
EXTRA = [os.path.abspath(a) if "/" in a else a for a in sys.argv[3:]]
BUILD = os.path.dirname(KVMPROF)
INITRAMFS = os.path.join(BUILD, "guest", "initramfs.cpio")

# The guest kernels stay where they are cached, whatever HOME becomes.
os.environ.setdefault("KVMPROF_CACHE", os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "kvmprof"))
os.environ["LC_ALL"] = "C"
# Whoever runs the tests may ignore it, as nohup(1) does; kvmprof would do so, too.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
os.makedirs(SCRATCH, exist_ok=True)
os.chdir(SCRATCH)

failures = 0
failed = []    # what they were


def new_home():
    """An empty HOME, and with it an empty build-id cache."""
    shutil.rmtree("home", ignore_errors=True)
    os.mkdir("home")
    os.environ["HOME"] = os.path.abspath("home")


new_home()


def say(text):
    print(text, flush=True)


def check(ok, what):
    """Notes a failure and goes on: one run should tell all that is wrong."""
    global failures
    if not ok:
        failures += 1
        failed.append(what[:1000])
        say("FAILED: " + what)
    return bool(ok)


def skip(reason):
    """What has failed before stays a failure."""
    say(reason)
    sys.exit(1 if failures else SKIP)


def left_out(reason):
    """A part of a test cannot run here: tests/run.py counts it as skipped."""
    say("skipped: " + reason)


def has_tool(name):
    """Whether it is installed; where it is not, a part of the test is left out."""
    if not shutil.which(name):
        left_out(name + " is not installed")
    return shutil.which(name)


def finish(figures=""):
    """Ends the test. What failed is repeated, as only the last lines of a long test are shown."""
    if failed:
        say("\n".join(["checks that failed: %d" % failures] + failed[:20]))
    if figures:
        say("figures: " + figures)
    sys.exit(1 if failures else 0)


# -- what a test needs ---------------------------------------------------------------

def need_kvm():
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR))
    except OSError as e:
        skip("/dev/kvm: " + e.strerror)


def need_tool(name):
    if not shutil.which(name):
        skip(name + " is not installed")


def kernel(script, name, needs):
    """The directory of a guest kernel, built or fetched now if it is not there yet.

    Where what it is made from is missing, the test is skipped; a build that fails
    is a failure."""
    why = needs()
    if why:
        skip(why)
    p = subprocess.run([os.path.join(TOP, "scripts", script), name], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, universal_newlines=True)
    if p.returncode:
        sys.exit("%s %s failed:\n%s" % (script, name, p.stderr))
    return p.stdout.strip()


def need_source():
    if not any(glob.glob("/usr/src/linux-source-[0-9]*.tar." + x)
               for x in ("xz", "bz2", "gz", "zst")):
        return "no kernel source: install the package linux-source"
    for tool in ("flex", "bison", "bc"):
        if not shutil.which(tool):
            return "a kernel cannot be built: %s is not installed" % tool
    return None


def built_kernel(variant):
    return kernel("build-guest-kernel.sh", variant, need_source)


CANNOT_BE_HAD = 3    # fetch-debian-kernel.sh's status


def fetched_kernel(series, *options):
    """Path of vmlinuz, None; or None, and why it cannot be had: fetching needs apt and a network."""
    if not shutil.which("apt-get"):
        return None, "no apt-get to fetch Debian's kernel with"
    p = subprocess.run([os.path.join(TOP, "scripts", "fetch-debian-kernel.sh")] +
                       list(options) + [series],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if p.returncode == CANNOT_BE_HAD:
        return None, p.stderr.strip().split("\n")[-1]
    if not check(p.returncode == 0, "fetch-debian-kernel.sh: status %d: %s" % (p.returncode, p.stderr)):
        sys.exit(1)
    d = p.stdout.strip()
    return os.path.join(d, next(f for f in sorted(os.listdir(d)) if f.startswith("vmlinuz-"))), None


def debian_kernel(series, *options):
    """Path of vmlinuz, without which there is no test."""
    image, why = fetched_kernel(series, *options)
    return image or skip(why)


# -- running -------------------------------------------------------------------------

Done = namedtuple("Done", "status out err seconds")


def run(*argv, timeout=120, env=None, **kw):
    """Runs a program to its end; both outputs as text. A negative status is a signal."""
    start = time.monotonic()
    p = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=timeout, env=env, **kw)
    return Done(p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace"),
                time.monotonic() - start)


def kvmprof(*argv, **kw):
    return run(KVMPROF, *argv, **kw)


class Boot:
    """`kvmprof run` with the time, since the process was started, of each console line."""

    def __init__(self, *argv, stdin=subprocess.DEVNULL):
        self.start = time.monotonic()
        self.argv = [KVMPROF, "run"] + [str(a) for a in argv]
        self.process = subprocess.Popen(self.argv, stdin=stdin,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = []    # (seconds, text)
        self.err = ""
        self.threads = [threading.Thread(target=self.read_console, daemon=True),
                        threading.Thread(target=self.read_errors, daemon=True)]
        for t in self.threads:
            t.start()

    def read_console(self):
        for raw in self.process.stdout:
            self.lines.append((time.monotonic() - self.start,
                               raw.decode(errors="replace").rstrip("\r\n")))

    def read_errors(self):
        self.err = self.process.stderr.read().decode(errors="replace")

    def wait(self, timeout):
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            say("no end after %d s; the console's last lines:" % timeout)
            for t, line in self.lines[-20:]:
                say("  %7.2f %s" % (t, line))
            self.process.kill()
            self.process.wait()
        for t in self.threads:
            t.join(10)
        self.seconds = time.monotonic() - self.start
        self.status = self.process.returncode
        return self

    def text(self):
        return "\n".join(line for _, line in self.lines)

    def seen(self, marker):
        """Seconds until a line with this, or None."""
        return next((t for t, line in list(self.lines) if marker in line), None)

    def wait_for(self, marker, timeout):
        end = time.monotonic() + timeout
        while self.seen(marker) is None and time.monotonic() < end:
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        return self.seen(marker) is not None


# -- a busy host ---------------------------------------------------------------------

def prefer_us():
    """Less of others' work in between, where we may."""
    try:
        os.nice(-20)
    except OSError:
        pass


def doubt(samples, hz=HZ):
    """How far one stack's share of the time may be off, as a standard error for a share of a half,
    because periods were missed: 0 where none was, 1 where all time rests on one sample.

    A sample stands for the periods missed before it. Where the host kept the whole guest waiting
    that is the truth; where it kept the sampler waiting nobody knows what the guest did
    meanwhile, and the sample is one draw for all of that time. How it was is not known, so the
    worst is assumed: the variance of such a draw goes with the square of its weight."""
    period = 1e9 / hz
    total = sum(s.period for s in samples)
    late = sum((s.period - period) ** 2 for s in samples if s.period > 1.5 * period)
    return math.sqrt(late) / total if total else 1.0


def sigma(share, spread):
    """The standard error of this share (0 to 1) at this doubt."""
    return math.sqrt(max(share * (1 - share), 0)) * spread


# A part of the time that a vCPU may wait for a processor before a measurement of time is repeated.
WAITED = 0.01


def waited(stat, vcpu=0):
    """The part of the time that a vCPU waited for a processor, by `kvmprof stat --json` or a summary's "stat"."""
    counters = [stat["counters"].get("time:" + n) for n in ("runnable", "waiting")]
    return sum(c["vcpu"][vcpu] for c in counters if c) / stat["elapsed_ns"]


def quietest(measure, limit, tries=3):
    """The rule for a busy host: measure(i) returns how much the host disturbed it, and a result.
    It is repeated while that is above the limit, and the least disturbed one is returned,
    whatever its result is: (disturbance, result)."""
    best = None
    for i in range(tries):
        disturbed, result = measure(i)
        if best is None or disturbed < best[0]:
            best = disturbed, result
        if best[0] <= limit:
            break
        say("the host was busy: %.3f, of %.3f at most; try %d of %d" % (disturbed, limit, i + 1, tries))
    return best


# -- reading -------------------------------------------------------------------------

def summary(directory):
    """The run's own figures, which a profile directory carries."""
    with open(os.path.join(directory, "kvmprof.json")) as f:
        return json.load(f)


Truth = namedtuple("Truth", "percent where stack")


def parse_truth(console):
    """The demo's table and what it spent outside of its leaves, or (None, None)."""
    table, outside = [], None
    for line in console.replace("\r", "").split("\n"):
        w = line.split()
        if w[:1] == ["truth"] and len(w) == 4:
            table.append(Truth(float(w[1]), w[2], w[3]))
        elif w[:1] == ["outside"] and len(w) == 2:
            outside = float(w[1])
    return (table, outside) if outside is not None and "truth-end" in console else (None, None)


Sample = namedtuple("Sample", "comm cpu seconds period stack dsos")

EVENT = re.compile(r"^(\S.*?)\s+(-?\d+)\s+\[(\d+)\]\s+(\d+\.\d+):\s+(\d+)\s+(\S+?):\s*$")
FRAME = re.compile(r"^\s+([0-9a-f]+)\s+(.+) \((.*)\)$")


def parse_script(text):
    """Samples of `perf script` or `kvmprof script`; stacks are outermost first."""
    samples, head, frames = [], None, []
    for line in text.split("\n"):
        if line.startswith("#"):
            continue
        if not line.strip():
            if head:
                frames.reverse()
                samples.append(Sample(head[0], int(head[2]), float(head[3]), int(head[4]),
                                      ";".join(f[0] for f in frames),
                                      frames[-1][1] if frames else ""))
            head, frames = None, []
            continue
        m = EVENT.match(line)
        if m:
            head = m.groups()
            continue
        m = FRAME.match(line)
        if not m or not head:
            raise ValueError("not a line of perf script: %r" % line)
        frames.append((re.sub(r"\+0x[0-9a-f]+$", "", m.group(2)), m.group(3)))
    return samples


def fold(text):
    """Folded stacks by the rules of FlameGraph's stackcollapse-perf.pl, whose package
    Debian lacks, told in our own words:

    * a line that begins with '#' is skipped; a blank line ends a stack, which then
      counts once, whatever its period;
    * a line that begins with a non-blank is an event: the command, blanks, a pid with
      an optional "/tid", a blank; a colon, blanks, an optional period and an
      event's name with a colon at the end. Only the first event's name counts.
      Blanks in the command become '_';
    * any other line is a frame: blanks, an address, blanks, a function, " (", the
      object, ")". "+0x.." is cut from the function; one that begins with "(" is
      skipped; "[unknown]" becomes the object's last path component in brackets; ';'
      becomes ':', the characters < > \\ " ' go, and so does an argument list;
    * anything else is an error here (the script only warns).
    """
    counts, comm, frames, event = Counter(), None, [], None
    for line in text.split("\n"):
        if line.startswith("#"):
            continue
        if not line:
            if comm is not None:
                counts[";".join([comm] + frames[::-1])] += 1
            comm, frames = None, []
            continue
        m = re.match(r"(\S.+?)\s+(\d+)/*(\d+)*\s+", line)
        if m:
            name = re.search(r":\s*(\d+)*\s+(\S+):\s*$", line)
            event = event or (name and name.group(2))
            comm = m.group(1).replace(" ", "_") if name and name.group(2) == event else None
            continue
        m = re.match(r"\s*(\w+)\s*(.+) \((.*)\)", line)
        if not m:
            raise ValueError("stackcollapse-perf.pl would not know %r" % line)
        func = re.sub(r"\+0x[0-9a-f]+$", "", m.group(2))
        if func.startswith("("):
            continue
        if func == "[unknown]":
            func = "[" + (m.group(3).split("/")[-1] if m.group(3) != "[unknown]" else "unknown") + "]"
        func = re.sub(r"[<>\\\"']", "", func.replace(";", ":"))
        frames.append(re.sub(r"\((?!anonymous namespace\)).*", "", func) or func)
    return counts


def perf_script(path):
    p = run("perf", "script", "-i", path)
    check(p.status == 0, "perf script -i %s: status %d: %s" % (path, p.status, p.err.strip()))
    check(not p.err.strip(), "perf script complains: " + p.err.strip()[:300])
    return p.out


def check_lost(directory):
    s = summary(directory)
    check(s["lost"] == 0, "%s: %d samples lost" % (directory, s["lost"]))
    return s


def leftovers(directory="."):
    return [f for f in os.listdir(directory) if ".tmp" in f or f.startswith(".kvmprof-")]

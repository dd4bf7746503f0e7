#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 26 s
# tests: slow, at most 900 s: smp
# tests: svm, at most 400 s
"""control.py KVMPROF SCRATCH [smp]: a run that is watched and changed while its guest runs.

The demo guest runs; what was asked for has to be seen in the profile: a gap, another rate, fewer
frames, with weights that add up to the time. Snapshots are read by perf while the run goes on.
"""

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections import Counter

import e2e
from e2e import check, say

e2e.need_kvm()
GUEST = ["--append", "seconds=60"]
SOCKET = "run.sock"
# Of shares and sums: the host may keep a vCPU waiting, which shows at the ends of what is measured.
SLACK = 0.05


class Run:
    """`kvmprof run --control`, once it answers and its guest runs."""

    def __init__(self, output, *options):
        self.output = output
        self.boot = e2e.Boot("--control", SOCKET, "-o", output, *options, *GUEST)
        self.up = check(self.boot.wait_for("demo: start", 60), "%s: no guest" % output)

    def ctl(self, *words, want=0):
        p = e2e.kvmprof("ctl", "--control", SOCKET, *words)
        check(p.status == want, "ctl %s: status %d: %s" % (" ".join(words), p.status, p.out + p.err))
        return p

    def ask(self, *words):
        p = self.ctl("--json", *words)
        return json.loads(p.out) if p.status == 0 else {}

    def end(self):
        """Its summary, after `ctl stop`."""
        self.ctl("stop")
        self.boot.wait(60)
        check(self.boot.status == 0, "%s: status %d: %s" % (self.output, self.boot.status, self.boot.err))
        check("ended through the control socket" in self.boot.err, "how it ended: " + self.boot.err)
        check(not os.path.exists(SOCKET), "the socket is left behind")
        check(not e2e.leftovers(), "temporary files are left: %s" % e2e.leftovers())
        return e2e.summary(self.output)


def script(path):
    """Samples in order of time."""
    p = e2e.kvmprof("script", "-i", path)
    check(p.status == 0, "script %s: %s" % (path, p.err))
    return sorted(e2e.parse_script(p.out), key=lambda s: s.seconds)


def wall(samples):
    return [s for s in samples if s.period]


def changes(summary, what):
    return [c for c in summary["changes"] if c["what"] == what]


def near(a, b, slack):
    return abs(a - b) <= slack * max(a, b)


def collection():
    r = Run("gap.data")
    time.sleep(1)
    r.ctl("collect", "off")
    check(not r.ask("status")["collecting"], "it still collects")
    before = r.ask("status")["samples"]
    time.sleep(1.5)
    check(r.ask("status")["samples"] == before, "samples come while nothing is collected")
    r.ctl("collect", "on")
    time.sleep(1)
    r.ctl("disarm", "wall")
    check(not r.ask("status")["events"][0]["armed"], "the event is still armed")
    time.sleep(0.7)
    r.ctl("event", "wall")
    time.sleep(0.5)
    r.ctl("vcpu", "0", "off")
    time.sleep(0.6)
    r.ctl("vcpu", "all", "on")
    time.sleep(0.5)
    s = r.end()
    # Each time in which nothing was wanted is a gap, and there is no other of its length.
    times = [x.seconds for x in wall(script("gap.data"))]
    off, want = None, []
    for c in s["changes"]:
        if not c["to"]:
            off = c["time_ns"] / 1e9
        else:
            want.append((off, c["time_ns"] / 1e9))
    check(len(want) == 3, "changes: %s" % s["changes"])
    for a, b in want:
        # One may be under way, however long the host lets its thread wait.
        inside = [t for t in times if a + 0.05 < t < b][1:]
        check(not inside, "%d more samples between %.3f and %.3f" % (len(inside), a, b))
        check(any(b < t < b + 0.4 for t in times), "none after %.3f" % b)
    gone = sum(b - a for a, b in want)
    weight = (s["kernel_ns"] + s["user_ns"] + s["idle_ns"]) / 1e9
    check(near(weight + gone, s["run_seconds"], SLACK),
          "weights %.3f s and gaps %.3f s, but the run had %.3f s" % (weight, gone, s["run_seconds"]))
    check(s["uncollected_periods"] > 500, "uncollected periods: %d" % s["uncollected_periods"])
    say("collection: %.3f s of samples and %.3f s of gaps in %.3f s" % (weight, gone, s["run_seconds"]))


def rate():
    r = Run("rate.data", "-F", "500")
    time.sleep(1.5)
    reply = r.ask("freq", "wall", "100")
    check((reply.get("from"), reply.get("to")) == (2000000, 10000000), "freq: %s" % reply)
    time.sleep(2)
    r.ctl("period", "wall", "1ms")
    time.sleep(1.5)
    r.ctl("max-stack", "2")
    r.ctl("stack-size", "512")
    time.sleep(2)  # of the guest's slices, which take 0.13 s, one has to be deep
    s = r.end()
    when = [c["time_ns"] / 1e9 for c in changes(s, "period")]
    check([c["to"] for c in changes(s, "period")] == [10000000, 1000000], "changes: %s" % s["changes"])
    samples = wall(script("rate.data"))
    # A weight is a number of periods: those in force when the sample was taken.
    parts = [(samples[0].seconds, when[0], 2000000), (when[0], when[1], 10000000),
             (when[1], samples[-1].seconds, 1000000)]
    density = []
    for a, b, period in parts:
        inside = [x for x in samples if a + 0.05 <= x.seconds < b]
        bad = [x.period for x in inside if x.period % period]
        check(not bad, "%d of %d weights are no multiple of %d: %s" % (len(bad), len(inside), period, bad[:5]))
        weight = sum(x.period for x in inside) / 1e9
        check(near(weight, b - a - 0.05, 2 * SLACK), "%.3f s of weight in %.3f s" % (weight, b - a))
        density.append(len(inside) / (b - a))
    # A busy host makes them fewer, but nothing makes them more.
    check(density[0] < 575 and density[1] < 115 and density[1] < density[2] < 1150,
          "samples a second: %s" % density)
    weight = sum(x.period for x in samples) / 1e9
    check(near(weight, s["run_seconds"], SLACK), "weights %.3f s in %.3f s" % (weight, s["run_seconds"]))
    cut = changes(s, "max-stack")[0]["time_ns"] / 1e9
    late = [x.stack.count(";") + 1 for x in samples if x.seconds > cut + 0.05]
    early = [x.stack.count(";") + 1 for x in samples if x.seconds < cut]
    check(late and max(late) <= 2 < max(early), "frames: %s, before %s" % (set(late), set(early)))
    check(s["max_stack_cut"] > 0, "no stack was cut")
    say("rate: %.0f, %.0f and %.0f samples a second; weights %.3f s of %.3f s" %
        (density[0], density[1], density[2], weight, s["run_seconds"]))


def perf_samples(path):
    p = e2e.run("perf", "report", "-i", path, "--stdio")
    check(p.status == 0 and "demo_main" in p.out, "perf report of %s: %s" % (path, p.err[-300:]))
    # Markers are records of another event, whose content perf prints below them.
    text = e2e.perf_script(path)
    return len(re.findall(r"\[\d+\]\s+\d+\.\d+:\s+[1-9]\d*\s+wall:", text))


def snapshots():
    e2e.need_tool("perf")
    r = Run("long.data", "--ring-size", "64M")  # none is lost on a busy host
    r.ctl("mark", "here we are")
    told, seen = [], []
    for i in range(3):
        want, until = r.ask("status")["samples"] + 200, time.monotonic() + 60
        while r.ask("status")["samples"] < want and time.monotonic() < until:
            time.sleep(0.1)
        reply = r.ask("snapshot", "now.data")
        check(reply["samples"] >= want, "%d samples in a snapshot, %d were taken" % (reply["samples"], want))
        told.append(reply["samples"])
        check(r.boot.process.poll() is None, "the run is over")
        seen.append(perf_samples("now.data"))
        s = e2e.summary("now.data")
        weight = (s["kernel_ns"] + s["user_ns"] + s["idle_ns"]) / 1e9
        span = wall(script("now.data"))[-1].seconds - s["first_entry_ns"] / 1e9
        check(s["end"] == "running" and s["lost"] == 0 and abs(weight - span) < SLACK * span + 0.05,
              "the snapshot: %s, %.3f s of weight in %.3f s" % (s["end"], weight, span))
        check([m["name"] for m in s["markers"]] == ["here we are"], "markers: %s" % s["markers"])
    check(seen == told and seen[0] < seen[1] < seen[2], "samples: %s, told %s" % (seen, told))
    check(perf_samples("now.data.old") == seen[1], "the one before is not now.data.old")
    # The demo does one thing after the other, so which is there depends on the host.
    leaves = Counter(x.stack.split(";")[-1] for x in wall(script("now.data")) if "kernel" in x.dsos)
    leaf = leaves.most_common(1)[0][0]
    p = e2e.kvmprof("annotate", "-i", "now.data", leaf)
    check(p.status == 0 and re.search(r"^ *\d+\.\d+", p.out, re.M), "annotate of a snapshot: " + p.out + p.err)
    r.ctl("snapshot", "/nonexistent/x", want=1)
    r.ctl("snapshot", "home", want=1)  # a directory, but no profile
    os.makedirs("below/.hidden")
    os.symlink("below", "link")
    with open("below/text", "w", encoding="ascii") as f:
        f.write("text")
    for path, words in (("below/text", "not a profile"), (".now.data", "hidden"), ("below/.hidden/now.data", "hidden"),
                        ("/dev/shm/now.data", "writes profiles below")):
        p = r.ctl("snapshot", path, want=1)
        check(words in p.err and p.err.count("\n") == 1 and path.split("/")[-1] in p.err, "%s: %s" % (path, p.err))
    for path in ("below/one.data", "link/one.data"):  # the user's own links lead there
        check(r.ask("snapshot", path).get("ok") and e2e.summary("below/one.data")["samples"] > 0, "no %s" % path)
    check(os.path.isdir("below/one.data.old") and open("below/text").read() == "text", "below: %s" % os.listdir("below"))
    s = r.end()
    check(s["snapshots"] == 5, "%s snapshots" % s["snapshots"])
    whole, part = wall(script("long.data")), wall(script("now.data"))
    check(len(whole) == s["samples"] > len(part), "samples at the end: %d" % len(whole))
    check(whole[:len(part)] == part, "the snapshot is not the beginning of the whole")
    say("snapshots: %s samples of %d" % (seen, len(whole)))


def other_forms():
    r = Run("single.data", "--single-file")
    time.sleep(0.5)
    n = r.ask("snapshot", "one.data")["samples"]
    check(os.path.isfile("one.data") and perf_samples("one.data") == n, "--single-file")
    r.end_single = r.ctl("stop")
    r.boot.wait(60)
    check(perf_samples("single.data") > n, "the whole")
    with open("piped.data", "wb") as out:
        p = subprocess.Popen([e2e.KVMPROF, "run", "-q", "--control", SOCKET, "-o", "-"] + GUEST,
                             stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while not os.path.exists(SOCKET) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1.5)
        n = r.ask("snapshot", "two.data")["samples"]
        r.ctl("stop")
        check(p.wait(60) == 0, "run -o - failed")
    check(perf_samples("two.data") == n, "a snapshot of -o -")
    check(perf_samples("piped.data") > n, "the whole of -o -")


def overwrite():
    r = Run("newest.data", "-F", "2000", "--stack-size", "1024", "--overwrite", "--ring-size", "256K")
    until = time.monotonic() + 30
    while not r.ask("status").get("overwritten") and time.monotonic() < until:
        time.sleep(0.3)
    reply = r.ask("snapshot", "early.data")
    early = reply["samples"]
    s = r.ask("status")
    check(s["overwritten"] > 0, "status: %s" % s)
    time.sleep(1)
    s = r.end()
    for path, total in (("early.data", early), ("newest.data", s["samples"])):
        gone = e2e.summary(path)["overwritten"]
        kept = wall(script(path))
        check(gone > 0 and len(kept) + gone == total,
              "%s: %d samples, %d of %d gave way" % (path, len(kept), gone, total))
        p = e2e.run("perf", "report", "-i", path, "--stdio")
        lost = gone + e2e.summary(path)["lost"]
        check("Total Lost Samples: %d\n" % lost in p.out, "perf does not tell of %d: %s" % (lost, p.out[:200]))
    last = s["first_entry_ns"] / 1e9 + s["run_seconds"]
    # The newest, without a hole: as much time as their weights say, up to the end.
    span = kept[-1].seconds - kept[0].seconds
    weight = sum(x.period for x in kept[1:]) / 1e9
    check(last - kept[-1].seconds < 0.3, "the newest is %.3f s old" % (last - kept[-1].seconds))
    check(near(span, weight, 2 * SLACK), "%.3f s of weight in %.3f s" % (weight, span))
    check("were replaced by newer ones" in r.boot.err, "the summary: " + r.boot.err)
    say("the snapshot took %.1f ms, lost %d; %d lost in all" % (reply["took_ns"] / 1e6, reply["lost"], s["lost"]))
    say("overwrite: the newest %d of %d samples, %.2f s" % (len(kept), s["samples"], span))


class Talk:
    """The protocol itself."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(SOCKET)
        self.file = self.socket.makefile("rb")

    def ask(self, **request):
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        return json.loads(self.file.readline())


def live():
    r = Run("live.data")
    t = Talk()
    seq = t.ask(cmd="profile")["seq"]
    leaf, total, spans, first_ns = Counter(), 0, 0, 0
    for i in range(6):
        time.sleep(0.5)
        p = t.ask(cmd="profile", since=seq, max_stacks=500)
        check(p["since"] == seq, "since %s, not %s" % (p["since"], seq))
        seq = p["seq"]
        weight = sum(s["weight"] for s in p["stacks"]) + p["rest_weight"][0]
        check(weight == p["weight"][0], "stacks weigh %d, all %d" % (weight, p["weight"][0]))
        cpu = p["cpus"][0]
        check(cpu["kernel"] + cpu["user"] + cpu["idle"] == weight, "modes: %s" % cpu)
        first_ns = first_ns or p["from_ns"]
        total += weight
        spans += p["to_ns"] - p["from_ns"]
        for s in p["stacks"]:
            name = p["funcs"][s["frames"][0]]["name"]
            leaf[name] += s["weight"]
    check(near(total, spans, 2 * SLACK), "%d ns of samples in %d ns" % (total, spans))
    last_ns = p["to_ns"]
    func = [f for f in p["funcs"] if f["dso"] == "[kernel.kallsyms]" and f["name"] in leaf]
    code = t.ask(cmd="text", addr=func[0]["addr"])
    check(code["ok"] and len(code["code"]) == 2 * code["symbol_size"] and code["hits"], "code: %s" % code)
    # Hostile ones, while a well-behaved one is served.
    loud = [Talk() for i in range(5)]
    for i, x in enumerate(loud):
        x.socket.sendall([b"\x00\xff\n" * 500, b'{"cmd":', b"[" * 9000, b'{"cmd":"stats"}\n' * 400,
                          b'{"cmd":"profile"}\n' * 400][i])
    for i in range(5):
        check(t.ask(cmd="status", id=i).get("id") == i, "not served beside the others")
    for x in loud:
        x.socket.close()
    check(t.ask(cmd="profile", since=seq)["ok"], "not served after the others")
    # The profile has the same samples.
    r.end()
    share = Counter()
    for x in wall(script("live.data")):
        if first_ns <= x.seconds * 1e9 <= last_ns:
            share[x.stack.split(";")[-1]] += x.period
    check(near(sum(share.values()), total, SLACK), "%d ns in the profile, %d live" % (sum(share.values()), total))
    for name in set(leaf) | set(share):
        check(abs(leaf[name] - share[name]) < 0.03 * total,
              "%s: %d live, %d in the profile" % (name, leaf[name], share[name]))
    say("live: %.2f s of samples in %.2f s; %s" % (total / 1e9, spans / 1e9, leaf.most_common(3)))


def bad_inputs():
    r = Run("bad.data")
    for words, want, text in [
            (["collect", "maybe"], 2, "on or off"), (["collect"], 2, "expected on or off"),
            (["frob"], 2, "unknown command"), (["status", "x"], 2, "no argument"),
            (["vcpu", "7", "on"], 1, "vCPU 0 only"), (["vcpu", "x", "on"], 2, "whole number"),
            (["arm", "cycles"], 1, "no event 'cycles'"), (["event", ","], 2, "expected events"),
            (["period", "wall", "5"], 1, "20000 to"), (["period", "wall", "-5"], 2, ""),
            (["period", "wall", "5h"], 2, "such as"), (["freq", "wall", "1e6"], 1, "50000"),
            (["freq", "wall", "nan"], 2, "samples a second"), (["max-stack", "0"], 1, "from 1"),
            (["max-stack", "257"], 1, "1 to 256"), (["stack-size", "99999"], 1, "16384"),
            (["snapshot", ""], 2, "path"), (["mark", ""], 1, "name"), (["mark", "x" * 200], 1, "127"),
            (["snapshot", "x" * 5000], 1, "path"), ([], 2, "expected a command")]:
        p = e2e.kvmprof("ctl", "--control", SOCKET, *words)
        check(p.status == want and text in p.err and p.err.count("\n") == 1,
              "ctl %s: status %d: %r" % (words, p.status, p.err))
    check(r.ask("status")["changes"] == 0, "something was changed")
    # In use: another run has to keep away from it.
    p = e2e.kvmprof("run", "--control", SOCKET, "-o", "no.data", *GUEST)
    check(p.status == 1 and "listens there" in p.err, "a second run: %d %s" % (p.status, p.err))
    check(r.ask("status")["state"] == "running", "the first one suffered")
    r.end()
    for path, text in (("x" * 200, "107 bytes"), ("home", "not a socket"), ("nowhere/s", "cannot create")):
        p = e2e.kvmprof("run", "--control", path, "-o", "no.data", *GUEST)
        check(p.status == 1 and text in p.err and p.err.count("\n") == 1, "--control %s: %s" % (path, p.err))
    for options in (["-C", "1"], ["-C", "0-"], ["-C", "x"], ["-C", "0,,"], ["-C", "-1"], ["--ring-size", "1K"],
                    ["--ring-size", "8G"], ["--max-stack", "0"], ["--max-stack", "257"], ["--control", ""]):
        p = e2e.kvmprof("run", *options, "-o", "no.data", *GUEST)
        check(p.status == 2 and p.err.count("\n") == 1, "run %s: %d %s" % (options, p.status, p.err))
    check(not os.path.exists("no.data"), "a profile was written all the same")
    p = e2e.kvmprof("ctl", "--control", SOCKET, "status")
    check(p.status == 1 and "no control socket" in p.err, "nobody there: " + p.err)
    p = e2e.kvmprof("ctl", "-p", "1", "--control", SOCKET, "status")
    check(p.status == 2, "both ways to say which: " + p.err)
    p = e2e.kvmprof("ctl", "--control", SOCKET, "--json", "status")
    check(p.status == 1 and not json.loads(p.out)["ok"], "errors as JSON: " + p.out)


def automatic():
    os.mkdir("runtime", 0o700)
    env = dict(os.environ, XDG_RUNTIME_DIR=os.path.abspath("runtime"))
    p = e2e.kvmprof("ctl", "status", env=env)
    check(p.status == 1 and "no run was started" in p.err, "no run: " + p.err)
    runs = [subprocess.Popen([e2e.KVMPROF, "run", "-q", "--control", "auto", "-o", "auto%d.data" % i] + GUEST,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env=env) for i in range(2)]
    until = time.monotonic() + 30
    while len(os.listdir("runtime")) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    p = e2e.kvmprof("ctl", "list", env=env)
    check(sorted(x.split()[0] for x in p.out.splitlines()) == sorted(str(x.pid) for x in runs), "list: " + p.out)
    p = e2e.kvmprof("ctl", "status", env=env)
    check(p.status == 1 and "2 runs" in p.err, "which of two: " + p.err)
    # One is killed, and what it leaves is known for that.
    runs[0].send_signal(signal.SIGKILL)
    runs[0].wait(30)
    check(len(os.listdir("runtime")) == 2, "the killed one took its socket along")
    p = e2e.kvmprof("ctl", "-p", str(runs[0].pid), "status", env=env)
    check(p.status == 1 and "has ended" in p.err, "a killed one: " + p.err)
    p = e2e.kvmprof("ctl", "status", env=env)
    check(p.status == 0 and p.out.startswith("state "), "the only one: " + p.out + p.err)
    left = os.path.join("runtime", "kvmprof-%d.sock" % runs[0].pid)
    p = e2e.kvmprof("run", "-q", "--control", left, "--duration", "0.3", "-o", "again.data", *GUEST)
    check(p.status == 0 and not os.path.exists(left), "in the place of a killed one: " + p.err)
    p = e2e.kvmprof("ctl", "stop", env=env)
    check(p.status == 0 and runs[1].wait(60) == 0, "stop: " + p.err)
    check(not os.listdir("runtime"), "left behind: %s" % os.listdir("runtime"))
    for name in os.listdir("."):
        if ".tmp-%d" % runs[0].pid in name:
            e2e.shutil.rmtree(name)


def chosen_vcpus():
    """Of two vCPUs, of which the guest starts one, the other is sampled: that is nothing."""
    p = e2e.kvmprof("run", "-q", "--vcpus", "2", "-C", "1", "--duration", "0.7", "-o", "other.data", *GUEST)
    check(p.status == 0 and e2e.summary("other.data")["samples"] == 0, "-C 1: " + p.err)
    p = e2e.kvmprof("run", "-q", "--vcpus", "2", "-C", "0", "--max-stack", "1", "--duration", "0.7",
                    "-o", "one.data", *GUEST)
    samples = script("one.data")
    check(len(samples) > 50 and {x.cpu for x in samples} == {0}, "-C 0: %d samples" % len(samples))
    check(all(";" not in x.stack for x in samples), "--max-stack 1")


def one_of_two():
    """A kernel on two vCPUs, of which one gives no samples for a while."""
    image = os.path.join(e2e.built_kernel("smp-fp"), "vmlinux")
    boot = e2e.Boot("--control", SOCKET, "-o", "smp.data", "-q", "--vcpus", "2", "-m", "64M",
                    "--initrd", e2e.INITRAMFS, image)
    ctl = ["ctl", "--control", SOCKET]

    def samples():
        p = e2e.kvmprof(*ctl, "--json", "status")
        return [v["samples"] for v in json.loads(p.out)["vcpus"]] if p.status == 0 else [0, 0]

    until = time.monotonic() + 300
    while samples()[1] < 100 and boot.process.poll() is None and time.monotonic() < until:
        time.sleep(0.3)
    p = e2e.kvmprof(*ctl, "vcpu", "1", "off")
    made = time.monotonic()    # the reply comes after the change
    check(p.status == 0, "vcpu 1 off: " + p.err)
    before = samples()
    time.sleep(2)
    after = samples()
    check(before[1] == after[1] and before[0] < after[0], "samples %s, then %s" % (before, after))
    e2e.kvmprof(*ctl, "vcpu", "all", "on")
    time.sleep(1)
    check(samples()[1] > after[1], "vCPU 1 is not back: %s, then %s" % (after, samples()))
    e2e.kvmprof(*ctl, "stop")
    boot.wait(60)
    check(boot.status == 0, "status %d: %s" % (boot.status, boot.err))
    off, on = [c["time_ns"] / 1e9 for c in e2e.summary("smp.data")["changes"]]
    check(off < made < on, "changed at %f and %f, the reply came at %f" % (off, on, made))
    # A change has the time before it is made: on a busy host the thread may stand in between.
    inside = Counter(x.cpu for x in wall(script("smp.data")) if made < x.seconds < on)
    check(inside[0] > 0 and not inside[1], "samples by vCPU while one was off: %s" % inside)
    e2e.finish("%d samples of one vCPU while the other was off" % inside[0])


if e2e.EXTRA == ["smp"]:
    one_of_two()
collection()
rate()
snapshots()
other_forms()
overwrite()
live()
bad_inputs()
automatic()
chosen_vcpus()
e2e.finish()

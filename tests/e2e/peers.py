#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
# tests: beside, 14 s
# tests: not svm, threads
"""No peer keeps a command from ending: a signal ends each of them within two seconds, whatever it waits for, and what it
is attached to runs on.

Each peer is a small stand-in that does not do what it should. Commands are started all together. One that has ended
by itself has refused what it was given; the others get a signal, one after the other. The table says how long each took
from there. A busy machine is allowed more than the two seconds."""

import glob
import os
import signal
import socket
import subprocess
import threading
import time

import e2e
import qemu
from e2e import check, say

PROMISED = 2     # seconds
LIMIT = 10       # beyond which it is no matter of a busy machine
SETTLE = 1.5     # from the start of the commands to the first signal
IMAGE = os.path.join(e2e.BUILD, "guest", "demo.elf")


class Case:
    def __init__(self, peer, *argv, stdin=None, stdout=None, number=signal.SIGTERM, **env):
        self.peer, self.number = peer, number
        self.err_file = open("err-%d" % len(cases), "wb+")
        self.process = subprocess.Popen([e2e.KVMPROF, *map(str, argv)], stdin=stdin or subprocess.DEVNULL,
                                        stdout=stdout or subprocess.DEVNULL, stderr=self.err_file,
                                        env=dict(os.environ, **env))
        self.what = "kvmprof " + argv[0]

    def err(self):
        self.err_file.seek(0)
        return self.err_file.read().decode(errors="replace")

    def end(self):
        """One line of the table."""
        if self.process.poll() is not None:
            check(self.process.returncode > 0, "%s, %s: it ended with %d: %s" %
                  (self.what, self.peer, self.process.returncode, self.err()[-300:]))
            say("%-14s %-46s refused: %s" % (self.what, self.peer, self.err().strip().split("\n")[-1][:90]))
            return 0
        begun = time.monotonic()
        self.process.send_signal(self.number)
        try:
            self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            check(False, "%s, %s: %s does not end it within %d s" % (self.what, self.peer, self.number.name, LIMIT))
            self.process.kill()
            self.process.wait()
        seconds = time.monotonic() - begun
        say("%-14s %-46s %.2f s from %s, status %d" %
            (self.what, self.peer, seconds, self.number.name, self.process.returncode))
        check("Sanitizer" not in self.err(), self.err())
        return seconds


cases = []


def case(*args, **kw):
    cases.append(Case(*args, **kw))
    return cases[-1]


# -- stand-ins -----------------------------------------------------------------------------------------------

def serve(family, address, talk):
    """Accepts, and hands each connection to talk() on a thread of its own."""
    s = socket.socket(family)
    s.bind(address)
    s.listen(8)

    def accept():
        while True:
            c, _ = s.accept()
            threading.Thread(target=run_talk, args=(talk, c), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return s


def run_talk(talk, c):
    try:
        talk(c)
        time.sleep(3600)
    except OSError:
        pass


def tcp(talk):
    """Where somebody listens, who talks so."""
    s = serve(socket.AF_INET, ("127.0.0.1", 0), talk)
    kept.append(s)
    return "127.0.0.1:%d" % s.getsockname()[1]


def unix(name, talk):
    kept.append(serve(socket.AF_UNIX, name, talk))
    return os.path.abspath(name)


kept = []


def silent(_):
    pass


def for_ever(data, pause=0.0):
    def talk(c):
        while True:
            c.sendall(data)
            time.sleep(pause)
    return talk


def packet(data):
    return b"$%s#%02x" % (data, sum(data) & 0xff)


def answers(data):
    """Whatever is asked, it is this, in acknowledged packets."""
    def talk(c):
        while c.recv(4096):
            c.sendall(b"+" + packet(data))
    return talk


def full_backlog():
    """An address that does not answer: its queue is full."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(0)
    kept.append(s)
    for _ in range(4):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(s.getsockname())
        kept.append(c)
    return "127.0.0.1:%d" % s.getsockname()[1]


def full_unix(name):
    s = socket.socket(socket.AF_UNIX)
    s.bind(name)
    s.listen(0)
    kept.append(s)
    for _ in range(4):
        c = socket.socket(socket.AF_UNIX)
        c.setblocking(False)
        try:
            c.connect(name)
        except BlockingIOError:
            pass
        kept.append(c)
    return name


# -- cases ---------------------------------------------------------------------------------------------------

def gdbstubs():
    for peer, talk in (("sends acknowledgements for ever", for_ever(b"+" * 4096)),
                       ("sends a packet without end", for_ever(b"$" + b"A" * 4095)),
                       ("sends stop replies for ever", for_ever(packet(b"T05thread:01;"))),
                       ("sends packets that nobody asked for", for_ever(packet(b"OK") * 100)),
                       ("sends a byte now and then", for_ever(b"+", 0.2)),
                       ("never answers", silent),
                       ("has always one more thread", answers(b"m1")),
                       ("describes itself for ever", answers(b"mA")),
                       ("prints for ever", answers(b"O41"))):
        case("a gdbstub that " + peer, "attach", "--gdb", tcp(talk), "--image", IMAGE, "-o", "gdb.data")
    case("an address that does not answer", "attach", "--gdb", full_backlog(), "-o", "gdb.data")
    case("a gdbstub that never answers", "attach", "--gdb", tcp(silent), "-o", "gdb.data", number=signal.SIGINT)
    case("a gdbstub that never answers", "attach", "--gdb", tcp(silent), "-o", "gdb.data", number=signal.SIGHUP)


def files():
    os.mkfifo("fifo")
    os.mkdir("modules")
    for name in ("modules.dep", "modules.builtin", "modules.order"):
        os.mkfifo("modules/" + name)
    run = ["run", "-o", "fifo.data", "--append", "seconds=3600", IMAGE]
    for argv in (["run", "fifo"], [*run, "--initrd", "fifo"], [*run, "--kernel", "fifo"], [*run, "--symbols", "fifo"],
                 [*run, "--disk", "fifo"], ["run", "--snapshot", "fifo"], [*run, "--module", "fifo"],
                 [*run, "--rootfs", "fifo"], [*run, "--modules", "modules", "--modprobe", "ext4"],
                 [*run, "--guest-root", "fifo"], [*run, "--debuginfo", "fifo"], [*run, "--control", "fifo"],
                 ["run", "--domain", "fifo"], ["run", "--domain", "./fifo"], [*run, "--share", "fifo:/mnt"],
                 ["inspect", "fifo"], ["symbols", "fifo"],
                 ["gate", "-c", "fifo", "--base", "fifo", "--head", "fifo"], ["gate", "--base", "fifo", "--head", "fifo"],
                 ["bench", "--base", "fifo", "--head", "fifo"], ["bench", "--config", "fifo", "--base", IMAGE, "--head", IMAGE],
                 ["report", "-i", "fifo"], ["report", "--build-id-map", "fifo", "-i", "fifo"], ["script", "-i", "fifo"],
                 ["annotate", "-i", "fifo", "main"], ["flamegraph", "-i", "fifo", "-o", "x.svg"],
                 ["export", "-i", "fifo", "--format", "pprof", "-o", "x.pb"], ["mem", "-i", "fifo"],
                 ["diff", "fifo", "fifo"], ["diverge", "fifo", "fifo"], ["archive", "-i", "fifo", "-o", "x.tar"],
                 ["push", "-i", "fifo", "http://127.0.0.1:9"], ["import", "fifo"], ["import", "-"],
                 ["ctl", "--control", "fifo", "status"], ["top", "--control", "fifo"], ["scan", "fifo"],
                 ["attach", "1", "--image", "fifo"]):
        stdin = None
        if argv[-1] == "-":
            read, write = os.pipe()
            stdin = read
            kept.append(os.fdopen(write, "wb"))
        case("a FIFO: " + " ".join(a for a in argv[1:] if a not in run)[:38], *argv, stdin=stdin)


def servers():
    case("a server that never answers", "push", "-i", "profile.data", "http://" + tcp(silent))
    case("a server that answers a byte now and then", "push", "-i", "profile.data",
         "http://" + tcp(for_ever(b"HTTP/1.1 100 Continue\r\n\r\n", 0.2)))
    case("an address that does not answer", "push", "-i", "profile.data", "http://" + full_backlog())
    e2e.run("strip", "-g", "-o", "stripped.elf", IMAGE)
    case("a debuginfod that never answers", "symbols", "stripped.elf", "demo_main",
         DEBUGINFOD_URLS="http://" + tcp(silent), DEBUGINFOD_CACHE_PATH=os.path.abspath("debuginfod"),
         HOME=os.path.abspath("nobody"))
    for command in (["ctl", "--control", "{}", "status"], ["top", "--control", "{}"], ["ps", "--control", "{}"]):
        name = command[0]
        for peer, path in (("a control socket that never answers", unix(name + "-s", silent)),
                           ("a control socket that answers without end", unix(name + "-a", for_ever(b" " * 4096))),
                           ("a control socket with a full queue", full_unix(name + "-f"))):
            case(peer, *(path if a == "{}" else a for a in command))
    uri = "qemu+unix:///system?socket=" + unix("libvirt-s", silent)
    case("a libvirtd that never answers", "attach", "--connect", uri, "--domain", "any", "-o", "virt.data")
    case("a libvirtd that never answers", "ps", "--connect", uri, "--domain", "any")
    case("a libvirtd that never answers", "list", "--domains", "--connect", uri)
    case("a libvirtd that never answers", "run", "--domain", "any", "--connect", uri)


def connect(path, until):
    """A client of the socket at path, whose file is there a moment before somebody listens."""
    while True:
        c = socket.socket(socket.AF_UNIX)
        try:
            c.connect(path)
            return c
        except ConnectionRefusedError:
            c.close()
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def runs(kernel):
    """Guests that run, with somebody who stalls."""
    long = ["--append", "seconds=3600"]
    read, write = os.pipe()
    kept.append(os.fdopen(read, "rb"))
    case("a reader of the profile that does not read", "run", "-q", "-F", "20000", "-o", "-", *long, stdout=write)
    os.close(write)
    read, write = os.pipe()
    kept.append(os.fdopen(read, "rb"))
    case("a reader of the console that does not read", "run", "-o", "console.data", *long, stdout=write)
    os.close(write)
    client = case("a client of the control socket that stalls", "run", "-q", "--control", os.path.abspath("stalled"), "-o",
                  "stalled.data", *long)
    top = case("a run that is stopped", "top", "--stdio", "--", *long)
    os.mkdir("shared")
    share = case("a process of a share that is stopped", "run", "-q", kernel, "--share", "shared:/mnt", "-o",
                 "share.data")
    until = time.monotonic() + 30
    while not os.path.exists("stalled") and time.monotonic() < until and client.process.poll() is None:
        time.sleep(0.02)
    for _ in range(4):
        c = connect("stalled", until)
        c.setblocking(False)
        try:
            while True:
                c.send(b'{"cmd":"status"}\n' * 100)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            pass
        kept.append(c)
    network = case("a process of the network that is stopped", "run", "-q", "--net", "user", "-o", "net.data", *long)
    return top, share, network


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def starts(kernel):
    """A process of a run that is stopped while the run starts: the one that tries the namespaces lives for some
    milliseconds only."""
    for _ in range(20):
        c = Case("a process of its start that is stopped", "run", "-q", kernel, "--share", "shared:/mnt", "-o", "start.data")
        stopped = []
        until = time.monotonic() + 10
        while not stopped and c.process.poll() is None and time.monotonic() < until:
            for pid in children(c.process.pid):
                try:
                    with open("/proc/%d/comm" % pid, encoding="ascii") as f:
                        if f.read() != "kvmprof\n" or len(children(c.process.pid)) < 3:
                            continue
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
                except OSError:
                    pass
        time.sleep(0.2)
        caught = [pid for pid in stopped if pid in children(c.process.pid)]
        table.append(c.end())
        for pid in caught:
            os.kill(pid, signal.SIGKILL)
        if caught:
            return
    e2e.left_out("no process of a start could be stopped")


def machine():
    """A QEMU that stops while it is attached to, and goes on afterwards."""
    if not e2e.has_tool("qemu-system-x86_64"):
        return
    q, stub = qemu.Qemu.with_stub("peer")
    try:
        for what in ("after its start", "while it is sampled"):
            a = case("a gdbstub that stops " + what, "attach", "--gdb", stub, "--image", IMAGE, "-o", "qemu.data")
            if what != "after its start":
                time.sleep(2)
            os.kill(q.pid, signal.SIGSTOP)
            time.sleep(0.5)
            table.append(a.end())
            cases.remove(a)
            os.kill(q.pid, signal.SIGCONT)
            check(q.process.poll() is None and qemu.goes_on(q.pid, what), "the machine is gone")
    finally:
        q.end()


# It may have to be built, which takes an hour beside guests that compute.
kernel = glob.glob(os.path.join(e2e.built_kernel("tiny"), "bzImage"))[0]
table = []
p = e2e.kvmprof("run", "-q", "--append", "seconds=1", "-o", "profile.data")
if p.status:
    e2e.need_kvm()
gdbstubs()
files()
servers()
stopped = runs(kernel)
time.sleep(SETTLE)
for c in stopped:
    until = time.monotonic() + 30
    while not children(c.process.pid) and c.process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    pids = children(c.process.pid)
    check(pids, "%s: nothing is there that could be stopped: %s" % (c.peer, c.err()[-300:]))
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
for c in cases:
    table.append(c.end())
cases.clear()
starts(kernel)
machine()
say("the slowest of %d: %.2f s; %d took more than %d s" %
    (len(table), max(table), sum(s > PROMISED for s in table), PROMISED))
e2e.finish("%d peers, at most %.2f s from the signal to the end" % (len(table), max(table)))

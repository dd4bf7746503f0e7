# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine of tests/e2e/microvmm.c: a VMM with the habits of Firecracker and Cloud Hypervisor."""

import json
import os
import shlex
import subprocess
import time

import compiled
import e2e

DEMO = os.path.join(e2e.BUILD, "guest", "demo.elf")
SOURCES = ("microvmm.c", "microvmm_memory.c")


def build():
    compiled.cc("-std=gnu11", "-O2", "-D_GNU_SOURCE", "-I" + e2e.TOP, *shlex.split(os.environ.get("CFLAGS", "")),
                "-o", "microvmm", *(os.path.join(e2e.TOP, "tests", "e2e", x) for x in SOURCES), "-lseccomp", "-lpthread")


class MicroVM:
    """append: the guest's command line; name: the machine's, as Firecracker has it; options: of microvmm, without the dashes."""

    def __init__(self, append="seconds=600", vmm="cloud-hypervisor", console="microvm.console", name=None, **options):
        argv = ["./microvmm", *([] if "restore" in options else ["--kernel", DEMO]), "--append", append, "--names", vmm, "--filter", vmm]
        for option, value in options.items():
            argv += ["--" + option.replace("_", "-"), str(value)]
        argv += ["--id", name] if name else []
        self.console = open(console, "wb+")
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.console, text=True)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for f in (self.process.stdin, self.process.stdout, self.console):
            try:
                f.close()
            except BrokenPipeError:
                pass

    def alive(self):
        return self.process.poll() is None

    def tell(self, command):
        """Its answer; None when it has ended."""
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            return self.process.stdout.readline().strip() or None
        except BrokenPipeError:
            return None

    def stats(self):
        answer = self.tell("stats")
        return json.loads(answer) if answer else None

    def text(self):
        with open(self.console.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def wait_for(self, text, seconds=60):
        until = time.monotonic() + seconds
        while text not in self.text() and self.alive() and time.monotonic() < until:
            time.sleep(0.01)
        return text in self.text()

    def schedstat(self):
        """Of its first vCPU's thread: ns on a processor, and ns in which it waited for one."""
        with open("/proc/%d/task/%d/schedstat" % (self.pid, self.stats()["tid"][0]), encoding="ascii") as f:
            return [int(word) for word in f.read().split()[:2]]

    def cpu_ns(self):
        """Processor time of its first vCPU's thread."""
        return self.schedstat()[0]

    def awake_ns(self):
        """How long its first vCPU's thread has not slept."""
        return sum(self.schedstat())

    def has_vcpus(self, n, seconds=20):
        """Waits until it has made so many vCPUs in all."""
        until, made = time.monotonic() + seconds, 0
        while made < n and self.alive() and time.monotonic() < until:
            time.sleep(0.01)
            links = (os.path.realpath(fd.path) for fd in os.scandir("/proc/%d/fd" % self.pid))
            made = sum("kvm-vcpu" in link for link in links)
        return made >= n

    def goes_on(self, seconds=20):
        before, until = self.cpu_ns(), time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.02)
            if self.cpu_ns() > before + 2000000:
                return True
        return False

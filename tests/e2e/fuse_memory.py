# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine's memory in a file on FUSE (fuse_file.c), whose server knows who reads which page."""

import os
import subprocess

import compiled
import e2e


class FuseFile:
    """A file on FUSE (fuse_file.c) for a machine's memory; why: the reason that there is none."""

    def __init__(self, size):
        compiled.cc("-std=gnu11", "-O2", "-D_GNU_SOURCE", "-Wall", "-o", "fuse_file", os.path.join(e2e.TOP, "tests", "e2e", "fuse_file.c"))
        os.makedirs("fuse", exist_ok=True)
        self.process = subprocess.Popen(["./fuse_file", "fuse", str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        answer = self.process.stdout.readline().strip()
        self.why = "" if answer == "ok" else answer or "no answer"
        self.path = os.path.abspath("fuse/memory")

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def asked_by_others(self, pid):
        """Processes that read since the last question, but for this one and the kernel's own threads."""
        found = {int(p) for p in self.tell("asked").split()}
        return [p for p in found if p and not os.path.exists("/proc/%d/task/%d" % (pid, p)) and not self.is_kernel(p)]

    @staticmethod
    def is_kernel(pid):
        try:
            os.readlink("/proc/%d/exe" % pid)
        except OSError:
            return os.path.exists("/proc/%d" % pid)
        return False

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

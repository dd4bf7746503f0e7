# SPDX-License-Identifier: GPL-2.0-or-later
"""A real QEMU with its console in a file."""

import os
import subprocess
import time

import e2e
from e2e import check

# The demo guest under KVM, with what it asks for behind -append.
DEMO = ["-accel", "kvm", "-cpu", "host,-arch-capabilities", "-M", "microvm,acpi=off", "-m", "128",
        "-kernel", os.path.join(e2e.BUILD, "guest", "demo.elf"), "-append"]


class Qemu:
    def __init__(self, name, *args):
        self.out = name + ".console"
        if os.path.exists(self.out):  # an earlier machine's
            os.unlink(self.out)
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-display", "none", "-nodefaults", "-no-reboot",
             "-serial", "file:" + self.out, *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.pid = self.process.pid

    def console(self):
        try:
            with open(self.out, encoding="ascii", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def wait_for(self, text, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if text in self.console():
                return True
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        return check(False, "no '%s' on the console:\n%s" % (text, self.console()[-2000:]))

    def end(self):
        self.process.kill()
        self.process.communicate()

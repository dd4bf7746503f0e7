# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest of QEMU's, one instruction after the other, by its gdbstub (GDB manual, appendix E; the
packet Qqemu.sstep is QEMU's, docs/system/gdb.rst): what was executed, without any counter of ours."""

import os
import socket
import subprocess
import time

RIP = 16
# SSTEP_ENABLE, _NOIRQ, _NOTIMER: time stands, and no interrupt comes. With them the guest would see each step
# as milliseconds.
WITHOUT_INTERRUPTS = 7
MOST = 200000  # steps: some ten seconds for 30,000


class Guest:
    def __init__(self, *argv):
        path = os.path.abspath("gdb.sock")
        self.process = subprocess.Popen([os.environ["KVMPROF_QEMU"], *argv, "-S", "-gdb", "unix:%s,server=on,wait=off" % path],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end = time.monotonic() + 30
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(path)
                break
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("no gdbstub: %s" % self.process.stderr.read())
                time.sleep(0.05)
        self.buffer = b""
        self.ask("Qqemu.sstep=%x" % WITHOUT_INTERRUPTS)

    def ask(self, text):
        body = text.encode()
        self.socket.sendall(b"$%s#%02x" % (body, sum(body) & 255))
        while True:
            at = self.buffer.find(b"#")
            if at >= 0 and len(self.buffer) >= at + 3:
                answer = self.buffer[self.buffer.index(b"$") + 1:at]
                self.buffer = self.buffer[at + 3:]
                self.socket.sendall(b"+")
                return answer.decode()
            more = self.socket.recv(65536)
            if not more:
                raise RuntimeError("QEMU has gone")
            self.buffer += more

    def pc(self):
        return int.from_bytes(bytes.fromhex(self.ask("p%x" % RIP)), "little")

    def run_to(self, address):
        if self.ask("Z1,%x,1" % address) != "OK":
            raise RuntimeError("no breakpoint")
        self.ask("c")
        self.ask("z1,%x,1" % address)

    def steps_to(self, address):
        """The addresses of all instructions from here up to that one, which is not executed."""
        trail, pc = [], self.pc()
        while pc != address:
            if len(trail) == MOST:
                raise RuntimeError("not there after %d steps, at %#x" % (MOST, pc))
            trail.append(pc)
            self.ask("s")
            pc = self.pc()
        return trail

    def end(self):
        self.socket.close()
        self.process.kill()
        self.process.communicate()

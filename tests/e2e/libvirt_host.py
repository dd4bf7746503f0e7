# SPDX-License-Identifier: GPL-2.0-or-later
"""A libvirtd of a test's own, without systemd and without touching the system's.

libvirtd as root has fixed paths (/etc/libvirt, /run/libvirt, /var/lib/libvirt, ...). So the
test begins again in a mount namespace of its own, where these are directories in its scratch
directory. The daemons run in the foreground as children; the machines that they start are
known by libvirt's own PID files. All of them are ended by their PIDs.
"""

import os
import shutil
import signal
import subprocess
import sys
import time

import e2e

MARK = "KVMPROF_TEST_NAMESPACE"
RUN = "/run/libvirt/qemu"

# Sandboxing that needs cgroups, systemd or a security module is off. The machines run as root.
QEMU_CONF = """user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
"""
DAEMON_CONF = """auth_unix_rw = "none"
auth_unix_ro = "none"
unix_sock_group = "root"
log_outputs = "3:file:/var/log/libvirt/libvirtd.log"
"""


def need():
    """Skips where this can't be; else goes on in the namespace."""
    if os.geteuid() != 0:
        e2e.skip("libvirtd as root is needed, and this is not root")
    for tool in ("libvirtd", "virtlogd", "virsh", "qemu-system-x86_64", "unshare", "mount"):
        e2e.need_tool(tool)
    if os.environ.get(MARK):
        return
    p = e2e.run("unshare", "-m", "mount", "-t", "tmpfs", "none", "/run")
    if p.status:
        e2e.skip("no mount namespace here: " + p.err.strip())
    os.environ[MARK] = "1"
    script = os.path.join(e2e.TOP, "tests", "e2e", os.path.basename(sys.argv[0]))
    os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, script,
                          e2e.KVMPROF, e2e.SCRATCH] + e2e.EXTRA)


def put(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def own_directories():
    for where in ("/etc/libvirt", "/run", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt"):
        own = os.path.join(e2e.SCRATCH, "host", where[1:].replace("/", "-"))
        os.makedirs(own)
        if not os.path.isdir(where):
            # Only /var/lib and the like are sure to be there, and the image is not ours to change.
            parent = os.path.dirname(where)
            over = os.path.join(e2e.SCRATCH, "host", parent[1:].replace("/", "-"))
            os.makedirs(os.path.join(over, os.path.basename(where)))
            subprocess.check_call(["mount", "--bind", over, parent])
        subprocess.check_call(["mount", "--bind", own, where])
    # Debian's libvirtd wants its user to exist even where it is not used.
    for path, line in (("/etc/passwd", "libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin\n"),
                       ("/etc/group", "libvirt-qemu:x:64055:\n")):
        text = read(path)
        own = os.path.join(e2e.SCRATCH, "host", os.path.basename(path))
        put(own, text + ("" if "\nlibvirt-qemu:" in text else line))
        subprocess.check_call(["mount", "--bind", own, path])
    put("/etc/libvirt/qemu.conf", QEMU_CONF)
    put("/etc/libvirt/libvirtd.conf", DAEMON_CONF)
    os.makedirs("/run/libvirt")


def virsh(*argv, timeout=60):
    return e2e.run("virsh", "-q", "-c", "qemu:///system", *argv, timeout=timeout)


class Host:
    """With-statement: the daemons run inside of it, and nothing that they started after it."""

    def __init__(self):
        self.daemons = []

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        own_directories()
        try:
            self.begin("virtlogd")
            self.begin("libvirtd")
            self.wait_until_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self, name):
        with open(name + ".out", "ab") as out:
            self.daemons.append(subprocess.Popen([name], stdin=subprocess.DEVNULL, stdout=out,
                                                 stderr=out))

    @staticmethod
    def stop(daemon):
        if daemon.poll() is None:
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def restart_daemon(self):
        """libvirtd comes back and finds its machines, which ran on."""
        self.stop(self.daemons.pop())
        self.begin("libvirtd")
        self.wait_until_ready()

    def wait_until_ready(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            p = virsh("list")
            if p.status == 0:
                return
            if any(d.poll() is not None for d in self.daemons):
                break
            time.sleep(0.1)
        log = "/var/log/libvirt/libvirtd.log"
        e2e.skip("libvirtd does not work here: %s" %
                 ((p.err + (read(log) if os.path.exists(log) else "") + read("libvirtd.out")
                   ).strip().split("\n")[-1]))

    def __exit__(self, *_):
        pids = []
        for f in os.listdir(RUN) if os.path.isdir(RUN) else []:
            if f.endswith(".pid") and f != "driver.pid":
                try:
                    pids.append(int(read(os.path.join(RUN, f))))
                except (OSError, ValueError):
                    pass
        for d in reversed(self.daemons):
            self.stop(d)
        for pid in pids:
            try:
                # The number may be another's by now; the namespace's machines are all called so.
                with open("/proc/%d/cmdline" % pid, "rb") as f:
                    if b"qemu-system" in f.read():
                        os.kill(pid, signal.SIGKILL)
            except (OSError, ValueError):
                pass


def domain_xml(name, kernel, cmdline, console, uuid=None, extra="", vcpus=1, mib=128):
    """Machine pc with a PVH kernel; the processor is the host's, see docs/attach.md."""
    return """<domain type='kvm'>
  <name>%s</name>%s
  <memory unit='MiB'>%d</memory>
  <vcpu>%d</vcpu>
  <os>
    <type arch='x86_64' machine='pc'>hvm</type>
    <kernel>%s</kernel>
    <cmdline>%s</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='host-passthrough' migratable='off'>
    <feature policy='disable' name='arch-capabilities'/><feature policy='disable' name='invtsc'/>
  </cpu>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <emulator>%s</emulator>
    <serial type='file'><source path='%s'/><target port='0'/></serial>
    <memballoon model='none'/>%s
  </devices>
</domain>
""" % (name, "\n  <uuid>%s</uuid>" % uuid if uuid else "", mib, vcpus, kernel, cmdline,
       shutil.which("qemu-system-x86_64"), console, extra)

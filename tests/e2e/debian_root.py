# SPDX-License-Identifier: GPL-2.0-or-later
"""A bare Debian of another release in a directory, and programs run in it.

The directory is the root of a mount namespace of its own (pivot_root, not chroot: perf looks at
mount namespaces) with /dev/kvm, and of a process namespace. Both end with the program, so nothing
stays mounted or running. Daemons are not started in it. The sources are a copy, in /src.

The packages come from where apt of this host gets Debian's, else from Debian's own mirror."""

import os
import shutil
import subprocess
import time

import e2e
from e2e import check, say

MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEVICES = "null zero full random urandom tty kvm net/tun"

# Arguments: the new root, the cache of packages, a shell command.
ENTER = """
set -e
mount --rbind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm dev/net
for d in %s; do
    [ -e /dev/$d ] || continue
    : >dev/$d
    mount --bind /dev/$d dev/$d
done
mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for n in 0,stdin 1,stdout 2,stderr; do ln -s /proc/self/fd/${n%%,*} dev/${n#*,}; done
mount --bind "$2" var/cache/apt/archives
mkdir -p old
pivot_root . old
cd /
umount -l /old
exec env -i PATH=%s HOME=/root LC_ALL=C.UTF-8 sh -c "cd /src; $3"
""" % (DEVICES, PATH)

# What that does of which a container may forbid something.
TRIED = """
mount -t tmpfs none /run
cd /run
mkdir proc sys pts old
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t devpts -o newinstance devpts pts
pivot_root . old
"""


def need():
    if os.geteuid() != 0:
        e2e.skip("a root directory of one's own needs root")
    for tool in ("mmdebstrap", "unshare", "pivot_root", "tar"):
        e2e.need_tool(tool)
    if not os.path.exists(KEYRING):
        e2e.skip("%s is not there: install debian-archive-keyring" % KEYRING)
    p = e2e.run("unshare", "--mount", "--pid", "--fork", "--propagation", "private", "sh", "-ec", TRIED)
    if p.status:
        e2e.skip("no mount namespace of one's own may be made here: " + p.err.strip())


def mirror():
    """apt itself reads its sources, of either format."""
    p = e2e.run("apt-get", "indextargets", "--format", "$(ORIGIN)|$(COMPONENT)|$(RELEASE)|$(REPO_URI)",
                "Created-By: Packages")
    for line in p.out.split("\n") if p.status == 0 else []:
        words = line.split("|")
        if words[:2] == ["Debian", "main"] and "-" not in words[2]:
            return words[3]
    return MIRROR


def proxy():
    """apt's settings of this host for it, as a configuration file."""
    p = e2e.run("apt-config", "dump", "Acquire::http::Proxy", "Acquire::https::Proxy")
    return p.out if p.status == 0 else ""


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def base(release):
    """The tarball of a bare one; made once a month. Without a network there is no test."""
    cache = os.environ["KVMPROF_CACHE"]
    os.makedirs(cache, exist_ok=True)
    path = os.path.join(cache, "debian-%s.tar" % release)
    if os.path.exists(path) and time.time() - os.path.getmtime(path) < 30 * 86400:
        return path
    source = "deb [signed-by=%s] %s %s main" % (KEYRING, mirror(), release)
    new = "%s.%d" % (path, os.getpid())
    try:
        p = e2e.run("mmdebstrap", "--quiet", "--variant=minbase", "--format=tar", release, new, source,
                    timeout=1200)
        if p.status:
            e2e.skip("mmdebstrap: " + (p.err.strip().split("\n")[-1] or "status %d" % p.status))
        os.rename(new, path)
    finally:
        if os.path.exists(new):
            os.unlink(new)
    return path


def sources(directory):
    """What a clone has, with what is changed here and with the files' times, but nothing that was built."""
    os.makedirs(directory, exist_ok=True)
    p = subprocess.run(["git", "-C", e2e.TOP, "ls-files", "-z", "--cached", "--others",
                        "--exclude-standard"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if p.returncode:
        shutil.copytree(e2e.TOP, directory, dirs_exist_ok=True, symlinks=True,
                        ignore=shutil.ignore_patterns("build*", ".git"))
        return
    for name in p.stdout.decode().split("\0"):
        path = os.path.join(e2e.TOP, name)
        if name and os.path.lexists(path):
            to = os.path.join(directory, name)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy2(path, to, follow_symlinks=False)


class Root:
    def __init__(self, release):
        need()
        tarball = base(release)
        self.path = os.path.join(e2e.SCRATCH, "root")
        self.packages = os.path.join(os.environ["KVMPROF_CACHE"], "debian-%s-packages" % release)
        os.makedirs(os.path.join(self.packages, "partial"), exist_ok=True)
        os.mkdir(self.path)
        subprocess.check_call(["tar", "-C", self.path, "-x", "--numeric-owner", "--exclude=./dev/*", "-f",
                               tarball])
        # apt's own user of the other release is not known here; it fetches as root.
        write(os.path.join(self.path, "etc/apt/apt.conf.d/90test"),
              proxy() + 'APT::Sandbox::User "root";\n')
        write(os.path.join(self.path, "usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n", 0o755)
        shutil.copy("/etc/resolv.conf", os.path.join(self.path, "etc/resolv.conf"))
        shutil.copy("/etc/hosts", os.path.join(self.path, "etc/hosts"))
        sources(os.path.join(self.path, "src"))

    def run(self, command, timeout=1800):
        """A shell command, in /src. It can be asked for what it printed in all."""
        p = e2e.run("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private",
                    "sh", "-c", ENTER, "sh", self.path, self.packages, command, timeout=timeout)
        say("%-60s %5.0f s, status %d" % (command if len(command) < 60 else command[:56] + "...",
                                          p.seconds, p.status))
        return p

    def must(self, command, what, timeout=3600):
        """The same, which fails the test, and shows its last lines, where its status is not 0."""
        p = self.run(command, timeout)
        if not check(p.status == 0, "%s: status %d" % (what, p.status)):
            say("\n".join((p.out + p.err).split("\n")[-40:]))
        return p
